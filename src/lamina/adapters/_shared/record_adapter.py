"""The port's write rules over any backend that can read some records and commit changes of them.

A backend's adapter derives from this and maps: entries to its records, scopes and filters to its
queries. What a write makes of an entry, what a duplicate is, how revisions and histories grow, when a
vector has the wrong length, is worked out here, on what was read, and committed on the condition
that it still is what was read. So it is the same on every backend, and right with many writers.
"""

from __future__ import annotations

import builtins
import hashlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from secrets import token_hex
from typing import Any, Final, TypeVar

from lamina.adapters._shared.draft import Draft
from lamina.adapters._shared.patience import attempts
from lamina.adapters._shared.record_backend import RecordBackend
from lamina.adapters._shared.records import Change, Commit, ControlChange, Stale, Stored, TooLarge
from lamina.adapters._shared.word_ranking import forms_of, rank_by_words, rarity
from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.lexical import Term, query_terms
from lamina.domain.memory import UNSET, Layer, MemoryEntry, Unset, Vector
from lamina.domain.scope import Scope
from lamina.domain.text import is_clean
from lamina.domain.validation import check_entry, check_vector
from lamina.errors import AdapterUnavailable, Conflict, EmbeddingDimensionError, InvalidInput, Unsupported
from lamina.ports.memory_adapter import (
    Capability,
    ListOptions,
    SearchHit,
    SearchOptions,
    TermStatistics,
    Update,
    check_digest,
    check_in_scope,
    check_meta,
    check_meta_value,
)

__all__ = ["RecordAdapter"]

S = TypeVar("S")
T = TypeVar("T")

PATIENCE: Final = 30.0
"""Seconds for which a write is worked out anew when others changed the same; then it is given up."""

DIMENSIONS: Final = "dimensions"
CLAIMS: Final = 64
"""How many claims a tenant has: who stores what is new changes the one that its likeness falls on."""

_ANY_TIME: Final = datetime.max.replace(tzinfo=UTC)


