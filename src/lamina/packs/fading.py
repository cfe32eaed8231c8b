"""How pack memories fade: a sweep that takes each that is due to the tier that its idle time asks for.

The store is changed first, then the row that search runs over. A failure in between leaves a row that has more
of the text than its tier says, which the store knows to be older than its memory, and the next sweep writes
anew. The other way round it would leave a row that has less, of a memory that is said to be whole, and nothing
would tell. For the same reason the text is reduced before anything is changed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from lamina.domain.pack import Pack, PackMemory
from lamina.domain.pack_decay import Decay, Tier, tier_at
from lamina.domain.text import clean, is_blank
from lamina.domain.validation import check_instant, check_whole_number
from lamina.errors import ProviderError
from lamina.packs.pack_index import PackIndex
from lamina.packs.pack_rows import REDUCED
from lamina.packs.reducers import ExtractiveReducer, Reducer
from lamina.ports.clock import Clock, utc_now
from lamina.ports.events import Emit, Event, EventName
from lamina.ports.pack_store import DuePlace, PackStore
from lamina.telemetry import place_of

__all__ = ["PREVIEWED", "DegradationReport", "Fading", "FadingStep", "tier_asked"]

BATCH: Final = 100
"""Memories that are looked at together: as many texts are in memory at a time."""

PREVIEWED: Final = 100
"""Steps that a preview tells unless it is asked for another number."""
_MOST: Final = 1_000_000
_END_OF_TIME: Final = datetime.max.replace(tzinfo=UTC)

log = logging.getLogger(__name__)


@dataclass(slots=True)
class DegradationReport:
    """What one sweep did."""

    examined: int = 0
    """Memories that were due."""
    moved: dict[Tier, int] = field(default_factory=dict)
    """How many were put into each tier; none of them up."""
    failed: int = 0
    """Those whose text could not be reduced: they are as they were, and due at the next sweep."""
    outrun: int = 0
    """Those that were read or changed while the sweep looked at them: they stay as that left them."""
    mended: int = 0
    """Rows that an earlier failure had left behind their memories, and that are now what they should be."""
    unwritten: int = 0
    """Rows that were left as they are, since the embedder's vectors for them do not fit; the next sweep tries again."""
    is_complete: bool = True
    """Whether all that was due was looked at; if not, the next sweep goes on from there."""


@dataclass(frozen=True, slots=True)
class FadingStep:
    """What a memory will lose next, if nobody reads it before."""

    id: str
    pack_id: str
    pack: str
    name: str | None
    tier: Tier
    next_tier: Tier
    at: datetime
    """When it is due; in the past, what the next sweep does."""


@dataclass(frozen=True, slots=True)
class _Move:
    """A memory and where it belongs."""

    memory: PackMemory
    tier: Tier


