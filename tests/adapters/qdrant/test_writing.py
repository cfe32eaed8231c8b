"""What is sent for a change: the limits of a request, what is left as it is, and histories that stay short."""

import asyncio

import numpy as np
import pytest
from qdrant_client import models

from lamina.adapters.qdrant import QdrantAdapter, writing
from lamina.adapters.qdrant.points import PAST, memory_id
from lamina.domain.memory import Layer
from lamina.domain.scope import Scope
from lamina.errors import InvalidInput
from lamina.ports.memory_adapter import Order
from lamina.testing.memory_contract.material import (
    LIVE,
    MINE,
    NOW,
    by_text,
    by_vector,
    ids,
    listed,
    memory,
    put,
    second,
)


@pytest.fixture
async def adapter(qdrant, qdrant_table):
    adapter = QdrantAdapter(qdrant.url, table=qdrant_table)
    await adapter.initialize()
    yield adapter
    await adapter.close()


async def test_a_batch_larger_than_a_request_is_sent_in_parts(adapter):
    big = [memory(f"m{number}", f"x{number} {'7' * 3_900_000}") for number in range(12)]
    await adapter.store_many(MINE, big)
    assert ids(await by_text(adapter, "x7")) == ["m7"]
    assert await adapter.count(MINE, LIVE) == 12


async def test_a_memory_larger_than_a_request_is_refused_and_nothing_is_written(adapter, monkeypatch):
    monkeypatch.setattr(writing, "_ROOM", 100_000)
    batch = [memory("m1"), memory("m2", "word " + "7" * 200_000)]
    with pytest.raises(InvalidInput, match="bytes in a request") as refusal:
        await adapter.store_many(MINE, batch)
    assert refusal.value.field == "content"
    assert await listed(adapter) == []


async def test_counting_a_read_writes_no_vector_and_no_words(qdrant, adapter):
    await put(adapter, memory("m1", "the harbour lamp", embedding=[1.0, 0.0]))
    qdrant.requests.clear()
    await adapter.touch(MINE, ["m1", "m1"], NOW)
    await adapter.update(MINE, "m1", {"relevance": 0.5, "layer": Layer.SESSION, "expires_at": second(9)})
    await adapter.update(MINE, "m1", {"expires_at": None, "metadata": {"a": [1, "x"]}})
    assert not [path for method, path in qdrant.requests if method == "PUT" and not path.endswith("/points")]
    written = [call for call in qdrant.requests if call[1].endswith("/points/batch")]
    assert len(written) == 3
    [entry] = await listed(adapter, include_embeddings=True)
    assert (entry.access_count, entry.relevance, entry.expires_at, list(entry.embedding)) == (2, 0.5, None, [1.0, 0.0])
    assert ids(await by_text(adapter, "harbour")) == ["m1"]
    assert ids(await by_vector(adapter, [1.0, 0.0])) == ["m1"]


async def test_two_processes_that_change_one_memory_leave_it_in_agreement_with_its_words(qdrant, qdrant_table, adapter):
    other = QdrantAdapter(qdrant.url, table=qdrant_table)
    await other.initialize()
    await put(adapter, memory("m1", "the first words", embedding=[1.0, 0.0]))

    async def rewrite(number: int) -> None:
        await adapter.update(MINE, "m1", {"content": f"words number{number}"})

    async def count() -> None:
        await other.touch(MINE, ["m1"], NOW)

    for number in range(10):
        await asyncio.gather(rewrite(number), count())
        entry = await adapter.get(MINE, "m1")
        assert entry is not None
        assert ids(await by_text(adapter, entry.content)) == ["m1"]
        [hit] = await by_text(other, entry.content)
        assert hit.similarity > 0.99  # both words, of two
    await other.close()


