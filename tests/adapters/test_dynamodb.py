"""The contract of memory adapters on DynamoDB."""

from collections.abc import AsyncIterator

import pytest
from real_dynamodb import KEYS, DynamoDBServer

from lamina.adapters.dynamodb import DynamoDBAdapter
from lamina.testing import MemoryAdapterContract


class TestDynamoDBAdapterAgainstTheOfficialEmulator(MemoryAdapterContract):
    service = "dynamodb"

    @pytest.fixture
    async def adapter(self, dynamodb: DynamoDBServer) -> AsyncIterator[DynamoDBAdapter]:
        adapter = DynamoDBAdapter(dynamodb.url, table="contract", **KEYS)
        await adapter.initialize()
        yield adapter
        await adapter.close()
        dynamodb.empty("contract")
