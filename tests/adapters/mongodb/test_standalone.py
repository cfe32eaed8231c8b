"""A server that is no member of a replica set: what needs transactions is not declared, the rest holds."""

import asyncio

import pytest
from real_mongodb import MongoDBServer

from lamina.adapters.mongodb import MongoDBAdapter
from lamina.errors import AdapterUnavailable, Conflict
from lamina.ports.memory_adapter import Capability
from lamina.testing.memory_contract.material import MINE, NOW, by_text, by_vector, ids, listed, memory, put


@pytest.fixture(scope="module")
def alone():
    server = MongoDBServer("--standalone")
    yield server
    server.stop()


@pytest.fixture
async def adapter(alone, opened):
    adapter = opened(alone.url)
    await adapter.initialize()
    yield adapter
    await adapter.close()
    alone.drop("lamina_memories")


async def test_what_needs_transactions_is_not_declared_once_it_is_open(adapter):
    assert adapter.capabilities == MongoDBAdapter.capabilities - {Capability.TRANSACTIONS, Capability.COMPARE_AND_SET}
    assert Capability.TRANSACTIONS in MongoDBAdapter.capabilities


async def test_deeds_of_one_memory_are_whole(adapter):
    batch = [memory("m1", embedding=[1.0, 0.0]), memory("m2", "a kite")]
    await adapter.store_many(MINE, batch)
    await adapter.update(MINE, "m1", {"content": "a red lamp"})
    await adapter.touch(MINE, ["m1", "m1"], NOW)
    assert await adapter.delete(MINE, "m2")
    [entry] = await listed(adapter)
    assert (entry.content, entry.revision, entry.access_count) == ("a red lamp", 2, 2)
    assert ids(await by_text(adapter, "lamp")) == ids(await by_vector(adapter, [1.0, 0.0])) == ["m1"]
    assert [each.content for each in await adapter.history(MINE, "m1")] == ["the harbour lamp is lit"]


async def test_a_revision_that_is_expected_is_compared_by_the_write_itself(adapter):
    await put(adapter, memory())

    async def change(number):
        try:
            return await adapter.update(MINE, "m1", {"content": f"changed {number}"}, expected_revision=1)
        except Conflict:
            return False

    assert sum(await asyncio.gather(*map(change, range(10)))) == 1


async def test_a_version_whose_successor_never_came_is_no_history(alone, adapter):
    await put(adapter, memory())
    with alone.failing("update", times=1, errorCode=14031), pytest.raises(AdapterUnavailable, match="no space left"):
        await adapter.update(MINE, "m1", {"content": "a red lamp"})
    assert await adapter.history(MINE, "m1") == []
    await adapter.update(MINE, "m1", {"content": "a blue lamp"})
    assert [each.content for each in await adapter.history(MINE, "m1")] == ["the harbour lamp is lit"]
