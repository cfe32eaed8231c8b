"""The contract on PostgreSQL 18, and on each other version and kind what such a difference can touch of it.

Always as a role that is no superuser, so the policies of row-level security hold in all of it. The tables are emptied
after each test.
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
from lamina.testing.memory_contract.batches import BatchContract
from lamina.testing.memory_contract.concurrency import ConcurrencyContract
from lamina.testing.memory_contract.filters import FilterContract
from lamina.testing.memory_contract.history import HistoryContract
from lamina.testing.memory_contract.reading import ReadingContract
from lamina.testing.memory_contract.refusals import RefusalContract
from lamina.testing.memory_contract.round_trip import RoundTripContract
from lamina.testing.memory_contract.scopes import ScopeContract
from lamina.testing.memory_contract.texts import TextContract
from lamina.testing.memory_contract.vectors import VectorContract
from lamina.testing.memory_contract.writing import DuplicateContract, WritingContract


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


class TestPostgres16Adapter(
    FilterContract, VectorContract, TextContract, ReadingContract, WritingContract, DuplicateContract, BatchContract
):
    """Every kind of statement, since another version may read or plan it otherwise, and pgvector built for it.

    Left out is what is said in Python (refusals), or in the same statements with other values (scopes, round trips).
    """

    service = "postgres-16"

    @pytest.fixture
    async def adapter(self, on_16) -> AsyncIterator[PostgresAdapter]:
        async for adapter in opened(on_16):
            yield adapter


class WithoutPgvector(PostgresAdapter):
    """Declares what an instance has where there is no pgvector."""

    capabilities = PostgresAdapter.capabilities - {Capability.VECTOR}


class TestPostgres15AdapterWithoutPgvector(
    RoundTripContract, FilterContract, TextContract, ReadingContract, WritingContract, BatchContract
):
    """Every kind of statement but a search by vector: vectors are kept and come back, and a search is refused."""

    test_what_is_not_declared_is_refused = RefusalContract.test_what_is_not_declared_is_refused

    service = "postgres-15"

    @pytest.fixture
    async def adapter(self, on_15) -> AsyncIterator[PostgresAdapter]:
        async for adapter in opened(on_15, WithoutPgvector):
            yield adapter


class TestPostgresAdapterThroughPgBouncerInTransactionMode(
    ScopeContract, VectorContract, WritingContract, BatchContract, HistoryContract, ConcurrencyContract
):
    """What lives longer than a statement: another transaction may get another connection.

    So the tenant for which the policies let rows through, prepared statements, locks, transactions, an index that is
    made on the way. What a statement finds does not depend on how it came.
    """

    service = "pgbouncer"

    @pytest.fixture
    async def adapter(self, on_pgbouncer) -> AsyncIterator[PostgresAdapter]:
        async for adapter in opened(on_pgbouncer):
            yield adapter
