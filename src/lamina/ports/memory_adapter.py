"""The port to a searchable store of memories, and the defaults built on its core."""

from __future__ import annotations

import asyncio
import builtins
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Final
from weakref import WeakKeyDictionary

from lamina.domain.filters import Expiry, Filter, MemoryFilter
from lamina.domain.memory import UNSET, Layer, MemoryEntry, Unset, Vector
from lamina.domain.scope import Scope
from lamina.domain.validation import check_entry
from lamina.errors import Conflict, Unsupported
from lamina.ports.memory_requests import (
    ACCESS_FIELDS,
    HISTORY_FIELDS,
    HISTORY_KEPT,
    META_TENANT,
    UNREVISED_FIELDS,
    UPDATABLE,
    BothLegs,
    Capability,
    ListOptions,
    Order,
    SearchHit,
    SearchOptions,
    TermStatistics,
    Update,
    check_all_written,
    check_batch,
    check_digest,
    check_in_scope,
    check_meta,
    check_meta_value,
    check_revision,
    check_updated,
    check_updates,
)

__all__ = [
    "ACCESS_FIELDS",
    "HISTORY_FIELDS",
    "HISTORY_KEPT",
    "META_TENANT",
    "UNREVISED_FIELDS",
    "UPDATABLE",
    "BothLegs",
    "Capability",
    "ListOptions",
    "MemoryAdapter",
    "Order",
    "SearchHit",
    "SearchOptions",
    "TermStatistics",
    "Update",
    "check_all_written",
    "check_digest",
    "check_in_scope",
    "check_meta",
    "check_meta_value",
    "check_revision",
    "check_updated",
    "check_updates",
]

PAGE: Final = 500
_END_OF_TIME: Final = datetime.max.replace(tzinfo=UTC)


