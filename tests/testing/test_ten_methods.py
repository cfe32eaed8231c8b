import pytest
from ten_methods import TenMethodsAdapter

from lamina.testing import MemoryAdapterContract


class TestTenMethodsAndThePortsDefaultsAreEnough(MemoryAdapterContract):
    @pytest.fixture
    async def adapter(self):
        adapter = TenMethodsAdapter()
        await adapter.initialize()
        yield adapter
        await adapter.close()
