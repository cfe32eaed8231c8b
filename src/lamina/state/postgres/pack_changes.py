"""Adding, changing, superseding and removing pack memories, by the only one who changes packs of the tenant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, LiteralString

from lamina.databases.postgres.schema import Session
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
from lamina.state.postgres.pack_due import due_of
from lamina.state.postgres.pack_heads import keyed_packs
from lamina.state.postgres.pack_reading import get_memories
from lamina.state.postgres.pack_rows import compressed, values_of_memory

__all__ = ["add_memories", "delete_memory", "purge_pack", "save_memory", "supersede"]

_INSERT: Final[LiteralString] = (
    "INSERT INTO {schema}.pack_memories (tenant, id, pack, created_at, superseded_by, due_at, {changed})"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING key"
)
_UPDATE: Final[LiteralString] = (
    "UPDATE {schema}.pack_memories SET ({changed}, due_at, revision) = (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s,"
    " %s, %s, %s, %s, revision + 1) WHERE key = %s"
)
_RELATED: Final[LiteralString] = (
    'WITH RECURSIVE above (id) AS (SELECT unnest(%(ids)s::text[]) COLLATE "C" UNION SELECT m.superseded_by FROM above'
    " JOIN {schema}.pack_memories AS m ON m.tenant = %(tenant)s AND m.id = above.id"
    " WHERE m.superseded_by IS NOT NULL) SELECT m.id, p.owner, m.superseded_by, m.is_deleted FROM above"
    " JOIN {joined} ON m.tenant = %(tenant)s AND m.id = above.id"
)


def add_memories(session: Session, tenant: str, given: Sequence[PackMemory], now: datetime) -> None:
    """As `PackStore.add_memories`, with memories that passed `storable_pack_memories`."""
    packs = dict(_open_packs(session, tenant, given))
    ids = [each.id for each in given]
    query = "SELECT id FROM {schema}.pack_memories WHERE tenant = %s AND id = ANY(%s)"
    taken = [id for (id,) in session.execute(query, (tenant, ids))]
    taken += [id for id, times in Counter(ids).items() if times > 1]
    if taken:
        raise Conflict(f"The memory {taken[0]!r}", "is there already", "Give another id, or save that one.")
    memories, links = plan_addition(
        given,
        {id: pack.owner for id, (_, pack) in packs.items()},
        kept=_related(session, tenant, concerned(given)),
        holders=_holders(session, packs, given),
    )
    new = set(ids)
    _mark_superseded(session, tenant, [link for link in links if link[0] not in new], now)
    keys = [_insert(session, memory, *packs[memory.pack_id], now=now) for memory in memories]
    insert = "INSERT INTO {schema}.pack_originals (memory, tenant, content) VALUES (%s, %s, %s)"
    originals = [(key, tenant, compressed(memory.content)) for key, memory in zip(keys, memories, strict=True)]
    session.execute_many(insert, originals)
    for key, memory in zip(keys, memories, strict=True):
        _relate(session, tenant, key, memory.relationships)
    _mark_superseding(session, tenant, [link for link in links if link[1] not in new], now)
    _note_change(session, [key for key, _ in packs.values()], now)


def _insert(session: Session, memory: PackMemory, pack_key: int, pack: Pack, *, now: datetime) -> int:
    fresh = memory.replace(last_accessed=None, tier=Tier.FULL, tier_since=now, is_deleted=False)
    head = (memory.tenant, memory.id, pack_key, memory.created_at, memory.superseded_by, due_of(fresh, pack))
    [(key,)] = session.execute(_INSERT, (*head, *values_of_memory(fresh))).fetchall()
    return int(key)


def save_memory(session: Session, memory: PackMemory, expected_revision: int, now: datetime) -> bool:
    """As `PackStore.save_memory`, with a memory that passed `storable_pack_memory`."""
    tenant = memory.tenant
    found = get_memories(session, tenant, [memory.id], with_content=False)
    if not found or found[0][1].revision != expected_revision:
        return False
    key, kept = found[0]
    pack_key, pack = keyed_packs(session, tenant, [kept.pack_id])[0]
    links, revived = plan_change(kept, memory, pack.owner, kept=_related(session, tenant, concerned([memory])))
    changed = memory.replace(
        created_at=kept.created_at,
        last_accessed=max((each for each in (kept.last_accessed, memory.last_accessed) if each), default=None),
        tier_since=kept.tier_since if memory.tier is kept.tier else now,
    )
    if changed.name is not None and kept.superseded_by is None and not changed.is_deleted:
        _check_free(session, pack_key, changed.name, key)
    _mark_superseded(session, tenant, links, now)
    session.execute(_UPDATE, (*values_of_memory(changed), due_of(changed, pack), key))
    if memory.content:
        update = "UPDATE {schema}.pack_originals SET content = %s WHERE memory = %s"
        session.execute(update, (compressed(memory.content), key))
    session.execute("DELETE FROM {schema}.pack_relations WHERE source = %s", (key,))
    _relate(session, tenant, key, memory.relationships)
    _revive(session, _keys(session, tenant, revived))
    _note_change(session, [pack_key], now)
    return True


def supersede(session: Session, tenant: str, old_id: str, by: str, *, now: datetime) -> None:
    """As `PackStore.supersede`."""
    known = _related(session, tenant, [old_id, by])
    for id in (old_id, by):
        if id not in known or known[id].is_deleted:
            raise MemoryNotFound(id)
    if not plan_supersession(old_id, by, kept=known):
        return
    _mark_superseded(session, tenant, [(old_id, by)], now)
    _mark_superseding(session, tenant, [(old_id, by)], now)
    query = "SELECT DISTINCT pack FROM {schema}.pack_memories WHERE tenant = %s AND id = ANY(%s)"
    _note_change(session, [pack for (pack,) in session.execute(query, (tenant, [old_id, by]))], now)


def delete_memory(session: Session, tenant: str, id: str) -> bool:
    """As `PackStore.delete_memory`."""
    if not _keys(session, tenant, [id]):
        return False
    _remove(session, tenant, [id])
    return True


def purge_pack(session: Session, tenant: str, id: str) -> bool:
    """As `PackStore.purge_pack`."""
    found = keyed_packs(session, tenant, [id])
    if not found:
        return False
    key, _ = found[0]
    rows = session.execute("SELECT id FROM {schema}.pack_memories WHERE pack = %s", (key,)).fetchall()
    _remove(session, tenant, [memory for (memory,) in rows])
    session.execute("DELETE FROM {schema}.pack_heads WHERE key = %s", (key,))
    return True


def _remove(session: Session, tenant: str, ids: Sequence[str]) -> None:
    """Remove memories, and what belongs to them; what they superseded goes to what superseded them, or lives again."""
    keys = _keys(session, tenant, ids)
    query = (
        "SELECT t.id, t.superseded_by FROM {schema}.pack_relations AS r JOIN {schema}.pack_memories AS t"
        " ON t.key = r.target WHERE r.type = %s AND r.source = ANY(%s) AND NOT r.target = ANY(%s)"
    )
    orphans = session.execute(query, (SUPERSEDES, keys, keys)).fetchall()
    above = _related(session, tenant, [by for _, by in orphans])
    session.execute("DELETE FROM {schema}.pack_memories WHERE key = ANY(%s)", (keys,))
    gone = set(ids)
    heirs = [(old, heir(by, gone, kept=above)) for old, by in orphans]
    links = [(old, by) for old, by in heirs if by is not None]
    _mark_superseded(session, tenant, links, None)
    _mark_superseding(session, tenant, links, None)
    _revive(session, _keys(session, tenant, [old for old, by in heirs if by is None]))


def _revive(session: Session, keys: Iterable[int]) -> None:
    """Let them be live again, the newest first, each without its name if that is another's by now."""
    update = (
        "UPDATE {schema}.pack_memories AS m SET superseded_by = NULL, revision = revision + 1, name = CASE"
        " WHEN NOT m.is_deleted AND EXISTS (SELECT FROM {schema}.pack_memories AS o WHERE o.pack = m.pack"
        " AND o.name = m.name AND o.key <> m.key AND o.superseded_by IS NULL AND NOT o.is_deleted)"
        " THEN NULL ELSE name END WHERE m.key = %s"
    )
    for key in sorted(keys, reverse=True):
        session.execute(update, (key,))


