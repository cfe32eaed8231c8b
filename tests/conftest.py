"""What every test may ask for.

A scripted server (`server`), an address of nobody (`unused_url`), a real model (`real_model`), a real PostgreSQL, the
servers and fakes of the other backends, each by its name, and the public suite of MCP (`mcp_conformance`).
"""

import gc

import pytest

pytest.register_assert_rewrite("store_proofs")

pytest_plugins = [
    "contract_report",
    "fake_pinecone",
    "fake_postgrest",
    "fake_qdrant",
    "fake_weaviate",
    "mcp_conformance",
    "real_dynamodb",
    "real_firestore",
    "real_model",
    "real_mongodb",
    "real_postgres",
    "real_redis",
    "real_sqld",
    "scripted_server",
]


def pytest_configure():
    """What collecting makes stays: to look through it for garbage, again and again, is a third of the time it takes."""
    gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()
