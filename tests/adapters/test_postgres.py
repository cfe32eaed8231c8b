"""The contract on every version and kind of PostgreSQL that is supported, each as a role that is no superuser.

So the policies of row-level security hold in all of it. The tables are emptied after each test.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from lamina.adapters.postgres import PostgresAdapter
from lamina.databases.postgres import PostgresDatabase
from lamina.ports.memory_adapter import Capability
from lamina.testing import MemoryAdapterContract


class Place:
    """A database, with connections that are kept from test to test."""

    def __init__(self, url: str, direct_url: str) -> None:
        self.database = PostgresDatabase(url)
        asyncio.run(self.database.open())
        self._aside = psycopg.connect(direct_url, autocommit=True)

    def empty(self) -> None:
        name = self._aside.execute("SELECT current_user").fetchone()[0]
        assert name == "lamina_app"
        self._aside.execute(
            "DO $$ BEGIN ALTER TABLE lamina.lamina_memories_tenants NO FORCE ROW LEVEL SECURITY;"
            " DELETE FROM lamina.lamina_memories_tenants;"
            " ALTER TABLE lamina.lamina_memories_tenants FORCE ROW LEVEL SECURITY; END $$"
        )

    def close(self) -> None:
        self._aside.close()
        asyncio.run(self.database.close())


@contextmanager
def place(server, *, through=None, pgvector=True) -> Iterator[Place]:
    name = "contract"
    server.make_database(name, owner="lamina_app")
    if pgvector:  # which only a superuser may install
        server.run("CREATE EXTENSION vector", url=server.url_of(name))
    made = Place((through or server).url_of(name, user="lamina_app"), server.url_of(name, user="lamina_app"))
    try:
        yield made
    finally:
        made.close()
        server.drop_database(name)


async def opened(place: Place, kind: type[PostgresAdapter] = PostgresAdapter) -> AsyncIterator[PostgresAdapter]:
    adapter = kind(database=place.database)
    await adapter.initialize()
    yield adapter
    await adapter.close()
    place.empty()


@pytest.fixture(scope="module")
def on_18(postgres) -> Iterator[Place]:
    with place(postgres) as made:
        yield made


@pytest.fixture(scope="module")
def on_16(postgres_16) -> Iterator[Place]:
    with place(postgres_16) as made:
        yield made


@pytest.fixture(scope="module")
def on_15(postgres_15) -> Iterator[Place]:
    with place(postgres_15, pgvector=False) as made:
        yield made


@pytest.fixture(scope="module")
def on_pgbouncer(pgbouncer) -> Iterator[Place]:
    with place(pgbouncer.postgres, through=pgbouncer) as made:
        yield made


class TestPostgresAdapter(MemoryAdapterContract):
    service = "postgres"

    @pytest.fixture
    async def adapter(self, on_18) -> AsyncIterator[PostgresAdapter]:
        async for adapter in opened(on_18):
            yield adapter


class TestPostgres16Adapter(MemoryAdapterContract):
    service = "postgres-16"

    @pytest.fixture
    async def adapter(self, on_16) -> AsyncIterator[PostgresAdapter]:
        async for adapter in opened(on_16):
            yield adapter


class WithoutPgvector(PostgresAdapter):
    """Declares what an instance has where there is no pgvector."""

    capabilities = PostgresAdapter.capabilities - {Capability.VECTOR}


class TestPostgres15AdapterWithoutPgvector(MemoryAdapterContract):
    service = "postgres-15"

    @pytest.fixture
    async def adapter(self, on_15) -> AsyncIterator[PostgresAdapter]:
        async for adapter in opened(on_15, WithoutPgvector):
            yield adapter


class TestPostgresAdapterThroughPgBouncerInTransactionMode(MemoryAdapterContract):
    service = "pgbouncer"

    @pytest.fixture
    async def adapter(self, on_pgbouncer) -> AsyncIterator[PostgresAdapter]:
        async for adapter in opened(on_pgbouncer):
            yield adapter
