"""Qdrant passes the contract: on the client library's own local engine, and through the client's REST calls to a fake.

No package brings the server; the fake, on the same engine, stands for it on the wire.
"""

from collections.abc import AsyncIterator

import pytest

from lamina.adapters.qdrant import QdrantAdapter
from lamina.testing import MemoryAdapterContract


class TestQdrantAdapterOnTheLocalEngine(MemoryAdapterContract):
    service = "real engine: the local mode of the vendor's client"

    @pytest.fixture
    async def adapter(self, qdrant_folder) -> AsyncIterator[QdrantAdapter]:
        adapter = QdrantAdapter(path=qdrant_folder)
        await adapter.initialize()
        yield adapter
        await adapter.close()


class TestQdrantAdapterAgainstAWireFakeOverTheLocalEngine(MemoryAdapterContract):
    service = "qdrant"

    @pytest.fixture
    async def adapter(self, qdrant, qdrant_table) -> AsyncIterator[QdrantAdapter]:
        adapter = QdrantAdapter(qdrant.url, table=qdrant_table)
        await adapter.initialize()
        yield adapter
        await adapter.close()
