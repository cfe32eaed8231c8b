"""Adding, changing, superseding and removing pack memories, inside the transaction of one job."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from lamina.domain.instants import to_micros
from lamina.domain.pack import SUPERSEDES, Pack, PackMemory, PackStatus, Relationship
from lamina.domain.pack_decay import Tier
from lamina.domain.pack_relations import (
    Link,
    NameHolder,
    RelatedMemory,
    concerned,
    heir,
    plan_addition,
    plan_change,
    plan_supersession,
)
from lamina.errors import Conflict, MemoryNotFound, PackNotFound
from lamina.state.sqlite.pack_due import due_of
from lamina.state.sqlite.pack_heads import keyed_packs
from lamina.state.sqlite.pack_reading import get_memories
from lamina.state.sqlite.pack_rows import CHANGED, compressed, micros, values_of_memory

__all__ = ["add_memories", "delete_memory", "purge_pack", "save_memory", "supersede"]

_LIVE = "superseded_by IS NULL AND NOT is_deleted"

_BELONGINGS: Final = (("relations", "source"), ("relations", "target"), ("originals", "memory"), ("memories", "key"))
"""The tables that a memory is in, and the columns with its key; itself last."""

_ABOVE: Final = """
    WITH RECURSIVE above (id) AS (
        SELECT value FROM json_each(?2)
        UNION SELECT m.superseded_by FROM above JOIN lamina_pack_memories AS m ON m.tenant = ?1 AND m.id = above.id
        WHERE m.superseded_by IS NOT NULL
    )
