"""What changes the memories, inside the transaction of one job.

Rows are written at once; texts and vectors are gathered and written by `flush`, sorted by key, which
is what makes a batch fast: the text index takes keys in rising order several times faster.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from lamina.adapters._shared.instants import to_micros
from lamina.adapters._shared.where_sql import scope_sql
from lamina.adapters.sqlite.partitions import expected_dimensions, partition_of, resolve
from lamina.adapters.sqlite.reading import find_duplicate
from lamina.adapters.sqlite.rows import STORED, check_count, entry_of, pack, selected, values_of, written
from lamina.adapters.sqlite.tables import Tables
from lamina.adapters.sqlite.vectors import VectorWriter
from lamina.domain.lexical import index_terms
from lamina.domain.memory import MemoryEntry
from lamina.domain.scope import Scope
from lamina.domain.validation import check_entry
from lamina.errors import Conflict, EmbeddingDimensionError
from lamina.ports.memory_adapter import ACCESS_FIELDS, check_in_scope, check_updates

__all__ = ["Writing"]

_COLUMNS: Final = ", ".join(("key", "partition", *STORED))
_MARKS: Final = ", ".join("?" * (len(STORED) + 2))
_ENTRY: Final = "SELECT m.key, {selected} FROM {memories} AS m JOIN {partitions} AS p ON p.id = m.partition "
_ASSIGNED: Final = ", ".join(f"{name} = ?" for name in STORED)


@dataclass(slots=True)
class _Partition:
    id: int
    last: int
    """The greatest count given out in it; none is given twice."""


class Writing:
    """The changes of one job. Nothing is complete before `flush`."""

    def __init__(self, connection: sqlite3.Connection, tables: Tables) -> None:
        self._connection = connection
        self._tables = tables
        self._vectors = VectorWriter(connection, tables)
        self._new_texts: dict[int, str] = {}
        self._changed_texts: dict[int, str | None] = {}
        self._partitions: dict[tuple[str, ...], _Partition] = {}
        self._left: set[int] = set()
        self._dimensions: dict[str, int] = {}
        self._seq: int | None = None

    def store(self, scope: Scope, entry: MemoryEntry) -> None:
        """As `MemoryAdapter.store`."""
        check_entry(entry)
        check_in_scope(scope, entry)
        check_count("access_count", entry.access_count)
        revision = check_count("revision", entry.revision)
        vector = self._checked(entry)
        found = self._find(entry.tenant, entry.id)
        if found is None:
            self._insert(entry.replace(seq=self._next_seq(), revision=max(1, revision)), vector)
            return
        key, old = found
        check_in_scope(scope, old)
        self._remember(old)
        key = self._replace(key, old, entry.replace(seq=old.seq, revision=old.revision + 1))
        self._set_vector(key, vector)

    def update(self, scope: Scope, id: str, updates: Mapping[str, Any], expected_revision: int | None) -> bool:
        """As `MemoryAdapter.update`."""
        check_updates(updates)
        found = self._find(scope.tenant, id)
        if found is None or not scope.admits(found[1]):
            return False
        key, old = found
        if expected_revision is not None and old.revision != expected_revision:
            raise Conflict(f"The memory {id!r}", f"it has the revision {old.revision}, not {expected_revision}")
        new = old.replace(**updates)
        check_entry(new)
        check_in_scope(scope, new)
        check_count("access_count", new.access_count)
        vector = self._checked(new)
        if not updates.keys() <= ACCESS_FIELDS:
            new = new.replace(revision=old.revision + 1)
        if not updates.keys() <= ACCESS_FIELDS | {"embedding"}:  # the history keeps no vectors
            self._remember(old)
        key = self._replace(key, old, new)
        if "embedding" in updates:
            self._set_vector(key, vector)
        return True

    def delete(self, scope: Scope, id: str) -> bool:
        """As `MemoryAdapter.delete`."""
        found = self._find(scope.tenant, id)
        if found is None or not scope.admits(found[1]):
            return False
        key, old = found
        self._erase(key)
        self._connection.execute(self._tables.sql("DELETE FROM {history} WHERE seq = ?"), (old.seq,))
        return True

    def store_if_new(self, scope: Scope, entry: MemoryEntry) -> MemoryEntry | None:
        """Store the entry, or return the live one that says the same."""
        check_entry(entry)
        own = Scope(entry.tenant, entry.owner, entry.namespace)
        reach = resolve(self._connection, self._tables, own, frozenset({entry.layer}))
        key = find_duplicate(self._connection, self._tables, reach, entry.digest, entry.created_at)
        if key is None:
            self.store(scope, entry)
            return None
        query = self._tables.sql(_ENTRY + "WHERE m.key = ?", selected=selected())
        row = self._connection.execute(query, (key,)).fetchone()
        return entry_of(row[1:], self._vectors.read(key))

    def touch(self, scope: Scope, ids: Sequence[str], now: datetime) -> None:
        """As `MemoryAdapter.touch`."""
        admitted = scope_sql(scope, None)
        query = self._tables.sql(
            "UPDATE {memories} AS m SET access_count = access_count + ?, last_accessed_at = ? "
            "WHERE m.tenant = ? AND m.id = ? "
            "AND EXISTS (SELECT 1 FROM {partitions} AS p WHERE p.id = m.partition AND {admitted})",
            admitted=admitted.text,
        )
        at = to_micros(now)
        rows = [(times, at, scope.tenant, id, *admitted.parameters) for id, times in Counter(ids).items()]
        self._connection.executemany(query, rows)

    def drop_embeddings(self, scope: Scope) -> int:
        """As `MemoryAdapter.drop_embeddings`."""
        admitted = scope_sql(scope, None)
        query = self._tables.sql("SELECT p.id FROM {partitions} AS p WHERE p.vectors > 0 AND ") + admitted.text
        dropped = 0
        for (partition,) in self._connection.execute(query, admitted.parameters).fetchall():
            changed = (
                "UPDATE {memories} AS m SET revision = revision + 1 "
                "WHERE m.partition = ? AND EXISTS (SELECT 1 FROM {vectors} AS v WHERE v.key = m.key)"
            )
            self._connection.execute(self._tables.sql(changed), (partition,))
            dropped += self._vectors.drop(partition)
        return dropped

    def flush(self) -> None:
        """Write what was gathered."""
        for key in sorted(self._new_texts.keys() | self._changed_texts.keys()):
            self._write_text(key)
        self._vectors.flush()
        self._connection.executemany(
            self._tables.sql("UPDATE {partitions} SET last = ? WHERE id = ?"),
            [(partition.last, partition.id) for partition in self._partitions.values()],
        )
        if self._seq is not None:
            query = self._tables.sql("UPDATE {counters} SET value = ? WHERE name = 'seq'")
            self._connection.execute(query, (self._seq,))
        # The names in a partition are personal too: none outlives its last memory.
        gone = "DELETE FROM {partitions} WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM {memories} WHERE partition = ?1)"
        self._connection.executemany(self._tables.sql(gone), [(partition,) for partition in sorted(self._left)])

    def _checked(self, entry: MemoryEntry) -> bytes | None:
        """The entry's vector, packed, if it is as long as the tenant's others."""
        if entry.embedding is None:
            return None
        vector = pack(entry.embedding)
        actual = len(vector) // 4
        tenant = entry.tenant
        if tenant not in self._dimensions:
            known = expected_dimensions(self._connection, self._tables, tenant)
            self._dimensions[tenant] = actual if known is None else known
        if actual != self._dimensions[tenant]:
            raise EmbeddingDimensionError(self._dimensions[tenant], actual)
        return vector

    def _find(self, tenant: str, id: str) -> tuple[int, MemoryEntry] | None:
        query = self._tables.sql(_ENTRY + "WHERE m.tenant = ? AND m.id = ?", selected=selected())
        row = self._connection.execute(query, (tenant, id)).fetchone()
        return None if row is None else (row[0], entry_of(row[1:]))

    def _insert(self, entry: MemoryEntry, vector: bytes | None) -> int:
        partition = self._partition(entry)
        partition.last += 1
        key = partition.id << 32 | partition.last
        query = self._tables.sql("INSERT INTO {memories} ({columns}) VALUES ({marks})", columns=_COLUMNS, marks=_MARKS)
        self._connection.execute(query, (key, partition.id, *values_of(entry)))
        self._new_texts[key] = entry.content
        if vector is not None:
            self._vectors.add(key, vector)
        return key

    def _replace(self, key: int, old: MemoryEntry, new: MemoryEntry) -> int:
        """Put the new entry in the old one's place, with its vector; the key, which changes with the partition."""
        if self._partition(new).id != partition_of(key):
            vector = self._vectors.read(key)
            self._erase(key)
            return self._insert(new, vector)
        query = self._tables.sql("UPDATE {memories} SET {assigned} WHERE key = ?", assigned=_ASSIGNED)
        self._connection.execute(query, (*values_of(new), key))
        if new.content != old.content:
            if key in self._new_texts:
                self._new_texts[key] = new.content
            else:
                self._changed_texts[key] = new.content
        return key

    def _erase(self, key: int) -> None:
        self._vectors.remove(key)
        self._connection.execute(self._tables.sql("DELETE FROM {memories} WHERE key = ?"), (key,))
        if self._new_texts.pop(key, None) is None:
            self._changed_texts[key] = None
        self._left.add(partition_of(key))

    def _set_vector(self, key: int, vector: bytes | None) -> None:
        self._vectors.remove(key)
        if vector is not None:
            self._vectors.add(key, vector)

    def _remember(self, old: MemoryEntry) -> None:
        query = self._tables.sql("INSERT INTO {history} (seq, revision, entry) VALUES (?, ?, ?)")
        self._connection.execute(query, (old.seq, old.revision, json.dumps(written(old), ensure_ascii=False)))

    def _write_text(self, key: int) -> None:
        if key in self._new_texts:
            terms = " ".join(index_terms(self._new_texts[key]))
            self._connection.execute(self._tables.sql("INSERT INTO {text} (rowid, terms) VALUES (?, ?)"), (key, terms))
            return
        content = self._changed_texts[key]
        if content is None:
            self._connection.execute(self._tables.sql("DELETE FROM {text} WHERE rowid = ?"), (key,))
        else:
            terms = " ".join(index_terms(content))
            self._connection.execute(self._tables.sql("UPDATE {text} SET terms = ? WHERE rowid = ?"), (terms, key))

    def _partition(self, entry: MemoryEntry) -> _Partition:
        name = (entry.tenant, entry.owner, entry.namespace, entry.layer.value)
        if name not in self._partitions:
            query = "SELECT id, last FROM {partitions} WHERE tenant = ? AND owner = ? AND namespace = ? AND layer = ?"
            row = self._connection.execute(self._tables.sql(query), name).fetchone()
            if row is None:
                query = (
                    "INSERT INTO {partitions} (tenant, owner, namespace, layer) VALUES (?, ?, ?, ?) RETURNING id, last"
                )
                (row,) = self._connection.execute(self._tables.sql(query), name).fetchall()
            self._partitions[name] = _Partition(*row)
        return self._partitions[name]

    def _next_seq(self) -> int:
        if self._seq is None:
            query = self._tables.sql("SELECT value FROM {counters} WHERE name = 'seq'")
            (self._seq,) = self._connection.execute(query).fetchone()
        self._seq += 1
        return self._seq
