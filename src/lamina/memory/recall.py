"""Recall: candidates of both legs, fused, scored, and explained."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from lamina.domain.filters import MemoryFilter
from lamina.domain.memory import Vector
from lamina.domain.recall import (
    Cutoff,
    Degraded,
    DroppedHit,
    HitExplanation,
    Leg,
    Reason,
    RecallExplanation,
    RecallResult,
    Results,
    SearchMode,
    Source,
)
from lamina.domain.scope import Scope
from lamina.domain.validation import check_unit_interval, check_whole_number
from lamina.errors import EmbeddingDimensionError
from lamina.memory.access import AccessCounters
from lamina.memory.candidates import Candidate, gather
from lamina.memory.comparing import Comparison, lend
from lamina.memory.cutoff import cut_off, read_min_match
from lamina.memory.fallback import scan_by_text, scan_by_vector
from lamina.memory.fusion import least_match, text_share
from lamina.memory.inputs import Filters, read_mode, read_query
from lamina.memory.neighbours import turns_near
from lamina.memory.reading import count, filters_natively
from lamina.memory.reranking import rerank, rerank_share
from lamina.memory.runtime import Runtime
from lamina.memory.scoring import contributions, score_breakdown, total_score
from lamina.memory.wording import Wording
from lamina.ports.embedder import weighted_parts
from lamina.ports.events import EventName
from lamina.ports.memory_adapter import Capability, MemoryAdapter, SearchHit, SearchOptions
from lamina.ports.memory_requests import MAX_LIMIT
from lamina.ports.reranker import Reranker
from lamina.telemetry import memory_operation

__all__ = ["RecallRequest", "Recaller", "recall_request"]

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
    touch: bool
    explain: bool
    reranker: Reranker | None = None
    min_match: Cutoff | None = None


def recall_request(
    runtime: Runtime,
    query: object,
    filters: Filters,
    *,
    mode: SearchMode | str | None,
    limit: int,
    offset: int,
    min_score: float | None,
    rerank: str | None,
    min_match: Cutoff | None,
    touch: bool,
    explain: bool,
) -> RecallRequest:
    """The arguments of a recall, read and checked."""
    asked: Filters = {**filters, "include_superseded": filters.get("include_superseded") or False}
    scope, filter = runtime.read(runtime.clock(), asked)
    return RecallRequest(
        query=read_query(query),
        scope=scope,
        filter=filter,
        mode=read_mode(mode, runtime.search_mode),
        limit=check_whole_number("limit", limit, 1, MAX_LIMIT),
        offset=check_whole_number("offset", offset, 0, MAX_LIMIT),
        min_score=None if min_score is None else check_unit_interval("min_score", min_score),
        min_match=read_min_match(min_match, runtime.min_match),
        touch=touch,
        explain=explain,
        reranker=runtime.rerankers.choose(rerank),
    )


@dataclass(slots=True)
class _Found:
    """What one leg brought."""

    hits: list[SearchHit] = field(default_factory=list)
    degraded: list[Degraded] = field(default_factory=list)


@dataclass(slots=True)
class _Search:
    """What a recall searches with, and what it has found so far."""

    request: RecallRequest
    words: Wording
    vector: Vector | None
    is_repeated: bool = False
    """Whether it was begun again, because another engine changed the store's vectors meanwhile."""
    degraded: dict[Degraded, None] = field(default_factory=dict)
    """As an ordered set: a leg that is asked again for more says the same again."""
    candidates: dict[Leg, int] = field(default_factory=dict)
    overlap: float | None = None
    """How much of the query's words the best of the first candidates holds, if the keyword leg runs."""
    min_match: float | None = None
    """What a result must match at least; None until the first candidates are known."""
    known: list[Candidate] = field(default_factory=list)
    """All candidates so far."""
    ranked: list[RecallResult] = field(default_factory=list)
    foreign: set[str] = field(default_factory=set)
    """Ids of memories that are in no store of ours."""

    @property
    def wants_text(self) -> bool:
        """The keyword leg runs unless vectors were asked for and can answer: one leg answers for the other."""
        return self.request.mode is not SearchMode.VECTOR or self.vector is None


