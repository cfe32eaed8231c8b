from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina.adapters.sqlite import SqliteAdapter
from lamina.databases.sqlite import SqliteDatabase
from lamina.state.sqlite import SqliteServerStore
from lamina.testing import ServerStoreContract


class TestSqliteServerStore(ServerStoreContract):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[SqliteServerStore]:
        async with SqliteServerStore(tmp_path / "lamina.db") as store:
            yield store

    @pytest.fixture
    async def second_store(self, store: SqliteServerStore, tmp_path: Path) -> AsyncIterator[SqliteServerStore]:
        async with SqliteServerStore(tmp_path / "lamina.db") as second:
            yield second


class TestSqliteServerStoreInMemory(ServerStoreContract):
    is_persistent = False

    @pytest.fixture
    async def store(self) -> AsyncIterator[SqliteServerStore]:
        async with SqliteServerStore(":memory:") as store:
            yield store


class TestSqliteServerStoreOnASharedDatabase(ServerStoreContract):
    """Beside a collection of memories, all on one connection that writes."""

    @pytest.fixture
    async def database(self, tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
        database = SqliteDatabase(tmp_path / "lamina.db")
        adapter = SqliteAdapter(database=database)
        await adapter.initialize()
        yield database
        await adapter.close()

    @pytest.fixture
    async def store(self, database: SqliteDatabase) -> AsyncIterator[SqliteServerStore]:
        async with SqliteServerStore(database=database) as store:
            yield store

    @pytest.fixture
    async def second_store(self, database: SqliteDatabase) -> AsyncIterator[SqliteServerStore]:
        async with SqliteServerStore(database=database) as second:
            yield second
