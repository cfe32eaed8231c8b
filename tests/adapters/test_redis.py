"""The contract against a real Redis, with the query engine and without."""

import secrets
from collections.abc import AsyncIterator

import pytest

from lamina.adapters.redis import RedisAdapter
from lamina.testing import MemoryAdapterContract


class TestRedisAdapter(MemoryAdapterContract):
    service = "redis"

    @pytest.fixture
    async def adapter(self, redis_server) -> AsyncIterator[RedisAdapter]:
        adapter = RedisAdapter(redis_server.url, table=f"t{secrets.token_hex(6)}", query_engine=True)
        await adapter.initialize()
        yield adapter
        await adapter.close()
        redis_server.ask("FLUSHALL")


class TestRedisAdapterWithoutTheQueryEngine(MemoryAdapterContract):
    service = "redis-without-query-engine"

    @pytest.fixture
    async def adapter(self, plain_redis_server) -> AsyncIterator[RedisAdapter]:
        adapter = RedisAdapter(plain_redis_server.url, table=f"t{secrets.token_hex(6)}")
        await adapter.initialize()
        yield adapter
        await adapter.close()
        plain_redis_server.ask("FLUSHALL")
