"""Memories that say what holds in place of others: named by their ids, linked on both sides, and let go again.

Nothing is guessed here: what supersedes what is said by whoever stores it. The old memory stays, with the id of the
new one, the instant from which that holds, and the reason; recalls leave it out. A memory is superseded by one other
at most, so that what is above it is a chain, and a circle is found by walking that up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from lamina.domain.memory import SHARED_LAYERS, MemoryEntry, Trust
from lamina.domain.scope import Scope
from lamina.domain.text import check_name
from lamina.errors import Conflict, InvalidInput, MemoryNotFound
from lamina.memory.inputs import read_instant, read_reason
from lamina.memory.runtime import Runtime
from lamina.memory.trusting import SUPERSEDED, SUPERSEDES
from lamina.ports.memory_adapter import MemoryAdapter, Update

__all__ = ["ATTEMPTS", "Link", "Superseder", "Superseding", "announce", "superseded_ids"]

ATTEMPTS: Final = 100
"""How often a change is repeated on what others have written meanwhile."""


@dataclass(frozen=True, slots=True)
class Superseding:
    """A memory about to be stored, or confirmed, and the ids of those that it supersedes."""

    by: MemoryEntry
    old_ids: Sequence[str] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """That one memory supersedes another, and since when."""

    old: MemoryEntry
    by: MemoryEntry
    since: datetime
    reason: str | None

    def mark(self, old: MemoryEntry, now: datetime) -> dict[str, Any]:
        """What changes in the old memory as it is now; what was valid for a shorter time stays so."""
        kept = {"valid_until": None if old.valid_until is None else old.valid_until.isoformat()}
        if self.reason is not None:
            kept["reason"] = self.reason
        return {
            "superseded_by": self.by.id,
            "valid_until": self.since if old.valid_until is None else min(old.valid_until, self.since),
            "metadata": {**old.metadata, SUPERSEDED: kept},
            "updated_at": now,
        }


def announce(by: MemoryEntry, old_ids: Iterable[str]) -> dict[str, Any]:
    """The metadata of the new memory, which names those that it supersedes."""
    return {**by.metadata, SUPERSEDES: list(dict.fromkeys([*superseded_ids(by), *old_ids]))}


class Superseder:
    """What links memories of an engine, and lets them go."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def plan(self, batch: Sequence[Superseding], now: datetime) -> list[Link]:
        """The links that a batch asks for and that are not there yet; nothing is written.

        Raises:
            InvalidInput: an id is the memory's own, or names none of its owner and of the batch, or one of a shared
                layer by one that is not, or they would supersede each other in a circle.
            Conflict: a memory is superseded by another one already.
        """
        known = {each.by.id: each.by for each in batch}
        above = {id: entry.superseded_by for id, entry in known.items()}
        links = []
        for each in batch:
            for old_id in each.old_ids:
                old = known.get(old_id) or await self._find(each.by, old_id)
                old = _checked("supersedes", old_id, old, each.by)
                if await self._is_linked("supersedes", old, each.by, above):
                    continue
                above[old.id] = each.by.id
                links.append(Link(old, each.by, each.by.occurred_at or now, each.reason))
        return links

    async def supersede(self, old_id: str, *, by: str, reason: str | None, owner: str | None) -> MemoryEntry:
        """Link two that are stored: see `MemoryEngine.supersede`."""
        scope, reason = self._runtime.write_scope(owner), read_reason("reason", reason)
        old = await self._runtime.find(scope, check_name("old_id", old_id))
        if old is None:
            raise MemoryNotFound(old_id)
        new = await self._find(old[1], check_name("by", by))
        if new is None:
            raise _unknown("by", by)
        since = new.occurred_at or new.created_at
        return await self.link(Link(old[1], new, since, reason), field="by")

    async def link(self, link: Link, *, field: str = "supersedes") -> MemoryEntry:
        """Write both sides, in one transaction if one store has both, else the new one's first; the old memory."""
        scope = _scope_of(link.by)
        for _ in range(ATTEMPTS):
            new, old = await self._stored(scope, link.by.id), await self._stored(scope, link.old.id)
            _checked(field, old[1].id, old[1], new[1])
            if await self._is_linked(field, old[1], new[1], {}):
                return old[1]
            now = self._runtime.clock()
            updates = [(old, link.mark(old[1], now))]
            if old[1].id not in superseded_ids(new[1]):
                updates.insert(0, (new, {"metadata": announce(new[1], [old[1].id]), "updated_at": now}))
            if await self._write(scope, updates):
                return (await self._stored(scope, link.old.id))[1]
        raise Conflict(f"The memory {link.old.id!r}", f"it changed {ATTEMPTS} times while it was being superseded")

    async def updates(self, links: Iterable[Link], now: datetime) -> list[Update]:
        """What changes in the old memories of these links, as they are now, and only as long as they are so."""
        made = []
        for link in links:
            _, old = await self._stored(_scope_of(link.by), link.old.id)
            await self._is_linked("supersedes", old, link.by, {})
            made.append(Update(old.id, link.mark(old, now), old.revision))
        return made

    async def release(self, going: Sequence[MemoryEntry]) -> None:
        """Let go of what these memories supersede, before they are deleted.

        It goes to whatever supersedes its superseder, or holds again as it did before. What is about to be deleted
        too is left alone.
        """
        gone = {entry.id for entry in going}
        for entry in going:
            for old_id in superseded_ids(entry):
                if old_id not in gone:
                    await self._hand_on(old_id, entry, gone)

    async def _hand_on(self, old_id: str, by: MemoryEntry, gone: Collection[str]) -> None:
        scope = _scope_of(by)
        for _ in range(ATTEMPTS):
            old = await self._runtime.find(scope, old_id)
            if old is None or old[1].superseded_by != by.id:
                return
            now, heir = self._runtime.clock(), await self._heir(scope, by, gone)
            if heir is None:
                updates = [(old, {**_revived(old[1]), "updated_at": now})]
            else:
                updates = [
                    (heir, {"metadata": announce(heir[1], [old_id]), "updated_at": now}),
                    (old, {"superseded_by": heir[1].id, "updated_at": now}),
                ]
            if await self._write(scope, updates):
                return
        raise Conflict(f"The memory {old_id!r}", f"it changed {ATTEMPTS} times while it was being let go")

    async def _heir(
        self, scope: Scope, by: MemoryEntry, gone: Collection[str]
    ) -> tuple[MemoryAdapter, MemoryEntry] | None:
        """The first above it that stays."""
        passed = {by.id}
        above = by.superseded_by
        while above is not None and above not in passed:
            passed.add(above)
            found = await self._runtime.find(scope, above)
            if found is None or above not in gone:
                return found
            above = found[1].superseded_by
        return None

    async def _write(
        self, scope: Scope, updates: Sequence[tuple[tuple[MemoryAdapter, MemoryEntry], Mapping[str, Any]]]
    ) -> bool:
        """Make the changes, as long as their memories are as they were read; False if one is not."""
        parts: dict[int, tuple[MemoryAdapter, list[Update]]] = {}
        for (store, entry), changes in updates:
            parts.setdefault(id(store), (store, []))[1].append(Update(entry.id, changes, entry.revision))
        try:
            for store, own in parts.values():
                await store.store_many(scope, [], updates=own)
        except Conflict:
            return False
        return True

    async def _stored(self, scope: Scope, id: str) -> tuple[MemoryAdapter, MemoryEntry]:
        found = await self._runtime.find(scope, id)
        if found is None:
            raise MemoryNotFound(id)
        return found

    async def _find(self, beside: MemoryEntry, id: str) -> MemoryEntry | None:
        found = await self._runtime.find(self._within(beside), id)
        return None if found is None else found[1]

    def _within(self, entry: MemoryEntry) -> Scope:
        """Where the others are looked for: among its owner's, in all namespaces unless those are strict."""
        scope = _scope_of(entry)
        return Scope(scope.tenant, scope.owner, entry.namespace) if self._runtime.strict_namespace else scope

    async def _is_linked(self, field: str, old: MemoryEntry, by: MemoryEntry, above: Mapping[str, str | None]) -> bool:
        """Whether it supersedes it already; `above` is what is superseded by the links that are planned."""
        current = above.get(old.id, old.superseded_by)
        if current == by.id:
            return True
        if current is not None:
            raise Conflict(f"The memory {old.id!r}", f"is superseded by {current!r} already", "Supersede that one.")
        passed: set[str] = set()
        next_above = above.get(by.id, by.superseded_by)
        while next_above is not None and next_above not in passed:
            if next_above == old.id:
                problem = f"{by.id!r} cannot supersede {old.id!r}, which supersedes it"
                raise InvalidInput(field, problem, "Let the newest one supersede the others.")
            passed.add(next_above)
            found = None if next_above in above else await self._find(by, next_above)
            next_above = above.get(next_above, None if found is None else found.superseded_by)
        return False


