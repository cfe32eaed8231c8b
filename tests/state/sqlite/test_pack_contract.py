from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina.adapters.sqlite import SqliteAdapter
from lamina.databases.sqlite import SqliteDatabase
from lamina.state.sqlite import SqlitePackStore, SqliteStateStore
from lamina.testing import PackStoreContract


class TestSqlitePackStore(PackStoreContract):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[SqlitePackStore]:
        async with SqlitePackStore(tmp_path / "lamina.db") as store:
            yield store
            if store._handle is not None:
                assert await store.check() == []

    @pytest.fixture
    async def second_store(self, store: SqlitePackStore, tmp_path: Path) -> AsyncIterator[SqlitePackStore]:
        async with SqlitePackStore(tmp_path / "lamina.db") as second:
            yield second


class TestSqlitePackStoreInMemory(PackStoreContract):
    is_persistent = False

    @pytest.fixture
    async def store(self) -> AsyncIterator[SqlitePackStore]:
        async with SqlitePackStore(":memory:") as store:
            yield store


class TestSqlitePackStoreOnASharedDatabase(PackStoreContract):
    """Beside memories, the projection of packs and conversations, all on one connection that writes."""

    @pytest.fixture
    async def database(self, tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
        database = SqliteDatabase(tmp_path / "lamina.db")
        async with SqliteStateStore(database=database):
            adapter = SqliteAdapter(database=database, table="lamina_packs")
            await adapter.initialize()
            yield database
            await adapter.close()

    @pytest.fixture
    async def store(self, database: SqliteDatabase) -> AsyncIterator[SqlitePackStore]:
        async with SqlitePackStore(database=database) as store:
            yield store

    @pytest.fixture
    async def second_store(self, database: SqliteDatabase) -> AsyncIterator[SqlitePackStore]:
        async with SqlitePackStore(database=database) as second:
            yield second
