"""What every test may ask for.

A scripted server (`server`), an address of nobody (`unused_url`), a real model (`real_model`), a real PostgreSQL.
"""

pytest_plugins = ["real_model", "real_postgres", "real_sqld", "scripted_server"]
