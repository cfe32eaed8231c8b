"""Vector search is exact: cosine, closest first, within scope and filter, and one length for a tenant."""

from __future__ import annotations

from array import array
from collections.abc import Awaitable, Callable
from functools import partial
from math import sqrt
from random import Random
from typing import Any, Final

import numpy as np
import pytest

from lamina.domain.filters import MemoryFilter
from lamina.domain.memory import Layer, Vector
from lamina.domain.scope import Scope
from lamina.errors import EmbeddingDimensionError, InvalidInput, InvalidType
from lamina.ports.memory_adapter import Capability, MemoryAdapter, SearchHit, Update
from lamina.testing.memory_contract.material import LIVE, MINE, NOW, by_vector, ids, listed, memory, needs, put

__all__ = ["VectorContract"]

KINDS: Final[dict[str, Callable[[list[float]], Any]]] = {
    "list": list,
    "array": partial(array, "f"),
    "numpy": partial(np.array, dtype=np.float32),
}
ADD_WRONG: Final = ["store", "store_many", "update", "update_many"]


class VectorContract:
    """The closest vectors, and what they are compared by."""

    async def test_the_closest_come_first_with_their_cosine(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.VECTOR)
        await _put_vectors(adapter, [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.6, 0.8, 0.0])
        hits = await by_vector(adapter, [1.0, 0.0, 0.0])
        assert ids(hits) == ["m2", "m3", "m0", "m1"]
        assert _similarities(hits) == pytest.approx([1.0, 0.6, 0.0, -1.0], abs=1e-6)
        assert all(hit.native for hit in hits)

    async def test_length_does_not_count(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.VECTOR)
        await _put_vectors(adapter, [300.0, 400.0], [0.001, 0.0], [2.0, 0.5], [-5.0, -5.0])
        hits = await by_vector(adapter, [70.0, 0.0])
        assert ids(hits) == ["m1", "m2", "m0", "m3"]
        assert _similarities(hits) == pytest.approx([1.0, 2 / sqrt(4.25), 0.6, -sqrt(0.5)], abs=1e-6)

    @pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
    @pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e20, 1e30, 1e38])
    async def test_tiny_and_huge_vectors_of_any_kind_have_a_direction_too(
        self, adapter: MemoryAdapter, scale: float, kind: Callable[[list[float]], Vector]
    ) -> None:
        needs(adapter, Capability.VECTOR)
        await _put_vectors(adapter, kind([0.0, scale]), kind([scale, scale]), kind([scale, 0.0]))
        for query in ([1.0, 0.0], [scale, 0.0]):
            hits = await by_vector(adapter, kind(query))
            assert ids(hits) == ["m2", "m1", "m0"]
            assert _similarities(hits) == pytest.approx([1.0, sqrt(0.5), 0.0], abs=1e-6)

    async def test_a_zero_vector_is_close_to_nothing(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.VECTOR)
        await _put_vectors(adapter, [0.0, 0.0], [1.0, 0.0], [-1.0, 0.0])
        hits = await by_vector(adapter, [1.0, 0.0])
        assert ids(hits) == ["m1", "m0", "m2"]
        assert _similarities(hits) == pytest.approx([1.0, 0.0, -1.0], abs=1e-6)
        nothing = await by_vector(adapter, [0.0, 0.0])
        assert (ids(nothing), _similarities(nothing)) == (["m0", "m1", "m2"], [0.0, 0.0, 0.0])

    async def test_vectors_that_tie_are_ordered_by_id(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.VECTOR)
        names = ["m9", "m10", "b", "B", "a", "é", "0"]
        await put(adapter, *(memory(id, embedding=[0.1, 0.7, 0.3]) for id in names))
        assert ids(await by_vector(adapter, [0.3, 0.2, 0.9])) == sorted(names)
        assert ids(await by_vector(adapter, [0.3, 0.2, 0.9], limit=3)) == sorted(names)[:3]

    async def test_no_more_vectors_are_found_than_asked_for(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.VECTOR)
        await _put_vectors(adapter, *([1.0, number] for number in range(10)))
        assert ids(await by_vector(adapter, [1.0, 0.0], limit=3)) == ["m0", "m1", "m2"]
        assert len(await by_vector(adapter, [1.0, 0.0], limit=10_000)) == 10

    async def test_only_what_has_a_vector_is_found(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.VECTOR)
        assert await by_vector(adapter, [1.0, 0.0]) == []
        await put(adapter, memory("without"), memory("with", embedding=[-1.0, 0.0]))
        assert ids(await by_vector(adapter, [1.0, 0.0])) == ["with"]

    async def test_scope_and_filter_hold_before_vectors_are_ranked(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.VECTOR)
        strangers = [memory(f"s{number}", embedding=[1.0, 0.0], owner="bob", tags=["red"]) for number in range(60)]
        untagged = [memory(f"u{number}", embedding=[1.0, 0.0]) for number in range(60)]
        ours = [memory(f"m{number}", embedding=[1.0, 5.0 + number], tags=["red"]) for number in range(6)]
        await adapter.store_many(Scope("acme"), [*strangers, *untagged, *ours])
        red = MemoryFilter(now=NOW, tags=("red",))
        assert ids(await by_vector(adapter, [1.0, 0.0], MINE, red, limit=5)) == ["m0", "m1", "m2", "m3", "m4"]

    async def test_a_vector_follows_its_memory(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.VECTOR)
        await _put_vectors(adapter, [1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0], [-0.6, 0.8])
        assert ids(await by_vector(adapter, [1.0, 0.0])) == ["m0", "m1", "m2", "m3", "m4"]
        await adapter.update(MINE, "m0", {"embedding": [-1.0, 0.0]})
        await adapter.update(MINE, "m1", {"embedding": None})
        await adapter.delete(MINE, "m2")
        await put(adapter, memory("m3", "replaced, without a vector"))
        await put(adapter, memory("m4", "replaced, with another", embedding=[1.0, 0.1]))
        assert ids(await by_vector(adapter, [1.0, 0.0])) == ["m4", "m0"]

    async def test_other_changes_leave_the_vector_alone(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.VECTOR)
        await _put_vectors(adapter, [1.0, 0.0], [0.0, 1.0])
        await adapter.update(MINE, "m0", {"content": "something else", "layer": Layer.SESSION, "relevance": 0.1})
        await adapter.touch(MINE, ["m0"], NOW)
        [first, _] = await by_vector(adapter, [1.0, 0.0])
        assert (first.entry.id, first.entry.content, first.entry.access_count) == ("m0", "something else", 1)
        assert first.similarity == pytest.approx(1.0, abs=1e-6)

    async def test_many_vectors_are_ranked_as_the_definition_says(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.VECTOR)
        random = Random(7)  # noqa: S311 - any vectors will do, the same ones each time
        vectors = [[random.gauss(0, 1) for _ in range(24)] for _ in range(300)]
        await adapter.store_many(MINE, [memory(f"m{n}", embedding=vector) for n, vector in enumerate(vectors)])
        for _ in range(5):
            query = [random.gauss(0, 1) for _ in range(24)]
            expected = sorted(((_cosine(query, vector), f"m{n}") for n, vector in enumerate(vectors)), reverse=True)
            hits = await by_vector(adapter, query, limit=20)
            assert ids(hits) == [id for _, id in expected[:20]]
            assert _similarities(hits) == pytest.approx([cosine for cosine, _ in expected[:20]], abs=1e-5)

    @pytest.mark.parametrize("way", ADD_WRONG)
    async def test_a_vector_of_another_length_is_refused(self, adapter: MemoryAdapter, way: str) -> None:
        await put(adapter, memory("m1", embedding=[1.0, 0.0]), memory("m2", "without"))
        wrong = [1.0, 0.0, 0.0]
        new = memory("new", owner="bob", embedding=wrong)
        ways: dict[str, Callable[[], Awaitable[object]]] = {
            "store": lambda: adapter.store(Scope("acme"), new),
            "store_many": lambda: adapter.store_many(Scope("acme"), [new]),
            "update": lambda: adapter.update(MINE, "m2", {"embedding": wrong}),
            "update_many": lambda: adapter.update_many(MINE, [Update("m2", {"embedding": wrong})]),
        }
        with pytest.raises(EmbeddingDimensionError) as refusal:
            await ways[way]()
        assert (refusal.value.expected, refusal.value.actual) == (2, 3)
        assert await adapter.get(Scope("acme"), "new") is None
        assert [each.embedding is None for each in await listed(adapter, include_embeddings=True)] == [False, True]

    async def test_a_query_of_another_length_is_refused(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.VECTOR)
        await _put_vectors(adapter, [1.0, 0.0])
        for scope in (MINE, Scope("acme", "bob")):
            with pytest.raises(EmbeddingDimensionError) as refusal:
                await by_vector(adapter, [1.0, 0.0, 0.0], scope)
            assert (refusal.value.expected, refusal.value.actual) == (2, 3)

    @pytest.mark.parametrize("query", [[], [float("nan"), 1.0], [1.0, float("inf")], ["1", "0"]], ids=repr)
    async def test_a_query_that_is_no_vector_is_refused(self, adapter: MemoryAdapter, query: list[float]) -> None:
        needs(adapter, Capability.VECTOR)
        await _put_vectors(adapter, [1.0, 0.0])
        with pytest.raises((InvalidInput, InvalidType)) as refusal:
            await by_vector(adapter, query)
        assert refusal.value.field == "embedding"

    async def test_tenants_have_vectors_of_lengths_of_their_own(self, adapter: MemoryAdapter) -> None:
        theirs = Scope("other")
        await put(adapter, memory(embedding=[1.0, 0.0]), memory(tenant="other", embedding=[1.0, 0.0, 0.0]))
        found = await adapter.get(theirs, "m1")
        assert found is not None
        assert found.embedding is not None
        assert len(found.embedding) == 3
        if Capability.VECTOR in adapter.capabilities:
            assert len(await by_vector(adapter, [1.0, 0.0], MINE)) == 1
            assert len(await by_vector(adapter, [1.0, 0.0, 0.0], theirs)) == 1

    async def test_dropped_vectors_make_way_for_others(self, adapter: MemoryAdapter) -> None:
        everything = Scope("acme")
        expired = memory("m3", "expired", embedding=[1.0, 1.0], expires_at=NOW)
        await put(adapter, memory("m1", embedding=[1.0, 0.0]), memory("m2", owner="bob"), expired)
        assert await adapter.drop_embeddings(everything) == 2
        assert await adapter.drop_embeddings(everything) == 0
        for id in ("m1", "m3"):
            left = await adapter.get(everything, id)
            assert left is not None
            assert left.embedding is None
        await adapter.update(MINE, "m1", {"embedding": [0.0, 0.0, 1.0]})
        await put(adapter, memory("m4", embedding=[0.0, 1.0, 0.0]))
        assert await adapter.count(MINE, MemoryFilter(now=NOW, has_embedding=True)) == 2
        assert await adapter.count(MINE, LIVE) == 2
        if Capability.VECTOR in adapter.capabilities:
            assert ids(await by_vector(adapter, [0.0, 0.1, 1.0])) == ["m1", "m4"]


async def _put_vectors(adapter: MemoryAdapter, *vectors: Vector) -> None:
    await put(adapter, *(memory(f"m{number}", embedding=vector) for number, vector in enumerate(vectors)))


def _similarities(hits: list[SearchHit]) -> list[float]:
    return [hit.similarity for hit in hits]


def _cosine(a: list[float], b: list[float]) -> float:
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / sqrt(sum(x * x for x in a) * sum(y * y for y in b))