def _open_packs(
    session: Session, tenant: str, memories: Sequence[PackMemory]
) -> Iterable[tuple[str, tuple[int, Pack]]]:
    """The packs of these memories with their keys, by id; each must take new ones."""
    ids = list(dict.fromkeys(each.pack_id for each in memories))
    found = {pack.id: (key, pack) for key, pack in keyed_packs(session, tenant, ids)}
    for id in ids:
        if id not in found or found[id][1].status is PackStatus.DELETED:
            raise PackNotFound(id)
        if found[id][1].status is PackStatus.ARCHIVED:
            raise Conflict(f"The pack {found[id][1].name!r}", "is archived", "Make it active first, or use another.")
        yield id, found[id]


def _related(session: Session, tenant: str, ids: Sequence[str]) -> dict[str, RelatedMemory]:
    """These memories and all that are above them."""
    rows = session.execute(_RELATED, {"tenant": tenant, "ids": list(ids)})
    return {id: RelatedMemory(id, owner, by, is_deleted) for id, owner, by, is_deleted in rows}


def _holders(
    session: Session, packs: dict[str, tuple[int, Pack]], memories: Sequence[PackMemory]
) -> dict[NameHolder, str]:
    """The live memories that have a name which one of these is to have."""
    names = list({each.name for each in memories if each.name is not None})
    ids = {key: id for id, (key, _) in packs.items()}
    query = "SELECT pack, name, id FROM {schema}.pack_memories WHERE pack = ANY(%s) AND name = ANY(%s) AND {live}"
    return {(ids[pack], name): id for pack, name, id in session.execute(query, (list(ids), names))}


