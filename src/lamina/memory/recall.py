"""Recall: candidates of both legs, fused, scored, and explained."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

from lamina.domain.memory import MemoryEntry, Vector
from lamina.domain.recall import (
    Degraded,
    DroppedHit,
    Leg,
    Reason,
    RecallExplanation,
    RecallResult,
    Results,
    SearchMode,
)
from lamina.memory.access import AccessCounters
from lamina.memory.asking import RecallRequest, Search, recall_request
from lamina.memory.candidates import Candidate, gather
from lamina.memory.comparing import Comparison, lend, set_apart
from lamina.memory.cutoff import cut_off
from lamina.memory.fusion import least_match, text_share
from lamina.memory.legs import Legs, search_options
from lamina.memory.neighbours import turns_near
from lamina.memory.ranking import Ranked, ranked
from lamina.memory.reranking import rerank, rerank_share
from lamina.memory.runtime import Runtime
from lamina.memory.wording import Wording
from lamina.ports.events import EventName
from lamina.ports.memory_requests import MAX_LIMIT
from lamina.telemetry import memory_operation

__all__ = ["RecallRequest", "Recaller", "recall_request"]

POOL_PER_RESULT: Final = 5
MIN_POOL: Final = 50


class Recaller:
    """The searching half of a memory engine."""

    def __init__(self, runtime: Runtime, accesses: AccessCounters) -> None:
        self._runtime = runtime
        self._accesses = accesses
        self._legs = Legs(runtime)

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
            found = await self._legs.ask(search, pool)
            if isinstance(found, Degraded):  # what was compared is worth nothing: begin again
                search.ranked.clear()
                search.known.clear()
                search.min_match = search.best = None
                if search.is_repeated or self._runtime.space.needs_reembed:  # by keyword
                    search.degraded[found] = None
                    search.vector = None
                search.is_repeated = True
                continue
            by_vector, by_text = found.by_vector, found.by_text
            search.degraded.update(dict.fromkeys(by_vector.degraded + by_text.degraded))
            search.candidates = {Leg.VECTOR: len(by_vector.hits), Leg.TEXT: len(by_text.hits)}
            seen = {each.id for each in search.ranked}
            both = gather(by_vector.hits, by_text.hits, current=request.filter.current)
            fresh = [each for each in both if each.view.id not in seen]
            await self._compare(fresh, search, found.cosines)
            search.ranked += self._rank(fresh, request)
            is_all = max(search.candidates.values()) < pool
            if is_all or len(search.ranked) >= request.offset + request.limit:
                await self._add_earlier(search)
                results = await self._select(search)
                ids = [result.entry.id for result in results]
                self._runtime.tell(EventName.MEMORY_RECALLED, ids=ids, degraded=len(results.degraded))
                return results
            pool *= 2

    async def _begin(self, request: RecallRequest) -> Search:
        words = Wording(request.query, self._runtime.adapter, request.scope, now=request.filter.now)
        vector: Vector | None = None
        degraded: dict[Degraded, None] = {}
        if request.mode is not SearchMode.TEXT:
            embedded = await self._runtime.space.embed_query(request.query)
            if isinstance(embedded, Degraded):
                degraded[embedded] = None
            else:
                vector = embedded
        return Search(request, words, vector, degraded=degraded)

    async def _compare(self, fresh: list[Candidate], search: Search, cosines: Mapping[str, float]) -> None:
        """Tell of each fresh candidate how close it is to the query, by all that is known.

        The first ones get company: the turns around the best of them. This is where a signal is added: one that a
        candidate's text and vector give belongs into `Comparison`, one that hangs on the other candidates into `lend`.
        """
        query, is_first, words = search.request.query, not search.known, search.words
        embedder = self._runtime.space.embedder
        if search.overlap is None and (search.wants_text or self._legs.has_parts(query)):
            search.overlap = await words.overlap(fresh, is_searched=search.wants_text)
        compared = words if search.wants_text else None
        comparison = Comparison(query, compared, embedder, search.vector, search.overlap)
        await comparison.judge(fresh, cosines)
        if search.min_match is None:
            search.min_match = cut_off(search.request.min_match, [each.match for each in fresh], self._level(search))
        if is_first:
            fresh += await comparison.judge(await self._turns_near(fresh, search.request), {})
        comparison.join(fresh)
        search.known += fresh
        lend(query, search.known, fresh, words.periods)
        if is_first and search.request.reranker is not None:
            problem = await rerank(search.request.reranker, query, fresh)
            if problem is not None:
                search.degraded[problem] = None
            lend(query, search.known, fresh, words.periods)
        if search.is_hybrid and self._weighs_more_than_similarity:
            if search.best is None:
                search.best = max((each.total for each in fresh), default=None)
            set_apart(fresh, search.best or 0.0)

    @property
    def _weighs_more_than_similarity(self) -> bool:
        scoring = self._runtime.scoring
        others = scoring.recency_weight + scoring.frequency_weight + scoring.relevance_weight
        return self._runtime.version != 1 and others > 0

    async def _turns_near(self, candidates: Sequence[Candidate], request: RecallRequest) -> list[Candidate]:
        store = self._runtime.adapter
        of = self._runtime.store_of
        lasting = [  # only the adapter gives entries that are not made yet
            each for each in candidates if not isinstance(each.view, MemoryEntry) or of(each.view.layer) is store
        ]
        return await turns_near(store, lasting, scope=request.scope, filter=request.filter)

    def _level(self, search: Search) -> float | None:
        """The match from where something has to do with the query; None where only words are compared."""
        embedder = self._runtime.space.embedder
        if embedder is None or search.vector is None:
            return None
        return least_match(embedder, search.request.query, with_text=search.wants_text)

    def _rank(self, candidates: Iterable[Candidate], request: RecallRequest) -> list[Ranked]:
        runtime = self._runtime
        return ranked(candidates, request.filter.now, runtime.scoring, version=runtime.version)

    async def _add_earlier(self, search: Search) -> None:
        """Where ours do not fill the page: behind them the memories of version 1 that hold words of the query."""
        request, earlier = search.request, self._runtime.earlier
        missing = request.offset + request.limit - len(_above(search))
        if earlier is None or missing <= 0:
            return
        store = await earlier.store(self._runtime.adapter, request.filter.now)
        if store is None:
            return
        # All that hold a word are ranked, so that the pages tile here too.
        hits = await store.search_by_text(request.query, search_options(request, MAX_LIMIT, include_embeddings=False))
        seen = {each.id for each in search.ranked}
        found = gather([], hits)
        for each in found:
            each.similarity = each.match = each.text or 0.0
        for one in self._rank(found, request):
            if len(search.foreign) == missing:
                break
            if one.id not in seen and await self._runtime.find(self._runtime.tenant_scope, one.id) is None:
                search.ranked.append(one)
                search.foreign.add(one.id)
        if search.foreign:
            search.degraded[Degraded(Leg.TEXT, Reason.NOT_NATIVE, "version 1")] = None

    async def _select(self, search: Search) -> Results[RecallResult]:
        """Apply the minima, the hook and the cut, in this order; count accesses, and keep book where asked to."""
        request = search.request
        above = _above(search)
        start, end = request.offset, request.offset + request.limit
        hooked: list[RecallResult] | None = None
        if request.explain or self._runtime.hooks.watches_recall:
            scoring = self._runtime.scoring if request.explain else None
            hooked = await self._runtime.hooks.after_recall([each.result(scoring) for each in above], request.query)
            page = hooked[start:end]
        else:
            page = [each.result() for each in above[start:end]]
        if request.touch:
            found = {each.id for each in above} - search.foreign  # not what the hook made up
            self._accesses.count([each for each in page if each.entry.id in found], request.filter.now)
        degraded = tuple(search.degraded)
        if not request.explain:
            return Results(page, degraded=degraded)
        return Results(page, degraded=degraded, explanation=self._explanation(search, above, hooked or [], page))

    def _explanation(
        self, search: Search, above: Sequence[Ranked], hooked: Sequence[RecallResult], page: Sequence[RecallResult]
    ) -> RecallExplanation:
        request, scoring = search.request, self._runtime.scoring
        everything, matching, hit = _scores(search.ranked), _scores(_matching(search)), _scores(above)
        left, shown = ({each.entry.id: each.score for each in results} for results in (hooked, page))
        is_reranked = any(each.rerank is not None for each in search.known)
        return RecallExplanation(
            mode=request.mode,
            candidates=search.candidates,
            dropped=[
                *_dropped(everything, matching, "min_match"),
                *_dropped(matching, hit, "min_score"),
                *_dropped(hit, left, "hook"),
                *_dropped(left, shown, "limit"),
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


def _above(search: Search) -> list[Ranked]:
    least = search.request.min_score
    return [each for each in _matching(search) if least is None or each.score >= least]


def _matching(search: Search) -> list[Ranked]:
    least = search.min_match or 0.0
    return [each for each in search.ranked if each.candidate.match >= least]


def _scores(ranked: Iterable[Ranked]) -> dict[str, float]:
    return {each.id: each.score for each in ranked}


def _dropped(before: Mapping[str, float], after: Container[str], why: str) -> list[DroppedHit]:
    return [DroppedHit(id, score, why) for id, score in before.items() if id not in after]
