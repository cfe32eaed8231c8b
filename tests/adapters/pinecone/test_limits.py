"""Pinecone's limits, and searches at their edges."""

import asyncio
from array import array
from datetime import timedelta
from itertools import pairwise
from random import Random

import pytest

from lamina.adapters._shared.clock_sequence import AHEAD, Sequence
from lamina.domain.closeness import cosines
from lamina.domain.scope import Scope
from lamina.errors import InvalidInput
from lamina.ports.memory_adapter import Update
from lamina.testing.memory_contract.material import LIVE, MINE, NOW, by_vector, ids, listed, memory, put


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("content", "x" * 41_000),
        ("content", "会" * 14_000),
        ("metadata", {"text": "x" * 41_000}),
        ("metadata", {f"key {number}": number for number in range(1_000)}),
        ("tags", [f"{number} {'x' * 500}" for number in range(100)]),
        ("derived_from", [f"{number} {'x' * 500}" for number in range(100)]),
    ],
    ids=["content", "content in bytes", "metadata", "many metadata", "tags", "derived_from"],
)
async def test_what_is_too_long_is_refused_by_name_and_nothing_is_written(adapter, field, value):
    await put(adapter, memory("before"))
    with pytest.raises(InvalidInput, match="40 KB") as refusal:
        await adapter.store_many(MINE, [memory("fine"), memory("long", **{field: value})])
    assert refusal.value.field == field
    with pytest.raises(InvalidInput, match="40 KB"):
        await adapter.update(MINE, "before", {field: value})
    assert [(each.id, each.revision) for each in await listed(adapter)] == [("before", 1)]


async def test_what_is_just_short_enough_is_kept(adapter):
    await put(adapter, memory(content="x" * 38_000, embedding=[0.1, 0.2, 0.3, 0.4]))
    back = await adapter.get(MINE, "m1")
    assert back is not None
    assert len(back.content) == 38_000


async def test_a_meta_value_that_is_too_long_is_refused(adapter):
    with pytest.raises(InvalidInput, match="40 KB"):
        await adapter.save_meta(MINE, "key", "x" * 40_000, NOW)
    assert await adapter.load_meta(MINE, "key") is None


async def test_a_vector_that_is_longer_than_the_indexs_is_refused(adapter):
    with pytest.raises(InvalidInput, match="has 5 dimensions, and the index 'memories' takes 4") as refusal:
        await put(adapter, memory(embedding=[1.0] * 5))
    assert refusal.value.field == "embedding"
    assert "dimension=5" in refusal.value.remedy
    assert await adapter.count(MINE, LIVE) == 0
    assert await by_vector(adapter, [1.0] * 5) == []


async def test_a_large_batch_is_sent_in_requests_that_the_service_takes(service, adapter):
    large = [memory(f"m{number}", f"{number} {'x' * 30_000}", embedding=[1.0, 0.0]) for number in range(120)]
    small = [memory(f"n{number}", f"text {number}") for number in range(1_300)]
    await adapter.store_many(MINE, [*large, *small])
    assert await adapter.count(MINE, LIVE) == 1_420
    assert len(await by_vector(adapter, [1.0, 0.0], limit=500)) == 120
    changed = await adapter.update_many(MINE, [Update(each.id, {"tags": ["seen"]}) for each in large])
    assert changed == [True] * 120
    assert await adapter.delete_many(MINE, [each.id for each in small]) == [True] * 1_300
    assert await adapter.count(MINE, LIVE) == 120


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e38, 0.0])
async def test_a_vector_comes_back_as_32_bit_floats_to_the_last_bit(adapter, scale):
    vector = [0.1 * scale, -0.2 * scale, 0.3 * scale]
    await put(adapter, memory(embedding=vector), memory("m2", embedding=[3.0, 2.0, 1.0]))
    for entry in (await adapter.get(MINE, "m1"), (await listed(adapter, include_embeddings=True))[0]):
        assert entry is not None
        assert entry.embedding is not None
        assert list(entry.embedding) == list(array("f", vector))


