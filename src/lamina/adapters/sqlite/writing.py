"""What changes the memories, inside the transaction of one job.

New rows, texts and vectors are gathered and written by `flush`, table by table and sorted by key, which
is what makes a batch fast: the text index takes keys in rising order several times faster. Rows are
written earlier where something has to be looked up among them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, Final

from lamina.adapters._shared.entry_text import pack
from lamina.adapters._shared.where_sql import scope_sql
from lamina.adapters.sqlite.partitions import expected_dimensions, partition_of
from lamina.adapters.sqlite.reading import can_be_id, find_by_id, meta_value, with_vector
from lamina.adapters.sqlite.rows import STORED, values_of, written
from lamina.adapters.sqlite.tables import Collection
from lamina.adapters.sqlite.twins import Place, check_all, find_twin, parted, place_of, standings
from lamina.adapters.sqlite.vectors import VectorWriter
from lamina.domain.filters import MemoryFilter
from lamina.domain.instants import to_micros
from lamina.domain.lexical import index_terms
from lamina.domain.memory import MemoryEntry
from lamina.domain.scope import Scope
from lamina.domain.validation import check_entry
from lamina.errors import EmbeddingDimensionError
from lamina.ports.memory_adapter import (
    HISTORY_FIELDS,
    HISTORY_KEPT,
    UNREVISED_FIELDS,
    check_in_scope,
    check_meta_value,
    check_revision,
    check_updates,
)

__all__ = ["Writing", "store_together"]

_COLUMNS: Final = ", ".join(("key", "partition", *STORED))
_MARKS: Final = ", ".join("?" * (len(STORED) + 2))
_ASSIGNED: Final = ", ".join(f"{name} = ?" for name in STORED)


def store_together(
    collection: Collection,
    batches: Sequence[Sequence[MemoryEntry]],
    *,
    scope: Scope,
    if_new: bool,
    expected_meta: Mapping[str, str | None],
) -> list[list[MemoryEntry | None]]:
    """`MemoryAdapter.store_many` of several callers, in one go."""
    writing = Writing(collection)
    writing.expect_meta(scope, expected_meta)
    found = writing.store(scope, list(chain(*batches)), if_new=if_new)
    writing.flush()
    return parted(found, batches)


@dataclass(slots=True)
class _Partition:
    id: int
    last: int
    """The greatest count given out in it; none is given twice."""
    dimensions: int | None
    """How long its vectors are, if it has some."""
    has_grown: bool = False


class Writing:
    """The changes of one job. Nothing is complete before `flush`."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._vectors = VectorWriter(collection)
        self._new_rows: list[tuple[Any, ...]] = []
        self._new_texts: dict[int, str] = {}
        self._changed_texts: dict[int, str | None] = {}
        self._partitions: dict[Place, _Partition] = {}
        self._left: set[int] = set()
        self._dimensions: dict[str, int] = {}
        self._seq: int | None = None

    def store(self, scope: Scope, entries: Sequence[MemoryEntry], *, if_new: bool) -> list[MemoryEntry | None]:
        """As `MemoryAdapter.store_many`."""
        check_all(scope, entries)
        self._write_rows()
        digests = [entry.digest for entry in entries]
        looked_up = standings(self._collection, scope.tenant, entries, digests if if_new else None)
        found: list[MemoryEntry | None] = []
        before: set[object] = set()
        for entry, digest, standing in zip(entries, digests, looked_up, strict=True):
            place = place_of(entry)
            if standing.partition is not None and place not in self._partitions:
                self._partitions[place] = _Partition(*standing.partition)
            names = {entry.id, (place, digest)} if if_new else {entry.id}
            if standing.may_have_twin or not before.isdisjoint(names):
                found.append(self._store_if_new(scope, entry) if if_new else None)
                if not if_new:
                    self._store(scope, entry)
            else:
                found.append(None)
                self._add(entry, digest, self._packed(entry))
            before |= names
        return found

    def update(self, scope: Scope, id: str, updates: Mapping[str, Any], expected_revision: int | None) -> bool:
        """As `MemoryAdapter.update`."""
        check_updates(updates)
        found = self._find(scope.tenant, id)
        if found is None or not scope.admits(found[1]):
            return False
        key, old = found
        check_revision(old, expected_revision)
        new = old.replace(**updates)
        check_entry(new)
        check_in_scope(scope, new)
        vector = self._packed(new)
        if not updates.keys() <= UNREVISED_FIELDS:
            new = new.replace(revision=old.revision + 1)
        if not updates.keys().isdisjoint(HISTORY_FIELDS):
            self._remember(old)
        key = self._replace(key, old, new)
        if "embedding" in updates:
            self._set_vector(key, vector)
        return True

    def delete(
        self, scope: Scope, id: str, filter: MemoryFilter | None = None, *, expected_revision: int | None = None
    ) -> bool:
        """As `MemoryAdapter.delete`, for an entry that passes the filter, if there is one."""
        found = self._find(scope.tenant, id)
        if found is None or not scope.admits(found[1]):
            return False
        if filter is not None and not filter.matches(self._with_vector(*found)):
            return False
        check_revision(found[1], expected_revision)
        self._remove(*found)
        return True

    def touch(self, scope: Scope, ids: Sequence[str], now: datetime) -> None:
        """As `MemoryAdapter.touch`."""
        admitted = scope_sql(scope, None)
        query = (
            "UPDATE {memories} AS m SET access_count = access_count + ?, last_accessed_at = ? "
            "WHERE m.tenant = ? AND m.id = ? "
            "AND EXISTS (SELECT 1 FROM {partitions} AS p WHERE p.id = m.partition AND {admitted})"
        )
        at = to_micros(now)
        counted = Counter(filter(can_be_id, ids))
        rows = [(times, at, scope.tenant, id, *admitted.parameters) for id, times in counted.items()]
        self._collection.execute_many(query, rows, admitted=admitted.text)

    def drop_embeddings(self, scope: Scope) -> int:
        """As `MemoryAdapter.drop_embeddings`."""
        admitted = scope_sql(scope, None)
        query = "SELECT p.id FROM {partitions} AS p WHERE p.vectors > 0 AND {admitted}"
        partitions = self._collection.execute(query, admitted.parameters, admitted=admitted.text).fetchall()
        return sum(self._vectors.drop(partition) for (partition,) in partitions)

    def rebuild_vectors(self, partition: int, growth: int) -> None:
        """Make the blocks of the partition anew from its vectors, of which it has `growth` more than it says."""
        self._vectors.rebuild(partition, growth)

    def expect_meta(self, scope: Scope, expected_meta: Mapping[str, str | None]) -> None:
        """Raise `Conflict` if one of these keys has another value."""
        for key, expected in expected_meta.items():
            check_meta_value(key, meta_value(self._collection, scope, key), expected)

    def save_meta(self, scope: Scope, key: str, value: str, now: datetime) -> None:
        """Keep the text, which passed `check_meta`."""
        query = "INSERT OR REPLACE INTO {meta} (tenant, key, value, saved_at) VALUES (?, ?, ?, ?)"
        self._collection.execute(query, (scope.tenant, key, value, to_micros(now)))

    def save_meta_many(self, scope: Scope, keys: Sequence[str], value: str, now: datetime) -> None:
        """Keep the text, which passed `check_meta`, under each of the keys."""
        query = (
            "INSERT OR REPLACE INTO {meta} (tenant, key, value, saved_at) "
            "SELECT ?1, each.value, ?2, ?3 FROM json_each(?4) AS each"
        )
        self._collection.execute(query, (scope.tenant, value, to_micros(now), json.dumps(list(keys))))

    def flush(self) -> None:
        """Write what was gathered."""
        changed = {partition_of(key) for key in (*self._new_texts, *self._changed_texts)}
        self._write_rows()
        self._write_texts()
        growth = self._vectors.flush()
        lasts = {partition.id: partition.last for partition in self._partitions.values() if partition.has_grown}
        query = (  # the state is random, for a count would begin anew with a partition that is made anew
            "UPDATE {partitions} SET last = max(last, ?), vectors = vectors + ?, "
            "dimensions = coalesce(?, dimensions), state = iif(?, random(), state) WHERE id = ?"
        )
        ids = sorted(lasts.keys() | growth.keys() | changed)
        counts = [(lasts.get(id, 0), *growth.get(id, (0, None)), id in growth or id in changed, id) for id in ids]
        self._collection.execute_many(query, counts)
        if self._seq is not None:
            self._collection.execute("UPDATE {counters} SET value = ? WHERE name = 'seq'", (self._seq,))
        # The names in a partition are personal too: none outlives its last memory.
        query = "DELETE FROM {partitions} WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM {memories} WHERE partition = ?1)"
        if self._left:
            self._collection.execute_many(query, [(partition,) for partition in sorted(self._left)])

    def _store(self, scope: Scope, entry: MemoryEntry) -> None:
        """Store the entry in the place of the one that has its id, if there is one."""
        found = self._find(entry.tenant, entry.id)
        if found is not None:
            check_in_scope(scope, found[1])
            if found[1].is_expired(entry.created_at):
                self._remove(*found)
                found = None
        vector = self._packed(entry)
        if found is None:
            self._add(entry, entry.digest, vector)
            return
        key, old = found
        self._remember(old)
        key = self._replace(key, old, entry.replace(seq=old.seq, revision=old.revision + 1))
        self._set_vector(key, vector)

    def _store_if_new(self, scope: Scope, entry: MemoryEntry) -> MemoryEntry | None:
        """Store the entry, or return the live one that has its id, or else says the same."""
        self._write_rows()
        twin = find_twin(self._collection, scope, entry)
        if twin is None:
            self._store(scope, entry)
            return None
        return self._with_vector(*twin)

    def _find(self, tenant: str, id: str) -> tuple[int, MemoryEntry] | None:
        self._write_rows()
        return find_by_id(self._collection, tenant, id)

    def _with_vector(self, key: int, entry: MemoryEntry) -> MemoryEntry:
        return with_vector(entry, self._vectors.read(key))

    def _packed(self, entry: MemoryEntry) -> bytes | None:
        """The entry's vector, if it is as long as the tenant's others."""
        if entry.embedding is None:
            return None
        actual = len(entry.embedding)
        if entry.tenant not in self._dimensions:
            known = self._partition(entry).dimensions or expected_dimensions(self._collection, entry.tenant)
            self._dimensions[entry.tenant] = actual if known is None else known
        expected = self._dimensions[entry.tenant]
        if actual != expected:
            raise EmbeddingDimensionError(expected, actual)
        return pack(entry.embedding)

    def _add(self, entry: MemoryEntry, digest: str, vector: bytes | None) -> None:
        """Insert what is new in the store."""
        self._insert(entry, vector, digest=digest, seq=self._next_seq(), revision=max(1, entry.revision))

    def _insert(self, entry: MemoryEntry, vector: bytes | None, *, digest: str, seq: int, revision: int) -> int:
        partition = self._partition(entry)
        partition.last += 1
        partition.has_grown = True
        key = partition.id << 32 | partition.last
        self._new_rows.append((key, partition.id, *values_of(entry, seq, revision, digest)))
        self._new_texts[key] = entry.content
        if vector is not None:
            self._vectors.add(key, vector)
        return key

    def _write_rows(self) -> None:
        rows, self._new_rows = sorted(self._new_rows), []
        if rows:
            query = "INSERT INTO {memories} ({columns}) VALUES ({marks})"
            self._collection.execute_many(query, rows, columns=_COLUMNS, marks=_MARKS)

    def _replace(self, key: int, old: MemoryEntry, new: MemoryEntry) -> int:
        """Put the new entry in the old one's place, with its vector; the key, which changes with the partition."""
        if (new.owner, new.namespace, new.layer) != (old.owner, old.namespace, old.layer):
            vector = self._vectors.read(key)
            self._erase(key)
            return self._insert(new, vector, digest=new.digest, seq=new.seq, revision=new.revision)
        query = "UPDATE {memories} SET {assigned} WHERE key = ?"
        row = (*values_of(new, new.seq, new.revision, new.digest), key)
        self._collection.execute(query, row, assigned=_ASSIGNED)
        if new.content != old.content:
            if key in self._new_texts:
                self._new_texts[key] = new.content
            else:
                self._changed_texts[key] = new.content
        return key

    def _remove(self, key: int, entry: MemoryEntry) -> None:
        self._erase(key)
        self._collection.execute("DELETE FROM {history} WHERE seq = ?", (entry.seq,))

    def _erase(self, key: int) -> None:
        self._vectors.remove(key)
        self._collection.execute("DELETE FROM {memories} WHERE key = ?", (key,))
        if self._new_texts.pop(key, None) is None:
            self._changed_texts[key] = None
        self._left.add(partition_of(key))

    def _set_vector(self, key: int, vector: bytes | None) -> None:
        self._vectors.remove(key)
        if vector is not None:
            self._vectors.add(key, vector)

    def _remember(self, old: MemoryEntry) -> None:
        """Keep what the entry was, and of what it was before the latest versions."""
        query = "INSERT INTO {history} (seq, revision, entry) VALUES (?, ?, ?)"
        self._collection.execute(query, (old.seq, old.revision, json.dumps(written(old), ensure_ascii=False)))
        query = (
            "DELETE FROM {history} WHERE seq = ?1 AND revision <= "
            "(SELECT revision FROM {history} WHERE seq = ?1 ORDER BY revision DESC LIMIT 1 OFFSET ?2)"
        )
        self._collection.execute(query, (old.seq, HISTORY_KEPT))

    def _write_texts(self) -> None:
        def terms(key: int, texts: Mapping[int, Any]) -> str:
            return " ".join(index_terms(texts[key]))

        new, changed = self._new_texts, self._changed_texts
        if changed:
            gone = [(key,) for key in sorted(changed) if changed[key] is None]
            self._collection.execute_many("DELETE FROM {text} WHERE rowid = ?", gone)
            edited = [(terms(key, changed), key) for key in sorted(changed) if changed[key] is not None]
            self._collection.execute_many("UPDATE {text} SET terms = ? WHERE rowid = ?", edited)
        rows = [(key, terms(key, new)) for key in sorted(new)]
        self._collection.execute_many("INSERT INTO {text} (rowid, terms) VALUES (?, ?)", rows)

    def _partition(self, entry: MemoryEntry) -> _Partition:
        """The entry's, made if there is none."""
        place = place_of(entry)
        found = self._known(place)
        if found is None:
            query = "INSERT INTO {partitions} (tenant, owner, namespace, layer) VALUES (?, ?, ?, ?)"
            number = self._collection.execute(query, place).lastrowid
            assert number is not None  # noqa: S101 - for the type alone
            found = self._partitions[place] = _Partition(number, 0, None)
        return found

    def _known(self, place: Place) -> _Partition | None:
        if place not in self._partitions:
            query = (
                "SELECT id, last, CASE WHEN vectors > 0 THEN dimensions END FROM {partitions} "
                "WHERE tenant = ? AND owner = ? AND namespace = ? AND layer = ?"
            )
            row = self._collection.execute(query, place).fetchone()
            if row is None:
                return None
            self._partitions[place] = _Partition(*row)
        return self._partitions[place]

    def _next_seq(self) -> int:
        if self._seq is None:
            (last,) = self._collection.execute("SELECT value FROM {counters} WHERE name = 'seq'").fetchone()
            self._seq = int(last)
        self._seq += 1
        return self._seq
