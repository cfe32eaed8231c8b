"""Phase two: the memories of packs, found by meaning and words or listed, and brought back whole."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from lamina.domain.filters import And, Filter, MemoryFilter, Where
from lamina.domain.pack import PackHit, PackMemory
from lamina.domain.pack_decay import TIER_FACTORS, Tier
from lamina.domain.recall import Degraded, Leg, Reason, Results, SearchMode
from lamina.memory.recall import RecallRequest
from lamina.packs.pack_index import FoundRow, PackIndex
from lamina.packs.pack_rows import LIVE, MARKER, OWN, REDUCED, PackRow
from lamina.ports.clock import Clock
from lamina.ports.events import Emit, Event, EventName
from lamina.ports.pack_store import FOUND_TIERS, PackMemoryQuery, PackStore
from lamina.telemetry import place_of

__all__ = ["RetrieveRequest", "Retriever"]

ROUNDS: Final = 20
"""How often a search is repeated for more."""

_LARGEST_PAGE: Final = 10_000
_LEAST_FACTOR: Final = min(TIER_FACTORS.values())

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieveRequest:
    """What a search in packs asks for, read and checked; `asked` names the packs too."""

    asked: PackMemoryQuery
    query: str | None
    mode: SearchMode
    limit: int
    min_score: float = 0.0
    min_similarity: float = 0.0
    min_match: float = 0.0
    """From where a memory in the full tier matches, by each of two measures, where vectors are compared."""
    touch: bool = True


@dataclass(frozen=True, slots=True)
class _Scored:
    memory: PackMemory
    score: float


class Retriever:
    """The reading half of the packs: joins rows with the store, whose word counts."""

    def __init__(
        self, index: PackIndex, store: PackStore, *, tenant: str, clock: Clock, emit: Emit | None = None
    ) -> None:
        self._index = index
        self._store = store
        self._tenant = tenant
        self._clock = clock
        self._emit = emit

    async def retrieve(self, request: RetrieveRequest) -> Results[PackHit]:
        """The best memories with their scores, best first; without a query the newest access first.

        What is found counts as read, unless `touch` is off, and is then in the full tier again.
        """
        ranked = await self.rank(request)
        places = {hit.memory.id: hit for hit in ranked}
        memories = await self.shown([hit.memory for hit in ranked], touch=request.touch)
        hits = [
            replace(places[each.id], memory=each)
            for each in memories
            if each.tier in FOUND_TIERS  # archived meanwhile
        ]
        return Results(hits, degraded=ranked.degraded)

    async def rank(self, request: RetrieveRequest) -> Results[PackHit]:
        """What `retrieve` would give, without contents; nothing counts as read."""
        degraded: dict[Degraded, None] = {}
        if request.query is None:
            found = [_Scored(each, 1.0) for each in await self._listed(request)]
        else:
            found = []
            for pack_id in request.asked.pack_ids:
                found += await self._best_of(pack_id, request, degraded)
            found.sort(key=lambda each: (-each.score, each.memory.id))
        hits = [
            PackHit(each.memory, None if request.query is None else each.score, each.memory.tier)
            for each in found[: request.limit]
        ]
        return Results(hits, degraded=tuple(degraded))

    async def shown(self, memories: Sequence[PackMemory], *, touch: bool) -> list[PackMemory]:
        """The memories as a caller gets them: whole and counted as read, or as their tiers have left them.

        Those that were deleted meanwhile are missing. Of archived ones nothing is shown, whatever is asked for.
        """
        if not memories:
            return []
        ids = [each.id for each in memories]
        if touch:
            await self._touch(ids)
        now = {each.id: each for each in await self._store.get_memories(self._tenant, ids)}
        wanted = [now[id] for id in ids if id in now and not now[id].is_deleted]
        if touch:
            return [each if each.tier in FOUND_TIERS else each.replace(content=MARKER) for each in wanted]
        rows = await self._index.rows(each.id for each in wanted if each.tier in REDUCED)
        return [_left_of(each, rows) for each in wanted]

    async def _touch(self, ids: Sequence[str]) -> None:
        before = await self._store.touch(self._tenant, ids, now=self._clock())
        raised = [id for id, tier in before.items() if tier is not Tier.FULL]
        if not raised:
            return
        memories = await self._store.get_memories(self._tenant, raised)
        try:
            await self._index.project(memories)
        except Exception as error:  # noqa: BLE001 - the store has them whole; the next change or sweep mends it
            log.warning("%d memories are whole again, but not yet in the index: %s", len(raised), place_of(error))
        if self._emit is not None:
            facts = {"ids": raised, "packs": sorted({each.pack_id for each in memories})}
            self._emit(Event(EventName.PACK_REPROMOTED, self._clock(), self._tenant, facts))

    async def _listed(self, request: RetrieveRequest) -> list[PackMemory]:
        """Without those that have expired and wait for a sweep to archive them."""
        found: list[PackMemory] = []
        offset, size, now = 0, request.limit, self._clock()
        while len(found) < request.limit:
            page = await self._store.find_memories(
                request.asked, order="last_accessed", limit=size, offset=offset, with_content=False
            )
            found += [each for each in page if each.expires_at is None or each.expires_at > now]
            offset += len(page)
            if len(page) < size:
                break
            size = min(2 * size, _LARGEST_PAGE)  # a page of a few after another takes the square of their number
        return found[: request.limit]

    async def _best_of(self, pack_id: str, request: RetrieveRequest, degraded: dict[Degraded, None]) -> list[_Scored]:
        """The pack's best by similarity x confidence x tier factor.

        No factor is above 1, so that the search may end as soon as what it has not seen cannot be better.
        """
        recall = self._recall(pack_id, request)
        limit, best = request.limit, []
        for _ in range(ROUNDS):
            rows = await self._index.search(pack_id, replace(recall, limit=limit))
            degraded.update(dict.fromkeys(rows.degraded))
            is_by_vector = _compares_vectors(rows, request.mode)
            joined = await self._joined(rows, request, is_by_vector=is_by_vector)
            best = [each for each in joined if each.score > 0 and each.score >= request.min_score][: request.limit]
            unseen = min((row.similarity for row in rows), default=0.0)
            is_full = len(best) == request.limit and best[-1].score >= unseen
            if len(rows) < limit or is_full or unseen < request.min_score:
                break
            if is_by_vector and not any(_may_match(row, request, _LEAST_FACTOR) for row in rows[limit // 2 :]):
                break
            limit *= 2
        return best

    def _recall(self, pack_id: str, request: RetrieveRequest) -> RecallRequest:
        asked = request.asked
        conditions = {"memory_type": asked.memory_type and asked.memory_type.value, "name": asked.name}
        wanted: list[Filter] = [Where((OWN, key)).eq(value) for key, value in conditions.items() if value is not None]
        assert request.query is not None  # noqa: S101 - the caller has looked
        return RecallRequest(
            query=request.query,
            scope=self._index.scope_of(pack_id),
            filter=MemoryFilter(
                now=self._clock(),
                tags=asked.tags,
                min_confidence=asked.min_confidence or None,
                min_relevance=None if asked.include_superseded else LIVE,
                where=And(tuple(wanted)) if wanted else None,
            ),
            mode=request.mode,
            limit=request.limit,
            offset=0,
            min_score=None,
            touch=False,
            explain=False,
        )

    async def _joined(self, rows: Sequence[FoundRow], request: RetrieveRequest, *, is_by_vector: bool) -> list[_Scored]:
        """What the store says of the rows, with its scores, best first; without what was not asked for."""
        best: dict[str, FoundRow] = {}
        for row in rows:
            best.setdefault(row.row.id, row)
        found = await self._store.get_memories(self._tenant, list(best), with_content=False)
        now = self._clock()
        scored = [
            _Scored(each, best[each.id].similarity * each.confidence * TIER_FACTORS.get(each.tier, 0.0))
            for each in found
            if _is_asked_for(each, request.asked)
            and (each.expires_at is None or each.expires_at > now)
            and (not is_by_vector or _may_match(best[each.id], request, TIER_FACTORS.get(each.tier, 1.0)))
        ]
        return sorted(scored, key=lambda each: (-each.score, each.memory.id))


def _may_match(row: FoundRow, request: RetrieveRequest, factor: float) -> bool:
    """Whether it has to do with the question; the less is left of a memory, the less it has in common with one."""
    return row.similarity >= request.min_similarity * factor and row.match >= request.min_match * factor


def _is_asked_for(memory: PackMemory, asked: PackMemoryQuery) -> bool:
    return (
        memory.pack_id in asked.pack_ids
        and not memory.is_deleted
        and memory.tier in asked.tiers
        and (asked.include_superseded or memory.superseded_by is None)
        and asked.memory_type in {None, memory.memory_type}
        and asked.name in {None, memory.name}
        and set(asked.tags) <= set(memory.tags)
        and memory.confidence >= asked.min_confidence
    )


def _compares_vectors(rows: Results[FoundRow], mode: SearchMode) -> bool:
    """Whether each similarity is one of vectors: that of words alone is of another measure."""
    weak = any(each.leg is Leg.VECTOR and each.reason is not Reason.NOT_NATIVE for each in rows.degraded)
    return mode is not SearchMode.TEXT and not weak


def _left_of(memory: PackMemory, rows: Mapping[str, PackRow]) -> PackMemory:
    """The memory with what its tier has left of it."""
    if memory.tier is Tier.FULL:
        return memory
    row = rows.get(memory.id) if memory.tier in REDUCED else None
    return memory.replace(content=MARKER if row is None else row.entry.content)
