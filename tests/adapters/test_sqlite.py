from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina.adapters.sqlite import SqliteAdapter
from lamina.databases.sqlite import SqliteDatabase
from lamina.state.sqlite import SqliteStateStore
from lamina.testing import MemoryAdapterContract
from lamina.testing.memory_contract.batches import BatchContract
from lamina.testing.memory_contract.concurrency import ConcurrencyContract
from lamina.testing.memory_contract.history import HistoryContract
from lamina.testing.memory_contract.texts import TextContract
from lamina.testing.memory_contract.vectors import VectorContract
from lamina.testing.memory_contract.writing import WritingContract


class TestSqliteAdapter(MemoryAdapterContract):
    @pytest.fixture
    async def adapter(self, tmp_path: Path) -> AsyncIterator[SqliteAdapter]:
        adapter = SqliteAdapter(tmp_path / "lamina.db")
        await adapter.initialize()
        yield adapter
        await adapter.close()


class TestSqliteAdapterOnASharedDatabase(
    VectorContract, TextContract, WritingContract, BatchContract, HistoryContract, ConcurrencyContract
):
    """Beside another collection and a state store, which keep the file open.

    So what is written, in transactions that all share, and the indexes that have the other collection's beside them.
    The statements are those of an adapter with a file of its own.
    """

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
