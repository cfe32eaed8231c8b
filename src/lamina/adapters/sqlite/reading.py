"""What reads the memories by id, order or condition, inside the transaction of one job."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import datetime

from lamina.adapters._shared.instants import to_micros
from lamina.adapters._shared.where_sql import Sql, filter_sql, is_plain, json_list
from lamina.adapters.sqlite.partitions import Reach, resolve
from lamina.adapters.sqlite.rows import entry_of, selected, version_of
from lamina.adapters.sqlite.tables import Tables
from lamina.adapters.sqlite.vectors import read_vectors
from lamina.domain.filters import MemoryFilter
from lamina.domain.memory import MemoryEntry
from lamina.domain.scope import Scope
from lamina.errors import InvalidInput
from lamina.ports.memory_adapter import ListOptions, Order

__all__ = [
    "condition_of",
    "count",
    "entries_by_key",
    "find_duplicate",
    "get",
    "history",
    "list_entries",
    "some_expired",
]

_ENTRY = "SELECT m.key, {selected} FROM {memories} AS m JOIN {partitions} AS p ON p.id = m.partition "
_SCOPED = "{partitions} AS p CROSS JOIN {memories} AS m ON m.partition = p.id"


def get(connection: sqlite3.Connection, tables: Tables, scope: Scope, id: str) -> MemoryEntry | None:
    """As `MemoryAdapter.get`."""
    query = tables.sql(_ENTRY + "WHERE m.tenant = ? AND m.id = ?", selected=selected())
    row = connection.execute(query, (scope.tenant, id)).fetchone()
    if row is None:
        return None
    entry = entry_of(row[1:], read_vectors(connection, tables, [row[0]]).get(row[0]))
    return entry if scope.admits(entry) else None


def history(connection: sqlite3.Connection, tables: Tables, scope: Scope, id: str) -> list[MemoryEntry]:
    """As `MemoryAdapter.history`."""
    entry = get(connection, tables, scope, id)
    if entry is None:
        return []
    query = tables.sql("SELECT entry FROM {history} WHERE seq = ? ORDER BY revision")
    return [version_of(text) for (text,) in connection.execute(query, (entry.seq,))]


def list_entries(connection: sqlite3.Connection, tables: Tables, options: ListOptions) -> list[MemoryEntry]:
    """As `MemoryAdapter.list`."""
    reach = resolve(connection, tables, options.scope, options.filter.layers)
    if reach.is_empty:
        return []
    if options.order is Order.RELEVANCE:
        query = _by_relevance(tables, reach, options)
    elif reach.few is None:
        query = _by_seq_of_tenant(tables, reach, options)
    else:
        query = _by_seq_of_partitions(tables, reach.few, options)
    keys = [key for (key, *_) in connection.execute(query.text, query.parameters)]
    found = entries_by_key(connection, tables, keys, embeddings=options.include_embeddings)
    return [found[key] for key in keys]


def count(connection: sqlite3.Connection, tables: Tables, reach: Reach, filter: MemoryFilter) -> int:
    """How many entries in reach pass the filter; its layers are the reach's."""
    select = f"SELECT count(*) FROM {_SCOPED} WHERE {{reach}}"  # noqa: S608 - table names only
    if is_plain(filter):  # two indexes tell, without reading a row
        now = to_micros(filter.now)
        (all_of_them,) = _row(connection, tables.sql(select, reach=reach.condition.text), reach.condition.parameters)
        query = tables.sql(select + " AND m.expires_at <= ?", reach=reach.condition.text)
        (expired,) = _row(connection, query, (*reach.condition.parameters, now))
        return all_of_them - expired
    admitted = condition_of(tables, filter)
    query = tables.sql(select + " AND {admitted}", reach=reach.condition.text, admitted=admitted.text)
    (matching,) = _row(connection, query, (*reach.condition.parameters, *admitted.parameters))
    return matching


def condition_of(tables: Tables, filter: MemoryFilter) -> Sql:
    """What the filter asks of a memory `m`."""
    return filter_sql(filter, has_vector=tables.sql("EXISTS (SELECT 1 FROM {vectors} AS v WHERE v.key = m.key)"))


