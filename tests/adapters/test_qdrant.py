"""Qdrant passes the contract: on the client library's own local engine."""

from collections.abc import AsyncIterator

import pytest

from lamina.adapters.qdrant import QdrantAdapter
from lamina.testing import MemoryAdapterContract


class TestQdrantAdapterOnTheLocalEngine(MemoryAdapterContract):
    @pytest.fixture
    async def adapter(self, qdrant_folder) -> AsyncIterator[QdrantAdapter]:
        adapter = QdrantAdapter(path=qdrant_folder)
        await adapter.initialize()
        yield adapter
        await adapter.close()
