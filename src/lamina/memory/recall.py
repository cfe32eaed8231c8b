"""Recall: candidates of both legs, fused, scored, and explained."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from lamina.domain.closeness import cosines
from lamina.domain.filters import MemoryFilter
from lamina.domain.lexical import Term, index_terms, query_terms, similarity, term_weights
from lamina.domain.memory import MemoryEntry, Vector
from lamina.domain.recall import (
    Degraded,
    DroppedHit,
    HitExplanation,
    Leg,
    LegHit,
    Reason,
    RecallExplanation,
    RecallResult,
    Results,
    SearchMode,
    Source,
)
from lamina.domain.scope import Scope
from lamina.memory.fallback import scan_by_text, scan_by_vector
from lamina.memory.fusion import fuse, text_weight
from lamina.memory.reading import count
from lamina.memory.runtime import Runtime
from lamina.memory.scoring import contributions, score_breakdown, total_score
from lamina.ports.memory_adapter import Capability, MemoryAdapter, SearchHit, SearchOptions

__all__ = ["RecallRequest", "Recaller"]

POOL_PER_RESULT: Final = 5
MIN_POOL: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """One recall, read and checked."""

    query: str
    scope: Scope
    filter: MemoryFilter
    mode: SearchMode
    limit: int
    offset: int
    min_score: float | None
    explain: bool


@dataclass(slots=True)
class _Candidate:
    """An entry that some leg found, and what each leg says of it."""

    entry: MemoryEntry
    hits: dict[Leg, LegHit] = field(default_factory=dict)
    vector: float | None = None
    text: float | None = None


@dataclass(frozen=True, slots=True)
class _Search:
    """How the candidates came about: for the results' marks and explanation."""

    degraded: tuple[Degraded, ...]
    terms: Sequence[Term]
    candidates: dict[Leg, int]


@dataclass(slots=True)
class _Found:
    """What one leg brought."""

    hits: list[SearchHit] = field(default_factory=list)
    degraded: list[Degraded] = field(default_factory=list)


class Recaller:
    """The searching half of a memory engine."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def recall(self, request: RecallRequest) -> Results[RecallResult]:
        """The best results for the request, best first; ties by the keyword leg's rank, then by id."""
        terms = query_terms(request.query)
        embedded = await self._embed(request)
        query_vector = None if isinstance(embedded, Degraded) else embedded
        by_vector, by_text = await asyncio.gather(
            self._vector_leg(request, query_vector),
            self._text_leg(request, query_vector),
        )
        missing = [embedded] if isinstance(embedded, Degraded) else []
        search = _Search(
            degraded=(*missing, *by_vector.degraded, *by_text.degraded),
            terms=terms,
            candidates={Leg.VECTOR: len(by_vector.hits), Leg.TEXT: len(by_text.hits)},
        )
        candidates = _gather(by_vector.hits, by_text.hits)
        _complete_vectors(candidates, query_vector)
        if _wants_text(request, query_vector):
            await self._complete_texts(candidates, request, terms)
        ranked = self._rank(candidates, request)
        return await self._select(ranked, request, search)

    async def _embed(self, request: RecallRequest) -> Vector | Degraded | None:
        if request.mode is SearchMode.TEXT:
            return None
        return await self._runtime.space.embed_query(request.query)

    async def _vector_leg(self, request: RecallRequest, query_vector: Vector | None) -> _Found:
        found = _Found()
        if query_vector is None:
            return found
        options = self._options(request, include_embeddings=False)
        for store in self._runtime.stores(request.filter.layers):
            if _is_native(store, Capability.VECTOR, options):
                found.hits += await store.search_by_vector(query_vector, options)
            else:
                found.hits += await scan_by_vector(store, query_vector, options)
                found.degraded.append(Degraded(Leg.VECTOR, Reason.NOT_NATIVE, store.name))
        if not found.hits and await self._has_entries(request):
            found.degraded.append(Degraded(Leg.VECTOR, Reason.NO_VECTORS))
        found.hits.sort(key=lambda hit: (-hit.similarity, hit.entry.id))
        del found.hits[options.limit :]
        return found

    async def _text_leg(self, request: RecallRequest, query_vector: Vector | None) -> _Found:
        """The keyword hits; with their embeddings where a query vector can be compared with them."""
        found = _Found()
        if not _wants_text(request, query_vector):
            return found
        options = self._options(request, include_embeddings=query_vector is not None)
        for store in self._runtime.stores(request.filter.layers):
            if _is_native(store, Capability.TEXT, options):
                found.hits += await store.search_by_text(request.query, options)
            else:
                found.hits += await scan_by_text(store, request.query, options)
                found.degraded.append(Degraded(Leg.TEXT, Reason.NOT_NATIVE, store.name))
        found.hits.sort(key=lambda hit: -hit.similarity)  # stable: each store's own order breaks ties
        del found.hits[options.limit :]
        return found

    def _options(self, request: RecallRequest, *, include_embeddings: bool) -> SearchOptions:
        pool = max(POOL_PER_RESULT * (request.limit + request.offset), MIN_POOL)
        return SearchOptions(
            scope=request.scope, filter=request.filter, limit=pool, include_embeddings=include_embeddings
        )

    async def _has_entries(self, request: RecallRequest) -> bool:
        for store in self._runtime.stores(request.filter.layers):
            if await count(store, request.scope, request.filter):
                return True
        return False

    async def _complete_texts(
        self, candidates: Iterable[_Candidate], request: RecallRequest, terms: Sequence[Term]
    ) -> None:
        """Give each candidate that the keyword leg did not bring its value there."""
        wanting = [candidate for candidate in candidates if candidate.text is None]
        if not wanting or not terms:
            return
        forms = [form for term in terms for form in term.forms]
        found = await self._runtime.adapter.term_statistics(request.scope, forms, request.filter.now)
        weights = (
            term_weights(terms, 0, {}) if found is None else term_weights(terms, found.documents, found.frequencies)
        )
        for candidate in wanting:
            candidate.text = similarity(terms, weights, frozenset(index_terms(candidate.entry.content)))

    def _rank(self, candidates: Iterable[_Candidate], request: RecallRequest) -> list[RecallResult]:
        weight = text_weight(request.query)
        scored = []
        for candidate in candidates:
            result = self._score(candidate, request, weight)
            text_rank = candidate.hits[Leg.TEXT].rank if Leg.TEXT in candidate.hits else float("inf")
            scored.append((-result.score, text_rank, result.entry.id, result))
        return [result for *_, result in sorted(scored, key=lambda each: each[:3])]

    def _score(self, candidate: _Candidate, request: RecallRequest, weight: float) -> RecallResult:
        entry, scoring = candidate.entry, self._runtime.scoring
        breakdown = score_breakdown(
            entry,
            request.filter.now,
            scoring,
            vector=candidate.vector,
            text=candidate.text,
            fused=fuse(candidate.vector, candidate.text, weight),
        )
        legs = candidate.hits
        source = Source.BOTH if len(legs) > 1 else Source(next(iter(legs)))
        explanation = None
        if request.explain:
            explanation = HitExplanation(legs.get(Leg.VECTOR), legs.get(Leg.TEXT), contributions(breakdown, scoring))
        score = total_score(breakdown, scoring, version=self._runtime.version)
        return RecallResult(entry, score, breakdown, source, explanation)

    async def _select(
        self, ranked: list[RecallResult], request: RecallRequest, search: _Search
    ) -> Results[RecallResult]:
        """Apply the minimum, the hook and the cut, in this order, keeping book where asked to."""
        least = request.min_score
        above = [result for result in ranked if least is None or result.score >= least]
        hooked = await self._runtime.hooks.after_recall(above, request.query)
        page = hooked[request.offset : request.offset + request.limit]
        if not request.explain:
            return Results(page, degraded=search.degraded)
        scoring = self._runtime.scoring
        explanation = RecallExplanation(
            mode=request.mode,
            candidates=search.candidates,
            dropped=[
                *_dropped(ranked, above, "min_score"),
                *_dropped(above, hooked, "hook"),
                *_dropped(hooked, page, "limit"),
            ],
            terms=[term.forms[0] for term in search.terms],
            weights={
                "similarity": scoring.similarity_weight,
                "recency": scoring.recency_weight,
                "frequency": scoring.frequency_weight,
                "relevance": scoring.relevance_weight,
                "text_share": text_weight(request.query),
            },
        )
        return Results(page, degraded=search.degraded, explanation=explanation)


