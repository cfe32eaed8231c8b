"""What a write would make of some entries: the port's rules, worked out on what was read, without a backend."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from lamina.adapters._shared.entry_text import entry_of_text, pack, text_of_entry, unpack
from lamina.adapters._shared.records import Change, Stored
from lamina.domain.filters import MemoryFilter
from lamina.domain.memory import Layer, MemoryEntry
from lamina.domain.scope import Scope
from lamina.domain.validation import check_entry
from lamina.ports.memory_adapter import (
    HISTORY_FIELDS,
    HISTORY_KEPT,
    UNREVISED_FIELDS,
    Update,
    check_all_written,
    check_in_scope,
    check_revision,
    check_updated,
    check_updates,
)

__all__ = ["Draft", "Likeness"]


class Likeness(NamedTuple):
    """What two entries have in common that say the same in the same place."""

    owner: str
    namespace: str
    layer: Layer
    digest: str

    @classmethod
    def of(cls, entry: MemoryEntry) -> Likeness:
        """The entry's."""
        return cls(entry.owner, entry.namespace, entry.layer, entry.digest)


class Draft:
    """Entries of one tenant, as they would be after the changes made so far; nothing is written.

    Args:
        stored: What is there of every id that a change may name.
        alike: What else is there that says the same as an entry which `store_if_new` may get.
    """

    def __init__(self, stored: Iterable[Stored], alike: Iterable[Stored] = ()) -> None:
        known = {each.entry.id: each for each in alike}
        known.update({each.entry.id: each for each in stored})
        self._stored: Mapping[str, Stored] = known
        self._entries: dict[str, MemoryEntry | None] = {id: each.entry for id, each in known.items()}
        self._past: dict[str, list[MemoryEntry]] = {}
        """Of every changed id."""
        self._forgotten: set[str] = set()
        self._alike: dict[Likeness, list[str]] = {}
        for each in alike:
            self._alike.setdefault(Likeness.of(each.entry), []).append(each.entry.id)

    def get(self, id: str) -> MemoryEntry | None:
        """The entry as it would be."""
        return self._entries.get(id)

    def store(self, scope: Scope, entry: MemoryEntry) -> None:
        """As `MemoryAdapter.store`; a new entry has no `seq` yet."""
        check_entry(entry)
        check_in_scope(scope, entry)
        entry = _in_32_bits(entry)
        old = self.get(entry.id)
        if old is not None:
            check_in_scope(scope, old)
            if old.is_expired(entry.created_at):
                self._remove(entry.id)
                old = None
        if old is None:
            self._put(entry.replace(seq=0, revision=max(1, entry.revision)))
            return
        self._remember(old)
        self._put(entry.replace(seq=old.seq, revision=old.revision + 1))

    def store_all(
        self, scope: Scope, entries: Iterable[MemoryEntry], *, if_new: bool, updates: Sequence[Update]
    ) -> list[MemoryEntry | None]:
        """As `MemoryAdapter.store_many`, of the entries and updates."""
        found: list[MemoryEntry | None] = []
        for entry in entries:
            if if_new:
                found.append(self.store_if_new(scope, entry))
            else:
                self.store(scope, entry)
                found.append(None)
        if updates:
            check_all_written(found)
        for update in updates:
            check_updated(update.id, self.update(scope, update))
        return found

    def store_if_new(self, scope: Scope, entry: MemoryEntry) -> MemoryEntry | None:
        """Store the entry, or return a copy of the live one that has its id, or else says the same."""
        twin = self.twin(scope, entry)
        if twin is None:
            self.store(scope, entry)
            return None
        vector = None if twin.embedding is None else pack(twin.embedding)
        return entry_of_text(text_of_entry(twin), vector)

    def twin(self, scope: Scope, entry: MemoryEntry) -> MemoryEntry | None:
        """The live one that has the entry's id, or else the oldest that says the same in its place.

        Raises:
            ScopeError: the entry, or the one that has its id, lies outside the scope.
        """
        check_entry(entry)
        check_in_scope(scope, entry)
        named = self.get(entry.id)
        if named is not None:
            check_in_scope(scope, named)
            if not named.is_expired(entry.created_at):
                return named
        wanted = Likeness.of(entry)
        candidates = [self.get(id) for id in self._alike.get(wanted, ())]
        live = [
            each
            for each in candidates
            if each is not None and not each.is_expired(entry.created_at) and Likeness.of(each) == wanted
        ]
        return min(live, key=lambda each: each.seq or math.inf, default=None)

    def update(self, scope: Scope, update: Update) -> bool:
        """As `MemoryAdapter.update`."""
        check_updates(update.changes)
        old = self.get(update.id)
        if old is None or not scope.admits(old):
            return False
        check_revision(old, update.expected_revision)
        names = update.changes.keys()
        new = old.replace(**update.changes)
        check_entry(new)
        check_in_scope(scope, new)
        if "embedding" in names:
            new = _in_32_bits(new)
        if not names <= UNREVISED_FIELDS:
            new = new.replace(revision=old.revision + 1)
        if not names.isdisjoint(HISTORY_FIELDS):
            self._remember(old)
        self._put(new)
        return True

    def delete(
        self, scope: Scope, id: str, filter: MemoryFilter | None = None, *, expected_revision: int | None = None
    ) -> bool:
        """As one deletion of `MemoryAdapter.delete_many`, or one of `MemoryAdapter.delete`."""
        old = self.get(id)
        if old is None or not scope.admits(old) or (filter is not None and not filter.matches(old)):
            return False
        check_revision(old, expected_revision)
        self._remove(id)
        return True

    def touch(self, scope: Scope, id: str, now: datetime) -> None:
        """As one access of `MemoryAdapter.touch`."""
        old = self.get(id)
        if old is not None:
            counted = {"access_count": old.access_count + 1, "last_accessed_at": now}
            self.update(scope, Update(id, counted))

    @property
    def new_entries(self) -> int:
        """How many changes need a `seq`."""
        return sum(entry is not None and entry.seq == 0 for entry in (self._entries[id] for id in self._past))

    def changes(self, next_seq: int) -> tuple[Change, ...]:
        """What is to be written, in the order in which the ids were first changed, or last removed.

        New entries count from `next_seq`.
        """
        made = []
        for id, past in self._past.items():
            new = self._entries[id]
            old = self._stored.get(id)
            if new is None and old is None:
                continue
            if new is not None and new.seq == 0:
                new = new.replace(seq=next_seq)
                next_seq += 1
            kept = tuple(past[-HISTORY_KEPT:])
            made.append(Change(id=id, old=old, new=new, past=kept, forgets=id in self._forgotten))
        return tuple(made)

    def _put(self, entry: MemoryEntry) -> None:
        self._past.setdefault(entry.id, [])
        self._entries[entry.id] = entry
        ids = self._alike.setdefault(Likeness.of(entry), [])
        if entry.id not in ids:
            ids.append(entry.id)

    def _remove(self, id: str) -> None:
        self._past.pop(id, None)  # whatever takes its place is new, and comes after what was written before
        self._past[id] = []
        self._entries[id] = None
        self._forgotten.add(id)

    def _remember(self, old: MemoryEntry) -> None:
        self._past.setdefault(old.id, []).append(old.replace(embedding=None))


def _in_32_bits(entry: MemoryEntry) -> MemoryEntry:
    """The entry with its vector as it will be read: what backends index is what they keep, and it holds plain floats.

    Callers' vectors may be of any kind: numbers of numpy are no JSON, and overflow where those of Python do not.
    """
    return entry if entry.embedding is None else entry.replace(embedding=unpack(pack(entry.embedding)))