def some_expired(connection: sqlite3.Connection, tables: Tables, reach: Reach, now: datetime) -> bool:
    """Whether any entry in reach has expired."""
    query = f"SELECT 1 FROM {_SCOPED} WHERE {{reach}} AND m.expires_at <= ? LIMIT 1"  # noqa: S608 - table names only
    parameters = (*reach.condition.parameters, to_micros(now))
    return connection.execute(tables.sql(query, reach=reach.condition.text), parameters).fetchone() is not None


def entries_by_key(
    connection: sqlite3.Connection, tables: Tables, keys: Iterable[int], *, embeddings: bool
) -> dict[int, MemoryEntry]:
    """The entries of these keys, with or without their vectors."""
    keys = list(keys)
    vectors = read_vectors(connection, tables, keys) if embeddings else {}
    query = tables.sql(_ENTRY + "WHERE m.key IN (SELECT value FROM json_each(?))", selected=selected())
    rows = connection.execute(query, (json_list(keys),))
    return {row[0]: entry_of(row[1:], vectors.get(row[0])) for row in rows}


def find_duplicate(
    connection: sqlite3.Connection, tables: Tables, reach: Reach, digest: str, now: datetime
) -> int | None:
    """The key of the oldest live entry in reach with this digest."""
    try:
        wanted = bytes.fromhex(digest)
    except ValueError:
        raise InvalidInput("digest", "is no SHA-256 in hex", "Give what MemoryEntry.digest gives.") from None
    query = (
        f"SELECT m.key FROM {_SCOPED} AND m.digest = ? "  # noqa: S608 - table names only
        "WHERE {reach} AND (m.expires_at IS NULL OR m.expires_at > ?) ORDER BY m.seq LIMIT 1"
    )
    parameters = (wanted, *reach.condition.parameters, to_micros(now))
    row = connection.execute(tables.sql(query, reach=reach.condition.text), parameters).fetchone()
    return row[0] if row else None


def _by_seq_of_partitions(tables: Tables, partitions: tuple[int, ...], options: ListOptions) -> Sql:
    """The first ones of each partition, merged: what comes before and after the page is not read."""
    admitted = condition_of(tables, options.filter)
    template = (
        "SELECT * FROM (SELECT m.key, m.seq FROM {memories} AS m "
        "WHERE m.partition = ? AND m.seq > ? AND {admitted} ORDER BY m.seq LIMIT ?)"
    )
    each = tables.sql(template, admitted=admitted.text)
    enough = options.limit + options.offset
    text = " UNION ALL ".join([each] * len(partitions)) + " ORDER BY seq LIMIT ? OFFSET ?"
    parameters: list[object] = []
    for partition in partitions:
        parameters += [partition, _after(options), *admitted.parameters, enough]
    return Sql(text, (*parameters, options.limit, options.offset))


def _by_seq_of_tenant(tables: Tables, reach: Reach, options: ListOptions) -> Sql:
    """All of the tenant's in order, passing over what the scope does not admit."""
    admitted = condition_of(tables, options.filter)
    template = (
        "SELECT m.key FROM {memories} AS m INDEXED BY {memories}_by_tenant_seq WHERE m.tenant = ? AND m.seq > ? "
        "AND m.partition IN (SELECT p.id FROM {partitions} AS p WHERE {reach}) AND {admitted} "
        "ORDER BY m.seq LIMIT ? OFFSET ?"
    )
    text = tables.sql(template, reach=reach.condition.text, admitted=admitted.text)
    start = (options.scope.tenant, _after(options), *reach.condition.parameters, *admitted.parameters)
    return Sql(text, (*start, options.limit, options.offset))


def _by_relevance(tables: Tables, reach: Reach, options: ListOptions) -> Sql:
    admitted = condition_of(tables, options.filter)
    template = (
        f"SELECT m.key FROM {_SCOPED} WHERE {{reach}} AND {{admitted}} "  # noqa: S608 - table names only
        "ORDER BY m.relevance DESC, m.created_at DESC, m.id LIMIT ? OFFSET ?"
    )
    text = tables.sql(template, reach=reach.condition.text, admitted=admitted.text)
    return Sql(text, (*reach.condition.parameters, *admitted.parameters, options.limit, options.offset))


def _after(options: ListOptions) -> int:
    return 0 if options.after is None else options.after


def _row(connection: sqlite3.Connection, query: str, parameters: tuple[object, ...]) -> tuple[int, ...]:
    row: tuple[int, ...] = connection.execute(query, parameters).fetchone()
    return row