async def test_of_many_that_tie_those_of_the_least_ids_are_found(adapter):
    names = [f"m{number:03}" for number in range(400)]
    Random(5).shuffle(names)
    await adapter.store_many(MINE, [memory(name, f"text {name}", embedding=[0.3, 0.7]) for name in names])
    await put(adapter, memory("best", embedding=[1.0, 0.1]))
    assert ids(await by_vector(adapter, [1.0, 0.0], limit=4)) == ["best", "m000", "m001", "m002"]


async def test_zero_vectors_stand_between_the_close_and_the_opposite(adapter):
    await adapter.store_many(
        MINE,
        [
            memory("opposite", "o", embedding=[-1.0, 0.0]),
            *(memory(f"zero {n}", f"z{n}", embedding=[0.0, 0.0]) for n in range(3)),
            memory("close", "c", embedding=[1.0, 0.0]),
        ],
    )
    assert ids(await by_vector(adapter, [1.0, 0.0], limit=3)) == ["close", "zero 0", "zero 1"]
    assert ids(await by_vector(adapter, [1.0, 0.0])) == ["close", "zero 0", "zero 1", "zero 2", "opposite"]


async def test_a_search_for_more_than_a_query_gives_is_complete(adapter):
    await adapter.store_many(MINE, [memory(f"m{n}", f"t{n}", embedding=[1.0, n + 0.0]) for n in range(150)])
    assert ids(await by_vector(adapter, [1.0, 0.0], limit=1_000_000)) == [f"m{n}" for n in range(150)]


async def test_the_closest_of_many_are_the_exact_ones(adapter):
    random = Random(11)
    vectors = [[random.gauss(0, 1) for _ in range(4)] for _ in range(1_500)]
    await adapter.store_many(MINE, [memory(f"m{n}", f"t{n}", embedding=vector) for n, vector in enumerate(vectors)])
    for _ in range(5):
        query = [random.gauss(0, 1) for _ in range(4)]
        values = cosines(query, vectors)
        expected = sorted(range(1_500), key=lambda n: -values[n])[:10]
        assert ids(await by_vector(adapter, query, limit=10)) == [f"m{n}" for n in expected]


async def test_what_was_never_there_is_deleted_without_a_complaint(adapter):
    assert await adapter.delete(Scope("nobody"), "m1") is False
    adapter._opened.write(adapter._of_tenant("nobody"), [], ["f" * 32])


async def test_two_that_write_side_by_side_lose_nothing_and_share_no_seq(opened):
    one, other = await opened(), await opened()
    await asyncio.gather(
        *(put(one, memory(f"m{n}", f"text {n}")) for n in range(30)),
        *(put(other, memory(f"n{n}", f"text {n}")) for n in range(30)),
        one.store_many(MINE, [memory(f"o{n}", f"text {n}") for n in range(600)]),
        other.store_many(MINE, [memory(f"p{n}", f"text {n}") for n in range(600)]),
    )
    entries = await listed(one, limit=5_000)
    assert len({each.seq for each in entries}) == len(entries) == 1_260
    assert ids(entries) == ids(await listed(other, limit=5_000))
    assert [id for id in ids(entries) if id.startswith("o")] == [f"o{n}" for n in range(600)]


def test_numbers_grow_whatever_the_clock_does():
    times = iter([NOW, NOW, NOW + timedelta(seconds=1), NOW - timedelta(days=1), NOW - timedelta(days=1)])
    kept: list[int] = []
    numbers = Sequence(lambda: next(times), 0, kept.append)
    given = [numbers.take(3) for _ in range(4)]
    assert all(later >= earlier + 3 for earlier, later in pairwise(given))
    assert kept
    assert kept[-1] > given[-1] + 3


def test_a_clock_that_was_set_back_over_a_restart_does_not_bring_lower_numbers():
    kept: list[int] = []
    before = Sequence(lambda: NOW, 0, kept.append).take(10)
    after = Sequence(lambda: NOW - timedelta(days=1), kept[-1], kept.append).take(10)
    assert after > before + 10
    assert kept[-1] >= after + 10


def test_a_restart_in_between_does_not_run_ahead_of_the_clock():
    kept: list[int] = []
    before = Sequence(lambda: NOW, 0, kept.append).take(10)
    after = Sequence(lambda: NOW + timedelta(seconds=1), kept[-1], kept.append).take(10)
    assert before < after < before + AHEAD