async def test_a_history_grows_no_longer_than_twice_what_is_kept(qdrant, qdrant_table, adapter):
    await put(adapter, memory("m1", "text 0"), memory("m1", "another's", tenant="other"))
    await adapter.update(Scope("other"), "m1", {"content": "another's change"})
    for number in range(1, 131):
        await adapter.update(MINE, "m1", {"content": f"text {number}"})
    found = [each.content for each in await adapter.history(MINE, "m1")]
    assert found[-50:] == [f"text {number}" for number in range(80, 130)]
    past = models.Filter(must=[models.FieldCondition(key="kind", match=models.MatchValue(value=PAST))])
    with qdrant.lock:
        assert 50 <= qdrant.engine.count(qdrant_table, past).count <= 102
    assert [each.content for each in await adapter.history(Scope("other"), "m1")] == ["another's"]


async def test_a_memory_that_comes_again_has_nothing_of_the_one_before(adapter):
    await put(adapter, memory("m1", "old", embedding=[1.0, 0.0], expires_at=second(5)))
    await adapter.update(MINE, "m1", {"content": "older"})
    await put(adapter, memory("m1", "new", created_at=second(6), updated_at=second(6)))
    assert await adapter.history(MINE, "m1") == []
    assert await by_text(adapter, "older") == []
    assert await by_vector(adapter, [1.0, 0.0]) == []


async def test_pages_by_relevance_agree_at_every_border(adapter):
    entries = [
        memory(f"m{number:02d}", relevance=(number % 3) / 3, created_at=second(number % 2), updated_at=NOW)
        for number in range(60)
    ]
    await adapter.store_many(MINE, entries[::-1])
    expected = ids(sorted(entries, key=lambda each: (-each.relevance, -each.created_at.timestamp(), each.id)))
    for limit in (7, 10, 11, 20, 60, 400):
        found = []
        for offset in range(0, 60, limit):
            found += ids(await listed(adapter, order=Order.RELEVANCE, limit=limit, offset=offset))
        assert found == expected


async def test_names_and_ids_that_run_together_are_different_points(adapter):
    names = ["a", "b", "a b", 'a", "b', "a\\", '["a"]', "memory", "control", "head", "é", "e\u0301", "-1", "0"]
    points = {memory_id(tenant, id) for tenant in names for id in names}
    assert len(points) == len(names) ** 2
    for tenant in names:
        await put(adapter, *(memory(id, f"of {tenant!r}", tenant=tenant) for id in names))
    for tenant in names:
        found = await listed(adapter, Scope(tenant))
        assert [(each.id, each.content) for each in found] == [(id, f"of {tenant!r}") for id in names]


async def test_ties_of_vectors_go_by_id_beyond_the_first_pool(adapter):
    batch = [memory(f"m{number:03d}", f"text {number}", embedding=[1.0, 1.0]) for number in range(150)]
    await adapter.store_many(MINE, batch[::-1])
    assert ids(await by_vector(adapter, [1.0, 1.0], limit=3)) == ["m000", "m001", "m002"]
    assert ids(await by_vector(adapter, [0.0, 0.0], limit=3)) == ["m000", "m001", "m002"]


async def test_vectors_may_be_arrays_of_numpy(adapter):
    vectors = np.eye(3, dtype=np.float32)
    await adapter.store_many(MINE, [memory(f"m{number}", embedding=vectors[number]) for number in range(3)])
    assert ids(await by_vector(adapter, vectors[1]))[0] == "m1"
    [entry] = [each for each in await listed(adapter, include_embeddings=True) if each.id == "m2"]
    assert list(entry.embedding) == [0.0, 0.0, 1.0]


async def test_a_vector_that_is_longer_than_qdrant_takes_is_refused_by_name(adapter):
    with pytest.raises(InvalidInput, match="at most 65536") as refusal:
        await adapter.store_many(MINE, [memory("m1"), memory("m2", "a kite", embedding=[0.5] * 65_537)])
    assert refusal.value.field == "embedding"
    assert await listed(adapter) == []
