import secrets
from collections.abc import AsyncIterator

import pytest
from real_mongodb import MongoDBServer

from lamina.adapters.mongodb import MongoDBAdapter
from lamina.testing import MemoryAdapterContract


class TestMongoDBAdapterAgainstAThirdPartyEmulator(MemoryAdapterContract):
    @pytest.fixture
    async def adapter(self, mongodb: MongoDBServer) -> AsyncIterator[MongoDBAdapter]:
        adapter = MongoDBAdapter(mongodb.url, table=f"t{secrets.token_hex(6)}")
        await adapter.initialize()
        yield adapter
        await adapter.close()
