"""What reads the memories by id, order or condition, inside the transaction of one job."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

from lamina.adapters._shared.entry_text import unpack
from lamina.adapters._shared.where_sql import Sql, filter_sql, is_plain, json_list
from lamina.adapters.sqlite.partitions import Reach, resolve
from lamina.adapters.sqlite.rows import entry_of, selected, version_of
from lamina.adapters.sqlite.tables import Collection
from lamina.adapters.sqlite.vectors import read_vectors
from lamina.databases.sqlite.failures import damaged
from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.instants import to_micros
from lamina.domain.memory import MemoryEntry
from lamina.domain.scope import Scope
from lamina.domain.text import is_clean
from lamina.ports.memory_adapter import ListOptions, Order

__all__ = [
    "can_be_id",
    "condition_of",
    "count",
    "count_all",
    "entries_by_key",
    "find_by_id",
    "find_duplicate",
    "get",
    "history",
    "ids_by_key",
    "keys_left_out",
    "left_out",
    "list_entries",
    "meta_value",
    "rows_by_key",
    "with_vector",
]

_ENTRY = "SELECT m.key, {selected} FROM {memories} AS m JOIN {partitions} AS p ON p.id = m.partition WHERE {where}"


def find_by_id(collection: Collection, tenant: str, id: str) -> tuple[int, MemoryEntry] | None:
    """The key and the entry, without its vector. An id that no entry could have is not found."""
    if not can_be_id(id):
        return None
    where = "m.tenant = ? AND m.id = ?"
    row = collection.execute(_ENTRY, (tenant, id), selected=selected(), where=where).fetchone()
    return None if row is None else (row[0], entry_of(row[1:]))


def can_be_id(id: object) -> bool:
    """Whether an entry could have this id; SQLite could not even be asked for others."""
    return isinstance(id, str) and is_clean(id)


def get(collection: Collection, scope: Scope, id: str) -> MemoryEntry | None:
    """As `MemoryAdapter.get`."""
    found = find_by_id(collection, scope.tenant, id)
    if found is None or not scope.admits(found[1]):
        return None
    return entries_by_key(collection, [found[0]], embeddings=True)[found[0]]


def history(collection: Collection, scope: Scope, id: str) -> list[MemoryEntry]:
    """As `MemoryAdapter.history`."""
    found = find_by_id(collection, scope.tenant, id)
    if found is None or not scope.admits(found[1]):
        return []
    query = "SELECT entry FROM {history} WHERE seq = ? ORDER BY revision"
    versions = [version_of(text) for (text,) in collection.execute(query, (found[1].seq,))]
    return [version for version in versions if scope.admits(version)]


def meta_value(collection: Collection, scope: Scope, key: str) -> str | None:
    """As `MemoryAdapter.load_meta`."""
    if not can_be_id(key):
        return None
    query = "SELECT value FROM {meta} WHERE tenant = ? AND key = ?"
    row = collection.execute(query, (scope.tenant, key)).fetchone()
    return row[0] if row else None


def list_entries(collection: Collection, options: ListOptions) -> list[MemoryEntry]:
    """As `MemoryAdapter.list`."""
    reach = resolve(collection, options.scope, options.filter.layers)
    if reach.is_empty or (options.filter.expiry is Expiry.EXPIRED and not _has_expired(collection, reach, options)):
        return []
    rows: Iterable[tuple[int, ...]]
    if options.order is Order.RELEVANCE:
        rows = _by_relevance(collection, reach, options)
    elif reach.few is None:
        rows = _by_seq_of_tenant(collection, reach, options)
    else:
        rows = _by_seq_of_partitions(collection, reach.few, options)
    keys = [row[0] for row in rows]
    found = entries_by_key(collection, keys, embeddings=options.include_embeddings)
    return [found[key] for key in keys]


def count(collection: Collection, reach: Reach, filter: MemoryFilter) -> int:
    """How many entries in reach pass the filter; its layers are the reach's."""
    if reach.is_empty:
        return 0
    if is_plain(filter):  # indexes tell, without reading a row
        gone = left_out(collection, reach, filter)
        (number,) = collection.execute("SELECT count(*) FROM ({gone})", gone.parameters, gone=gone.text).fetchone()
        return count_all(collection, reach) - int(number)
    if filter.has_embedding is False and not _may_lack_vectors(collection, reach):
        return 0
    return _count(collection, reach, condition_of(collection, filter))


