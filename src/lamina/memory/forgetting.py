"""Deleting memories, and fading them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.memory import MemoryEntry
from lamina.domain.scope import Scope
from lamina.errors import Conflict, LaminaError
from lamina.memory.decay import DecayReport, check_decay, decayed
from lamina.memory.reading import count, pages
from lamina.memory.runtime import Runtime
from lamina.memory.superseding import Superseder
from lamina.memory.tombstones import Tombstones
from lamina.ports.events import EventName
from lamina.ports.hooks import ForgetReason
from lamina.ports.memory_adapter import MemoryAdapter, Update, check_revision
from lamina.telemetry import memory_operation, place_of

__all__ = ["Forgetter"]

PURGE_EVERY: Final = timedelta(minutes=1)

log = logging.getLogger(__name__)


class Forgetter:
    """The forgetting half of a memory engine."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._superseder = Superseder(runtime)
        self.tombstones = Tombstones(runtime.adapter, runtime.defaults.tenant)
        self._purged_at: datetime | None = None

    async def forget(self, id: str, owner: str | None, expected_revision: int | None = None) -> bool:
        """Delete one memory; False if there is no such one in the scope.

        Raises:
            Conflict: it has another revision than the expected one.
        """
        with memory_operation("delete_memory", store=self._runtime.defaults.tenant, id=id) as operation:
            gone = await self._forget(id, owner, expected_revision)
            operation.count = int(gone)
            return gone

    async def _forget(self, id: str, owner: str | None, expected_revision: int | None) -> bool:
        scope = self._runtime.write_scope(owner)
        found = await self._runtime.find(scope, id)
        if found is None:
            return False
        store, entry = found
        check_revision(entry, expected_revision)
        await self._mark([entry])
        await self._superseder.release([entry])  # first, so that what fails in between hides nothing
        try:
            gone = await store.delete(scope, id, expected_revision=expected_revision)
        except Conflict:
            await self._unmark_what_stays(store, scope, [entry])
            raise
        if gone:
            await self._forgotten([entry], ForgetReason.EXPLICIT)
        return gone

    async def forget_all(self, scope: Scope, filter: MemoryFilter, reason: ForgetReason) -> int:
        """Delete everything that the scope and the filter admit now; how many there were.

        What is stored meanwhile, by an `on_forget` hook for instance, is not waited for.
        """
        with memory_operation("delete_memory", store=scope.tenant) as operation:
            operation.count = await self._forget_all(scope, filter, reason)
            return operation.count

    async def _forget_all(self, scope: Scope, filter: MemoryFilter, reason: ForgetReason) -> int:
        deleted = 0
        for store in self._runtime.stores(filter.layers):
            left = await count(store, scope, filter)
            async with aclosing(pages(store, scope, filter)) as walk:
                async for page in walk:
                    batch = page[:left]
                    if reason is ForgetReason.FILTER:
                        await self._mark(batch)
                    if reason is not ForgetReason.CLEARED:
                        await self._superseder.release(batch)
                    gone = await store.delete_many(scope, [entry.id for entry in batch], filter=filter)
                    deleted += sum(gone)
                    if reason is ForgetReason.FILTER:
                        kept = [entry for entry, was_there in zip(batch, gone, strict=True) if not was_there]
                        await self._unmark_what_stays(store, scope, kept)
                    forgotten = [entry for entry, was_there in zip(batch, gone, strict=True) if was_there]
                    await self._forgotten(forgotten, reason)
                    left -= len(batch)
                    if not left:
                        break
        return deleted

    async def forget_ids(self, scope: Scope, ids: Sequence[str]) -> int:
        """Delete these memories, expired or not; how many there were."""
        deleted = 0
        with memory_operation("delete_memory", store=scope.tenant) as operation:
            for store in self._runtime.stores():
                going = [entry for id in ids if (entry := await store.get(scope, id)) is not None]
                if not going:
                    continue
                await self._mark(going)
                await self._superseder.release(going)
                gone = await store.delete_many(scope, [entry.id for entry in going])
                forgotten = [entry for entry, was_there in zip(going, gone, strict=True) if was_there]
                await self._forgotten(forgotten, ForgetReason.FILTER)
                deleted += sum(gone)
            operation.count = deleted
        return deleted

    async def _mark(self, entries: Sequence[MemoryEntry]) -> None:
        """Mark what somebody deletes, so that an older export does not bring it back.

        Before it is deleted: what fails in between leaves a mark of what is asked for again, and never something gone
        without one. What expires, or goes because all of the tenant does, is not marked.
        """
        await self.tombstones.put_memories([entry.id for entry in entries], self._runtime.clock())

    async def _unmark_what_stays(self, store: MemoryAdapter, scope: Scope, entries: Sequence[MemoryEntry]) -> None:
        """Take back the marks of what changed at that moment and is there still; what another deleted keeps its own."""
        stays = [entry.id for entry in entries if await store.get(scope, entry.id) is not None]
        await self.tombstones.lift_memories(stays, self._runtime.clock())

    async def clear(self) -> int:
        """Delete everything of the tenant, expired ones too; how much there was."""
        everything = MemoryFilter(now=self._runtime.clock(), expiry=Expiry.ANY)
        return await self.forget_all(self._runtime.tenant_scope, everything, ForgetReason.CLEARED)

    async def _forgotten(self, entries: Sequence[MemoryEntry], reason: ForgetReason) -> None:
        if entries:
            ids = [entry.id for entry in entries]
            self._runtime.tell(EventName.MEMORY_FORGOTTEN, ids=ids, reason=reason.value)
        await self._runtime.hooks.on_forget(entries, reason)

    async def count(self, scope: Scope, filter: MemoryFilter) -> int:
        """How many memories the scope and the filter admit."""
        return sum([await count(store, scope, filter) for store in self._runtime.stores(filter.layers)])

    async def purge_expired(self) -> int:
        """Delete what has expired; how much there was."""
        now = self._purged_at = self._runtime.clock()
        expired = MemoryFilter(now=now, expiry=Expiry.EXPIRED)
        return await self.forget_all(self._runtime.tenant_scope, expired, ForgetReason.EXPIRED)

    async def purge_now_and_then(self) -> None:
        """Purge, unless that was done less than a minute ago.

        A failure is logged: the call that this follows has done its work, and what expired is absent all the same.
        """
        now = self._runtime.clock()
        if self._purged_at is not None and timedelta(0) <= now - self._purged_at < PURGE_EVERY:
            return
        try:
            await self.purge_expired()
        except LaminaError as error:
            log.warning("could not purge what has expired; trying again in a minute: %s", place_of(error))

    async def decay(self, scope: Scope, filter: MemoryFilter, factor: float, floor: float) -> DecayReport:
        """One cycle over everything that the scope and the filter admit.

        A memory that is confirmed or edited while the cycle runs keeps its new relevance.

        Raises:
            InvalidInput: the factor or the floor is out of range.
        """
        check_decay(factor, floor)
        report = DecayReport()
        for store in self._runtime.stores(filter.layers):
            async for page in pages(store, scope, replace(filter, expiry=Expiry.LIVE)):
                report.scanned += len(page)
                faded = {entry.id: decayed(entry.relevance, factor, floor) for entry in page}
                changed = [entry for entry in page if faded[entry.id] < entry.relevance]
                done = await store.update_many(
                    scope, [Update(entry.id, {"relevance": faded[entry.id]}, entry.revision) for entry in changed]
                )
                report.decayed += sum(done)
                report.floored += sum(
                    was_changed and faded[entry.id] <= floor for entry, was_changed in zip(changed, done, strict=True)
                )
        self._runtime.tell(
            EventName.MEMORY_DECAYED, scanned=report.scanned, decayed=report.decayed, floored=report.floored
        )
        return report
