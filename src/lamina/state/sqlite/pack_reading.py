"""Reading pack memories, inside the transaction of one job."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from lamina.domain.instants import from_micros
from lamina.domain.pack import MemoryType, PackConfidence, PackMemory, PackMetadata, PackOrder, PackUse, Relationship
from lamina.domain.pack_decay import Tier
from lamina.domain.pack_query import PackMemoryQuery
from lamina.state.sqlite.pack_rows import MEMORY, memory_of, text_of
from lamina.state.sqlite.rows import readable

__all__ = ["MOST_USED", "count_memories", "find_memories", "get_memories", "memories_of", "statistics"]

MOST_USED: Final = 5
_JOINED: Final = "lamina_pack_memories AS m JOIN lamina_pack_heads AS p ON p.key = m.pack"
_AMONG: Final = "IN (SELECT value FROM json_each(?))"
_ORDERS: Final = {"oldest": "m.key", "last_accessed": "m.last_accessed DESC, m.key DESC"}
_COUNTED: Final = (
    "lamina_pack_memories WHERE pack = (SELECT key FROM lamina_pack_heads WHERE tenant = ? AND id = ?) "
    "AND superseded_by IS NULL AND NOT is_deleted"
)


def memories_of(
    connection: sqlite3.Connection, keys: Sequence[int], *, with_content: bool
) -> list[tuple[int, PackMemory]]:
    """The memories of these keys, each with its key, in the order of the keys given."""
    among = (json.dumps(list(keys)),)
    query = f"SELECT {MEMORY} FROM {_JOINED} WHERE m.key {_AMONG}"  # noqa: S608 - our own columns
    rows = {row[0]: row for row in connection.execute(query, among)}
    relations: dict[int, list[Relationship]] = {}
    query = (
        "SELECT r.source, r.type, t.id FROM lamina_pack_relations AS r JOIN lamina_pack_memories AS t "  # noqa: S608
        f"ON t.key = r.target WHERE r.source {_AMONG} ORDER BY r.source, r.position"
    )
    for source, type, target in connection.execute(query, among):
        relations.setdefault(source, []).append(Relationship(type, target))
    blobs: dict[int, bytes] = {}
    if with_content:
        query = f"SELECT memory, content FROM lamina_pack_originals WHERE memory {_AMONG}"  # noqa: S608
        blobs = dict(connection.execute(query, among).fetchall())
    found: list[tuple[int, PackMemory]] = []
    for key in keys:
        row = rows[key]
        content = text_of(blobs.get(key), row[2]) if with_content else ""
        found.append((key, memory_of(row, relations.get(key, ()), content)))
    return found


def get_memories(
    connection: sqlite3.Connection, tenant: str, ids: Sequence[str], *, with_content: bool
) -> list[tuple[int, PackMemory]]:
    """As `PackStore.get_memories`, each with its key."""
    query = f"SELECT key FROM lamina_pack_memories WHERE tenant = ? AND id {_AMONG} ORDER BY id"  # noqa: S608
    keys = [key for (key,) in connection.execute(query, (tenant, json.dumps(list(ids))))]
    return memories_of(connection, keys, with_content=with_content)


def find_memories(
    connection: sqlite3.Connection,
    query: PackMemoryQuery,
    *,
    order: PackOrder,
    limit: int | None,
    offset: int,
    with_content: bool,
) -> list[PackMemory]:
    """As `PackStore.find_memories`, with a query that passed `storable_memory_query`."""
    conditions, parameters = _conditions(query)
    text = f"SELECT m.key FROM {_JOINED} WHERE {conditions} ORDER BY {_ORDERS[order]} LIMIT ? OFFSET ?"  # noqa: S608
    rows = connection.execute(text, (*parameters, -1 if limit is None else limit, offset))
    found = memories_of(connection, [key for (key,) in rows], with_content=with_content)
    return [memory for _, memory in found]


def count_memories(connection: sqlite3.Connection, query: PackMemoryQuery) -> int:
    """As `PackStore.count_memories`."""
    conditions, parameters = _conditions(query)
    text = f"SELECT count(*) FROM {_JOINED} WHERE {conditions}"  # noqa: S608 - our own columns
    (count,) = connection.execute(text, parameters).fetchone()
    return int(count)


def statistics(connection: sqlite3.Connection, tenant: str, pack_id: str) -> PackMetadata:
    """As `PackStore.statistics`."""
    pack = (tenant, pack_id)
    query = (
        "SELECT count(*), min(confidence), avg(confidence), max(confidence), ifnull(sum(access_count), 0), "  # noqa: S608
        f"max(last_accessed) FROM {_COUNTED}"
    )
    count, least, mean, most, total, accessed = connection.execute(query, pack).fetchone()
    query = f"SELECT memory_type, count(*) FROM {_COUNTED} GROUP BY memory_type"  # noqa: S608 - our own columns
    types = dict(connection.execute(query, pack).fetchall())
    query = f"SELECT tier, count(*) FROM {_COUNTED} GROUP BY tier"  # noqa: S608 - our own columns
    tiers = dict(connection.execute(query, pack).fetchall())
    query = f"SELECT id FROM {_COUNTED} AND access_count > 0 ORDER BY access_count DESC, id LIMIT {MOST_USED}"  # noqa: S608
    used = [id for (id,) in connection.execute(query, pack)]
    with readable("pack", pack_id):
        return PackMetadata(
            count,
            {type: types[type] for type in sorted(map(MemoryType, types))},
            {tier: tiers[tier] for tier in sorted(map(Tier, tiers), key=list(Tier).index)},
            PackConfidence(least, None if mean is None else min(max(mean, least), most), most),
            PackUse(total, None if accessed is None else from_micros(accessed), used),
        )


def _conditions(query: PackMemoryQuery) -> tuple[str, list[Any]]:
    conditions = ["p.tenant = ?", f"p.id {_AMONG}", f"m.tier {_AMONG}", "NOT m.is_deleted", "m.confidence >= ?"]
    parameters: list[Any] = [query.tenant, json.dumps(query.pack_ids), json.dumps(sorted(query.tiers))]
    parameters.append(query.min_confidence)
    if not query.include_superseded:
        conditions.append("m.superseded_by IS NULL")
    if query.memory_type is not None:
        conditions.append("m.memory_type = ?")
        parameters.append(query.memory_type.value)
    if query.name is not None:
        conditions.append("m.name = ?")
        parameters.append(query.name)
    for tag in query.tags:
        conditions.append("? IN (SELECT value FROM json_each(m.tags))")
        parameters.append(tag)
    return " AND ".join(conditions), parameters
