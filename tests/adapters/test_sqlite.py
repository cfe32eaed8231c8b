from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina.adapters.sqlite import SqliteAdapter
from lamina.databases.sqlite import SqliteDatabase
from lamina.state.sqlite import SqliteStateStore
from lamina.testing import MemoryAdapterContract


class TestSqliteAdapter(MemoryAdapterContract):
    @pytest.fixture
    async def adapter(self, tmp_path: Path) -> AsyncIterator[SqliteAdapter]:
        adapter = SqliteAdapter(tmp_path / "lamina.db")
        await adapter.initialize()
        yield adapter
        await adapter.close()


class TestSqliteAdapterOnASharedDatabase(MemoryAdapterContract):
    """Beside another collection and a state store, which keep the file open."""

    @pytest.fixture
    async def adapter(self, tmp_path: Path) -> AsyncIterator[SqliteAdapter]:
        database = SqliteDatabase(tmp_path / "lamina.db")
        other = SqliteAdapter(database=database, table="other")
        await other.initialize()
        async with SqliteStateStore(database=database):
            adapter = SqliteAdapter(database=database)
            await adapter.initialize()
            yield adapter
            await adapter.close()
        await other.close()
