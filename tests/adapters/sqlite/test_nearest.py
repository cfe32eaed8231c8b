from __future__ import annotations

from array import array
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lamina.adapters.sqlite import SqliteAdapter, nearest
from lamina.adapters.sqlite.codes import as_rows, decode, encode, unit
from lamina.adapters.sqlite.vectors import BLOCK
from lamina.domain.filters import Expiry, MemoryFilter, Where
from lamina.domain.memory import Layer, MemoryEntry
from lamina.domain.scope import Scope
from lamina.errors import EmbeddingDimensionError
from lamina.testing.memory_contract.material import LIVE, MINE, NOW, by_vector, ids, memory, put, where

Numbers = NDArray[np.float64]
EVERYONE = Scope("acme")


def clustered(number: int, dimensions: int, seed: int) -> list[array[float]]:
    """Vectors in fifteen crowds: neighbours are many and close, which is the hard case."""
    chance = np.random.default_rng(seed)
    centres = chance.normal(size=(15, dimensions))
    rows = centres[chance.integers(0, 15, number)] + chance.normal(size=(number, dimensions)) * 0.3
    rows *= chance.uniform(0.1, 10, (number, 1))  # lengths must not matter
    return [array("f", row) for row in rows]


def exact(entries: list[MemoryEntry], query: array[float], limit: int) -> list[tuple[str, float]]:
    """The reference: every vector compared, in plain numpy."""
    if not entries:
        return []
    rows = np.array([entry.embedding for entry in entries], np.float64)
    wanted = np.array(query, np.float64)
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(wanted)
    cosines = (rows * wanted).sum(axis=1) / np.where(lengths > 0, lengths, 1)
    ranked = sorted(zip(cosines.tolist(), entries, strict=True), key=lambda pair: (-pair[0], pair[1].id))
    return [(entry.id, cosine) for cosine, entry in ranked[:limit]]


async def assert_exact(adapter: SqliteAdapter, mirror: dict[str, MemoryEntry], queries: list[array[float]]) -> None:
    scopes = [EVERYONE, Scope("acme", "owner1"), Scope("acme", "owner2", "notes", include_shared=True)]
    filters = [LIVE, MemoryFilter(now=NOW, layers=frozenset({Layer.SESSION})), where(Where("n").lt(1500))]
    for scope in scopes:
        for filter in filters:
            admitted = [entry for entry in mirror.values() if entry.embedding is not None]
            admitted = [entry for entry in admitted if filter.admits(scope, entry)]
            for query in queries:
                hits = await by_vector(adapter, query, scope, filter, limit=10)
                expected = exact(admitted, query, 10)
                assert ids(hits) == [id for id, _ in expected]
                assert [hit.similarity for hit in hits] == pytest.approx([cosine for _, cosine in expected], abs=1e-12)


async def test_the_nearest_are_exactly_those_of_a_full_comparison_through_deletes_and_updates(
    adapter: SqliteAdapter,
) -> None:
    chance = np.random.default_rng(7)
    vectors = clustered(3600, 48, seed=8)
    layers = [Layer.LONGTERM, Layer.SESSION, Layer.ORGANIZATIONAL]
    mirror = {
        f"m{n:04}": memory(
            f"m{n:04}",
            owner=f"owner{n % 4}",
            layer=layers[n % 3],
            embedding=vectors[n],
            metadata={"n": n},
            expires_at=NOW - timedelta(1) if n % 10 == 0 else None,
        )
        for n in range(3000)
    }
    queries = clustered(3, 48, seed=9)
    await adapter.store_many(EVERYONE, list(mirror.values()))
    await assert_exact(adapter, mirror, queries)

    gone = [str(id) for id in chance.choice(list(mirror), 1400, replace=False)]
    assert all(await adapter.delete_many(EVERYONE, gone))
    for id in gone:
        del mirror[id]
    await assert_exact(adapter, mirror, queries)

    for number, id in enumerate(chance.choice(list(mirror), 300, replace=False)):
        changes = {"embedding": vectors[3000 + number]} if number % 3 else {"layer": layers[number % 2]}
        assert await adapter.update(EVERYONE, str(id), changes)
        mirror[str(id)] = mirror[str(id)].replace(**changes)
    for number in range(300):
        new = memory(
            f"n{number:04}", owner=f"owner{number % 4}", embedding=vectors[3300 + number], metadata={"n": number}
        )
        await adapter.store(EVERYONE, new)
        mirror[new.id] = new
    await assert_exact(adapter, mirror, queries)
    assert await adapter.check() == []


