from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina.adapters.sqlite import SqliteAdapter
from lamina.testing import MemoryAdapterContract


class TestSqliteAdapter(MemoryAdapterContract):
    @pytest.fixture
    async def adapter(self, tmp_path: Path) -> AsyncIterator[SqliteAdapter]:
        adapter = SqliteAdapter(tmp_path / "lamina.db")
        await adapter.initialize()
        yield adapter
        await adapter.close()