"""
"""These ids, and those of what is above them."""


def add_memories(connection: sqlite3.Connection, tenant: str, given: Sequence[PackMemory], now: datetime) -> None:
    """As `PackStore.add_memories`, with memories that passed `storable_pack_memories`."""
    packs = dict(_open_packs(connection, tenant, given))
    ids = [each.id for each in given]
    query = "SELECT id FROM lamina_pack_memories WHERE tenant = ? AND id IN (SELECT value FROM json_each(?))"
    taken = [id for (id,) in connection.execute(query, (tenant, json.dumps(ids)))]
    taken += [id for id, times in Counter(ids).items() if times > 1]
    if taken:
        raise Conflict(f"The memory {taken[0]!r}", "is there already", "Give another id, or save that one.")
    memories, links = plan_addition(
        given,
        {id: pack.owner for id, (_, pack) in packs.items()},
        kept=_related(connection, tenant, concerned(given)),
        holders=_holders(connection, packs, given),
    )
    new = set(ids)
    _mark_superseded(connection, tenant, [link for link in links if link[0] not in new], now)
    insert = (
        f"INSERT INTO lamina_pack_memories (tenant, id, pack, created_at, superseded_by, due_at, {CHANGED}) "  # noqa: S608
        f"VALUES ({', '.join('?' * (7 + CHANGED.count(',')))})"
    )
    keys: dict[str, int] = {}
    for memory in memories:
        key, pack = packs[memory.pack_id]
        fresh = memory.replace(last_accessed=None, tier=Tier.FULL, tier_since=now, is_deleted=False)
        head = (tenant, memory.id, key, to_micros(memory.created_at), memory.superseded_by, due_of(fresh, pack))
        cursor = connection.execute(insert, (*head, *values_of_memory(fresh)))
        keys[memory.id] = cursor.lastrowid or 0
        connection.execute(
            "INSERT INTO lamina_pack_originals VALUES (?, ?)", (keys[memory.id], compressed(memory.content))
        )
    for memory in memories:
        _relate(connection, tenant, keys[memory.id], memory.relationships)
    _mark_superseding(connection, tenant, [link for link in links if link[1] not in new], now)
    _note_change(connection, [key for key, _ in packs.values()], now)


def save_memory(connection: sqlite3.Connection, memory: PackMemory, expected_revision: int, now: datetime) -> bool:
    """As `PackStore.save_memory`, with a memory that passed `storable_pack_memory`."""
    tenant = memory.tenant
    found = get_memories(connection, tenant, [memory.id], with_content=False)
    if not found or found[0][1].revision != expected_revision:
        return False
    key, kept = found[0]
    pack_key, pack = keyed_packs(connection, tenant, [kept.pack_id])[0]
    links, revived = plan_change(kept, memory, pack.owner, kept=_related(connection, tenant, concerned([memory])))
    changed = memory.replace(
        created_at=kept.created_at,
        last_accessed=max((each for each in (kept.last_accessed, memory.last_accessed) if each), default=None),
        tier_since=kept.tier_since if memory.tier is kept.tier else now,
    )
    if changed.name is not None and kept.superseded_by is None and not changed.is_deleted:
        _check_free(connection, pack_key, changed.name, key)
    _mark_superseded(connection, tenant, links, now)
    assigned = ", ".join(f"{name} = ?" for name in CHANGED.split(", "))
    update = f"UPDATE lamina_pack_memories SET {assigned}, due_at = ?, revision = revision + 1 WHERE key = ?"  # noqa: S608
    connection.execute(update, (*values_of_memory(changed), due_of(changed, pack), key))
    if memory.content:
        update = "UPDATE lamina_pack_originals SET content = ? WHERE memory = ?"
        connection.execute(update, (compressed(memory.content), key))
    connection.execute("DELETE FROM lamina_pack_relations WHERE source = ?", (key,))
    _relate(connection, tenant, key, memory.relationships)
    _revive(connection, _keys(connection, tenant, revived))
    _note_change(connection, [pack_key], now)
    return True


def supersede(connection: sqlite3.Connection, tenant: str, old_id: str, by: str, *, now: datetime) -> None:
    """As `PackStore.supersede`."""
    known = _related(connection, tenant, [old_id, by])
    for id in (old_id, by):
        if id not in known or known[id].is_deleted:
            raise MemoryNotFound(id)
    if not plan_supersession(old_id, by, kept=known):
        return
    _mark_superseded(connection, tenant, [(old_id, by)], now)
    _mark_superseding(connection, tenant, [(old_id, by)], now)
    query = "SELECT DISTINCT pack FROM lamina_pack_memories WHERE tenant = ? AND id IN (SELECT value FROM json_each(?))"
    rows = connection.execute(query, (tenant, json.dumps([old_id, by]))).fetchall()
    _note_change(connection, [pack for (pack,) in rows], now)


def delete_memory(connection: sqlite3.Connection, tenant: str, id: str) -> bool:
    """As `PackStore.delete_memory`."""
    if not _keys(connection, tenant, [id]):
        return False
    _remove(connection, tenant, [id])
    return True


def purge_pack(connection: sqlite3.Connection, tenant: str, id: str) -> bool:
    """As `PackStore.purge_pack`."""
    found = keyed_packs(connection, tenant, [id])
    if not found:
        return False
    key, _ = found[0]
    rows = connection.execute("SELECT id FROM lamina_pack_memories WHERE pack = ?", (key,)).fetchall()
    _remove(connection, tenant, [memory for (memory,) in rows])
    connection.execute("DELETE FROM lamina_pack_vectors WHERE pack = ?", (key,))
    connection.execute("DELETE FROM lamina_pack_heads WHERE key = ?", (key,))
    return True


def _remove(connection: sqlite3.Connection, tenant: str, ids: Sequence[str]) -> None:
    """Remove memories; what they superseded goes to what superseded them, or is live again."""
    among = json.dumps(_keys(connection, tenant, ids))
    query = (
        "SELECT t.id, t.superseded_by FROM lamina_pack_relations AS r "
        "JOIN lamina_pack_memories AS t ON t.key = r.target WHERE r.type = ? AND r.source IN "
        "(SELECT value FROM json_each(?)) AND r.target NOT IN (SELECT value FROM json_each(?))"
    )
    orphans = connection.execute(query, (SUPERSEDES, among, among)).fetchall()
    above = _related(connection, tenant, [by for _, by in orphans])
    for table, column in _BELONGINGS:
        delete = f"DELETE FROM lamina_pack_{table} WHERE {column} IN (SELECT value FROM json_each(?))"  # noqa: S608
        connection.execute(delete, (among,))
    gone = set(ids)
    heirs = [(old, heir(by, gone, kept=above)) for old, by in orphans]
    links = [(old, by) for old, by in heirs if by is not None]
    _mark_superseded(connection, tenant, links, None)
    _mark_superseding(connection, tenant, links, None)
    _revive(connection, _keys(connection, tenant, [old for old, by in heirs if by is None]))


def _revive(connection: sqlite3.Connection, keys: Iterable[int]) -> None:
    """Let them be live again, the newest first, each without its name if that is another's by now."""
    for key in sorted(keys, reverse=True):
        update = (
            "UPDATE lamina_pack_memories AS m SET superseded_by = NULL, revision = revision + 1, name = CASE "  # noqa: S608
            "WHEN NOT m.is_deleted AND EXISTS (SELECT 1 FROM lamina_pack_memories AS o WHERE o.pack = m.pack "
            f"AND o.name = m.name AND o.{_LIVE.replace('AND NOT ', 'AND NOT o.')} AND o.key <> m.key) "
            "THEN NULL ELSE name END WHERE m.key = ?"
        )
        connection.execute(update, (key,))


