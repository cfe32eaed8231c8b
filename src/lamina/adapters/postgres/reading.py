"""What reads the memories by id, order or condition, inside one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from lamina.adapters._shared.draft import Draft, Likeness
from lamina.adapters._shared.records import Stored
from lamina.adapters.postgres.conditions import admitted
from lamina.adapters.postgres.rows import SELECTED, SELECTED_VECTOR, entry_of, version_of
from lamina.adapters.postgres.tables import Collection
from lamina.databases.postgres.failures import damaged
from lamina.domain.filters import MemoryFilter
from lamina.domain.memory import Layer, MemoryEntry
from lamina.domain.scope import Scope
from lamina.domain.text import is_clean
from lamina.ports.memory_adapter import ListOptions, Order

__all__ = [
    "alike_to",
    "count",
    "entries_by_seq",
    "find_duplicate",
    "find_twins",
    "get",
    "history",
    "list_entries",
    "load",
    "meta_values",
    "possible",
]

_BARE: Final = {"selected": f"{SELECTED}, NULL", "rows": "{memories} AS m"}
_WHOLE: Final = {
    "selected": f"{SELECTED}, {SELECTED_VECTOR}",
    "rows": "{memories} AS m LEFT JOIN {vectors} AS v ON v.tenant = m.tenant AND v.seq = m.seq",
}
"""What `entry_of` reads, without and with the vector, as parts of a statement."""


def load(collection: Collection, ids: Iterable[str], *, embeddings: bool, locks: bool) -> list[Stored]:
    """What is stored under these ids, locked until the end of the transaction if that is asked for.

    Locks are taken in order, so that two that take several never wait for each other.
    """
    wanted = possible(ids)
    if not wanted:
        return []
    query = "SELECT {selected} FROM {rows} WHERE m.tenant = {this_tenant} AND m.id = ANY(%s::text[]) ORDER BY m.seq"
    query += " FOR NO KEY UPDATE OF m" if locks else ""
    rows = collection.execute(query, (collection.tenant, wanted), **(_WHOLE if embeddings else _BARE))
    return [Stored(entry_of(row, collection.tenant), None) for row in rows]


def possible(ids: Iterable[object]) -> list[str]:
    """Those of the ids that an entry could have, each once; the server could not even be asked for others."""
    return [id for id in dict.fromkeys(ids) if isinstance(id, str) and id and is_clean(id)]


def alike_to(collection: Collection, entries: Sequence[MemoryEntry]) -> list[Stored]:
    """What is stored that says the same, in the same place, as one of the entries."""
    wanted = list(dict.fromkeys(map(Likeness.of, entries)))
    if not wanted:
        return []
    places = [[getattr(each, name) for each in wanted] for name in ("owner", "namespace", "layer")]
    query = (
        "SELECT {selected} FROM {rows} WHERE m.tenant = {this_tenant} AND m.digest = ANY(%s::bytea[])"
        " AND (m.owner, m.namespace, m.layer, m.digest) IN"
        " (SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::bytea[])) ORDER BY m.seq"
    )
    digests = [bytes.fromhex(each.digest) for each in wanted]
    rows = collection.execute(query, (collection.tenant, digests, *places, digests), **_WHOLE)
    return [Stored(entry_of(row, collection.tenant), None) for row in rows]


def get(collection: Collection, scope: Scope, id: str) -> MemoryEntry | None:
    """As `MemoryAdapter.get`."""
    found = load(collection, [id], embeddings=True, locks=False)
    return next((each.entry for each in found if scope.admits(each.entry)), None)


def find_twins(collection: Collection, scope: Scope, entries: Sequence[MemoryEntry]) -> list[MemoryEntry | None]:
    """As `MemoryAdapter.find_twins`, for entries that passed `check_entry`."""
    stored = load(collection, [entry.id for entry in entries], embeddings=True, locks=False)
    draft = Draft(stored, alike_to(collection, entries))
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


def entries_by_seq(collection: Collection, seqs: Sequence[int], *, embeddings: bool) -> list[MemoryEntry]:
    """The entries in this order.

    Raises:
        StoreDamaged: one of these, which stand in an index, is no entry.
    """
    query = "SELECT {selected} FROM {rows} WHERE m.tenant = {this_tenant} AND m.seq = ANY(%s::bigint[])"
    rows = collection.execute(query, (collection.tenant, list(seqs)), **(_WHOLE if embeddings else _BARE))
    found = {row[0]: entry_of(row, collection.tenant) for row in rows}
    if not found.keys() >= set(seqs):
        raise damaged("an index leads to a memory that is not there")
    return [found[seq] for seq in seqs]


def history(collection: Collection, scope: Scope, id: str) -> list[MemoryEntry]:
    """As `MemoryAdapter.history`."""
    entry = get(collection, scope, id)
    if entry is None:
        return []
    query = "SELECT entry::text FROM {history} WHERE tenant = {this_tenant} AND seq = %s ORDER BY revision"
    rows = collection.execute(query, (collection.tenant, entry.seq))
    return [version for (text,) in rows if scope.admits(version := version_of(text))]


def meta_values(collection: Collection, keys: Iterable[str]) -> dict[str, str]:
    """What `save_meta` kept under those of the keys under which there is something."""
    query = "SELECT key, value FROM {meta} WHERE tenant = {this_tenant} AND key = ANY(%s::text[])"
    return dict(collection.execute(query, (collection.tenant, possible(keys))).fetchall())
