from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from lamina.databases.postgres import PostgresDatabase
from lamina.state.postgres import PostgresServerStore
from lamina.testing import ServerStoreContract


class TestPostgresServerStore(ServerStoreContract):
    @pytest.fixture
    async def store(self, postgres_url: str, postgres_schema: str) -> AsyncIterator[PostgresServerStore]:
        async with PostgresServerStore(postgres_url, schema=postgres_schema) as store:
            yield store

    @pytest.fixture
    async def second_store(self, postgres_url: str, postgres_schema: str) -> AsyncIterator[PostgresServerStore]:
        async with PostgresServerStore(postgres_url, schema=postgres_schema) as store:
            yield store


class TestPostgresServerStoreOnASharedDatabase(ServerStoreContract):
    @pytest.fixture
    async def database(self, postgres_url: str) -> AsyncIterator[PostgresDatabase]:
        async with PostgresDatabase(postgres_url, connections=2) as database:
            yield database

    @pytest.fixture
    async def store(self, database: PostgresDatabase, postgres_schema: str) -> AsyncIterator[PostgresServerStore]:
        async with PostgresServerStore(database=database, schema=postgres_schema) as store:
            yield store

    @pytest.fixture
    async def second_store(
        self, database: PostgresDatabase, postgres_schema: str
    ) -> AsyncIterator[PostgresServerStore]:
        async with PostgresServerStore(database=database, schema=postgres_schema) as store:
            yield store
