from collections.abc import AsyncIterator

import pytest
from real_mongodb import MongoDBServer

from lamina.adapters.mongodb import MongoDBAdapter
from lamina.testing import MemoryAdapterContract


class TestMongoDBAdapterAgainstAThirdPartyEmulator(MemoryAdapterContract):
    service = "mongodb"

    @pytest.fixture
    async def adapter(self, mongodb: MongoDBServer, mongodb_table: str) -> AsyncIterator[MongoDBAdapter]:
        adapter = MongoDBAdapter(mongodb.url, table=mongodb_table, timeout=120)
        await adapter.initialize()
        yield adapter
        await adapter.close()