def _check_free(session: Session, pack: int, name: str, key: int) -> None:
    query = "SELECT id FROM {schema}.pack_memories WHERE pack = %s AND name = %s AND key <> %s AND {live}"
    row = session.execute(query, (pack, name, key)).fetchone()
    if row is not None:
        problem = f"is that of the memory {row[0]!r} of its pack"
        raise Conflict(f"The name {name!r}", problem, "Choose another name, or supersede that memory.")


def _mark_superseded(session: Session, tenant: str, links: Iterable[Link], now: datetime | None) -> None:
    update = (
        "UPDATE {schema}.pack_memories SET superseded_by = %s, updated_at = coalesce(%s, updated_at),"
        " revision = revision + 1 WHERE tenant = %s AND id = %s"
    )
    session.execute_many(update, [(by, now, tenant, old) for old, by in links])


def _mark_superseding(session: Session, tenant: str, links: Iterable[Link], now: datetime | None) -> None:
    update = (
        "UPDATE {schema}.pack_memories SET updated_at = coalesce(%s, updated_at), revision = revision + 1"
        " WHERE tenant = %s AND id = %s RETURNING key"
    )
    for old, by in links:
        for (key,) in session.execute(update, (now, tenant, by)).fetchall():
            _relate(session, tenant, key, [Relationship(SUPERSEDES, old)])


def _relate(session: Session, tenant: str, source: int, relationships: Sequence[Relationship]) -> None:
    """Add relationships of one memory behind those that it has."""
    insert = (
        "INSERT INTO {schema}.pack_relations (source, position, tenant, type, target) SELECT %s,"
        " (SELECT coalesce(max(position), 0) + 1 FROM {schema}.pack_relations WHERE source = %s), tenant, %s, key"
        " FROM {schema}.pack_memories WHERE tenant = %s AND id = %s"
    )
    rows = [(source, source, each.type, tenant, each.target_id) for each in relationships]
    session.execute_many(insert, rows)


def _keys(session: Session, tenant: str, ids: Sequence[str]) -> list[int]:
    query = "SELECT key FROM {schema}.pack_memories WHERE tenant = %s AND id = ANY(%s)"
    return [key for (key,) in session.execute(query, (tenant, list(ids)))]


def _note_change(session: Session, packs: Sequence[int], now: datetime) -> None:
    """A change of a pack's memories is one of the pack's `updated_at`, not of its revision."""
    session.execute("UPDATE {schema}.pack_heads SET updated_at = %s WHERE key = ANY(%s)", (now, list(packs)))
