from collections.abc import AsyncIterator
from itertools import count

import pytest
from fake_weaviate import WeaviateFake

from lamina.adapters.weaviate import WeaviateAdapter
from lamina.testing import MemoryAdapterContract

NUMBERS = count()


class TestWeaviateAdapterAgainstAWireFake(MemoryAdapterContract):
    service = "weaviate"

    @pytest.fixture
    async def adapter(self, weaviate_service: WeaviateFake) -> AsyncIterator[WeaviateAdapter]:
        adapter = WeaviateAdapter(
            weaviate_service.url, grpc_port=weaviate_service.grpc_port, table=f"test_{next(NUMBERS)}"
        )
        await adapter.initialize()
        yield adapter
        await adapter.close()
