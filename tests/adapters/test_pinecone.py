from collections.abc import AsyncIterator
from itertools import count

import pytest
from fake_pinecone import API_KEY, PineconeFake

from lamina.adapters.pinecone import PineconeAdapter
from lamina.errors import InvalidInput
from lamina.testing import MemoryAdapterContract, known_gap

NUMBERS = count()
TOO_LONG = "Pinecone takes 40 KB of metadata with a record, in which all that is said must fit"


class TestPineconeAdapterAgainstAWireFake(MemoryAdapterContract):
    service = "pinecone"

    @pytest.fixture
    async def adapter(self, pinecone_service: PineconeFake) -> AsyncIterator[PineconeAdapter]:
        if not pinecone_service.indexes:
            pinecone_service.create("memories", 32)
        adapter = PineconeAdapter("memories", api_key=API_KEY, url=pinecone_service.url, table=f"test_{next(NUMBERS)}")
        await adapter.initialize()
        yield adapter
        await adapter.close()

    @known_gap(TOO_LONG, raises=InvalidInput)
    async def test_the_longest_content_comes_back(self, adapter):
        await super().test_the_longest_content_comes_back(adapter)

    @known_gap(TOO_LONG, raises=InvalidInput)
    async def test_long_metadata_comes_back(self, adapter):
        await super().test_long_metadata_comes_back(adapter)
