from collections.abc import AsyncIterator

import pytest

from lamina.adapters.in_memory import InMemoryAdapter
from lamina.testing import MemoryAdapterContract


class TestInMemoryAdapter(MemoryAdapterContract):
    @pytest.fixture
    async def adapter(self) -> AsyncIterator[InMemoryAdapter]:
        adapter = InMemoryAdapter()
        await adapter.initialize()
        yield adapter
        await adapter.close()