def _open_packs(
    connection: sqlite3.Connection, tenant: str, memories: Sequence[PackMemory]
) -> Iterable[tuple[str, tuple[int, Pack]]]:
    """The packs of these memories with their keys, by id; each must take new ones."""
    ids = list(dict.fromkeys(each.pack_id for each in memories))
    found = {pack.id: (key, pack) for key, pack in keyed_packs(connection, tenant, ids)}
    for id in ids:
        if id not in found or found[id][1].status is PackStatus.DELETED:
            raise PackNotFound(id)
        if found[id][1].status is PackStatus.ARCHIVED:
            raise Conflict(f"The pack {found[id][1].name!r}", "is archived", "Make it active first, or use another.")
        yield id, found[id]


def _related(connection: sqlite3.Connection, tenant: str, ids: Sequence[str]) -> dict[str, RelatedMemory]:
    """These memories and all that are above them."""
    query = (
        f"{_ABOVE} SELECT m.id, p.owner, m.superseded_by, m.is_deleted FROM above "  # noqa: S608 - our own text
        "JOIN lamina_pack_memories AS m ON m.tenant = ?1 AND m.id = above.id "
        "JOIN lamina_pack_heads AS p ON p.key = m.pack"
    )
    rows = connection.execute(query, (tenant, json.dumps(list(ids))))
    return {id: RelatedMemory(id, owner, by, bool(is_deleted)) for id, owner, by, is_deleted in rows}


def _holders(
    connection: sqlite3.Connection, packs: dict[str, tuple[int, Pack]], memories: Sequence[PackMemory]
) -> dict[NameHolder, str]:
    """The live memories that have a name which one of these is to have."""
    query = f"SELECT id FROM lamina_pack_memories WHERE pack = ? AND name = ? AND {_LIVE}"  # noqa: S608
    found: dict[NameHolder, str] = {}
    for memory in memories:
        if memory.name is not None:
            row = connection.execute(query, (packs[memory.pack_id][0], memory.name)).fetchone()
            if row is not None:
                found[memory.pack_id, memory.name] = row[0]
    return found


def _check_free(connection: sqlite3.Connection, pack: int, name: str, key: int) -> None:
    query = f"SELECT id FROM lamina_pack_memories WHERE pack = ? AND name = ? AND key <> ? AND {_LIVE}"  # noqa: S608
    row = connection.execute(query, (pack, name, key)).fetchone()
    if row is not None:
        problem = f"is that of the memory {row[0]!r} of its pack"
        raise Conflict(f"The name {name!r}", problem, "Choose another name, or supersede that memory.")


def _mark_superseded(connection: sqlite3.Connection, tenant: str, links: Iterable[Link], now: datetime | None) -> None:
    update = (
        "UPDATE lamina_pack_memories SET superseded_by = ?, updated_at = ifnull(?, updated_at), "
        "revision = revision + 1 WHERE tenant = ? AND id = ?"
    )
    connection.executemany(update, [(by, micros(now), tenant, old) for old, by in links])


def _mark_superseding(connection: sqlite3.Connection, tenant: str, links: Iterable[Link], now: datetime | None) -> None:
    update = (
        "UPDATE lamina_pack_memories SET updated_at = ifnull(?, updated_at), revision = revision + 1 "
        "WHERE tenant = ? AND id = ? RETURNING key"
    )
    for old, by in links:
        rows = connection.execute(update, (micros(now), tenant, by)).fetchall()
        for (key,) in rows:
            _relate(connection, tenant, key, [Relationship(SUPERSEDES, old)])


def _relate(connection: sqlite3.Connection, tenant: str, source: int, relationships: Sequence[Relationship]) -> None:
    """Add relationships of one memory behind those that it has."""
    insert = (
        "INSERT INTO lamina_pack_relations (source, position, type, target) SELECT ?1, "
        "(SELECT ifnull(max(position), 0) + 1 FROM lamina_pack_relations WHERE source = ?1), ?2, key "
        "FROM lamina_pack_memories WHERE tenant = ?3 AND id = ?4"
    )
    connection.executemany(insert, [(source, each.type, tenant, each.target_id) for each in relationships])


def _keys(connection: sqlite3.Connection, tenant: str, ids: Sequence[str]) -> list[int]:
    query = "SELECT key FROM lamina_pack_memories WHERE tenant = ? AND id IN (SELECT value FROM json_each(?))"
    return [key for (key,) in connection.execute(query, (tenant, json.dumps(list(ids))))]


def _note_change(connection: sqlite3.Connection, packs: Sequence[int], now: datetime) -> None:
    """A change of a pack's memories is one of the pack's `updated_at`, not of its revision."""
    update = "UPDATE lamina_pack_heads SET updated_at = ? WHERE key = ?"
    connection.executemany(update, [(to_micros(now), key) for key in packs])
