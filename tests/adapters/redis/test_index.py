"""The query engine's index: complete whenever it is asked, fed no grammar, and as close to exact as it says."""

import asyncio
import random
import threading
from datetime import UTC, datetime

import pytest

from lamina.adapters.redis import index
from lamina.adapters.redis.index import Index
from lamina.domain import closeness
from lamina.domain.filters import And, MemoryFilter, Not, Or, Where
from lamina.domain.scope import Scope
from lamina.errors import AdapterError, AdapterUnavailable
from lamina.ports.memory_adapter import Capability
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


def vectors(number, dimensions, seed=7):
    chance = random.Random(seed)
    return [[chance.gauss(0, 1) for _ in range(dimensions)] for _ in range(number)]


async def test_what_was_there_before_the_index_is_found(opened):
    plain = await opened(query_engine=False)
    assert {Capability.VECTOR, Capability.TEXT}.isdisjoint(plain.capabilities)
    many = [memory(f"m{n}", f"lamp {n}", embedding=vector) for n, vector in enumerate(vectors(3_000, 8))]
    await plain.store_many(MINE, many)
    adapter = await opened(query_engine=True)
    assert len(await by_text(adapter, "lamp", limit=5_000)) == 3_000
    assert len(await by_vector(adapter, [1.0] * 8, limit=5_000)) == 3_000


async def test_an_index_that_is_not_complete_in_time_is_not_searched(opened, monkeypatch):
    plain = await opened(query_engine=False)
    await plain.store(MINE, memory())
    about = {b"attributes": [{b"attribute": b"t4"}], b"indexing": 1, b"percent_indexed": 0.5}
    monkeypatch.setattr(Index, "_about", lambda self: about)
    with pytest.raises(AdapterUnavailable, match="still indexing"):
        await opened(index_timeout=0.05)


async def test_an_index_that_an_earlier_version_made_learns_what_is_current(opened, monkeypatch):
    monkeypatch.setattr(index, "_FIELDS", index._FIELDS[:-2])
    await opened()
    monkeypatch.undo()
    adapter = await opened()
    ended = memory("m2", "lamp two", valid_until=NOW)
    await put(adapter, memory("m1", "lamp one"), ended, memory("m3", "lamp three", valid_until=second(1)))
    found = await by_text(adapter, "lamp", MINE, MemoryFilter(now=NOW, current=True))
    assert sorted(ids(found)) == ["m1", "m3"]


async def test_vectors_of_a_length_that_somebody_else_brought_are_found(opened):
    first, second, plain = await opened(), await opened(), await opened(query_engine=False)
    await first.store(MINE, memory(embedding=[1.0, 0.0]))
    assert ids(await by_vector(second, [1.0, 0.0])) == ["m1"]
    await plain.store(Scope("other"), memory("m2", tenant="other", embedding=[1.0, 0.0, 0.0]))
    assert ids(await by_vector(first, [1.0, 0.0, 0.0], Scope("other"))) == ["m2"]
    assert ids(await by_vector(second, [1.0, 0.0, 0.0], Scope("other"))) == ["m2"]


async def test_counting_a_read_indexes_nothing_anew(redis_server, opened, table):
    adapter = await opened()
    await adapter.store(MINE, memory(embedding=[1.0, 0.0]))

    def last() -> int:
        return redis_server.ask("FT.INFO", f"{table}:index1")[b"max_doc_id"]

    before = last()
    await adapter.touch(MINE, ["m1"], NOW)
    assert last() == before
    await adapter.update(MINE, "m1", {"content": "a kite"})
    assert last() > before


@pytest.mark.parametrize("policy", ["return", "fail"])
async def test_a_search_that_took_too_long_never_returns_a_part(redis_server, opened, policy, monkeypatch):
    adapter = await opened()
    many = [memory(f"m{n}", "the lamp of the harbour") for n in range(5_000)]
    await adapter.store_many(MINE, many)
    redis_server.ask("FT.CONFIG", "SET", "ON_TIMEOUT", policy)
    options = adapter._index._options
    monkeypatch.setattr(adapter._index, "_options", lambda: ("TIMEOUT", 1, *options()[2:]))
    parts = tuple(Not(Where(f"a{n}").eq(n)) for n in range(32))
    slow = MemoryFilter(now=NOW, where=Or((And(parts), Not(And(parts)))))
    outcomes, refusals = [], []
    for _ in range(20):
        try:
            outcomes.append(len(await by_text(adapter, "lamp harbour", MINE, slow, limit=5_000)))
        except AdapterUnavailable as error:
            refusals.append(str(error))
    redis_server.ask("FT.CONFIG", "SET", "ON_TIMEOUT", "return")
    assert set(outcomes) <= {5_000}
    assert refusals
    assert all("took too long" in each for each in refusals)