def _checked(field: str, old_id: str, old: MemoryEntry | None, by: MemoryEntry) -> MemoryEntry:
    """The old memory, if it may be superseded by the other one."""
    if old_id == by.id:
        raise InvalidInput(field, f"{old_id!r} is the memory itself", "Give the id of another memory.")
    if old is None or (old.tenant, old.owner) != (by.tenant, by.owner):  # both look alike from outside
        raise _unknown(field, old_id)
    if old.layer in SHARED_LAYERS and by.layer not in SHARED_LAYERS:
        problem = f"{old_id!r} lies in the {old.layer} layer, which others read, and {by.id!r} does not"
        raise InvalidInput(field, problem, "Store the new memory in a shared layer too.")
    if by.trust is Trust.UNTRUSTED and old.trust is Trust.TRUSTED:
        problem = f"{old_id!r} is trusted, and {by.id!r} is not"
        raise InvalidInput(field, problem, "Store the new one as trusted if you vouch for it, or mark the old one.")
    return old


def _unknown(field: str, id: str) -> InvalidInput:
    remedy = "Give the id of a live memory of the same owner."
    return InvalidInput(field, f"no memory here has the id {id!r}", remedy)


def _scope_of(entry: MemoryEntry) -> Scope:
    return Scope(entry.tenant, entry.owner)


def superseded_ids(entry: MemoryEntry) -> list[str]:
    """The ids that it says it supersedes; whatever else somebody wrote there says nothing."""
    ids = entry.metadata.get(SUPERSEDES)
    return [each for each in ids if isinstance(each, str)] if isinstance(ids, list) else []


def _revived(old: MemoryEntry) -> dict[str, Any]:
    """The fields of a superseded memory as they were before."""
    changes: dict[str, Any] = {"superseded_by": None}
    kept = old.metadata.get(SUPERSEDED)
    if isinstance(kept, Mapping):
        changes["metadata"] = {name: value for name, value in old.metadata.items() if name != SUPERSEDED}
        changes["valid_until"] = read_instant("valid_until", kept.get("valid_until"))
    return changes