def condition_of(collection: Collection, filter: MemoryFilter) -> Sql:
    """What the filter asks of a memory `m`."""
    has_vector = collection.tables.sql("EXISTS (SELECT 1 FROM {vectors} AS v WHERE v.key = m.key)")
    return filter_sql(filter, has_vector=has_vector)


def left_out(collection: Collection, reach: Reach, filter: MemoryFilter) -> Sql:
    """The query for the keys in reach that a plain filter leaves out; each part of it reads an index of just those."""
    now = to_micros(filter.now)
    parts = [Sql("m.expires_at <= ?", (now,))]
    if filter.current:
        parts += [Sql("m.superseded_by IS NOT NULL"), Sql("m.valid_until <= ?", (now,))]
    within = reach.condition
    query = "SELECT m.key FROM {scoped} WHERE {within} AND {gone}"
    queries = [collection.tables.sql(query, within=within.text, gone=part.text) for part in parts]
    text = " UNION ".join(queries)
    return Sql(text, tuple(value for part in parts for value in (*within.parameters, *part.parameters)))


def keys_left_out(collection: Collection, reach: Reach, filter: MemoryFilter) -> list[int]:
    """The keys in reach that a plain filter leaves out."""
    query = left_out(collection, reach, filter)
    return [key for (key,) in collection.connection.execute(query.text, query.parameters)]


def entries_by_key(collection: Collection, keys: Iterable[int], *, embeddings: bool) -> dict[int, MemoryEntry]:
    """The entries of these keys, with or without their vectors.

    Raises:
        StoreDamaged: one of the keys, which stand in an index or beside a vector, leads to no entry.
    """
    keys = list(keys)
    vectors = read_vectors(collection, keys) if embeddings else {}
    return {key: entry_of(row, vectors.get(key)) for key, row in rows_by_key(collection, keys).items()}


def rows_by_key(collection: Collection, keys: Iterable[int]) -> dict[int, tuple[Any, ...]]:
    """What `entry_of` reads of the entries of these keys; raises as `entries_by_key` does."""
    keys = list(keys)
    where = "m.key IN (SELECT value FROM json_each(?))"
    rows = collection.execute(_ENTRY, (json_list(keys),), selected=selected(), where=where)
    found = {row[0]: row[1:] for row in rows}
    if not found.keys() >= set(keys):
        raise damaged("an index leads to no memory, or to one of no partition")
    return found


def ids_by_key(collection: Collection, keys: Iterable[int]) -> dict[int, str]:
    """The ids of the entries of these keys.

    Raises:
        StoreDamaged: one of the keys leads to no entry.
    """
    keys = list(keys)
    query = "SELECT key, id FROM {memories} WHERE key IN (SELECT value FROM json_each(?))"
    ids = dict(collection.execute(query, (json_list(keys),)).fetchall())
    if len(ids) < len(keys):
        raise damaged("an index leads to no memory")
    return ids


def find_duplicate(collection: Collection, reach: Reach, digest: str, now: datetime) -> int | None:
    """The key of the oldest live entry in reach with this digest."""
    wanted = bytes.fromhex(digest)
    query = (
        # Named, or SQLite takes the index that is sorted by seq and reads the whole partition for a digest it lacks.
        "SELECT m.key FROM {partitions} AS p CROSS JOIN {memories} AS m INDEXED BY {memories_by_digest} "
        "ON m.partition = p.id AND m.digest = ? "
        "WHERE {reach} AND (m.expires_at IS NULL OR m.expires_at > ?) ORDER BY m.seq LIMIT 1"
    )
    parameters = (wanted, *reach.condition.parameters, to_micros(now))
    row = collection.execute(query, parameters, reach=reach.condition.text).fetchone()
    return row[0] if row else None


def with_vector(entry: MemoryEntry, packed: bytes | None) -> MemoryEntry:
    """The entry with its vector, if it has one."""
    return entry.replace(embedding=None if packed is None else unpack(packed))


