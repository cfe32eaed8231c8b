"""The legs of a recall: every store is asked by vector and by keyword, at once where it can answer at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lamina.domain.memory import UNSET
from lamina.domain.recall import Degraded, Leg, Reason
from lamina.errors import EmbeddingDimensionError
from lamina.memory.asking import RecallRequest, Search
from lamina.memory.embedding import META_KEY
from lamina.memory.fallback import scan_by_text, scan_by_vector
from lamina.memory.reading import count, filters_natively
from lamina.memory.runtime import Runtime
from lamina.ports.embedder import weighted_parts
from lamina.ports.memory_adapter import BothLegs, Capability, MemoryAdapter, SearchHit, SearchOptions
from lamina.ports.memory_requests import PoolHit

__all__ = ["Answer", "Found", "Legs", "search_options"]


@dataclass(slots=True)
class Found:
    """What one leg brought."""

    hits: list[SearchHit | PoolHit] = field(default_factory=list)
    degraded: list[Degraded] = field(default_factory=list)


@dataclass(slots=True)
class Answer:
    """What both legs brought."""

    by_vector: Found
    by_text: Found
    cosines: Mapping[str, float] = field(default_factory=dict)
    """By id, as far as a store has told them for more than it found by vector."""


class Legs:
    """Both legs over the stores of a runtime."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def ask(self, search: Search, pool: int) -> Answer | Degraded:
        """The best of each leg, or why vectors cannot be told: the store's turned out to be another model's."""
        request = search.request
        stores = self._runtime.stores(request.filter.layers)
        try:
            at_once = await self._at_once(search, pool, stores)
        except EmbeddingDimensionError as error:
            return Degraded(Leg.VECTOR, Reason.OTHER_MODEL, str(error))
        if at_once is None:
            by_vector, by_text = await asyncio.gather(
                self._vector_leg(search, pool, stores), self._text_leg(search, pool, stores)
            )
            return by_vector if isinstance(by_vector, Degraded) else Answer(by_vector, by_text)
        if at_once.statistics is not None:
            search.words.learn(at_once.statistics, at_once.similarities)
        others = [store for store in stores if store is not self._runtime.adapter]
        first = await self._vector_leg(search, pool, others, at_once)
        if isinstance(first, Degraded):
            return first
        return Answer(first, await self._text_leg(search, pool, others, at_once), at_once.cosines)

    async def _at_once(self, search: Search, pool: int, stores: Sequence[MemoryAdapter]) -> BothLegs | None:
        """What the adapter answers in one go, if it can."""
        adapter, request = self._runtime.adapter, search.request
        options = search_options(request, pool, include_embeddings=self.has_parts(request.query))
        natively = all(_is_native(adapter, leg, options) for leg in (Capability.VECTOR, Capability.TEXT))
        if adapter not in stores or not natively:
            return None
        query = request.query if search.wants_text else None
        return await adapter.search_both(search.vector, query, options, meta_key=META_KEY)

    async def _vector_leg(
        self, search: Search, pool: int, stores: Sequence[MemoryAdapter], at_once: BothLegs | None = None
    ) -> Found | Degraded:
        found = Found() if at_once is None else Found([*at_once.by_vector])
        if search.vector is None:
            return found
        options = search_options(search.request, pool, include_embeddings=self.has_parts(search.request.query))
        try:
            for store in stores:
                if _is_native(store, Capability.VECTOR, options):
                    found.hits += await store.search_by_vector(search.vector, options)
                else:
                    found.hits += await scan_by_vector(store, search.vector, options)
                    found.degraded.append(Degraded(Leg.VECTOR, Reason.NOT_NATIVE, store.name))
        except EmbeddingDimensionError as error:
            return Degraded(Leg.VECTOR, Reason.OTHER_MODEL, str(error))
        if problem := await self._runtime.space.still_holds(UNSET if at_once is None else at_once.meta):
            return problem
        if not found.hits and await self._has_entries(search.request):
            found.degraded.append(Degraded(Leg.VECTOR, Reason.NO_VECTORS))
        elif self._runtime.space.has_gaps:
            found.degraded.append(Degraded(Leg.VECTOR, Reason.SOME_WITHOUT_VECTOR))
        if at_once is None or len(found.hits) > len(at_once.by_vector):
            found.hits.sort(key=lambda hit: (-hit.similarity, hit.entry.id))
            del found.hits[pool:]
        return found

    async def _text_leg(
        self, search: Search, pool: int, stores: Sequence[MemoryAdapter], at_once: BothLegs | None = None
    ) -> Found:
        """The keyword hits; with their embeddings where a query vector can be compared with them."""
        found = Found() if at_once is None else Found([*at_once.by_text])
        if not search.wants_text:
            return found
        options = search_options(search.request, pool, include_embeddings=search.vector is not None)
        for store in stores:
            if _is_native(store, Capability.TEXT, options):
                hits = await store.search_by_text(search.request.query, options)
            else:
                hits = await scan_by_text(store, search.request.query, options)
                found.degraded.append(Degraded(Leg.TEXT, Reason.NOT_NATIVE, store.name))
            if store is not self._runtime.adapter:  # it weighs terms by what it holds itself
                for hit in hits:
                    hit.similarity = await search.words.similarity(hit.entry)
            found.hits += hits
        found.hits.sort(key=lambda hit: -hit.similarity)  # stable: each store's own order breaks ties
        del found.hits[pool:]
        return found

    async def _has_entries(self, request: RecallRequest) -> bool:
        for store in self._runtime.stores(request.filter.layers):
            if await count(store, request.scope, request.filter):
                return True
        return False

    def has_parts(self, query: str) -> bool:
        """Whether the vectors of the candidates are needed: what their parts count for is told later."""
        embedder = self._runtime.space.embedder
        return embedder is not None and bool(weighted_parts(embedder, query, None))


def search_options(request: RecallRequest, pool: int, *, include_embeddings: bool) -> SearchOptions:
    """What a store is asked for the request."""
    return SearchOptions(scope=request.scope, filter=request.filter, limit=pool, include_embeddings=include_embeddings)


def _is_native(store: MemoryAdapter, capability: Capability, options: SearchOptions) -> bool:
    return capability in store.capabilities and filters_natively(store, options.filter)