class MemoryAdapter(ABC):
    """A searchable store of memory entries, bound to one collection.

    The ten abstract and refusing methods are its core; the rest has correct defaults built on
    them, which an adapter overrides where its backend does better. Every call takes a `Scope`,
    and nothing outside it is read, counted, changed or revealed. Lists returned are new; entries
    returned are the caller's to change. An id that no entry could have is not found, and no error.
    All methods may be called from any event loop, and side by side. Failures of the backend become
    `AdapterError`s; a search that fails never looks like a search that found nothing.
    """

    name: ClassVar[str]
    capabilities: ClassVar[frozenset[Capability]] = frozenset()

    # The core -----------------------------------------------------------------------------

    @abstractmethod
    async def initialize(self) -> None:
        """Connect, and create or migrate what the collection needs. Idempotent."""

    @abstractmethod
    async def store(self, scope: Scope, entry: MemoryEntry) -> None:
        """Insert the entry, or replace the one with the same tenant and id.

        One that is expired at `entry.created_at` counts as absent: it is removed first, with its
        history, and nothing of it is left in the new one.

        `entry.seq` and `entry.revision` are not taken over: a new entry gets the next `seq` and
        revision 1 (or `entry.revision` if that is greater), a replacement keeps its `seq` and
        gets the next revision. Calls `check_entry` and `check_in_scope` first.

        Raises:
            InvalidInput: the entry cannot be stored (`lamina.domain.validation.check_entry`).
            ScopeError: the entry, or the one with its id, expired or not, lies outside the scope.
            EmbeddingDimensionError: the tenant's vectors have another length.
        """

    @abstractmethod
    async def get(self, scope: Scope, id: str) -> MemoryEntry | None:
        """The entry with its embedding, expired or not, or None."""

    @abstractmethod
    async def update(
        self, scope: Scope, id: str, updates: Mapping[str, Any], *, expected_revision: int | None = None
    ) -> bool:
        """Change fields among `UPDATABLE`; False if there is no such entry.

        The revision counts up, unless nothing but `UNREVISED_FIELDS` is named.

        The changed entry must pass `check_entry`. `updated_at` changes only if it is among the updates.

        Raises:
            Conflict: the entry has another revision than the expected one.
            InvalidInput: a field is not updatable, or its value cannot be stored.
            ScopeError: the changed entry would lie outside the scope, as one that leaves a shared layer may.
            EmbeddingDimensionError: the tenant's vectors have another length.
        """

    @abstractmethod
    async def delete(self, scope: Scope, id: str, *, expected_revision: int | None = None) -> bool:
        """Remove the entry with its text index, vector and history; False if there is no such entry.

        Raises:
            Conflict: the entry has another revision than the expected one; it stays.
        """

    @abstractmethod
    async def list(self, options: ListOptions) -> builtins.list[MemoryEntry]:
        """Entries that the scope and the filter admit, in the order asked for.

        Embeddings are None unless asked for. Pages tile: no gap and no repeat.
        """

    @abstractmethod
    async def count(self, scope: Scope, filter: MemoryFilter) -> int:
        """How many entries `list` would return without a limit."""

    @abstractmethod
    async def close(self) -> None:
        """Write what is pending and let go of the backend. Idempotent; `initialize` opens again."""

    async def search_by_vector(self, embedding: Vector, options: SearchOptions) -> builtins.list[SearchHit]:
        """The entries with the closest vectors, by cosine, closest first, ties by id.

        Scope and filter hold before ranking: `limit` of the admitted ones are found if so many have a
        vector. A zero vector has the similarity 0 with everything. Needs `Capability.VECTOR`.

        Raises:
            EmbeddingDimensionError: the tenant's vectors have another length.
        """
        raise Unsupported(f"The {self.name} adapter", Capability.VECTOR)

    async def search_by_text(self, query: str, options: SearchOptions) -> builtins.list[SearchHit]:
        """The entries that hold the query's words, by lexical similarity, best first.

        Equally similar ones go by a measure of the backend's own, if it has one, and then by id.
        The query is plain text, never a grammar. One without a single term finds nothing. Backends
        may rank a larger pool by a measure of their own first. Needs `Capability.TEXT`.
        """
        raise Unsupported(f"The {self.name} adapter", Capability.TEXT)

    async def search_both(
        self, embedding: Vector | None, query: str | None, options: SearchOptions, *, meta_key: str
    ) -> BothLegs | None:
        """Both searches at one moment, and a meta value, where that is cheaper than one by one; None where not.

        A leg that is None is not asked for.
        """
        del embedding, query, options, meta_key
        return None

    # Built on the core --------------------------------------------------------------------

    async def list_each(self, pages: Sequence[ListOptions]) -> builtins.list[builtins.list[MemoryEntry]]:
        """`list` for each of these, in order; in one go where the backend can."""
        return [await self.list(options) for options in pages]

    def filter_gap(self, where: Filter) -> str | None:
        """Why the backend cannot evaluate this condition itself, as a sentence that a user reads; None if it can.

        A read with a condition that has a gap is refused with `Unsupported`, which says why. The engine
        then looks at the metadata itself.
        """
        del where
        return None if Capability.FILTER in self.capabilities else "It evaluates no conditions on metadata."

    async def store_many(
        self,
        scope: Scope,
        entries: Sequence[MemoryEntry],
        *,
        if_new: bool = False,
        expected_meta: Mapping[str, str | None] | None = None,
        updates: Sequence[Update] = (),
    ) -> builtins.list[MemoryEntry | None]:
        """Store each entry in turn; the result holds, in order, None for each one that was written.

        With `if_new`, an entry is not written if one with its id, or else one that says the same (see
        `find_duplicate`), is live at its `created_at`, among those stored or earlier in the batch; that one
        is returned in its place. One with its id outside the scope is a `ScopeError`, as in `store`.

        `updates` are made behind the entries. With some it is all or nothing: each entry must be new where
        `if_new` asks for it, and each update meet an entry of the expected revision. Where batches are no
        transactions, all is looked at first, and what a failure leaves undone are updates, the last ones.

        Raises:
            Conflict: one of the keys of `expected_meta` has another value (see `save_meta`; None for
                absent) at the moment of writing, or not all of what goes with updates can be done. Nothing
                is written.
        """
        check_batch(scope, entries)
        found: builtins.list[MemoryEntry | None] = []
        async with self._turn():
            await self._check_expected(scope, expected_meta)
            if updates:
                check_all_written([await self._find_twin(scope, each) for each in entries] if if_new else ())
                await self._check_can_update(scope, updates)
            for entry in entries:
                twin = await self._find_twin(scope, entry) if if_new else None
                if twin is None:
                    await self.store(scope, entry)
                found.append(twin)
            for each in updates:
                done = await self.update(scope, each.id, each.changes, expected_revision=each.expected_revision)
                check_updated(each.id, done)
        return found

    async def update_many(
        self, scope: Scope, updates: Sequence[Update], *, expected_meta: Mapping[str, str | None] | None = None
    ) -> builtins.list[bool]:
        """Make each change in turn; False, in order, for each that met no entry or another revision.

        Raises:
            Conflict: a meta value is another than expected, as in `store_many`; nothing is changed.
        """
        done: builtins.list[bool] = []
        async with self._turn():
            await self._check_expected(scope, expected_meta)
            for each in updates:
                revision = each.expected_revision
                try:
                    done.append(await self.update(scope, each.id, each.changes, expected_revision=revision))
                except Conflict:
                    done.append(False)
        return done

    async def delete_many(
        self, scope: Scope, ids: Sequence[str], *, filter: MemoryFilter | None = None
    ) -> builtins.list[bool]:
        """Delete each entry in turn; False, in order, for each that was not there.

        With a filter, an entry is deleted only if the filter, its `where` included, admits what the entry
        is at that moment; False stands for the others too. So what changed since it was listed stays.
        """
        if filter is None:
            return [await self.delete(scope, id) for id in ids]
        done: builtins.list[bool] = []
        async with self._turn():
            for id in ids:
                entry = await self.get(scope, id)
                done.append(entry is not None and filter.matches(entry) and await self.delete(scope, id))
        return done

    async def touch(self, scope: Scope, ids: Sequence[str], now: datetime) -> None:
        """Count one access for every id in the list (one that stands in it twice counts twice).

        `access_count` grows, `last_accessed_at` becomes `now`, the revision stays. Unknown ids are passed over.
        """
        async with self._turn():
            for id in ids:
                entry = await self.get(scope, id)
                if entry is not None:
                    counted = {"access_count": entry.access_count + 1, "last_accessed_at": now}
                    await self.update(scope, id, counted)

    async def find_duplicate(self, scope: Scope, layer: Layer, digest: str, now: datetime) -> MemoryEntry | None:
        """The oldest live entry of this layer whose `digest` is this one, with its embedding, or None.

        Raises:
            InvalidInput: no entry could have this digest.
        """
        check_digest(digest)
        filter = MemoryFilter(now=now, layers=frozenset({layer}))
        after = 0
        while page := await self.list(
            ListOptions(scope=scope, filter=filter, limit=PAGE, after=after, include_embeddings=True)
        ):
            for entry in page:
                if entry.digest == digest:
                    return entry
            after = page[-1].seq
        return None

    async def find_twins(self, scope: Scope, entries: Sequence[MemoryEntry]) -> builtins.list[MemoryEntry | None]:
        """For each entry, in order, what is stored that `store_many` with `if_new` would return in its place.

        Nothing is written, and the entries are not compared with each other.
        """
        check_batch(scope, entries)
        return [await self._find_twin(scope, entry) for entry in entries]

    async def drop_embeddings(self, scope: Scope) -> int:
        """Forget every vector of the scope, expired entries' included, and return how many there were.

        Afterwards vectors of another length can be stored.
        """
        filter = MemoryFilter(now=_END_OF_TIME, expiry=Expiry.ANY, has_embedding=True)
        dropped = 0
        while page := await self.list(ListOptions(scope=scope, filter=filter, limit=PAGE)):
            done = await self.update_many(scope, [Update(entry.id, {"embedding": None}) for entry in page])
            dropped += sum(done)
        return dropped

    async def term_statistics(self, scope: Scope, terms: Sequence[str], now: datetime) -> TermStatistics | None:
        """Statistics for weighting terms by rarity, or None if this backend cannot tell cheaply."""
        del scope, terms, now
        return None

    async def history(self, scope: Scope, id: str) -> builtins.list[MemoryEntry]:
        """What the entry was before each replacement and each update of a field in `HISTORY_FIELDS`.

        Oldest first, without embeddings; empty if there is none. Updates of nothing else (relevance, vectors, counts of
        reading) leave no version, so that decay fills no history. Needs `Capability.HISTORY`. An adapter may keep only
        the latest 50 versions of an entry (`HISTORY_KEPT`). Of the versions, only those that lie in the scope
        themselves: a replacement by another owner's entry does not show its owner the former one's.
        """
        raise Unsupported(f"The {self.name} adapter", Capability.HISTORY)

    async def load_meta(self, scope: Scope, key: str) -> str | None:
        """What `save_meta` kept under this key for the scope's tenant, or None."""
        entry = await self.get(Scope(META_TENANT), _meta_id(scope, key))
        return None if entry is None else entry.content

    async def save_meta(
        self, scope: Scope, key: str, value: str, now: datetime, *, expected: str | Unset | None = UNSET
    ) -> None:
        """Keep a non-blank text about the scope's tenant, such as its embedding fingerprint.

        Raises:
            Conflict: `expected` is given, and another value is there now (None means: none is there).
        """
        check_meta(key, value)
        id = _meta_id(scope, key)
        entry = MemoryEntry(id=id, content=value, created_at=now, updated_at=now, tenant=META_TENANT)
        async with self._turn():
            if not isinstance(expected, Unset):
                await self._check_expected(scope, {key: expected})
            await self.store(Scope(META_TENANT), entry)

    async def save_meta_many(self, scope: Scope, keys: Sequence[str], value: str, now: datetime) -> None:
        """Keep one text under each of these keys, as `save_meta` does; in one write, where the adapter has one."""
        await asyncio.gather(*(self.save_meta(scope, key, value, now) for key in keys))

    async def _check_expected(self, scope: Scope, expected_meta: Mapping[str, str | None] | None) -> None:
        for key, expected in (expected_meta or {}).items():
            check_meta_value(key, await self.load_meta(scope, key), expected)

    async def _check_can_update(self, scope: Scope, updates: Sequence[Update]) -> None:
        for each in updates:
            check_updates(each.changes)
            entry = await self.get(scope, each.id)
            check_updated(each.id, entry is not None)
            if entry is not None:
                check_revision(entry, each.expected_revision)
                check_entry(entry.replace(**each.changes))

    async def _find_twin(self, scope: Scope, entry: MemoryEntry) -> MemoryEntry | None:
        named = await self.get(Scope(entry.tenant), entry.id)
        if named is not None:
            check_in_scope(scope, named)
            if not named.is_expired(entry.created_at):
                return named
        own = Scope(entry.tenant, entry.owner, entry.namespace)
        return await self.find_duplicate(own, entry.layer, entry.digest, entry.created_at)

    def _turn(self) -> asyncio.Lock:
        """A lock that makes read-then-write defaults atomic within one event loop."""
        locks = self.__dict__.setdefault("_turns", WeakKeyDictionary())
        lock: asyncio.Lock = locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        return lock


def _meta_id(scope: Scope, key: str) -> str:
    """One id for each tenant and key, however long the tenant's name is and whatever stands in it."""
    return hashlib.sha256(f"{scope.tenant}\0{key}".encode("utf-8", "surrogatepass")).hexdigest()