def _wants_text(request: RecallRequest, query_vector: Vector | None) -> bool:
    """The keyword leg runs unless vectors were asked for and can answer: one leg answers for the other."""
    return request.mode is not SearchMode.VECTOR or query_vector is None


def _is_native(store: MemoryAdapter, capability: Capability, options: SearchOptions) -> bool:
    filters = options.filter.where is None or Capability.FILTER in store.capabilities
    return capability in store.capabilities and filters


def _gather(by_vector: Sequence[SearchHit], by_text: Sequence[SearchHit]) -> list[_Candidate]:
    """The union of both legs' hits, with each one's place in each leg."""
    candidates: dict[str, _Candidate] = {}
    for leg, hits in ((Leg.TEXT, by_text), (Leg.VECTOR, by_vector)):
        for rank, hit in enumerate(hits, start=1):
            candidate = candidates.setdefault(hit.entry.id, _Candidate(hit.entry))
            candidate.hits[leg] = LegHit(rank, hit.similarity, hit.native)
            if leg is Leg.VECTOR:
                candidate.vector = hit.similarity
            else:
                candidate.text = hit.similarity
    return list(candidates.values())


def _complete_vectors(candidates: Sequence[_Candidate], query_vector: Vector | None) -> None:
    """Give each candidate that the vector leg did not bring its value there, if it has a vector; take those away."""
    if query_vector is not None:
        comparable = [
            (each, each.entry.embedding)
            for each in candidates
            if each.vector is None
            and each.entry.embedding is not None
            and len(each.entry.embedding) == len(query_vector)
        ]
        values = cosines(query_vector, [embedding for _, embedding in comparable])
        for (candidate, _), value in zip(comparable, values, strict=True):
            candidate.vector = value
    for candidate in candidates:
        candidate.entry.embedding = None


def _dropped(before: Sequence[RecallResult], after: Sequence[RecallResult], why: str) -> list[DroppedHit]:
    kept = {result.entry.id for result in after}
    return [DroppedHit(result.entry.id, result.score, why) for result in before if result.entry.id not in kept]
