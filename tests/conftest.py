"""What every test may ask for.

A scripted server (`server`), an address of nobody (`unused_url`), a real model (`real_model`), a real PostgreSQL, and
the servers and fakes of the other backends, each by its name.
"""

pytest_plugins = [
    "contract_report",
    "fake_pinecone",
    "fake_postgrest",
    "fake_qdrant",
    "fake_weaviate",
    "real_dynamodb",
    "real_firestore",
    "real_model",
    "real_mongodb",
    "real_postgres",
    "real_redis",
    "real_sqld",
    "scripted_server",
]
