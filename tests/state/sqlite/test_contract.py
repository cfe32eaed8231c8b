from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina.adapters.sqlite import SqliteAdapter
from lamina.databases.sqlite import SqliteDatabase
from lamina.state.sqlite import SqliteStateStore
from lamina.testing import StateStoreContract


class TestSqliteStateStore(StateStoreContract):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[SqliteStateStore]:
        async with SqliteStateStore(tmp_path / "lamina.db") as store:
            yield store
            if store._handle is not None:
                assert await store.check() == []

    @pytest.fixture
    async def second_store(self, store: SqliteStateStore, tmp_path: Path) -> AsyncIterator[SqliteStateStore]:
        async with SqliteStateStore(tmp_path / "lamina.db") as second:
            yield second


class TestSqliteStateStoreInMemory(StateStoreContract):
    is_persistent = False

    @pytest.fixture
    async def store(self) -> AsyncIterator[SqliteStateStore]:
        async with SqliteStateStore(":memory:") as store:
            yield store


class TestSqliteStateStoreOnASharedDatabase(StateStoreContract):
    """Beside a collection of memories, all on one connection that writes."""

    @pytest.fixture
    async def database(self, tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
        database = SqliteDatabase(tmp_path / "lamina.db")
        adapter = SqliteAdapter(database=database)
        await adapter.initialize()
        yield database
        await adapter.close()

    @pytest.fixture
    async def store(self, database: SqliteDatabase) -> AsyncIterator[SqliteStateStore]:
        async with SqliteStateStore(database=database) as store:
            yield store

    @pytest.fixture
    async def second_store(self, database: SqliteDatabase) -> AsyncIterator[SqliteStateStore]:
        async with SqliteStateStore(database=database) as second:
            yield second
