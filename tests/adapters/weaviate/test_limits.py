"""Weaviate's limits, searches at their edges, and a vector index that lags."""

import asyncio
from random import Random

import fake_weaviate_index
import pytest
from fake_weaviate import WeaviateFake

from lamina.domain.closeness import cosines
from lamina.domain.scope import Scope
from lamina.errors import AdapterUnavailable
from lamina.ports.memory_adapter import ListOptions, Order
from lamina.testing.memory_contract.material import LIVE, MINE, by_text, by_vector, ids, listed, memory, put


@pytest.fixture
def few_results(monkeypatch):
    """Requests reach a hundred objects instead of ten thousand."""
    monkeypatch.setattr("lamina.adapters.weaviate.objects.MAX_RESULTS", 100)
    monkeypatch.setattr("lamina.adapters.weaviate.adapter.MAX_RESULTS", 100)
    monkeypatch.setattr("lamina.adapters.weaviate.objects.PAGE", 30)
    monkeypatch.setattr(fake_weaviate_index, "MAX_RESULTS", 100)
    monkeypatch.setattr("fake_weaviate.MAX_RESULTS", 100)


@pytest.mark.usefixtures("few_results")
@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize(("offset", "limit"), [(0, 1_000), (0, 250), (99, 2), (100, 40), (220, 50), (250, 5), (70, 30)])
async def test_what_lies_beyond_the_reach_of_a_request_is_listed_too(adapter, order, offset, limit):
    await adapter.store_many(MINE, [memory(f"m{n:03}", f"text {n}", relevance=1 - n / 1_000) for n in range(250)])
    found = await adapter.list(ListOptions(scope=MINE, filter=LIVE, limit=limit, offset=offset, order=order))
    assert ids(found) == [f"m{n:03}" for n in range(250)][offset : offset + limit]


@pytest.mark.usefixtures("few_results")
async def test_what_lies_beyond_the_reach_of_a_request_is_searched_too(adapter):
    entries = [memory(f"m{n:03}", f"harbour {n}", embedding=[1.0, n + 0.0]) for n in range(250)]
    await adapter.store_many(MINE, entries)
    assert ids(await by_vector(adapter, [1.0, 0.0], limit=1_000)) == [f"m{n:03}" for n in range(250)]
    assert len(await by_text(adapter, "harbour", limit=1_000)) == 250


@pytest.mark.usefixtures("few_results")
async def test_more_former_versions_than_a_request_removes_are_removed(adapter):
    await put(adapter, memory())
    for number in range(230):
        await adapter.update(MINE, "m1", {"content": f"text {number}"})
    assert [each.content for each in await adapter.history(MINE, "m1")][-1] == "text 228"
    await adapter.delete(MINE, "m1")
    await put(adapter, memory())
    assert await adapter.history(MINE, "m1") == []


async def test_an_answer_that_is_larger_than_a_message_comes_in_parts(opened):
    service = WeaviateFake(max_message_bytes=500_000)
    adapter = await opened(url=service.url, grpc_port=service.grpc_port)
    for number in range(12):
        await put(adapter, memory(f"m{number:02}", f"{number} {'x' * 100_000}"))
    assert ids(await listed(adapter)) == [f"m{number:02}" for number in range(12)]
    assert ids(await adapter.list(ListOptions(scope=MINE, filter=LIVE, limit=7, offset=3))) == [
        f"m{number:02}" for number in range(3, 10)
    ]
    assert await adapter.delete_many(MINE, ["m03", "none", "m11"]) == [True, False, True]
    await adapter.close()
    service.stop()


async def test_what_the_service_would_take_for_the_same_name_is_kept_apart(adapter):
    for name in ("alice", " alice", "alice ", "Alice", "alice\t"):
        await put(adapter, memory(f"of {name!r}", owner=name, tags=[name]))
    for name in ("alice", " alice", "alice ", "Alice", "alice\t"):
        assert ids(await listed(adapter, Scope("acme", name))) == [f"of {name!r}"]


async def test_words_that_english_passes_over_are_found(adapter):
    await put(adapter, memory("m1", "to be or not to be"), memory("m2", "something else"))
    assert ids(await by_text(adapter, "to be")) == ["m1"]


