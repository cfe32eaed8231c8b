"""Filtered vector search by index loses nothing that matters, and what the index cannot answer is compared exactly."""

from __future__ import annotations

import numpy as np
import pytest

from lamina.adapters.postgres import nearest
from lamina.domain.filters import MemoryFilter
from lamina.domain.scope import Scope
from lamina.testing.memory_contract.material import LIVE, MINE, NOW, by_vector, ids, memory, put

NUMBER, DIMENSIONS = 4_000, 16
EVERYONE = Scope("acme")


@pytest.fixture
def by_index(monkeypatch):
    """Has even few candidates looked for in the index, and says how often the index was enough."""
    monkeypatch.setattr(nearest, "ALL_UP_TO", 0)
    compared = []
    original = nearest._by_comparing

    def comparing(*arguments):
        compared.append(1)
        return original(*arguments)

    monkeypatch.setattr(nearest, "_by_comparing", comparing)
    return compared


def clustered(number, seed=7):
    chance = np.random.default_rng(seed)
    rows = chance.normal(size=(15, DIMENSIONS))[chance.integers(0, 15, number)]
    return rows + chance.normal(size=(number, DIMENSIONS)) * 0.3


def exact(rows, admitted, query, limit=10):
    """The ids of the closest, by comparing with all."""
    closeness = rows @ query / np.linalg.norm(rows, axis=1)
    ranked = sorted((number for number in range(len(rows)) if admitted(number)), key=lambda n: -closeness[n])
    return [f"m{number}" for number in ranked[:limit]]


async def fill(adapter, rows):
    entries = [
        memory(
            f"m{number}", f"text {number}", embedding=row.tolist(), owner=f"o{number % 50}", tags=[f"t{number % 100}"]
        )
        for number, row in enumerate(rows)
    ]
    for start in range(0, len(entries), 1_000):
        await adapter.store_many(EVERYONE, entries[start : start + 1_000])


async def test_a_filter_that_keeps_one_percent_loses_nothing_by_index_or_by_comparing(adapter, by_index, monkeypatch):
    rows = clustered(NUMBER)
    await fill(adapter, rows)
    queries = clustered(20, seed=8)
    cases = [
        (EVERYONE, MemoryFilter(now=NOW, tags=("t7",)), lambda number: number % 100 == 7, 1),
        (Scope("acme", "o3"), LIVE, lambda number: number % 50 == 3, 1),
        (EVERYONE, LIVE, lambda _: True, 10),
    ]
    for scope, filter, admitted, limit in cases:
        for exactly in (False, True):
            monkeypatch.setattr(nearest, "ALL_UP_TO", NUMBER if exactly else 0)
            before = len(by_index)
            shared = 0
            for query in queries:
                found = ids(await by_vector(adapter, query.tolist(), scope, filter, limit=limit))
                shared += len(set(found) & set(exact(rows, admitted, query, limit)))
            assert (len(by_index) - before) == (len(queries) if exactly else 0)
            assert shared / (limit * len(queries)) >= (1.0 if exactly else 0.98)


async def test_the_index_is_what_answers(adapter, aside, by_index):
    await fill(adapter, clustered(500))
    assert len(await by_vector(adapter, [1.0] * DIMENSIONS, EVERYONE, limit=5)) == 5
    assert by_index == []
    scans = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'lamina_memories_vectors_16'"
    await adapter.close()  # a session reports its statistics when it ends, at the latest
    for _ in range(1_000):
        [(number,)] = aside(scans)
        if number:
            return
    pytest.fail("the index was not used")


async def test_where_the_index_gives_up_everything_is_compared(adapter, by_index, monkeypatch):
    rows = clustered(2_000)
    await fill(adapter, rows)
    monkeypatch.setattr(nearest, "_SCANNED", 1)
    rare = MemoryFilter(now=NOW, tags=("t7",))
    query = clustered(1, seed=9)[0]
    found = ids(await by_vector(adapter, query.tolist(), EVERYONE, rare, limit=20))
    assert found == exact(rows, lambda number: number % 100 == 7, query, 20)
    assert by_index == [1]


async def test_a_large_limit_is_answered_by_comparing(adapter, by_index):
    rows = clustered(600)
    await fill(adapter, rows)
    query = clustered(1, seed=9)[0]
    assert ids(await by_vector(adapter, query.tolist(), EVERYONE, limit=500)) == exact(rows, lambda _: True, query, 500)
    assert by_index == [1]


@pytest.mark.parametrize(
    ("dimensions", "index"),
    [(2_000, "vector(2000)"), (2_001, "halfvec(2001)"), (4_000, "halfvec(4000)"), (4_001, None), (16_001, None)],
)
async def test_vectors_of_any_length_are_found(adapter, aside, by_index, dimensions, index):
    chance = np.random.default_rng(1)
    rows = chance.normal(size=(40, dimensions)).astype(np.float32)
    await adapter.store_many(MINE, [memory(f"m{n}", f"text {n}", embedding=row.tolist()) for n, row in enumerate(rows)])
    query = chance.normal(size=dimensions)
    hits = await by_vector(adapter, query.tolist(), limit=2)
    assert ids(hits) == exact(rows, lambda _: True, query, 2)
    made = aside("SELECT indexdef FROM pg_indexes WHERE indexdef LIKE '%hnsw%'")
    assert [index in each for (each,) in made] == ([] if index is None else [True])
    back = await adapter.get(MINE, "m0")
    assert list(back.embedding) == rows[0].tolist()


async def test_each_length_has_an_index_of_its_own_made_when_it_first_appears(adapter, aside):
    count = "SELECT count(*) FROM pg_indexes WHERE indexdef LIKE '%hnsw%'"
    await put(adapter, memory("m1"))
    assert aside(count) == [(0,)]
    await put(adapter, memory("m1", embedding=[1.0, 0.0]), memory(tenant="other", embedding=[1.0, 0.0, 0.0]))
    assert aside(count) == [(2,)]
    await adapter.drop_embeddings(EVERYONE)
    await adapter.update(MINE, "m1", {"embedding": [1.0, 0.0, 0.0, 0.0]})
    assert aside(count) == [(3,)]


async def test_originals_come_back_to_the_bit(adapter):
    vector = [1e38, -1e-38, 1e-45, 0.1, -0.0, 3.4028234663852886e38]
    await put(adapter, memory(embedding=vector))
    back = await adapter.get(MINE, "m1")
    assert np.array(back.embedding, np.float32).tobytes() == np.array(vector, np.float32).tobytes()
    [hit] = await by_vector(adapter, vector)
    assert hit.similarity == pytest.approx(1.0)
