"""Qdrant passes the contract through the client's REST calls to a fake, and parts of it without the wire.

No package brings the server; the fake, on the client library's own local engine, stands for it on the wire.
"""

from collections.abc import AsyncIterator

import pytest

from lamina.adapters.qdrant import QdrantAdapter
from lamina.testing import MemoryAdapterContract
from lamina.testing.memory_contract.batches import BatchContract
from lamina.testing.memory_contract.concurrency import ConcurrencyContract
from lamina.testing.memory_contract.round_trip import RoundTripContract
from lamina.testing.memory_contract.texts import TextContract
from lamina.testing.memory_contract.vectors import VectorContract
from lamina.testing.memory_contract.writing import WritingContract


class TestQdrantAdapterOnTheLocalEngine(
    RoundTripContract, VectorContract, TextContract, WritingContract, BatchContract, ConcurrencyContract
):
    """What does not go over the wire: values on their way to the folder, batches without limits, and the one lock.

    The fake answers from the same engine, so scopes, filters and refusals are shown there.
    """

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
    async def adapter(self, qdrant) -> AsyncIterator[QdrantAdapter]:
        adapter = QdrantAdapter(qdrant.url, table="contract")
        await adapter.initialize()
        yield adapter
        await adapter.close()
        qdrant.empty("contract")
