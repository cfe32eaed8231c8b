from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from lamina.adapters.postgres import PostgresAdapter
from lamina.databases.postgres import PostgresDatabase
from lamina.testing import MemoryAdapterContract


@pytest.fixture(scope="module")
def database(postgres) -> Iterator[PostgresDatabase]:
    database = PostgresDatabase(postgres.url)
    asyncio.run(database.open())
    yield database
    asyncio.run(database.close())


@pytest.fixture(scope="module")
def schema(postgres) -> Iterator[str]:
    name = f"test_{secrets.token_hex(6)}"
    yield name
    postgres.run(f'DROP SCHEMA "{name}" CASCADE')


@pytest.fixture(scope="module")
def aside(postgres) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        yield connection


class TestPostgresAdapter(MemoryAdapterContract):
    """On connections that others use too, and in tables that are emptied after each test."""

    @pytest.fixture
    async def adapter(self, database, schema, aside) -> AsyncIterator[PostgresAdapter]:
        adapter = PostgresAdapter(database=database, schema=schema)
        await adapter.initialize()
        yield adapter
        await adapter.close()
        aside.execute(f'DELETE FROM "{schema}".lamina_memories_tenants')
