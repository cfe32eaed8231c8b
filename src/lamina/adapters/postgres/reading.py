"""What reads the memories by id, order or condition, inside one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, LiteralString, TypeAlias

from psycopg.sql import Composable

from lamina.adapters._shared.draft import Draft, Likeness
from lamina.adapters._shared.records import Stored
from lamina.adapters.postgres.conditions import admitted
from lamina.adapters.postgres.rows import SELECTED, SELECTED_VECTOR, entry_of, version_of
from lamina.adapters.postgres.tables import Collection
from lamina.domain.filters import MemoryFilter
from lamina.domain.memory import Layer, MemoryEntry
from lamina.domain.scope import Scope
from lamina.domain.text import is_clean
from lamina.ports.memory_adapter import ListOptions, Order

__all__ = [
    "Rows",
    "ask_for",
    "ask_for_alike",
    "ask_for_found",
    "ask_for_meta",
    "count",
    "entries_in",
    "find_duplicate",
    "find_twins",
    "get",
    "history",
    "list_entries",
    "meta_value",
    "possible",
    "stored_in",
]

Rows: TypeAlias = Iterable[tuple[Any, ...]]
"""What a statement gives; within `Collection.together`, only from its end on."""

_BARE: Final = {"selected": f"{SELECTED}, NULL", "rows": "{memories} AS m"}
_WHOLE: Final = {
    "selected": f"{SELECTED}, {SELECTED_VECTOR}",
    "rows": "{memories} AS m LEFT JOIN {vectors} AS v ON v.tenant = m.tenant AND v.seq = m.seq",
}
"""What `entry_of` reads, without and with the vector, as parts of a statement."""


def ask_for(collection: Collection, ids: Iterable[str], *, embeddings: bool, locks: bool) -> Rows:
    """Ask for what is stored under these ids, locked until the end of the transaction if that is asked for.

    Locks are taken in order, so that two that take several never wait for each other.
    """
    wanted = possible(ids)
    if not wanted:
        return ()
    query = "SELECT {selected} FROM {rows} WHERE m.tenant = {this_tenant} AND m.id = ANY(%s::text[]) ORDER BY m.seq"
    query += " FOR NO KEY UPDATE OF m" if locks else ""
    return collection.execute(query, (collection.tenant, wanted), **(_WHOLE if embeddings else _BARE))


def possible(ids: Iterable[object]) -> list[str]:
    """Those of the ids that an entry could have, each once; the server could not even be asked for others."""
    return [id for id in dict.fromkeys(ids) if isinstance(id, str) and id and is_clean(id)]


def ask_for_alike(collection: Collection, entries: Sequence[MemoryEntry]) -> Rows:
    """Ask for what is stored that says the same, in the same place, as one of the entries."""
    wanted = list(dict.fromkeys(map(Likeness.of, entries)))
    if not wanted:
        return ()
    places = [[getattr(each, name) for each in wanted] for name in ("owner", "namespace", "layer")]
    query = (
        "SELECT {selected} FROM {rows} WHERE m.tenant = {this_tenant} AND m.digest = ANY(%s::bytea[])"
        " AND (m.owner, m.namespace, m.layer, m.digest) IN"
        " (SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::bytea[])) ORDER BY m.seq"
    )
    digests = [bytes.fromhex(each.digest) for each in wanted]
    return collection.execute(query, (collection.tenant, digests, *places, digests), **_WHOLE)


def stored_in(collection: Collection, rows: Rows) -> list[Stored]:
    """What was asked for, once it is there."""
    return [Stored(entry_of(row, collection.tenant), None) for row in rows]


def get(collection: Collection, scope: Scope, id: str) -> MemoryEntry | None:
    """As `MemoryAdapter.get`."""
    found = ask_for(collection, [id], embeddings=True, locks=False)
    return next((each.entry for each in stored_in(collection, found) if scope.admits(each.entry)), None)


def find_twins(collection: Collection, scope: Scope, entries: Sequence[MemoryEntry]) -> list[MemoryEntry | None]:
    """As `MemoryAdapter.find_twins`, for entries that passed `check_entry`."""
    with collection.together():
        stored = ask_for(collection, [entry.id for entry in entries], embeddings=True, locks=False)
        alike = ask_for_alike(collection, entries)
    draft = Draft(stored_in(collection, stored), stored_in(collection, alike))
    return [draft.twin(scope, entry) for entry in entries]


def find_duplicate(
    collection: Collection, scope: Scope, layer: Layer, digest: bytes, *, now: datetime
) -> MemoryEntry | None:
    """As `MemoryAdapter.find_duplicate`."""
    condition = admitted(scope, MemoryFilter(now=now, layers=frozenset({layer})))
    query = "SELECT {selected} FROM {rows} WHERE m.digest = %s AND {condition} ORDER BY m.seq LIMIT 1"
    row = collection.execute(query, (digest, *condition.parameters), condition=condition.text, **_WHOLE).fetchone()
    return None if row is None else entry_of(row, collection.tenant)


def list_entries(collection: Collection, options: ListOptions) -> list[MemoryEntry]:
    """As `MemoryAdapter.list`."""
    condition = admitted(options.scope, options.filter)
    query = "SELECT {selected} FROM {rows} WHERE {condition}"
    parameters = list(condition.parameters)
    if options.order is Order.RELEVANCE:
        query += " ORDER BY m.relevance DESC, m.created_at DESC, m.id"
    else:
        query += " AND m.seq > %s ORDER BY m.seq"
        parameters.append(options.after or 0)
    query += " LIMIT %s OFFSET %s"
    parts = _WHOLE if options.include_embeddings else _BARE
    rows = collection.execute(query, (*parameters, options.limit, options.offset), condition=condition.text, **parts)
    return [entry_of(row, collection.tenant) for row in rows]


def count(collection: Collection, scope: Scope, filter: MemoryFilter) -> int:
    """As `MemoryAdapter.count`."""
    condition = admitted(scope, filter)
    query = "SELECT count(*) FROM {memories} AS m WHERE {condition}"
    (number,) = collection.execute(query, condition.parameters, condition=condition.text).fetchone() or (0,)
    return int(number)


def ask_for_found(
    collection: Collection,
    found: LiteralString,
    parameters: Sequence[Any],
    *,
    embeddings: bool,
    **parts: LiteralString | Composable,
) -> Rows:
    """Ask for the entries whose `seq` the query `found` gives, in no order; `parts` are the query's."""
    whole = _WHOLE if embeddings else _BARE
    wanted = collection.session.schema.part(found, **parts)
    query = "SELECT {selected} FROM {rows} WHERE m.tenant = {this_tenant} AND m.seq = ANY(ARRAY({wanted}))"
    return collection.execute(query, (collection.tenant, *parameters), wanted=wanted, **whole)


def entries_in(collection: Collection, rows: Rows) -> list[MemoryEntry]:
    """What was asked for, once it is there."""
    return [entry_of(row, collection.tenant) for row in rows]


def history(collection: Collection, scope: Scope, id: str) -> list[MemoryEntry]:
    """As `MemoryAdapter.history`."""
    entry = get(collection, scope, id)
    if entry is None:
        return []
    query = "SELECT entry::text FROM {history} WHERE tenant = {this_tenant} AND seq = %s ORDER BY revision"
    rows = collection.execute(query, (collection.tenant, entry.seq))
    return [version for (text,) in rows if scope.admits(version := version_of(text))]


def meta_value(collection: Collection, key: str) -> str | None:
    """As `MemoryAdapter.load_meta`."""
    return next((value for _, value in ask_for_meta(collection, [key])), None)


def ask_for_meta(collection: Collection, keys: Iterable[str]) -> Rows:
    """Ask for what `save_meta` kept: pairs of a key and its value, where there is one."""
    query = "SELECT key, value FROM {meta} WHERE tenant = {this_tenant} AND key = ANY(%s::text[])"
    return collection.execute(query, (collection.tenant, wanted)) if (wanted := possible(keys)) else ()
