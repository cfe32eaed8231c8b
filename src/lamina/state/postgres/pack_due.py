"""When memories are due next, the walk over those that are, and what is read and projected of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString

from lamina.databases.postgres.schema import Session
from lamina.domain.pack import Pack, PackMemory, PackStatus
from lamina.domain.pack_decay import Tier
from lamina.domain.pack_query import DuePlace
from lamina.state.postgres.pack_reading import memories_of
from lamina.state.postgres.pack_rows import MEMORY_WIDTH, memory_of, pack_of
from lamina.state.postgres.rows import utc

__all__ = ["due", "due_of", "mark_projected", "reckon_pack", "set_tier", "touch", "unprojected"]


def due_of(memory: PackMemory, pack: Pack) -> datetime | None:
    """When the memory of this pack is due next, as it is stored."""
    return None if pack.status is PackStatus.DELETED else memory.due_at(pack.current_decay)


def reckon_pack(session: Session, key: int, pack: Pack) -> None:
    """Reckon anew when the memories of the pack are due."""
    rows = session.execute("SELECT {memory} FROM {joined} WHERE m.pack = %s", (key,)).fetchall()
    changed = [(due_of(memory_of(row), pack), row[0]) for row in rows]
    session.execute_many("UPDATE {schema}.pack_memories SET due_at = %s WHERE key = %s", changed)


def touch(session: Session, tenant: str, ids: Sequence[str], now: datetime) -> dict[str, Tier]:
    """As `PackStore.touch`, of ids that are distinct."""
    query = (
        "SELECT {memory}, {pack} FROM {joined} WHERE m.tenant = %s AND m.id = ANY(%s)"
        " AND m.tier <> 'archived' AND NOT m.is_deleted ORDER BY m.key FOR NO KEY UPDATE OF m"
    )
    update = (
        "UPDATE {schema}.pack_memories SET access_count = access_count + 1, last_accessed = %s, tier = 'full',"
        " tier_since = %s, revision = revision + %s, due_at = %s WHERE key = %s"
    )
    found: dict[str, Tier] = {}
    changes: list[tuple[object, ...]] = []
    for row in session.execute(query, (tenant, list(ids))).fetchall():
        memory, pack = memory_of(row[:MEMORY_WIDTH]), pack_of(row[MEMORY_WIDTH:])
        found[memory.id] = memory.tier
        is_full = memory.tier is Tier.FULL
        read = memory.replace(
            tier=Tier.FULL,
            tier_since=memory.tier_since if is_full else now,
            last_accessed=max(now, memory.last_accessed or now),
        )
        changes.append((read.last_accessed, read.tier_since, 0 if is_full else 1, due_of(read, pack), row[0]))
    session.execute_many(update, changes)
    return found


def due(
    session: Session,
    tenant: str,
    *,
    until: datetime,
    limit: int,
    after: DuePlace | None,
    pack_id: str | None,
) -> list[tuple[datetime, PackMemory]]:
    """As `PackStore.due`."""
    query: LiteralString = "SELECT key, due_at FROM {schema}.pack_memories WHERE tenant = %(tenant)s"
    query += " AND due_at <= %(until)s"
    if after is not None:
        query += " AND (due_at, id) > (%(due_at)s, %(id)s)"
    if pack_id is not None:
        query += " AND pack = (SELECT key FROM {schema}.pack_heads WHERE tenant = %(tenant)s AND id = %(pack_id)s)"
    parameters = {
        "tenant": tenant,
        "until": until,
        "limit": limit,
        "pack_id": pack_id,
        "due_at": None if after is None else after.due_at,
        "id": None if after is None else after.id,
    }
    places = session.execute(query + " ORDER BY due_at, id LIMIT %(limit)s", parameters).fetchall()
    found = dict(memories_of(session, [key for key, _ in places], with_content=False))
    return [(utc(instant), found[key]) for key, instant in places]


def set_tier(
    session: Session,
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
        "SELECT {memory}, m.due_at, {pack} FROM {joined} WHERE m.tenant = %s AND m.id = %s AND m.revision = %s"
        " FOR NO KEY UPDATE OF m"
    )
    row = session.execute(query, (tenant, id, expected_revision)).fetchone()
    if row is None:
        return False
    memory, instant, pack = memory_of(row[:MEMORY_WIDTH]), row[MEMORY_WIDTH], pack_of(row[MEMORY_WIDTH + 1 :])
    if only_if_due and (instant is None or instant > now):
        return False
    changed = memory.replace(tier=tier, tier_since=memory.tier_since if tier is memory.tier else now)
    update = (
        "UPDATE {schema}.pack_memories SET tier = %s, tier_since = %s, revision = revision + 1, due_at = %s"
        " WHERE key = %s"
    )
    session.execute(update, (tier.value, changed.tier_since, due_of(changed, pack), row[0]))
    return True


def unprojected(session: Session, tenant: str, limit: int) -> list[PackMemory]:
    """As `PackStore.unprojected`."""
    query = "SELECT key FROM {schema}.pack_memories WHERE tenant = %s AND projected < revision ORDER BY id LIMIT %s"
    keys = [key for (key,) in session.execute(query, (tenant, limit))]
    found = dict(memories_of(session, keys, with_content=True))
    return [found[key] for key in keys]


def mark_projected(session: Session, tenant: str, revisions: dict[str, int]) -> None:
    """As `PackStore.mark_projected`."""
    lock = (
        "SELECT key, id FROM {schema}.pack_memories WHERE tenant = %s AND id = ANY(%s) ORDER BY key FOR NO KEY UPDATE"
    )
    keys = session.execute(lock, (tenant, list(revisions))).fetchall()
    update = "UPDATE {schema}.pack_memories SET projected = greatest(projected, least(%s, revision)) WHERE key = %s"
    session.execute_many(update, [(revisions[id], key) for key, id in keys])