class Fading:
    """Fades the memories of one tenant's packs. Sweeps may run side by side, and beside readers, who win.

    Args:
        store: The truth about packs and their memories.
        index: The rows that search runs over.
        tenant: Whose packs they are.
        reducer: What makes the texts of the tiers between; by default it picks by rules.
        clock: What `now` is where it is not given.
        emit: Told of those that fade, once for each tier and batch.
    """

    def __init__(
        self,
        store: PackStore,
        index: PackIndex,
        *,
        tenant: str,
        reducer: Reducer | None = None,
        clock: Clock = utc_now,
        emit: Emit | None = None,
    ) -> None:
        self._store = store
        self._index = index
        self._tenant = tenant
        self._reducer = reducer or ExtractiveReducer()
        self._clock = clock
        self._emit = emit
        self._left_off: DuePlace | None = None

    async def degrade(self, now: datetime | None = None, *, limit: int | None = None) -> DegradationReport:
        """Put each memory that is due into the tier that its idle time asks for, several steps down if need be.

        The longest due first; at most `limit` are looked at, and another sweep goes on behind them. Memories that
        have expired are archived, whole or not. What a failure left half done before is mended first.

        Raises:
            InvalidInput: `now` has no time zone, or `limit` is no number above zero.
            AdapterError: the store or the index failed. All that was done holds, and the next sweep does the rest.
        """
        instant = check_instant("now", self._clock() if now is None else now)
        if limit is not None:
            check_whole_number("limit", limit, 1, _MOST)
        report = DegradationReport()
        unwritten: set[str] = set()
        report.mended = await self._mend(unwritten)
        async for batch in self._due(instant, limit, report):
            await self._fade(batch, instant, report, unwritten)
        report.unwritten = len(unwritten)
        return report

    async def preview(
        self, until: datetime | None = None, *, limit: int = PREVIEWED, pack_id: str | None = None
    ) -> list[FadingStep]:
        """What fades next, and when, the first first; of one pack, or of all. Changes nothing.

        At most `limit` memories, each with its next step alone, and only those that are due by `until`.
        """
        end = _END_OF_TIME if until is None else check_instant("until", until)
        check_whole_number("limit", limit, 1, _MOST)
        now = check_instant("now", self._clock())
        found = await self._store.due(self._tenant, until=end, limit=limit, pack_id=pack_id)
        packs = await self._packs(memory for _, memory in found)
        steps = []
        for at, memory in found:
            pack = packs.get(memory.pack_id)
            if pack is not None:
                tier = tier_asked(memory, pack.current_decay, max(at, now))
                steps.append(FadingStep(memory.id, pack.id, pack.name, memory.name, memory.tier, tier, at))
        return steps

    async def _due(
        self, now: datetime, limit: int | None, report: DegradationReport
    ) -> AsyncIterator[list[tuple[datetime, PackMemory]]]:
        """Batches of what is due, from where the last sweep left off; a sweep without a limit begins at the beginning.

        Those that cannot be reduced stay due. Going on behind them keeps them from being all that sweeps look at.
        """
        place = self._left_off if limit is not None else None
        while limit is None or report.examined < limit:
            size = BATCH if limit is None else min(BATCH, limit - report.examined)
            batch = await self._store.due(self._tenant, until=now, limit=size, after=place)
            if not batch:
                self._left_off = None
                return
            report.examined += len(batch)
            place = DuePlace(batch[-1][0], batch[-1][1].id)
            yield batch
        self._left_off = place
        report.is_complete = not await self._store.due(self._tenant, until=now, limit=1, after=place)

    async def _fade(
        self,
        batch: Sequence[tuple[datetime, PackMemory]],
        now: datetime,
        report: DegradationReport,
        unwritten: set[str],
    ) -> None:
        packs = await self._packs(memory for _, memory in batch)
        moves = [
            _Move(memory, tier_asked(memory, packs[memory.pack_id].current_decay, now))
            for _, memory in batch
            if memory.pack_id in packs
        ]
        ready, texts = await self._reduced([each for each in moves if each.tier is not each.memory.tier])
        report.failed += sum(each.tier is not each.memory.tier for each in moves) - len(ready)
        moved = await self._moved(ready, now, report)
        faded = [each.memory.replace(tier=each.tier, revision=each.memory.revision + 1) for each in moved]
        await self._project(faded, texts, unwritten)

    async def _moved(self, moves: Sequence[_Move], now: datetime, report: DegradationReport) -> list[_Move]:
        """Those of the moves that the store has made; the others were read or changed meanwhile."""
        done = await asyncio.gather(*(self._set_tier(each, now) for each in moves), return_exceptions=True)
        moved = [each for each, is_done in zip(moves, done, strict=True) if is_done is True]
        for each in moved:
            report.moved[each.tier] = report.moved.get(each.tier, 0) + 1
        self._tell(moved, now)
        for outcome in done:
            if isinstance(outcome, BaseException):
                raise outcome
        report.outrun += len(moves) - len(moved)
        return moved

    async def _set_tier(self, move: _Move, now: datetime) -> bool:
        return await self._store.set_tier(
            self._tenant,
            move.memory.id,
            move.tier,
            expected_revision=move.memory.revision,
            now=now,
            only_if_due=True,
        )

    async def _reduced(self, moves: Sequence[_Move]) -> tuple[list[_Move], dict[str, str]]:
        """The moves that can be made, and the texts of those that have one."""
        wanted = [each.memory.id for each in moves if each.tier in REDUCED]
        originals = {each.id: each for each in await self._store.get_memories(self._tenant, wanted)} if wanted else {}
        tiers = {each.memory.id: each.tier for each in moves}
        texts = await self._texts(originals.values(), tiers)
        ready = [each for each in moves if each.tier not in REDUCED or each.memory.id in texts]
        return ready, texts

    async def _texts(self, memories: Iterable[PackMemory], tiers: Mapping[str, Tier]) -> dict[str, str]:
        """What these tiers leave of the originals, by id; without those that could not be reduced."""
        texts: dict[str, str] = {}
        for memory in memories:
            text = await self._text(memory, tiers[memory.id])
            if text is not None:
                texts[memory.id] = text
        return texts

    async def _text(self, memory: PackMemory, tier: Tier) -> str | None:
        try:
            text: Any = await self._reducer.reduce(memory.content, tier)
        except Exception as error:  # noqa: BLE001 - a reducer may be a host's own: the memory stays whatever it raises
            log.warning("a pack memory could not be reduced: %s", place_of(error))
            return None
        if not isinstance(text, str) or is_blank(clean(text)) or len(text) > len(memory.content):
            log.warning("what the reducer gave for a pack memory is no reduction of it")
            return None
        return clean(text)

    async def _project(self, memories: Sequence[PackMemory], texts: Mapping[str, str], unwritten: set[str]) -> set[str]:
        """As `PackIndex.project`; rows for which the embedder has no vector that fits hold up no others."""
        try:
            return set(await self._index.project(memories, texts))
        except ProviderError as error:
            if len(memories) == 1:
                log.warning("the row of the pack memory %s was not written: %s", memories[0].id, place_of(error))
                unwritten.add(memories[0].id)
                return set()
        half = len(memories) // 2
        left = await self._project(memories[:half], texts, unwritten)
        return left | await self._project(memories[half:], texts, unwritten)

    async def _mend(self, unwritten: set[str]) -> int:
        """Write the rows that are older than their memories; how many could be."""
        mended = stuck = 0
        seen: set[str] = set()
        while True:
            found = await self._store.unprojected(self._tenant, limit=BATCH + stuck)
            behind = [each for each in found if each.id not in seen]
            if not behind:
                return mended
            left = await self._project(behind, {}, unwritten)
            lacking = [each for each in behind if each.id in left]
            texts = await self._texts(lacking, {each.id: each.tier for each in lacking})
            ready = [each for each in lacking if each.id in texts]
            if ready:
                await self._project(ready, texts, unwritten)
            seen |= {each.id for each in behind}
            lost = left - texts.keys() | {each.id for each in behind if each.id in unwritten}
            stuck += len(lost)
            mended += len(behind) - len(lost)

    async def _packs(self, memories: Iterable[PackMemory]) -> dict[str, Pack]:
        ids = sorted({memory.pack_id for memory in memories})
        return {pack.id: pack for pack in await self._store.get_packs(self._tenant, ids)} if ids else {}

    def _tell(self, moved: Sequence[_Move], now: datetime) -> None:
        if self._emit is None:
            return
        for tier in Tier:
            memories = [each.memory for each in moved if each.tier is tier]
            if memories:
                ids = [memory.id for memory in memories]
                facts = {"tier": tier.value, "ids": ids, "packs": sorted({memory.pack_id for memory in memories})}
                self._emit(Event(EventName.PACK_DEGRADED, now, self._tenant, facts))


def tier_asked(memory: PackMemory, decay: Decay, now: datetime) -> Tier:
    """The tier that the memory belongs to by now: never above its own; archived once it has expired."""
    if memory.expires_at is not None and memory.expires_at <= now:
        return Tier.ARCHIVED
    if memory.pinned_at is not None:
        return memory.tier
    return tier_at(now, idle_since=memory.idle_since, tier=memory.tier, decay=decay)
