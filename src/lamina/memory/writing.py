"""Storing, confirming and editing memories."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from lamina.domain.memory import MemoryEntry, Trust
from lamina.domain.scope import Scope
from lamina.domain.validation import check_entry
from lamina.errors import Conflict, InvalidInput, MemoryNotFound
from lamina.memory.editing import GUARDED, read_changes
from lamina.memory.inputs import MemoryInput, build_entry, expiry, read_superseded
from lamina.memory.runtime import Runtime
from lamina.memory.superseding import ATTEMPTS, Link, Superseder, Superseding, announce
from lamina.memory.tombstones import Tombstones
from lamina.memory.trusting import confirmation, lowered, outranked, promotion, revival
from lamina.ports.embedder import Fingerprint
from lamina.ports.events import EventName
from lamina.ports.memory_adapter import MemoryAdapter, Update
from lamina.telemetry import memory_operation

__all__ = ["RestoreReport", "Writer"]


@dataclass(slots=True)
class RestoreReport:
    """How many entries were written as they are, were there already, and came with another model's vector.

    `erased` were stored before they were deleted, or their owner was erased, and are left out.
    """

    written: int = 0
    skipped: int = 0
    without_vector: int = 0
    erased: int = 0


@dataclass(slots=True)
class _Draft:
    """An entry on its way into the store, and the input that it was built from."""

    entry: MemoryEntry
    given: MemoryInput
    old_ids: list[str]
    """Of the memories that it supersedes."""
    reason: str | None
    stored_id: str = ""


class Writer:
    """The writing half of a memory engine."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._superseder = Superseder(runtime)
        self._tombstones = Tombstones(runtime.adapter, runtime.defaults.tenant)

    async def store_many(self, items: Sequence[MemoryInput]) -> list[str | None]:
        """Store the items; ids in order, None for vetoed ones. Nothing is written if one cannot be."""
        with memory_operation("create_memory", store=self._runtime.defaults.tenant) as operation:
            ids = await self._store_many(items)
            operation.id = ids[0] if len(ids) == 1 else None
            operation.count = len(ids) - ids.count(None)
            return ids

    async def _store_many(self, items: Sequence[MemoryInput]) -> list[str | None]:
        now = self._runtime.clock()
        drafts: list[_Draft | None] = []
        for number, given in enumerate(items):
            if not (number + 1) % 200:  # some milliseconds: a large batch must not hold up what else runs on the loop
                await asyncio.sleep(0)
            entry = build_entry(given, self._runtime.defaults, self._runtime.new_id(), now)
            old_ids, reason = read_superseded(given.supersedes, given.supersede_reason)
            guarded = await self._runtime.guarded(entry)
            drafts.append(None if guarded is None else _Draft(guarded, given, old_ids, reason))
        untrusted = await lowered(self._runtime, [draft.entry for draft in drafts if draft is not None])
        for draft in filter(None, drafts):
            draft.entry = untrusted.get(draft.entry.id, draft.entry)
        known, fresh = _split(await self._look_up(list(filter(None, drafts))))
        links = await self._plan(known, fresh, now)
        await self._runtime.space.embed_new([draft.entry for draft in fresh])
        # From here on things are written; what can be refused has been.
        for draft, twin in known:
            draft.stored_id = await self._confirm(twin, draft)
        for draft, written_twin in await self._write(fresh, links):
            draft.stored_id = draft.entry.id if written_twin is None else await self._confirm(written_twin, draft)
        stored_ids = {draft.entry.id: draft.stored_id for draft in filter(None, drafts)}
        for link in links:  # those that were not written with the new memory, and harmless for those that were
            new_id = stored_ids.get(link.by.id, link.by.id)
            await self._superseder.link(replace(link, by=link.by.replace(id=new_id)))
        ids = [None if draft is None else draft.stored_id for draft in drafts]
        stored = [id for id in ids if id is not None]
        if stored:
            self._runtime.tell(EventName.MEMORY_STORED, ids=stored)
        if len(stored) < len(ids):
            self._runtime.tell(EventName.MEMORY_VETOED, count=len(ids) - len(stored))
        return ids

    async def update(
        self, id: str, changes: Mapping[str, Any], *, owner: str | None, expected_revision: int | None
    ) -> MemoryEntry:
        """Edit a memory: see `MemoryEngine.update`."""
        with memory_operation("update_memory", store=self._runtime.defaults.tenant, id=id):
            return await self._update(id, changes, owner=owner, expected_revision=expected_revision)

    async def _update(
        self, id: str, changes: Mapping[str, Any], *, owner: str | None, expected_revision: int | None
    ) -> MemoryEntry:
        scope = self._runtime.write_scope(owner)
        for _ in range(ATTEMPTS):
            found = await self._runtime.find(scope, id)
            if found is None:
                raise MemoryNotFound(id)
            store, entry = found
            if expected_revision is not None and entry.revision != expected_revision:
                raise Conflict(f"The memory {id!r}", f"it has revision {entry.revision}, not {expected_revision}")
            updates = await self._prepare(entry, changes)
            target = self._runtime.store_of(updates.get("layer", entry.layer))
            if target is not store:
                return await self._move(entry.replace(**updates), store, target)
            if await self._change(store, scope, Update(id, updates, entry.revision)):
                changed = await store.get(scope, id)
                if changed is not None:
                    return changed
        raise Conflict(f"The memory {id!r}", f"it changed {ATTEMPTS} times while it was being edited")

    async def _change(self, store: MemoryAdapter, scope: Scope, update: Update) -> bool:
        """Make the change; False if the memory has another revision, or the store's vectors another model, by now."""
        if store is not self._runtime.adapter or update.changes.get("embedding") is None:
            return (await store.update_many(scope, [update]))[0]
        space = self._runtime.space
        if not space.needs_reembed:
            try:
                return (await store.update_many(scope, [update], expected_meta=space.guard))[0]
            except Conflict:
                await space.withdraw([])
        return False

    async def restore(
        self, entries: Sequence[MemoryEntry], *, replace: bool, fingerprint: Fingerprint | None, revive: bool
    ) -> RestoreReport:
        """Write entries exactly as they are: see `MemoryEngine.restore`."""
        report = RestoreReport()
        runtime = self._runtime
        for entry in entries:
            check_entry(entry)
        gone = set() if revive else await self._tombstones.erased(entries)
        entries = [entry for entry in entries if entry.id not in gone]
        report.erased = len(gone)
        ours = [runtime.secrets.entry(entry.replace(tenant=runtime.defaults.tenant)) for entry in entries]
        if fingerprint is not None and not await runtime.space.admits(fingerprint):
            ours = [entry.replace(embedding=None) for entry in ours]
        for store in runtime.stores():
            own = [entry for entry in ours if runtime.store_of(entry.layer) is store]
            others = [other for other in runtime.stores() if other is not store]
            kept = [entry for entry in own if replace or not await self._is_stored(entry.id)]
            await self._store(store, kept, if_new=False)
            for other in others:  # an id names one memory, in whichever store
                await other.delete_many(runtime.tenant_scope, [entry.id for entry in kept])
            report.written += len(kept)
            report.skipped += len(own) - len(kept)
        had, have = (sum(entry.embedding is not None for entry in each) for each in (entries, ours))
        report.without_vector = had - have
        return report

    async def _is_stored(self, id: str) -> bool:
        """Whether any store has the id, expired or not."""
        for store in self._runtime.stores():
            if await store.get(self._runtime.tenant_scope, id) is not None:
                return True
        return False

    async def _plan(
        self, known: Sequence[tuple[_Draft, MemoryEntry]], fresh: Sequence[_Draft], now: datetime
    ) -> list[Link]:
        """What is to be superseded; the drafts are told of it."""
        batch = []
        for draft, twin in known:
            # By a repetition that may not speak for what is stored nothing trusted is superseded either.
            speaker = {"trust": draft.entry.trust} if outranked(twin, draft.entry) else {}
            by = twin.replace(**revival(twin, draft.entry, draft.given), **speaker)
            batch.append(Superseding(by, draft.old_ids, draft.reason))
        batch += [Superseding(draft.entry, draft.old_ids, draft.reason) for draft in fresh]
        if not any(each.old_ids for each in batch):
            return []
        links = await self._superseder.plan(batch, now)
        entries = {draft.entry.id: draft.entry for draft in fresh}
        for link in links:
            if (new := entries.get(link.by.id)) is not None:
                new.metadata = announce(new, [link.old.id])
            if (old := entries.get(link.old.id)) is not None:
                entries[old.id] = old.replace(**link.mark(old, now))
        for draft in fresh:
            draft.entry = entries[draft.entry.id]
        return links

    async def _look_up(self, drafts: Sequence[_Draft]) -> list[tuple[_Draft, MemoryEntry | None]]:
        """As `_find_twins`, or without a look where nothing hangs on it: then writing finds those that say the same.

        What is looked up is not embedded, and an id or a memory to supersede may be in another store.
        """
        if self._runtime.space.embedder is None and not any(
            draft.old_ids or draft.given.id is not None for draft in drafts
        ):
            return [(draft, None) for draft in drafts]
        return await self._find_twins(drafts)

    async def _find_twins(self, drafts: Sequence[_Draft]) -> list[tuple[_Draft, MemoryEntry | None]]:
        """With each draft the memory that it confirms: the one with its id, or the one that says the same."""
        found: list[tuple[_Draft, MemoryEntry | None]] = []
        for store, own in self._by_store(drafts):
            twins = await store.find_twins(self._runtime.tenant_scope, [draft.entry for draft in own])
            for draft, twin in zip(own, twins, strict=True):
                elsewhere = None
                if twin is None and draft.given.id is not None:
                    elsewhere = await self._runtime.find(self._runtime.tenant_scope, draft.entry.id)
                found.append((draft, twin if elsewhere is None else elsewhere[1]))
        return found

    async def _write(self, drafts: Sequence[_Draft], links: Sequence[Link]) -> list[tuple[_Draft, MemoryEntry | None]]:
        """Write the drafts, in one batch per store; with each, the twin that another writer stored meanwhile.

        What they supersede in the same store is marked in the same batch.
        """
        written: list[tuple[_Draft, MemoryEntry | None]] = []
        for store, own in self._by_store(drafts):
            ids = {draft.entry.id for draft in own}
            mine = [link for link in links if link.by.id in ids and self._runtime.store_of(link.old.layer) is store]
            mine = [link for link in mine if link.old.id not in ids]
            twins = await self._store_with(store, [draft.entry for draft in own], mine)
            written.extend(zip(own, twins, strict=True))
        return written

    async def _store_with(
        self, store: MemoryAdapter, entries: Sequence[MemoryEntry], links: Sequence[Link]
    ) -> list[MemoryEntry | None]:
        for _ in range(ATTEMPTS if links else 0):
            updates = await self._superseder.updates(links, self._runtime.clock())
            try:
                return await self._store(store, entries, if_new=True, updates=updates)
            except Conflict:  # somebody was faster: an old one has changed, or a twin of a new one is there
                if any(await store.find_twins(self._runtime.tenant_scope, entries)):
                    break
        return await self._store(store, entries, if_new=True)

    async def _store(
        self, store: MemoryAdapter, entries: Sequence[MemoryEntry], *, if_new: bool, updates: Sequence[Update] = ()
    ) -> list[MemoryEntry | None]:
        """As `store_many`; without vectors, if another engine changed the store's model since they were made."""
        scope, space = self._runtime.tenant_scope, self._runtime.space
        write = partial(store.store_many, scope, entries, if_new=if_new, updates=updates)
        if store is not self._runtime.adapter or all(entry.embedding is None for entry in entries):
            return await write()
        if not space.needs_reembed:  # a recall may have noticed the change already
            try:
                return await write(expected_meta=space.guard)
            except Conflict:
                if updates and await space.still_holds() is None:  # it was not for the model
                    raise
        await space.withdraw(entries)
        return await write()

    def _by_store(self, drafts: Sequence[_Draft]) -> list[tuple[MemoryAdapter, list[_Draft]]]:
        """The drafts of each store that has any."""
        parts = [
            (store, [draft for draft in drafts if self._runtime.store_of(draft.entry.layer) is store])
            for store in self._runtime.stores()
        ]
        return [(store, own) for store, own in parts if own]

    async def _confirm(self, twin: MemoryEntry, draft: _Draft) -> str:
        """Make the stored memory fresh again with what the new input adds; its id.

        Raises:
            Conflict: the input's id names a memory that says something else, or is somebody else's.
        """
        new = draft.entry
        for _ in range(ATTEMPTS):
            _check_same(twin, new)
            store = self._runtime.store_of(twin.layer)
            scope = self._runtime.write_scope(twin.owner, twin.namespace)
            changes = confirmation(twin, new, draft.given)
            if not changes:
                return twin.id
            try:
                if await store.update(scope, twin.id, changes, expected_revision=twin.revision):
                    return twin.id
            except Conflict:
                pass  # somebody changed it since it was read: confirm what it is now
            newer = await store.get(scope, twin.id)
            if newer is None:  # deleted meanwhile: it is a new memory after all
                await self._runtime.space.embed_new([new])
                (newer,) = await self._store(store, [new], if_new=True)
                if newer is None:
                    return new.id
            twin = newer
        raise Conflict(f"The memory {twin.id!r}", f"it changed {ATTEMPTS} times while it was being confirmed")

    async def _prepare(self, entry: MemoryEntry, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The updates that turn the entry into what these changes ask for, guarded and embedded."""
        now = self._runtime.clock()
        updates = read_changes(changes)
        if "ttl" in updates:
            updates["expires_at"] = expiry(now, updates["ttl"])
        if "relevance" in updates:
            updates["base_relevance"] = updates["relevance"]
        updates["updated_at"] = now
        wanted = entry.replace(**updates)
        check_entry(wanted)
        guarded = await self._runtime.guarded(wanted)
        if guarded is None:
            raise InvalidInput("changes", "were vetoed by on_before_store", "The memory is as it was.")
        if "trust" not in changes:
            guarded = (await lowered(self._runtime, [guarded])).get(guarded.id, guarded)
        elif entry.trust is Trust.UNTRUSTED and guarded.trust is Trust.TRUSTED:
            guarded = guarded.replace(metadata={**guarded.metadata, **promotion(entry, now)})
        for field in GUARDED:
            if getattr(guarded, field) != getattr(entry, field):
                updates[field] = getattr(guarded, field)
        if "content" in updates:
            wanted = wanted.replace(content=updates["content"], embedding=None)
            await self._runtime.space.embed_new([wanted])
            updates["embedding"] = wanted.embedding
        return updates

    async def _move(self, entry: MemoryEntry, source: MemoryAdapter, target: MemoryAdapter) -> MemoryEntry:
        """Take an entry from one store to the other, as a change of its working layer asks for."""
        scope = self._runtime.write_scope(entry.owner, entry.namespace)
        await target.store(scope, entry.replace(revision=entry.revision + 1))
        await source.delete(scope, entry.id)
        moved = await target.get(scope, entry.id)
        if moved is None:
            raise MemoryNotFound(entry.id)
        return moved


def _split(
    drafts: Sequence[tuple[_Draft, MemoryEntry | None]],
) -> tuple[list[tuple[_Draft, MemoryEntry]], list[_Draft]]:
    """The drafts that confirm a memory, with it, and those that are new.

    Raises:
        Conflict: a draft's id names a memory, or another draft, that says something else.
    """
    known: list[tuple[_Draft, MemoryEntry]] = []
    fresh: dict[str, _Draft] = {}
    for draft, twin in drafts:
        if twin is not None:
            _check_same(twin, draft.entry)
            known.append((draft, twin))
        else:
            _check_same(fresh.setdefault(draft.entry.id, draft).entry, draft.entry)
    return known, [draft for draft, twin in drafts if twin is None]


def _check_same(twin: MemoryEntry, new: MemoryEntry) -> None:
    if twin is not new and _saying(twin) != _saying(new):
        raise Conflict(f"The id {new.id!r}", "it is taken by another memory", "Choose another id, or edit that memory.")


def _saying(entry: MemoryEntry) -> tuple[str, str, str, str]:
    return entry.owner, entry.namespace, entry.layer, entry.digest