async def test_few_of_many_are_rescored(adapter: SqliteAdapter, monkeypatch) -> None:
    counted = []
    best = nearest._best

    def count(collection, wanted, candidates, limit):
        counted.append(len(candidates))
        return best(collection, wanted, candidates, limit)

    monkeypatch.setattr(nearest, "_best", count)
    chance = np.random.default_rng(3)
    entries = [memory(f"m{n}", embedding=array("f", chance.normal(size=384))) for n in range(1000)]
    await adapter.store_many(MINE, entries)
    await by_vector(adapter, array("f", chance.normal(size=384)), limit=10)
    assert 10 <= counted[0] < 200


async def test_ties_go_by_id_however_many_there_are(adapter: SqliteAdapter) -> None:
    names = [f"m{n * 7919 % 1000:03}" for n in range(1000)]
    await adapter.store_many(MINE, [memory(name, embedding=[0.3, -0.2, 0.7]) for name in names])
    hits = await by_vector(adapter, [1.0, 1.0, 1.0], limit=5)
    assert ids(hits) == ["m000", "m001", "m002", "m003", "m004"]
    assert len({hit.similarity for hit in hits}) == 1


async def test_a_zero_vector_is_as_near_to_anything_as_a_right_angle(adapter: SqliteAdapter) -> None:
    for prefix, number in (("few", 3), ("many", 150)):
        zeros = [memory(f"{prefix}{n:03}", embedding=[0.0, 0.0], owner=prefix) for n in range(number)]
        scope = Scope("acme", prefix)
        await adapter.store_many(scope, [*zeros, memory(f"{prefix}-like", embedding=[1e-30, 0.0], owner=prefix)])
        hits = await by_vector(adapter, [5.0, 0.0], scope, limit=1000)
        assert [hit.similarity for hit in hits] == [1.0] + [0.0] * number
        assert ids(hits)[0] == f"{prefix}-like"
        assert {hit.similarity for hit in await by_vector(adapter, [0.0, 0.0], scope, limit=1000)} == {0.0}


async def test_sealing_changes_no_answer(adapter: SqliteAdapter, rows) -> None:
    vectors = clustered(200, 16, seed=1)
    for number, vector in enumerate(vectors):
        await put(adapter, memory(f"m{number:03}", embedding=vector))
        blocks, loose = number // BLOCK + (number % BLOCK == BLOCK - 1), (number + 1) % BLOCK
        if number % 50 == 13 or number % BLOCK in {0, BLOCK - 2, BLOCK - 1}:
            found = rows("SELECT count(*) FROM lamina_memories_blocks")[0][0]
            waiting = rows("SELECT count(*) FROM lamina_memories_vectors WHERE block IS NULL")[0][0]
            assert (found, waiting) == (blocks, loose)
            entries = [memory(f"m{n:03}", embedding=vectors[n]) for n in range(number + 1)]
            assert ids(await by_vector(adapter, vectors[5], limit=8)) == [id for id, _ in exact(entries, vectors[5], 8)]
    assert await adapter.check() == []


async def test_a_block_that_empties_is_given_up_and_what_is_left_stays_findable(adapter: SqliteAdapter, rows) -> None:
    vectors = clustered(640, 16, seed=2)
    await adapter.store_many(MINE, [memory(f"m{n:03}", embedding=vectors[n]) for n in range(640)])
    assert rows("SELECT count(*), min(live) FROM lamina_memories_blocks") == [(10, 64)]
    await adapter.delete_many(MINE, [f"m{n:03}" for n in range(640) if n % 8])
    (blocks,) = rows("SELECT count(*) FROM lamina_memories_blocks")[0]
    assert blocks <= 640 // 8 // 16
    left = [memory(f"m{n:03}", embedding=vectors[n]) for n in range(0, 640, 8)]
    assert ids(await by_vector(adapter, vectors[3], limit=100)) == [id for id, _ in exact(left, vectors[3], 100)]
    assert await adapter.check() == []
    await adapter.delete_many(MINE, [entry.id for entry in left])
    assert rows("SELECT count(*) FROM lamina_memories_blocks") == [(0,)]
    assert rows("SELECT count(*) FROM lamina_memories_vectors") == [(0,)]


