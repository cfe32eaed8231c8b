"""What every test may ask for.

A scripted server (`server`), an address of nobody (`unused_url`), a real model (`real_model`), a real PostgreSQL,
a project of Supabase.
"""

pytest_plugins = ["fake_postgrest", "real_model", "real_postgres", "scripted_server"]