async def test_a_memory_that_the_index_could_not_take_is_not_missed_in_silence(redis_server, opened, table):
    adapter = await opened()
    await adapter.store(MINE, memory(embedding=[1.0, 0.0]))
    [key] = redis_server.ask("KEYS", f"{table}:i:*")
    redis_server.ask("HSET", key, "v2", b"short")
    with pytest.raises(AdapterError, match="could not index 1"):
        await opened()


@pytest.mark.parametrize(
    "instant",
    [
        datetime(1, 1, 2, tzinfo=UTC),
        datetime(9999, 12, 30, 1, 2, 3, 456789, tzinfo=UTC),
        datetime(2300, 1, 1, tzinfo=UTC),
    ],
    ids=str,
)
async def test_instants_far_away_compare_to_the_microsecond(opened, instant):
    adapter = await opened()
    around = [instant.replace(microsecond=instant.microsecond + step) for step in range(3)]
    await adapter.store_many(
        MINE, [memory(f"m{n}", created_at=each, embedding=[1.0, 0.0]) for n, each in enumerate(around)]
    )
    for bound, expected in zip(around, ([], ["m0"], ["m0", "m1"]), strict=True):
        filter = MemoryFilter(now=NOW, created_before=bound)
        assert ids(await listed(adapter, MINE, filter)) == expected
        assert await adapter.count(MINE, filter) == len(expected)
        assert ids(await by_text(adapter, "lamp", MINE, filter)) == expected
        assert ids(await by_vector(adapter, [1.0, 0.0], MINE, filter)) == expected


async def test_the_largest_conditions_are_searched_with(opened):
    adapter = await opened()
    await adapter.store_many(MINE, [memory(f"m{n}", metadata={"n": n}, embedding=[1.0, float(n)]) for n in range(20)])
    parts = tuple(Where("n").is_in([*range(10), *range(100_000 + 1_000 * n, 100_990 + 1_000 * n)]) for n in range(20))
    filter = MemoryFilter(now=NOW, where=And(parts))
    assert sorted(ids(await by_text(adapter, "lamp", MINE, filter))) == sorted(f"m{n}" for n in range(10))
    assert len(await by_vector(adapter, [1.0, 0.0], MINE, filter)) == 10
    assert await adapter.count(MINE, filter) == 10


async def test_vectors_that_tie_by_the_hundred_are_ordered_by_id(opened):
    adapter = await opened()
    await adapter.store_many(MINE, [memory(f"m{n:04}", f"text {n}", embedding=[0.1, 0.7]) for n in range(999, -1, -1)])
    assert ids(await by_vector(adapter, [0.3, 0.2], limit=5)) == [f"m{n:04}" for n in range(5)]
    assert ids(await by_vector(adapter, [0.0, 0.0], limit=5)) == [f"m{n:04}" for n in range(5)]


async def test_the_graph_finds_nearly_all_of_the_closest(opened, monkeypatch):
    adapter = await opened()
    kept = vectors(3_000, 32)
    await adapter.store_many(MINE, [memory(f"m{n}", f"text {n}", embedding=each) for n, each in enumerate(kept)])
    monkeypatch.setattr("lamina.adapters.redis.adapter.BRUTE_FORCE", 10)
    found = 0
    for query in vectors(20, 32, seed=8):
        cosines = closeness.cosines(query, kept)
        best = sorted(range(3_000), key=lambda n: -cosines[n])[:10]
        hits = await by_vector(adapter, query, limit=10)
        found += len({f"m{n}" for n in best} & set(ids(hits)))
    assert found >= 0.98 * 200


async def test_writers_in_threads_and_readers_agree_on_what_is_indexed(opened):
    adapter, other = await opened(), await opened()
    errors = []

    def write() -> None:
        async def stores() -> None:
            for n in range(60):
                await other.store(MINE, memory(f"w{n}", f"text {n}", embedding=[1.0, float(n)]))

        try:
            asyncio.run(stores())
        except Exception as error:  # noqa: BLE001 - shown below
            errors.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    while thread.is_alive():
        names = ids(await listed(adapter))
        assert set(names) <= set(ids(await by_vector(adapter, [1.0, 0.0], limit=1_000)))
    thread.join()
    assert errors == []
    assert await adapter.count(MINE, LIVE) == 60


async def test_more_results_than_the_server_returns_are_refused_and_not_cut(redis_server, opened):
    adapter = await opened()
    await adapter.store_many(MINE, [memory(f"m{n}", "the lamp", embedding=[1.0, 0.0]) for n in range(1_500)])
    redis_server.ask("FT.CONFIG", "SET", "MAXSEARCHRESULTS", 1_200)
    for search in (by_text(adapter, "lamp", limit=1_400), by_vector(adapter, [1.0, 0.0], limit=1_400)):
        with pytest.raises(AdapterError, match="MAXSEARCHRESULTS"):
            await search
    redis_server.ask("FT.CONFIG", "SET", "MAXSEARCHRESULTS", 1_000_000)
    assert len(await by_text(adapter, "lamp", limit=1_000_000_000)) == 1_500
    assert len(await by_vector(adapter, [1.0, 0.0], limit=1_000_000_000)) == 1_500
