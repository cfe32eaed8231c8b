"""An adapter that keeps everything in this process's memory and loses it with the process.

It is the reference in code: filters, words and similarity come straight from the domain. Good
for tests, for short-lived agents, and for reading; SQLite is as easy and keeps what it is given.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from threading import Lock
from typing import Any, ClassVar

from lamina.adapters._shared.relevance_order import by_relevance
from lamina.adapters.in_memory.rows import Row, Tenant, copied
from lamina.domain.closeness import cosines
from lamina.domain.filters import MemoryFilter
from lamina.domain.lexical import count_terms, index_terms, query_terms, similarity, term_weights
from lamina.domain.memory import UNSET, Layer, MemoryEntry, Unset, Vector
from lamina.domain.scope import Scope
from lamina.domain.validation import check_entry, check_vector
from lamina.errors import Conflict
from lamina.ports.memory_adapter import (
    HISTORY_FIELDS,
    HISTORY_KEPT,
    UNREVISED_FIELDS,
    Capability,
    ListOptions,
    MemoryAdapter,
    Order,
    SearchHit,
    SearchOptions,
    TermStatistics,
    Update,
    check_all_written,
    check_digest,
    check_in_scope,
    check_meta,
    check_meta_value,
    check_revision,
    check_updated,
    check_updates,
)

__all__ = ["InMemoryAdapter"]


class InMemoryAdapter(MemoryAdapter):
    """Memories in this process, for any number of threads and event loops.

    They live as long as the object does: `close` keeps them. A vector search reads every vector
    of the tenant, a text search the words of every entry: meant for up to some ten thousand.
    """

    name: ClassVar[str] = "memory"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.VECTOR,
            Capability.TEXT,
            Capability.FILTER,
            Capability.COMPARE_AND_SET,
            Capability.TRANSACTIONS,
            Capability.HISTORY,
        }
    )

    def __init__(self) -> None:
        self._lock = Lock()
        self._tenants: dict[str, Tenant] = {}
        self._seq = 0
        self._meta: dict[tuple[str, str], str] = {}
        self._undo: list[tuple[str, str, Row | None]] = []

    async def initialize(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def store(self, scope: Scope, entry: MemoryEntry) -> None:
        with self._all_or_nothing():
            self._store(scope, entry)

    async def store_many(
        self,
        scope: Scope,
        entries: Sequence[MemoryEntry],
        *,
        if_new: bool = False,
        expected_meta: Mapping[str, str | None] | None = None,
        updates: Sequence[Update] = (),
    ) -> builtins.list[MemoryEntry | None]:
        found: builtins.list[MemoryEntry | None] = []
        with self._all_or_nothing():
            self._expect_meta(scope, expected_meta)
            for entry in entries:
                check_entry(entry)
                check_in_scope(scope, entry)
                twin = self._twin(scope, entry) if if_new else None
                if twin is None:
                    self._store(scope, entry)
                found.append(twin)
            if updates:
                check_all_written(found)
            for update in updates:
                check_updated(update.id, self._update(scope, update))
        return found

    async def get(self, scope: Scope, id: str) -> MemoryEntry | None:
        with self._lock:
            row = self._row(scope, id)
            return None if row is None else copied(row.entry)

    async def update(
        self, scope: Scope, id: str, updates: Mapping[str, Any], *, expected_revision: int | None = None
    ) -> bool:
        with self._all_or_nothing():
            return self._update(scope, Update(id, updates, expected_revision))

    async def update_many(
        self, scope: Scope, updates: Sequence[Update], *, expected_meta: Mapping[str, str | None] | None = None
    ) -> builtins.list[bool]:
        done: builtins.list[bool] = []
        with self._all_or_nothing():
            self._expect_meta(scope, expected_meta)
            for each in updates:
                try:
                    done.append(self._update(scope, each))
                except Conflict:
                    done.append(False)
        return done

    async def delete(self, scope: Scope, id: str, *, expected_revision: int | None = None) -> bool:
        with self._lock:
            return self._delete(scope, id, expected_revision)

    async def delete_many(
        self, scope: Scope, ids: Sequence[str], *, filter: MemoryFilter | None = None
    ) -> builtins.list[bool]:
        with self._lock:
            return [self._passes(scope, id, filter) and self._delete(scope, id) for id in ids]

    async def list(self, options: ListOptions) -> builtins.list[MemoryEntry]:
        with self._lock:
            rows = self._admitted(options.scope, options.filter, after=options.after or 0)
            if options.order is Order.RELEVANCE:
                rows = iter(sorted(rows, key=lambda row: by_relevance(row.entry)))
            page = islice(rows, options.offset, options.offset + options.limit)
            return [copied(row.entry, embedding=options.include_embeddings) for row in page]

    async def count(self, scope: Scope, filter: MemoryFilter) -> int:
        with self._lock:
            return sum(1 for _ in self._admitted(scope, filter))

    async def search_by_vector(self, embedding: Vector, options: SearchOptions) -> builtins.list[SearchHit]:
        check_vector(embedding)
        with self._lock:
            self._tenant(options.scope).check_dimensions(embedding)
            rows = builtins.list(self._admitted(options.scope, options.filter))
            pairs = [(row, row.entry.embedding) for row in rows if row.entry.embedding is not None]
            values = cosines(embedding, [vector for _, vector in pairs])
            return _best([row for row, _ in pairs], values, options)

    async def search_by_text(self, query: str, options: SearchOptions) -> builtins.list[SearchHit]:
        terms = query_terms(query)
        forms = [form for term in terms for form in term.forms]
        with self._lock:
            counted = self._count_terms(options.scope, forms, options.filter.now)
            weights = term_weights(terms, counted.documents, counted.frequencies)
            rows = builtins.list(self._admitted(options.scope, options.filter))
            scores = [similarity(terms, weights, row.terms) for row in rows]
            found = [(row, score) for row, score in zip(rows, scores, strict=True) if score > 0]
            return _best([row for row, _ in found], [score for _, score in found], options)

    async def touch(self, scope: Scope, ids: Sequence[str], now: datetime) -> None:
        with self._all_or_nothing():
            for id in ids:
                row = self._row(scope, id)
                if row is not None:
                    counted = {"access_count": row.entry.access_count + 1, "last_accessed_at": now}
                    self._update(scope, Update(id, counted))

    async def find_duplicate(self, scope: Scope, layer: Layer, digest: str, now: datetime) -> MemoryEntry | None:
        check_digest(digest)
        with self._lock:
            return self._duplicate(scope, layer, digest, now)

    async def find_twins(self, scope: Scope, entries: Sequence[MemoryEntry]) -> builtins.list[MemoryEntry | None]:
        for entry in entries:
            check_entry(entry)
            check_in_scope(scope, entry)
        with self._lock:
            return [self._twin(scope, entry) for entry in entries]

    async def drop_embeddings(self, scope: Scope) -> int:
        with self._all_or_nothing():
            ids = [
                id
                for id, row in self._tenant(scope).rows.items()
                if row.entry.embedding is not None and scope.admits(row.entry)
            ]
            return sum(self._update(scope, Update(id, {"embedding": None})) for id in ids)

    async def term_statistics(self, scope: Scope, terms: Sequence[str], now: datetime) -> TermStatistics:
        with self._lock:
            return self._count_terms(scope, terms, now)

    async def history(self, scope: Scope, id: str) -> builtins.list[MemoryEntry]:
        with self._lock:
            row = self._row(scope, id)
            return [] if row is None else [copied(entry) for entry in row.past if scope.admits(entry)]

    async def load_meta(self, scope: Scope, key: str) -> str | None:
        with self._lock:
            return self._meta.get((scope.tenant, key))

    async def save_meta(
        self, scope: Scope, key: str, value: str, now: datetime, *, expected: str | Unset | None = UNSET
    ) -> None:
        del now
        check_meta(key, value)
        with self._lock:
            if not isinstance(expected, Unset):
                self._expect_meta(scope, {key: expected})
            self._meta[scope.tenant, key] = value

    # Under the lock -----------------------------------------------------------------------

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        with self._lock:
            self._undo.clear()
            try:
                yield
            except BaseException:
                for tenant, id, row in reversed(self._undo):
                    if row is None:
                        self._tenants[tenant].remove(id)
                    else:
                        self._tenants[tenant].put(row)
                for tenant in {tenant for tenant, _, _ in self._undo}:
                    self._tenants[tenant].put_in_order()
                raise

    def _tenant(self, scope: Scope) -> Tenant:
        return self._tenants.get(scope.tenant) or Tenant()

    def _row(self, scope: Scope, id: str) -> Row | None:
        row = self._tenant(scope).rows.get(id)
        return row if row is not None and scope.admits(row.entry) else None

    def _expect_meta(self, scope: Scope, expected_meta: Mapping[str, str | None] | None) -> None:
        for key, expected in (expected_meta or {}).items():
            check_meta_value(key, self._meta.get((scope.tenant, key)), expected)

    def _passes(self, scope: Scope, id: str, filter: MemoryFilter | None) -> bool:
        row = self._row(scope, id)
        return row is not None and (filter is None or filter.matches(row.entry))

    def _admitted(self, scope: Scope, filter: MemoryFilter, *, after: int = 0) -> Iterator[Row]:
        rows = self._tenant(scope).rows.values()
        return (row for row in rows if row.entry.seq > after and filter.admits(scope, row.entry))

    def _twin(self, scope: Scope, entry: MemoryEntry) -> MemoryEntry | None:
        named = self._tenant(scope).rows.get(entry.id)
        if named is not None:
            check_in_scope(scope, named.entry)
            if not named.entry.is_expired(entry.created_at):
                return copied(named.entry)
        own = Scope(entry.tenant, entry.owner, entry.namespace)
        return self._duplicate(own, entry.layer, entry.digest, entry.created_at)

    def _store(self, scope: Scope, entry: MemoryEntry) -> None:
        check_entry(entry)
        check_in_scope(scope, entry)
        old = self._tenant(scope).rows.get(entry.id)
        if old is not None:
            check_in_scope(scope, old.entry)
            if not old.entry.is_expired(entry.created_at):
                self._write(old, entry.replace(seq=old.entry.seq, revision=old.entry.revision + 1))
                return
            self._tenant(scope).remove(entry.id)
            self._undo.append((entry.tenant, entry.id, old))
        self._seq += 1
        self._write(None, entry.replace(seq=self._seq, revision=max(1, entry.revision)))

    def _update(self, scope: Scope, update: Update) -> bool:
        check_updates(update.changes)
        old = self._row(scope, update.id)
        if old is None:
            return False
        check_revision(old.entry, update.expected_revision)
        changes = dict(update.changes)
        if not changes.keys() <= UNREVISED_FIELDS:
            changes["revision"] = old.entry.revision + 1
        changed = old.entry.replace(**changes)
        check_entry(changed)
        check_in_scope(scope, changed)
        self._write(old, changed, is_history=not changes.keys().isdisjoint(HISTORY_FIELDS))
        return True

    def _write(self, old: Row | None, entry: MemoryEntry, *, is_history: bool = True) -> None:
        """Keep a copy of the entry; an old row keeps its place, its past, and its words if they are the same."""
        entry = copied(entry)
        past = () if old is None else old.past
        if old is not None and is_history:
            past = (*past, old.entry.replace(embedding=None))[-HISTORY_KEPT:]
        if old is not None and old.entry.content == entry.content:
            row = Row(entry, old.digest, old.terms, past)
        else:
            row = Row(entry, entry.digest, count_terms(index_terms(entry.content)), past)
        self._tenants.setdefault(entry.tenant, Tenant()).put(row)
        self._undo.append((entry.tenant, entry.id, old))

    def _delete(self, scope: Scope, id: str, expected_revision: int | None = None) -> bool:
        row = self._row(scope, id)
        if row is None:
            return False
        check_revision(row.entry, expected_revision)
        self._tenant(scope).remove(id)
        return True

    def _duplicate(self, scope: Scope, layer: Layer, digest: str, now: datetime) -> MemoryEntry | None:
        tenant = self._tenant(scope)
        filter = MemoryFilter(now=now, layers=frozenset({layer}))
        entries = [tenant.rows[id].entry for id in tenant.same.get(digest, {})]
        oldest = min((each for each in entries if filter.admits(scope, each)), key=lambda e: e.seq, default=None)
        return None if oldest is None else copied(oldest)

    def _count_terms(self, scope: Scope, terms: Sequence[str], now: datetime) -> TermStatistics:
        rows = builtins.list(self._admitted(scope, MemoryFilter(now=now)))
        return TermStatistics(len(rows), {term: sum(term in row.terms.counts for row in rows) for term in terms})


def _best(rows: Sequence[Row], similarities: Sequence[float], options: SearchOptions) -> list[SearchHit]:
    ranked = sorted(zip(similarities, rows, strict=True), key=lambda pair: (-pair[0], pair[1].entry.id))
    return [
        SearchHit(copied(row.entry, embedding=options.include_embeddings), score)
        for score, row in ranked[: options.limit]
    ]