class Recaller:
    """The searching half of a memory engine."""

    def __init__(self, runtime: Runtime, accesses: AccessCounters) -> None:
        self._runtime = runtime
        self._accesses = accesses

    async def recall(self, request: RecallRequest) -> Results[RecallResult]:
        """The best results for the request, best first; ties by the keyword leg's rank, then by id.

        The candidates are ranked pool by pool: first each leg's best `max(5 * limit, 50)`, then, as long as the page
        asked for lies beyond, those that a pool of twice the size adds. Of the first pool, a reranker reads the best;
        the others come behind them as they were. So the pages of one limit tile, and an earlier page never hangs on a
        later one. Memories of version 1 come behind all of ours, whatever their score.
        """
        with memory_operation("search_memory", store=request.scope.tenant) as operation:
            operation.asks(request.query)
            results = await self._recall(request)
            operation.count = len(results)
            operation.gives((each.entry.id, each.entry.content) for each in results)
            return results

    async def _recall(self, request: RecallRequest) -> Results[RecallResult]:
        search = await self._begin(request)
        pool = max(POOL_PER_RESULT * request.limit, MIN_POOL)
        while True:
            by_vector, by_text = await asyncio.gather(self._vector_leg(search, pool), self._text_leg(search, pool))
            if isinstance(by_vector, Degraded):  # what was compared is worth nothing: begin again
                search.ranked.clear()
                search.known.clear()
                search.min_match = None
                if search.is_repeated or self._runtime.space.needs_reembed:  # by keyword
                    search.degraded[by_vector] = None
                    search.vector = None
                search.is_repeated = True
                continue
            search.degraded.update(dict.fromkeys(by_vector.degraded + by_text.degraded))
            search.candidates = {Leg.VECTOR: len(by_vector.hits), Leg.TEXT: len(by_text.hits)}
            seen = {result.entry.id for result in search.ranked}
            fresh = [each for each in gather(by_vector.hits, by_text.hits) if each.entry.id not in seen]
            await self._compare(fresh, search)
            search.ranked += self._rank(fresh, request)
            is_all = max(search.candidates.values()) < pool
            if is_all or len(search.ranked) >= request.offset + request.limit:
                await self._add_earlier(search)
                results = await self._select(search)
                ids = [result.entry.id for result in results]
                self._runtime.tell(EventName.MEMORY_RECALLED, ids=ids, degraded=len(results.degraded))
                return results
            pool *= 2

    async def _begin(self, request: RecallRequest) -> _Search:
        words = Wording(request.query, self._runtime.adapter, request.scope, now=request.filter.now)
        vector: Vector | None = None
        degraded: dict[Degraded, None] = {}
        if request.mode is not SearchMode.TEXT:
            embedded = await self._runtime.space.embed_query(request.query)
            if isinstance(embedded, Degraded):
                degraded[embedded] = None
            else:
                vector = embedded
        return _Search(request, words, vector, degraded=degraded)

    async def _vector_leg(self, search: _Search, pool: int) -> _Found | Degraded:
        """The closest entries, or why they cannot be told: the store's vectors turned out to be another model's."""
        found = _Found()
        if search.vector is None:
            return found
        options = _options(search.request, pool, include_embeddings=self._has_parts(search.request.query))
        try:
            for store in self._runtime.stores(search.request.filter.layers):
                if _is_native(store, Capability.VECTOR, options):
                    found.hits += await store.search_by_vector(search.vector, options)
                else:
                    found.hits += await scan_by_vector(store, search.vector, options)
                    found.degraded.append(Degraded(Leg.VECTOR, Reason.NOT_NATIVE, store.name))
        except EmbeddingDimensionError as error:
            return Degraded(Leg.VECTOR, Reason.OTHER_MODEL, str(error))
        if problem := await self._runtime.space.still_holds():
            return problem
        if not found.hits and await self._has_entries(search.request):
            found.degraded.append(Degraded(Leg.VECTOR, Reason.NO_VECTORS))
        elif self._runtime.space.has_gaps:
            found.degraded.append(Degraded(Leg.VECTOR, Reason.SOME_WITHOUT_VECTOR))
        found.hits.sort(key=lambda hit: (-hit.similarity, hit.entry.id))
        del found.hits[pool:]
        return found

    async def _text_leg(self, search: _Search, pool: int) -> _Found:
        """The keyword hits; with their embeddings where a query vector can be compared with them."""
        found = _Found()
        if not search.wants_text:
            return found
        options = _options(search.request, pool, include_embeddings=search.vector is not None)
        for store in self._runtime.stores(search.request.filter.layers):
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

    def _has_parts(self, query: str) -> bool:
        """Whether the vectors of the candidates are needed: what their parts count for is told later."""
        embedder = self._runtime.space.embedder
        return embedder is not None and bool(weighted_parts(embedder, query, None))

    async def _compare(self, fresh: list[Candidate], search: _Search) -> None:
        """Tell of each fresh candidate how close it is to the query, by all that is known.

        The first ones get company: the turns around the best of them.
        """
        query, is_first = search.request.query, not search.known
        if search.overlap is None and (search.wants_text or self._has_parts(query)):
            search.overlap = await search.words.overlap(fresh, is_searched=search.wants_text)
        words = search.words if search.wants_text else None
        comparison = Comparison(query, words, self._runtime.space.embedder, search.vector, search.overlap)
        await comparison.judge(fresh)
        if search.min_match is None:
            search.min_match = cut_off(search.request.min_match, [each.match for each in fresh], self._level(search))
        if is_first:
            fresh += await comparison.judge(await self._turns_near(fresh, search.request))
        comparison.join(fresh)
        search.known += fresh
        lend(query, search.known, fresh, search.words.periods)
        if is_first and search.request.reranker is not None:
            problem = await rerank(search.request.reranker, query, fresh)
            if problem is not None:
                search.degraded[problem] = None
            lend(query, search.known, fresh, search.words.periods)

    async def _turns_near(self, candidates: Sequence[Candidate], request: RecallRequest) -> list[Candidate]:
        runtime = self._runtime
        lasting = [each for each in candidates if runtime.store_of(each.entry.layer) is runtime.adapter]
        return await turns_near(runtime.adapter, lasting, scope=request.scope, filter=request.filter)

    def _level(self, search: _Search) -> float | None:
        """The match from where something has to do with the query; None where only words are compared."""
        embedder = self._runtime.space.embedder
        if embedder is None or search.vector is None:
            return None
        return least_match(embedder, search.request.query, with_text=search.wants_text)

    def _rank(self, candidates: Iterable[Candidate], request: RecallRequest) -> list[RecallResult]:
        scored = []
        for candidate in candidates:
            result = self._score(candidate, request)
            text_rank = candidate.hits[Leg.TEXT].rank if Leg.TEXT in candidate.hits else float("inf")
            scored.append((candidate.rerank is None, -result.score, text_rank, result.entry.id, result))
        return [result for *_, result in sorted(scored, key=lambda each: each[:4])]

    def _score(self, candidate: Candidate, request: RecallRequest) -> RecallResult:
        entry, scoring = candidate.entry, self._runtime.scoring
        breakdown = score_breakdown(candidate, request.filter.now, scoring)
        legs = candidate.hits
        source = Source.BOTH if len(legs) > 1 else Source(next(iter(legs), Source.CONVERSATION))
        explanation = None
        if request.explain:
            parts = contributions(breakdown, scoring)
            explanation = HitExplanation(
                legs.get(Leg.VECTOR), legs.get(Leg.TEXT), parts, candidate.support, candidate.rerank
            )
        score = total_score(breakdown, scoring, version=self._runtime.version)
        return RecallResult(entry, score, breakdown, source, explanation)

    async def _add_earlier(self, search: _Search) -> None:
        """Where ours do not fill the page: behind them the memories of version 1 that hold words of the query."""
        request, earlier = search.request, self._runtime.earlier
        missing = request.offset + request.limit - len(_above(search))
        if earlier is None or missing <= 0:
            return
        store = await earlier.store(self._runtime.adapter, request.filter.now)
        if store is None:
            return
        # All that hold a word are ranked, so that the pages tile here too.
        hits = await store.search_by_text(request.query, _options(request, MAX_LIMIT, include_embeddings=False))
        seen = {result.entry.id for result in search.ranked}
        found = gather([], hits)
        for each in found:
            each.similarity = each.match = each.text or 0.0
        for result in self._rank(found, request):
            id = result.entry.id
            if len(search.foreign) == missing:
                break
            if id not in seen and await self._runtime.find(self._runtime.tenant_scope, id) is None:
                search.ranked.append(result)
                search.foreign.add(id)
        if search.foreign:
            search.degraded[Degraded(Leg.TEXT, Reason.NOT_NATIVE, "version 1")] = None

    async def _select(self, search: _Search) -> Results[RecallResult]:
        """Apply the minima, the hook and the cut, in this order; count accesses, and keep book where asked to."""
        request = search.request
        matching, above = _matching(search), _above(search)
        hooked = await self._runtime.hooks.after_recall(above, request.query)
        page = hooked[request.offset : request.offset + request.limit]
        if request.touch:
            found = {result.entry.id for result in above} - search.foreign  # not what the hook made up
            self._accesses.count([each for each in page if each.entry.id in found], request.filter.now)
        degraded = tuple(search.degraded)
        if not request.explain:
            return Results(page, degraded=degraded)
        scoring = self._runtime.scoring
        is_reranked = any(each.rerank is not None for each in search.known)
        explanation = RecallExplanation(
            mode=request.mode,
            candidates=search.candidates,
            dropped=[
                *_dropped(search.ranked, matching, "min_match"),
                *_dropped(matching, above, "min_score"),
                *_dropped(above, hooked, "hook"),
                *_dropped(hooked, page, "limit"),
            ],
            terms=[term.forms[0] for term in search.words.terms],
            weights={
                "similarity": scoring.similarity_weight,
                "recency": scoring.recency_weight,
                "frequency": scoring.frequency_weight,
                "relevance": scoring.relevance_weight,
                "text_share": text_share(request.query),
                "rerank_share": rerank_share(request.query) if is_reranked else 0.0,
            },
            min_match=search.min_match or 0.0,
            periods=search.words.periods,
        )
        return Results(page, degraded=degraded, explanation=explanation)


def _above(search: _Search) -> list[RecallResult]:
    least = search.request.min_score
    return [result for result in _matching(search) if least is None or result.score >= least]


def _matching(search: _Search) -> list[RecallResult]:
    least = search.min_match or 0.0
    return [result for result in search.ranked if (result.score_breakdown.match or 0.0) >= least]


def _options(request: RecallRequest, pool: int, *, include_embeddings: bool) -> SearchOptions:
    return SearchOptions(scope=request.scope, filter=request.filter, limit=pool, include_embeddings=include_embeddings)


def _is_native(store: MemoryAdapter, capability: Capability, options: SearchOptions) -> bool:
    return capability in store.capabilities and filters_natively(store, options.filter)


def _dropped(before: Sequence[RecallResult], after: Sequence[RecallResult], why: str) -> list[DroppedHit]:
    kept = {result.entry.id for result in after}
    return [DroppedHit(result.entry.id, result.score, why) for result in before if result.entry.id not in kept]