def _by_seq_of_partitions(
    collection: Collection, partitions: tuple[int, ...], options: ListOptions
) -> list[tuple[int, int]]:
    """The first ones of each partition, merged: what comes before and after the page is not read.

    It is one statement, run for each partition: the condition is a user's, and large in the worst case.
    """
    admitted = condition_of(collection, options.filter)
    query = (
        "SELECT m.key, m.seq FROM {memories} AS m "
        "WHERE m.partition = ? AND m.seq > ? AND {admitted} ORDER BY m.seq LIMIT ?"
    )
    enough = options.offset + options.limit
    rows = []
    for partition in partitions:
        parameters = (partition, _after(options), *admitted.parameters, enough)
        rows += collection.execute(query, parameters, admitted=admitted.text).fetchall()
    rows.sort(key=itemgetter(1))
    return rows[options.offset : enough]


def _by_seq_of_tenant(collection: Collection, reach: Reach, options: ListOptions) -> sqlite3.Cursor:
    """All of the tenant's in order, passing over what the scope does not admit."""
    admitted = condition_of(collection, options.filter)
    query = (
        "SELECT m.key FROM {memories} AS m INDEXED BY {memories_by_tenant_seq} WHERE m.tenant = ? AND m.seq > ? "
        "AND m.partition IN (SELECT p.id FROM {partitions} AS p WHERE {reach}) AND {admitted} "
        "ORDER BY m.seq LIMIT ? OFFSET ?"
    )
    start = (options.scope.tenant, _after(options), *reach.condition.parameters, *admitted.parameters)
    parts = {"reach": reach.condition.text, "admitted": admitted.text}
    return collection.execute(query, (*start, options.limit, options.offset), **parts)


def _by_relevance(collection: Collection, reach: Reach, options: ListOptions) -> sqlite3.Cursor:
    admitted = condition_of(collection, options.filter)
    query = (
        "SELECT m.key FROM {scoped} WHERE {reach} AND {admitted} "
        "ORDER BY m.relevance DESC, m.created_at DESC, m.id LIMIT ? OFFSET ?"
    )
    start = (*reach.condition.parameters, *admitted.parameters)
    parts = {"reach": reach.condition.text, "admitted": admitted.text}
    return collection.execute(query, (*start, options.limit, options.offset), **parts)


def _has_expired(collection: Collection, reach: Reach, options: ListOptions) -> bool:
    """Whether anything in reach has expired: an index of just what can tells it, partition by partition."""
    query = (
        "SELECT 1 FROM {partitions} AS p CROSS JOIN {memories} AS m INDEXED BY {memories_by_expiry} "
        "ON m.partition = p.id AND m.expires_at <= ? WHERE {reach} LIMIT 1"
    )
    parameters = (to_micros(options.filter.now), *reach.condition.parameters)
    return collection.execute(query, parameters, reach=reach.condition.text).fetchone() is not None


def _may_lack_vectors(collection: Collection, reach: Reach) -> bool:
    """Whether some memory in reach may have no vector; only where some are gone, their index is read."""
    query = "SELECT p.id, p.vectors FROM {partitions} AS p WHERE p.last > p.vectors AND {reach}"
    partitions = collection.execute(query, reach.condition.parameters, reach=reach.condition.text).fetchall()
    query = "SELECT count(*) FROM {memories} WHERE partition = ?"
    return any(collection.execute(query, (id,)).fetchone() != (vectors,) for id, vectors in partitions)


def count_all(collection: Collection, reach: Reach) -> int:
    """How many entries are in reach; none are counted where as many have vectors as ever came."""
    found: Iterable[Sequence[int]] | None = reach.partitions
    if found is None:
        query = "SELECT p.id, p.last, p.vectors FROM {partitions} AS p WHERE {reach}"
        found = collection.execute(query, reach.condition.parameters, reach=reach.condition.text).fetchall()
    query = "SELECT count(*) FROM {memories} WHERE partition = ?"
    return sum(
        last if last == vectors else collection.execute(query, (id,)).fetchone()[0] for id, last, vectors, *_ in found
    )


def _count(collection: Collection, reach: Reach, condition: Sql) -> int:
    query = "SELECT count(*) FROM {scoped} WHERE {reach} AND {condition}"
    parameters = (*reach.condition.parameters, *condition.parameters)
    row = collection.execute(query, parameters, reach=reach.condition.text, condition=condition.text).fetchone()
    return int(row[0])


def _after(options: ListOptions) -> int:
    return 0 if options.after is None else options.after