async def test_a_deleted_vector_leaves_no_codes_in_its_block(adapter: SqliteAdapter, rows) -> None:
    chance = np.random.default_rng(5)
    await adapter.store_many(MINE, [memory(f"m{n}", embedding=chance.normal(size=32).tolist()) for n in range(64)])
    await adapter.delete(MINE, "m7")
    (block,) = decode(rows("SELECT data FROM lamina_memories_blocks")[0])
    assert [block[part][7] for part in ("counts", "steps", "differences")] == [0, 0, 0]
    assert not block["codes"][7].any()
    assert all(block["codes"][n].any() for n in range(64) if n != 7)


async def test_scope_and_filter_hold_before_ranking(adapter: SqliteAdapter) -> None:
    near = [memory(f"near{n}", embedding=[1.0, 0.001 * n], owner="other") for n in range(500)]
    near += [memory(f"dead{n}", embedding=[1.0, 0.001 * n], expires_at=NOW) for n in range(500)]
    near += [memory(f"wrong{n}", embedding=[1.0, 0.001 * n], tags=["b"]) for n in range(700)]
    far = [memory(f"far{n}", embedding=[-1.0, 0.001 * n], tags=["a"]) for n in range(3)]
    await adapter.store_many(EVERYONE, [*near, *far])
    tagged = MemoryFilter(now=NOW, tags=("a",))
    assert len(await by_vector(adapter, [1.0, 0.0], MINE, tagged, limit=3)) == 3
    many = MemoryFilter(now=NOW, tags=("b",))
    assert len(await by_vector(adapter, [1.0, 0.0], MINE, many, limit=700)) == 700
    assert len(await by_vector(adapter, [-1.0, 0.0], MINE, LIVE, limit=1000)) == 703
    dead = MemoryFilter(now=NOW, expiry=Expiry.EXPIRED)
    assert len(await by_vector(adapter, [1.0, 0.0], MINE, dead, limit=1000)) == 500


async def test_another_length_is_refused_until_the_tenants_vectors_are_gone(adapter: SqliteAdapter) -> None:
    await put(adapter, memory("m1", embedding=[1.0, 0.0]), memory("m2", owner="bob", embedding=[0.0, 1.0]))
    with pytest.raises(EmbeddingDimensionError) as stored:
        await put(adapter, memory("m3", owner="carol", embedding=[1.0, 0.0, 0.0]))
    assert (stored.value.expected, stored.value.actual) == (2, 3)
    with pytest.raises(EmbeddingDimensionError):
        await by_vector(adapter, [1.0])
    await put(adapter, memory("m4", tenant="other", owner="ada", embedding=[1.0, 0.0, 0.0]))
    assert await adapter.drop_embeddings(Scope("acme")) == 2
    await put(adapter, memory("m3", owner="carol", embedding=[1.0, 0.0, 0.0]))
    assert ids(await by_vector(adapter, [1.0, 0.0, 0.0], EVERYONE)) == ["m3"]
    assert await adapter.check() == []


matrices = st.integers(1, 12).flatmap(
    lambda width: st.lists(
        st.lists(st.floats(-(2.0**99), 2.0**99, width=32), min_size=width, max_size=width), min_size=1, max_size=BLOCK
    )
)


@settings(max_examples=200, deadline=None)
@given(matrices)
def test_codes_are_off_by_no_more_than_they_say(matrix: list[list[float]]) -> None:
    packed = [array("f", row).tobytes() for row in matrix]
    (block,) = decode([encode(list(range(1, len(packed) + 1)), packed)])
    rows = unit(as_rows(packed))
    decoded = block["codes"].astype(np.float64) * block["steps"].astype(np.float64)[:, None]
    assert (np.linalg.norm(rows - decoded[: len(packed)], axis=1) <= block["differences"][: len(packed)]).all()
    assert not decoded[len(packed) :].any()
    assert block["counts"].tolist() == list(range(1, len(packed) + 1)) + [0] * (BLOCK - len(packed))
    assert (np.abs(block["codes"].astype(int)) <= 127).all()
