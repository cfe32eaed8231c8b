"""An index that lags behind its writes, as Pinecone's does: an adapter sees what it wrote all the same."""

from itertools import count

import pytest
from fake_pinecone import API_KEY, PineconeFake

from lamina.adapters.pinecone import PineconeAdapter
from lamina.domain.filters import MemoryFilter, Where
from lamina.domain.scope import Scope
from lamina.errors import AdapterError, AdapterUnavailable
from lamina.ports.memory_adapter import Update
from lamina.testing.memory_contract.batches import BatchContract
from lamina.testing.memory_contract.concurrency import ConcurrencyContract
from lamina.testing.memory_contract.material import LIVE, MINE, NOW, by_vector, ids, listed, memory, put, where
from lamina.testing.memory_contract.reading import ReadingContract
from lamina.testing.memory_contract.vectors import VectorContract
from lamina.testing.memory_contract.writing import DuplicateContract, WritingContract

NUMBERS = count()


class TestPineconeAdapterAgainstAWireFakeThatLags(
    WritingContract, DuplicateContract, ReadingContract, VectorContract, BatchContract, ConcurrencyContract
):
    """Every write is seen by the service's own reads only after five more requests."""

    @pytest.fixture
    async def adapter(self, pinecone_service: PineconeFake):
        if not pinecone_service.indexes:
            pinecone_service.create("memories", 32)
        pinecone_service.lag = 5
        adapter = PineconeAdapter(
            "memories", api_key=API_KEY, url=pinecone_service.url, table=f"lagging_{next(NUMBERS)}"
        )
        await adapter.initialize()
        yield adapter
        await adapter.close()
        pinecone_service.lag = 0
        pinecone_service.catch_up()


async def test_what_was_written_is_seen_before_the_index_shows_it(service, adapter):
    service.lag = None
    await put(adapter, memory("m1", "old", embedding=[1.0, 0.0], metadata={"n": 1}, tags=["red"]))
    await put(adapter, memory("m2", "gone", embedding=[0.0, 1.0]), memory("m3", owner="bob"))
    assert ids(await listed(adapter)) == ["m1", "m2"]
    assert await adapter.count(Scope("acme"), LIVE) == 3
    assert ids(await by_vector(adapter, [1.0, 0.1])) == ["m1", "m2"]
    assert ids(await listed(adapter, MINE, where(Where("n").eq(1)))) == ["m1"]
    assert ids(await listed(adapter, MINE, MemoryFilter(now=NOW, tags=("red",)))) == ["m1"]

    await adapter.update(MINE, "m1", {"content": "new", "tags": [], "embedding": [-1.0, 0.0]})
    assert await adapter.delete(MINE, "m2") is True
    assert await adapter.delete(MINE, "m2") is False
    assert [(each.content, each.revision) for each in await listed(adapter)] == [("new", 2)]
    assert [round(hit.similarity, 6) for hit in await by_vector(adapter, [1.0, 0.0])] == [-1.0]
    assert await listed(adapter, MINE, MemoryFilter(now=NOW, tags=("red",))) == []
    [twin] = await adapter.store_many(MINE, [memory("m4", "new")], if_new=True)
    assert twin is not None
    assert twin.id == "m1"
    await adapter.save_meta(MINE, "key", "value", NOW)
    assert await adapter.load_meta(MINE, "key") == "value"


async def test_what_the_index_still_shows_of_before_is_not_seen(service, adapter):
    await put(adapter, memory("m1", "old", embedding=[1.0, 0.0]), memory("m2", embedding=[1.0, 0.0]))
    service.lag = None
    await adapter.update_many(MINE, [Update("m1", {"content": "new", "embedding": [0.0, 1.0]})])
    await adapter.delete_many(MINE, ["m2"])
    assert [each.content for each in await listed(adapter)] == ["new"]
    assert await adapter.count(MINE, LIVE) == 1
    [hit] = await by_vector(adapter, [1.0, 0.0], limit=1)
    assert (hit.entry.id, round(hit.similarity, 6)) == ("m1", 0.0)
    assert await adapter.get(MINE, "m2") is None


async def test_an_adapter_that_opens_again_still_knows_what_it_wrote(service, adapter):
    service.lag = None
    await put(adapter, memory("m1"))
    await adapter.close()
    await adapter.initialize()
    assert ids(await listed(adapter)) == ["m1"]


async def test_what_the_index_shows_is_not_remembered_so_that_others_writes_are_seen(service, opened):
    one, other = await opened(), await opened()
    service.lag = None
    await put(one, memory("m1", "first"))
    service.catch_up()
    await other.update(MINE, "m1", {"content": "second"})
    service.catch_up()
    for adapter in (one, other):
        back = await adapter.get(MINE, "m1")
        assert back is not None
        assert back.content == "second"
        await listed(adapter)
    assert not one._recent.of(one._of_tenant("acme"))
    assert not other._recent.of(other._of_tenant("acme"))


async def test_a_write_waits_for_an_index_that_is_far_behind(service, opened, monkeypatch):
    adapter = await opened(freshness_timeout=0.2)
    monkeypatch.setattr("lamina.adapters.pinecone.namespaces.REMEMBERED", 20)
    service.lag = None
    await adapter.store_many(MINE, [memory(f"m{number}", f"text {number}") for number in range(30)])
    with pytest.raises(AdapterUnavailable, match=r"for 0\.2 seconds the index did not come"):
        await put(adapter, memory("late"))
    assert await adapter.count(MINE, LIVE) == 30
    assert await adapter.get(MINE, "late") is None
    service.catch_up()
    await put(adapter, memory("late"))
    assert ids(await listed(adapter))[-1] == "late"


async def test_a_write_goes_on_as_soon_as_the_index_has_come_after(service, opened, monkeypatch):
    adapter = await opened()
    monkeypatch.setattr("lamina.adapters.pinecone.namespaces.REMEMBERED", 5)
    service.lag = 7
    for number in range(30):
        await put(adapter, memory(f"m{number}", tenant="acme" if number % 2 else "other"))
    assert await adapter.count(Scope("acme"), LIVE) == await adapter.count(Scope("other"), LIVE) == 15


async def test_a_service_that_does_not_tell_how_far_it_is_is_refused(service, adapter):
    service.reports_numbers = False
    with pytest.raises(AdapterError, match="does not tell the number of a write"):
        await put(adapter, memory())