async def test_vectors_without_a_direction_are_found_where_they_belong(adapter):
    await put(
        adapter,
        memory("opposite", "o", embedding=[-1.0, 0.0]),
        *(memory(f"zero {n}", f"z{n}", embedding=[0.0, 0.0]) for n in range(3)),
        memory("close", "c", embedding=[1.0, 0.0]),
    )
    assert ids(await by_vector(adapter, [1.0, 0.0], limit=3)) == ["close", "zero 0", "zero 1"]
    assert ids(await by_vector(adapter, [1.0, 0.0])) == ["close", "zero 0", "zero 1", "zero 2", "opposite"]
    assert len(await by_vector(adapter, [0.0, 0.0])) == 5


async def test_tenants_have_vectors_of_lengths_of_their_own(adapter):
    await put(adapter, memory("m1", tenant="a", embedding=[1.0, 0.0]))
    await put(adapter, memory("m1", tenant="b", embedding=[1.0, 0.0, 0.0]))
    assert ids(await by_vector(adapter, [1.0, 0.0], Scope("a"))) == ["m1"]
    assert ids(await by_vector(adapter, [1.0, 0.0, 0.0], Scope("b"))) == ["m1"]
    await adapter.drop_embeddings(Scope("a"))
    await adapter.update(Scope("a"), "m1", {"embedding": [1.0, 2.0, 3.0, 4.0]})
    assert ids(await by_vector(adapter, [1.0, 0.0, 0.0, 0.0], Scope("a"))) == ["m1"]


async def test_the_closest_of_many_are_the_exact_ones(adapter):
    random = Random(11)
    vectors = [[random.gauss(0, 1) for _ in range(4)] for _ in range(1_000)]
    await adapter.store_many(MINE, [memory(f"m{n}", f"t{n}", embedding=vector) for n, vector in enumerate(vectors)])
    for _ in range(5):
        query = [random.gauss(0, 1) for _ in range(4)]
        values = cosines(query, vectors)
        expected = sorted(range(1_000), key=lambda n: -values[n])[:10]
        assert ids(await by_vector(adapter, query, limit=10)) == [f"m{n}" for n in expected]


async def test_two_that_write_side_by_side_lose_nothing_and_share_no_seq(opened):
    one, other = await opened(), await opened()
    await asyncio.gather(
        *(put(one, memory(f"m{n}", f"text {n}")) for n in range(20)),
        *(put(other, memory(f"n{n}", f"text {n}")) for n in range(20)),
        one.store_many(MINE, [memory(f"o{n}", f"text {n}") for n in range(600)]),
    )
    entries = await listed(one, limit=5_000)
    assert len({each.seq for each in entries}) == len(entries) == 640
    assert ids(entries) == ids(await listed(other, limit=5_000))
    assert [id for id in ids(entries) if id.startswith("o")] == [f"o{n}" for n in range(600)]


async def test_a_search_by_vector_waits_for_what_was_written_before(service, adapter):
    await put(adapter, memory("m1", embedding=[1.0, 0.0]))
    service.lag = 6
    await put(adapter, memory("m2", embedding=[1.0, 0.1]))
    await adapter.update(MINE, "m1", {"embedding": [0.0, 1.0]})
    assert ids(await by_vector(adapter, [1.0, 0.0])) == ["m2", "m1"]


async def test_a_search_by_vector_is_refused_where_the_index_does_not_come_after(service, opened):
    adapter = await opened(freshness_timeout=0.2)
    service.lag = None
    await put(adapter, memory(embedding=[1.0, 0.0]))
    for _ in range(2):
        with pytest.raises(AdapterUnavailable, match=r"for 0\.2 seconds the vector index did not come"):
            await by_vector(adapter, [1.0, 0.0])
    assert ids(await listed(adapter)) == ids(await by_text(adapter, "harbour")) == ["m1"]
    service.catch_up()
    assert ids(await by_vector(adapter, [1.0, 0.0])) == ["m1"]


async def test_every_replica_must_have_what_was_acknowledged(service, adapter):
    await put(adapter, memory())
    await adapter.delete(MINE, "m1")
    written = [request for call, request in service.requests if call in {"BatchObjects", "BatchDelete"}]
    assert {request.consistency_level for request in written} == {3}