class RecordAdapter(RecordBackend):
    """A `MemoryAdapter` over the primitives of `RecordBackend`."""

    async def store(self, scope: Scope, entry: MemoryEntry) -> None:
        await self.store_many(scope, [entry])

    async def store_many(
        self,
        scope: Scope,
        entries: Sequence[MemoryEntry],
        *,
        if_new: bool = False,
        expected_meta: Mapping[str, str | None] | None = None,
        updates: Sequence[Update] = (),
    ) -> builtins.list[MemoryEntry | None]:
        for entry in entries:
            check_entry(entry)
            check_in_scope(scope, entry)

        def store(draft: Draft, batch: Sequence[MemoryEntry]) -> builtins.list[MemoryEntry | None]:
            return draft.store_all(scope, batch, if_new=if_new, updates=updates)

        def write(batch: Sequence[MemoryEntry]) -> builtins.list[MemoryEntry | None]:
            alike = batch if if_new else ()
            ids = [entry.id for entry in batch] + [update.id for update in updates]
            return self._write(scope, ids, partial(store, batch=batch), expected=expected_meta, alike=alike)

        return await self._run(lambda: self._in_groups(entries, write, whole=bool(updates)))

    async def get(self, scope: Scope, id: str) -> MemoryEntry | None:
        entries = await self._run(lambda: self._load_possible(scope.tenant, [id]))
        return next((each.entry for each in entries if scope.admits(each.entry)), None)

    async def update(
        self, scope: Scope, id: str, updates: Mapping[str, Any], *, expected_revision: int | None = None
    ) -> bool:
        update = Update(id, updates, expected_revision)
        return await self._run(lambda: self._write(scope, [id], lambda draft: draft.update(scope, update)))

    async def update_many(
        self, scope: Scope, updates: Sequence[Update], *, expected_meta: Mapping[str, str | None] | None = None
    ) -> builtins.list[bool]:
        def change(draft: Draft, batch: Sequence[Update]) -> builtins.list[bool]:
            return [_was_updated(draft, scope, each) for each in batch]

        def write(batch: Sequence[Update]) -> builtins.list[bool]:
            return self._write(scope, [each.id for each in batch], partial(change, batch=batch), expected=expected_meta)

        return await self._run(lambda: self._in_groups(updates, write))

    async def delete(self, scope: Scope, id: str, *, expected_revision: int | None = None) -> bool:
        def delete(draft: Draft) -> bool:
            return draft.delete(scope, id, expected_revision=expected_revision)

        return await self._run(lambda: self._write(scope, [id], delete))

    async def delete_many(
        self, scope: Scope, ids: Sequence[str], *, filter: MemoryFilter | None = None
    ) -> builtins.list[bool]:
        def delete(draft: Draft, batch: Sequence[str]) -> builtins.list[bool]:
            return [draft.delete(scope, id, filter) for id in batch]

        def write(batch: Sequence[str]) -> builtins.list[bool]:
            return self._write(scope, batch, partial(delete, batch=batch))

        return await self._run(lambda: self._in_groups(ids, write))

    async def touch(self, scope: Scope, ids: Sequence[str], now: datetime) -> None:
        def count(draft: Draft, batch: Sequence[str]) -> builtins.list[None]:
            for id in batch:
                draft.touch(scope, id, now)
            return [None] * len(batch)

        def write(batch: Sequence[str]) -> builtins.list[None]:
            return self._write(scope, batch, partial(count, batch=batch))

        await self._run(lambda: self._in_groups(ids, write))

    async def list(self, options: ListOptions) -> builtins.list[MemoryEntry]:
        self._check_filter(options.filter)
        return await self._run(lambda: self._select(options))

    async def count(self, scope: Scope, filter: MemoryFilter) -> int:
        self._check_filter(filter)
        return await self._run(lambda: self._count(scope, filter))

    async def search_by_vector(self, embedding: Vector, options: SearchOptions) -> builtins.list[SearchHit]:
        if Capability.VECTOR not in self.capabilities:
            raise Unsupported(f"The {self.name} adapter", Capability.VECTOR)
        check_vector(embedding)
        self._check_filter(options.filter)
        numbers = array("d", embedding)  # plain floats, whatever a caller's vector is made of

        def work() -> builtins.list[SearchHit]:
            hits = self._nearest(numbers, options)
            if not hits:
                self._check_dimensions(options.scope.tenant, [len(numbers)])
            return hits

        return await self._run(work)

    async def search_by_text(self, query: str, options: SearchOptions) -> builtins.list[SearchHit]:
        if Capability.TEXT not in self.capabilities:
            raise Unsupported(f"The {self.name} adapter", Capability.TEXT)
        self._check_filter(options.filter)
        terms = query_terms(query)
        if not terms:
            return []
        return await self._run(lambda: self._matching(terms, options))

    async def find_duplicate(self, scope: Scope, layer: Layer, digest: str, now: datetime) -> MemoryEntry | None:
        check_digest(digest)
        alike = await self._run(lambda: self._alike(scope, layer, [digest]))
        return next((each.entry for each in alike if not each.entry.is_expired(now)), None)

    async def find_twins(self, scope: Scope, entries: Sequence[MemoryEntry]) -> builtins.list[MemoryEntry | None]:
        for entry in entries:
            check_entry(entry)
            check_in_scope(scope, entry)

        def work() -> builtins.list[MemoryEntry | None]:
            stored = self._load_possible(scope.tenant, [entry.id for entry in entries])
            draft = Draft(stored, self._alike_to(entries))
            return [draft.twin(scope, entry) for entry in entries]

        return await self._run(work)

    async def term_statistics(self, scope: Scope, terms: Sequence[str], now: datetime) -> TermStatistics | None:
        if Capability.TEXT not in self.capabilities:
            return None

        def work() -> TermStatistics:
            possible = [term for term in dict.fromkeys(terms) if term and is_clean(term)]
            found = self._frequencies(scope, possible, now) if possible else {}
            return TermStatistics(self._count(scope, MemoryFilter(now=now)), dict.fromkeys(terms, 0) | found)

        return await self._run(work)

    async def history(self, scope: Scope, id: str) -> builtins.list[MemoryEntry]:
        if Capability.HISTORY not in self.capabilities:
            raise Unsupported(f"The {self.name} adapter", Capability.HISTORY)

        def work() -> builtins.list[MemoryEntry]:
            stored = self._load_possible(scope.tenant, [id])
            if not any(scope.admits(each.entry) for each in stored):
                return []
            return [each for each in self._history(scope.tenant, id) if scope.admits(each)]

        return await self._run(work)

    async def load_meta(self, scope: Scope, key: str) -> str | None:
        name = _meta(key)
        controls = await self._run(lambda: self._load_controls(scope.tenant, [name]))
        return controls[name].value if name in controls else None

    async def save_meta(
        self, scope: Scope, key: str, value: str, now: datetime, *, expected: str | Unset | None = UNSET
    ) -> None:
        del now
        check_meta(key, value)
        name = _meta(key)

        def commit() -> None:
            old = self._load_controls(scope.tenant, [name]).get(name)
            if not isinstance(expected, Unset):
                check_meta_value(key, None if old is None else old.value, expected)
            change = ControlChange(key=name, old=old, value=value)
            self._commit(Commit(tenant=scope.tenant, changes=(), controls=(change,)))

        await self._run(lambda: self._until_fresh([(scope.tenant, name)], commit))

    # In a thread -------------------------------------------------------------------------------

    def _in_groups(
        self, things: Sequence[S], write: Callable[[Sequence[S]], builtins.list[T]], *, whole: bool = False
    ) -> builtins.list[T]:
        """Write them in groups, in order, or as one; a group that is too large for the backend in halves."""
        size = max(1, len(things)) if whole or self.group is None else self.group
        starts = range(0, max(1, len(things)), size)  # nothing is a group too, of which something may be expected
        open_groups = [things[start : start + size] for start in starts][::-1]
        done: builtins.list[T] = []
        while open_groups:
            group = open_groups.pop()
            try:
                done += write(group)
            except TooLarge:
                middle = len(group) // 2
                if Capability.TRANSACTIONS in self.capabilities or whole or not middle:
                    remedy = "Make it smaller, or write it in parts."
                    raise InvalidInput("entries", f"are more than {self.name} writes at once", remedy) from None
                open_groups += [group[middle:], group[:middle]]
        return done

    def _load_possible(self, tenant: str, ids: Iterable[str]) -> builtins.list[Stored]:
        """What is stored under those of the ids that an entry could have; backends cannot even be asked for others."""
        possible = [id for id in dict.fromkeys(ids) if id and is_clean(id)]
        return self._load(tenant, possible) if possible else []

    def _alike_to(self, entries: Iterable[MemoryEntry]) -> builtins.list[Stored]:
        places: dict[tuple[Scope, Layer], dict[str, None]] = {}
        for entry in entries:
            scope = Scope(entry.tenant, entry.owner, entry.namespace)
            places.setdefault((scope, entry.layer), {})[entry.digest] = None
        return [each for (scope, layer), digests in places.items() for each in self._alike(scope, layer, list(digests))]

    def _write(
        self,
        scope: Scope,
        ids: Sequence[str],
        work: Callable[[Draft], T],
        *,
        expected: Mapping[str, str | None] | None = None,
        alike: Sequence[MemoryEntry] = (),
    ) -> T:
        """Read, let it be worked out, commit; anew if others were faster.

        Controls are read before the entries, so that what they guard cannot have changed unseen.
        """
        tenant = scope.tenant
        metas = {_meta(key): (key, value) for key, value in (expected or {}).items()}
        claims = {_claim(entry) for entry in alike}  # within this process their lanes are enough
        claimed = sorted(claims) if Capability.COMPARE_AND_SET in self.capabilities else []

        def attempt() -> T:
            names = [*metas, *claimed]
            controls = self._load_controls(tenant, names) if names else {}
            for name, (key, value) in metas.items():
                check_meta_value(key, controls[name].value if name in controls else None, value)
            draft = Draft(self._load_possible(tenant, ids), self._alike_to(alike) if alike else ())
            outcome = work(draft)
            changes = draft.changes(self._reserve(draft.new_entries) if draft.new_entries else 0)
            if not changes:
                return outcome
            guards = [ControlChange(key=name, old=controls.get(name), value=None) for name in metas]
            # Another value each time: to write what is there already is no write at all on some backends.
            guards += [ControlChange(key=name, old=controls.get(name), value=token_hex(8)) for name in claimed]
            guards += self._dimension_change(tenant, changes)
            self._commit(Commit(tenant=tenant, changes=changes, controls=tuple(guards)))
            return outcome

        return self._until_fresh([(tenant, name) for name in {*ids, *claims}], attempt)

    def _until_fresh(self, names: Iterable[tuple[str, str]], attempt: Callable[[], T]) -> T:
        with self._lanes.held(names):
            for _ in attempts(PATIENCE, first=0.002, longest=0.25):
                with suppress(Stale):
                    return attempt()
        problem = f"for {PATIENCE:.0f} seconds others kept changing the same memories first"
        raise AdapterUnavailable(self.name, problem, "Nothing was written. Try again.")

    def _dimension_change(self, tenant: str, changes: Sequence[Change]) -> builtins.list[ControlChange]:
        """What becomes of the tenant's length of vectors, if anything.

        Raises:
            EmbeddingDimensionError: a new vector has another length than those that are there.
        """
        lengths = [
            len(each.new.embedding)
            for each in changes
            if each.new is not None
            and each.new.embedding is not None
            and (each.old is None or each.new.embedding is not each.old.entry.embedding)
        ]
        return self._check_dimensions(tenant, lengths) if lengths else []

    def _check_dimensions(self, tenant: str, lengths: Sequence[int]) -> builtins.list[ControlChange]:
        control = self._load_controls(tenant, [DIMENSIONS]).get(DIMENSIONS)
        expected = int(control.value) if control is not None else lengths[0]
        if any(length != expected for length in lengths) and control is not None:
            with_vector = MemoryFilter(now=_ANY_TIME, expiry=Expiry.ANY, has_embedding=True)
            if not self._count(Scope(tenant), with_vector):
                expected = lengths[0]  # those that had the former length are gone
        for length in lengths:
            if length != expected:
                raise EmbeddingDimensionError(expected, length)
        if control is not None and control.value == str(expected):
            return []
        return [ControlChange(key=DIMENSIONS, old=control, value=str(expected))]

    def _matching(self, terms: Sequence[Term], options: SearchOptions) -> builtins.list[SearchHit]:
        scope, now = options.scope, options.filter.now
        documents = self._count(scope, MemoryFilter(now=now))
        weights = rarity(terms, documents, lambda words: self._frequencies(scope, words, now))
        pool = self._holding(forms_of(terms), options)
        return rank_by_words(terms, weights, pool, options.limit)

    def _check_filter(self, filter: MemoryFilter) -> None:
        gap = None if filter.where is None else self.filter_gap(filter.where)
        if gap is not None:
            raise Unsupported(f"The {self.name} adapter", Capability.FILTER, gap)


def _was_updated(draft: Draft, scope: Scope, update: Update) -> bool:
    try:
        return draft.update(scope, update)
    except Conflict:
        return False


def _meta(key: str) -> str:
    """One short name for each key, whatever stands in it."""
    return f"meta-{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _claim(entry: MemoryEntry) -> str:
    place = f"{entry.owner}\0{entry.namespace}\0{entry.layer.value}\0{entry.digest}"
    return f"claim-{hashlib.sha256(place.encode()).digest()[0] % CLAIMS}"
