"""When memories are due next, and the walk over those that are, inside the transaction of one job."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime

from lamina.domain.instants import from_micros, to_micros
from lamina.domain.pack import Pack, PackMemory, PackStatus
from lamina.domain.pack_decay import Tier
from lamina.domain.pack_query import DuePlace
from lamina.state.sqlite.pack_reading import memories_of
from lamina.state.sqlite.pack_rows import MEMORY, PACK, memory_of, micros, pack_of

__all__ = ["due", "due_of", "mark_projected", "reckon_pack", "set_tier", "touch", "unprojected"]


def due_of(memory: PackMemory, pack: Pack) -> int | None:
    """When the memory of this pack is due next, as it is stored."""
    return None if pack.status is PackStatus.DELETED else micros(memory.due_at(pack.current_decay))


def reckon_pack(connection: sqlite3.Connection, key: int, pack: Pack) -> None:
    """Reckon anew when the memories of the pack are due."""
    query = (
        f"SELECT {MEMORY} FROM lamina_pack_memories AS m JOIN lamina_pack_heads AS p ON p.key = m.pack "  # noqa: S608
        "WHERE m.pack = ?"
    )
    rows = connection.execute(query, (key,)).fetchall()
    changed = [(due_of(memory_of(row, (), ""), pack), row[0]) for row in rows]
    connection.executemany("UPDATE lamina_pack_memories SET due_at = ? WHERE key = ?", changed)


def touch(connection: sqlite3.Connection, tenant: str, ids: Sequence[str], now: datetime) -> dict[str, Tier]:
    """As `PackStore.touch`, of ids that are distinct."""
    query = (
        f"SELECT {MEMORY}, {PACK} FROM lamina_pack_memories AS m JOIN lamina_pack_heads AS p ON p.key = m.pack "  # noqa: S608
        "WHERE m.tenant = ? AND m.id IN (SELECT value FROM json_each(?)) AND m.tier <> 'archived' AND NOT m.is_deleted"
    )
    update = (
        "UPDATE lamina_pack_memories SET access_count = access_count + 1, last_accessed = ?, tier = 'full', "
        "tier_since = ?, revision = revision + ?, due_at = ? WHERE key = ?"
    )
    found: dict[str, Tier] = {}
    width = MEMORY.count(",") + 1
    for row in connection.execute(query, (tenant, json.dumps(list(ids)))).fetchall():
        memory, pack = memory_of(row[:width], (), ""), pack_of(row[width:])
        found[memory.id] = memory.tier
        is_full = memory.tier is Tier.FULL
        read = memory.replace(
            tier=Tier.FULL,
            tier_since=memory.tier_since if is_full else now,
            last_accessed=max(now, memory.last_accessed or now),
        )
        values = (micros(read.last_accessed), micros(read.tier_since), 0 if is_full else 1, due_of(read, pack), row[0])
        connection.execute(update, values)
    return found


def due(
    connection: sqlite3.Connection,
    tenant: str,
    *,
    until: datetime,
    limit: int,
    after: DuePlace | None,
    pack_id: str | None,
) -> list[tuple[datetime, PackMemory]]:
    """As `PackStore.due`."""
    tail = "m.tenant = ? AND m.due_at <= ?"
    parameters = [tenant, to_micros(until)]
    if after is not None:
        tail += " AND (m.due_at, m.id) > (?, ?)"
        parameters += [to_micros(after.due_at), after.id]
    if pack_id is not None:
        tail += " AND m.pack = (SELECT key FROM lamina_pack_heads WHERE tenant = ? AND id = ?)"
        parameters += [tenant, pack_id]
    query = f"SELECT m.key, m.due_at FROM lamina_pack_memories AS m WHERE {tail} ORDER BY m.due_at, m.id LIMIT ?"  # noqa: S608
    places = connection.execute(query, (*parameters, limit)).fetchall()
    found = dict(memories_of(connection, [key for key, _ in places], with_content=False))
    return [(from_micros(instant), found[key]) for key, instant in places]


def set_tier(
    connection: sqlite3.Connection,
    tenant: str,
    id: str,
    tier: Tier,
    *,
    expected_revision: int,
    now: datetime,
    only_if_due: bool,
) -> bool:
    """As `PackStore.set_tier`."""
    query = (
        f"SELECT {MEMORY}, m.due_at, {PACK} FROM lamina_pack_memories AS m "  # noqa: S608 - our own columns
        "JOIN lamina_pack_heads AS p ON p.key = m.pack WHERE m.tenant = ? AND m.id = ? AND m.revision = ?"
    )
    row = connection.execute(query, (tenant, id, expected_revision)).fetchone()
    if row is None:
        return False
    width = MEMORY.count(",") + 1
    memory, instant, pack = memory_of(row[:width], (), ""), row[width], pack_of(row[width + 1 :])
    if only_if_due and (instant is None or instant > to_micros(now)):
        return False
    changed = memory.replace(tier=tier, tier_since=memory.tier_since if tier is memory.tier else now)
    update = (
        "UPDATE lamina_pack_memories SET tier = ?, tier_since = ?, revision = revision + 1, due_at = ? WHERE key = ?"
    )
    connection.execute(update, (tier.value, micros(changed.tier_since), due_of(changed, pack), row[0]))
    return True


def unprojected(connection: sqlite3.Connection, tenant: str, limit: int) -> list[PackMemory]:
    """As `PackStore.unprojected`."""
    query = "SELECT key FROM lamina_pack_memories WHERE tenant = ? AND projected < revision ORDER BY id LIMIT ?"
    keys = [key for (key,) in connection.execute(query, (tenant, limit))]
    found = dict(memories_of(connection, keys, with_content=True))
    return [found[key] for key in keys]


def mark_projected(connection: sqlite3.Connection, tenant: str, revisions: dict[str, int]) -> None:
    """As `PackStore.mark_projected`."""
    update = "UPDATE lamina_pack_memories SET projected = max(projected, min(?, revision)) WHERE tenant = ? AND id = ?"
    connection.executemany(update, [(revision, tenant, id) for id, revision in revisions.items()])
