from collections.abc import AsyncIterator, Iterator
from typing import Any

import pymongo
import pytest
from real_mongodb import MongoDBServer

from lamina.adapters.mongodb import MongoDBAdapter
from lamina.testing import MemoryAdapterContract

Client = pymongo.MongoClient[Any]


@pytest.fixture(scope="module")
def aside(mongodb: MongoDBServer) -> Iterator[Client]:
    """A client beside the code under test, for all of it."""
    with mongodb.client() as client:
        yield client


class TestMongoDBAdapterAgainstAThirdPartyEmulator(MemoryAdapterContract):
    service = "mongodb"

    @pytest.fixture
    async def adapter(self, mongodb: MongoDBServer, aside: Client) -> AsyncIterator[MongoDBAdapter]:
        adapter = MongoDBAdapter(mongodb.url, table="contract", timeout=120)
        await adapter.initialize()
        yield adapter
        await adapter.close()
        mongodb.empty(aside, "contract")
