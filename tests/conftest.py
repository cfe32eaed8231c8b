"""What every test may ask for.

A scripted server (`server`), an address of nobody (`unused_url`), a real model (`real_model`), a real PostgreSQL.
"""

pytest_plugins = [
    "fake_pinecone",
    "fake_weaviate",
    "real_model",
    "real_postgres",
    "scripted_server",
]
