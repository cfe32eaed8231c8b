"""Reading pack memories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, LiteralString

from lamina.databases.postgres.schema import Session
from lamina.domain.pack import MemoryType, PackConfidence, PackMemory, PackMetadata, PackOrder, PackUse, Relationship
from lamina.domain.pack_decay import Tier
from lamina.domain.pack_query import PackMemoryQuery
from lamina.state.postgres.pack_rows import memory_of, text_of
from lamina.state.postgres.rows import readable, utc

__all__ = ["MOST_USED", "count_memories", "find_memories", "get_memories", "memories_of", "statistics"]

MOST_USED: Final = 5
_ORDERS: Final[dict[PackOrder, LiteralString]] = {
    "oldest": "m.key",
    "last_accessed": "m.last_accessed DESC NULLS LAST, m.key DESC",
}
_COUNTED: Final[LiteralString] = (
    "{schema}.pack_memories WHERE {live}"
    " AND pack = (SELECT key FROM {schema}.pack_heads WHERE tenant = %(tenant)s AND id = %(id)s)"
)


def memories_of(session: Session, keys: Sequence[int], *, with_content: bool) -> list[tuple[int, PackMemory]]:
    """The memories of these keys, each with its key, in the order of the keys given."""
    among = (list(keys),)
    rows = {row[0]: row for row in session.execute("SELECT {memory} FROM {joined} WHERE m.key = ANY(%s)", among)}
    relations: dict[int, list[Relationship]] = {}
    query = (
        "SELECT r.source, r.type, t.id FROM {schema}.pack_relations AS r JOIN {schema}.pack_memories AS t"
        " ON t.key = r.target WHERE r.source = ANY(%s) ORDER BY r.source, r.position"
    )
    for source, type, target in session.execute(query, among):
        relations.setdefault(source, []).append(Relationship(type, target))
    blobs: dict[int, bytes] = {}
    if with_content:
        query = "SELECT memory, content FROM {schema}.pack_originals WHERE memory = ANY(%s)"
        blobs = dict(session.execute(query, among).fetchall())
    found: list[tuple[int, PackMemory]] = []
    for key in keys:
        row = rows[key]
        content = text_of(blobs.get(key), row[2]) if with_content else ""
        found.append((key, memory_of(row, relations.get(key, ()), content)))
    return found


def get_memories(
    session: Session, tenant: str, ids: Sequence[str], *, with_content: bool
) -> list[tuple[int, PackMemory]]:
    """As `PackStore.get_memories`, each with its key."""
    query = "SELECT key FROM {schema}.pack_memories WHERE tenant = %s AND id = ANY(%s) ORDER BY id"
    keys = [key for (key,) in session.execute(query, (tenant, list(ids)))]
    return memories_of(session, keys, with_content=with_content)


def find_memories(
    session: Session,
    query: PackMemoryQuery,
    *,
    order: PackOrder,
    limit: int | None,
    offset: int,
    with_content: bool,
) -> list[PackMemory]:
    """As `PackStore.find_memories`, with a query that passed `storable_memory_query`."""
    conditions, parameters = _conditions(query)
    text: LiteralString = "SELECT m.key FROM {joined} WHERE " + conditions  # noqa: S608 - literal texts only
    text += " ORDER BY " + _ORDERS[order] + " LIMIT %(limit)s OFFSET %(offset)s"
    rows = session.execute(text, parameters | {"limit": limit, "offset": offset})
    found = memories_of(session, [key for (key,) in rows], with_content=with_content)
    return [memory for _, memory in found]


def count_memories(session: Session, query: PackMemoryQuery) -> int:
    """As `PackStore.count_memories`."""
    conditions, parameters = _conditions(query)
    text: LiteralString = "SELECT count(*) FROM {joined} WHERE " + conditions  # noqa: S608 - as above
    (count,) = session.execute(text, parameters).fetchone() or (0,)
    return int(count)


def statistics(session: Session, tenant: str, pack_id: str) -> PackMetadata:
    """As `PackStore.statistics`."""
    pack = {"tenant": tenant, "id": pack_id}
    query: LiteralString = (
        "SELECT count(*), min(confidence), avg(confidence), max(confidence), coalesce(sum(access_count), 0),"  # noqa: S608
        " max(last_accessed) FROM " + _COUNTED
    )
    [(count, least, mean, most, total, accessed)] = session.execute(query, pack).fetchall()
    types = _counted(session, "memory_type", pack)
    tiers = _counted(session, "tier", pack)
    query = "SELECT id FROM " + _COUNTED + " AND access_count > 0 ORDER BY access_count DESC, id LIMIT %(most)s"  # noqa: S608
    used = [id for (id,) in session.execute(query, {**pack, "most": MOST_USED})]
    with readable("pack", pack_id):
        return PackMetadata(
            count,
            {type: types[type] for type in sorted(map(MemoryType, types))},
            {tier: tiers[tier] for tier in sorted(map(Tier, tiers), key=list(Tier).index)},
            PackConfidence(least, None if mean is None else min(max(mean, least), most), most),
            PackUse(int(total), None if accessed is None else utc(accessed), used),
        )


def _counted(session: Session, column: LiteralString, pack: dict[str, str]) -> dict[str, int]:
    rows = session.execute("SELECT " + column + ", count(*) FROM " + _COUNTED + " GROUP BY 1", pack)  # noqa: S608
    return dict(rows.fetchall())


def _conditions(query: PackMemoryQuery) -> tuple[LiteralString, dict[str, Any]]:
    text: LiteralString = (
        "p.tenant = %(tenant)s AND p.id = ANY(%(packs)s) AND m.tier = ANY(%(tiers)s) AND NOT m.is_deleted"
        " AND m.confidence >= %(confidence)s AND m.tags @> %(tags)s::text[]"
    )
    parameters: dict[str, Any] = {
        "tenant": query.tenant,
        "packs": list(query.pack_ids),
        "tiers": sorted(query.tiers),
        "confidence": query.min_confidence,
        "tags": list(query.tags),
    }
    if not query.include_superseded:
        text += " AND m.superseded_by IS NULL"
    if query.memory_type is not None:
        text += " AND m.memory_type = %(memory_type)s"
        parameters["memory_type"] = query.memory_type.value
    if query.name is not None:
        text += " AND m.name = %(name)s"
        parameters["name"] = query.name
    return text, parameters
