"""Packs without their memories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from lamina.databases.postgres.schema import Session
from lamina.domain.pack import Pack, PackFace, PackStatus
from lamina.domain.pack_query import PackQuery
from lamina.domain.storable_pack import check_pack_owner
from lamina.errors import PackExists
from lamina.state.postgres.pack_due import reckon_pack
from lamina.state.postgres.pack_rows import face_of, pack_of, values_of_pack, vector_bytes

__all__ = [
    "count_packs",
    "create_pack",
    "find_pack",
    "get_packs",
    "keyed_packs",
    "list_packs",
    "pack_faces",
    "save_pack",
    "tenants",
]


def create_pack(session: Session, pack: Pack) -> None:
    """As `PackStore.create_pack`, with a pack that passed `storable_pack`."""
    if keyed_packs(session, pack.tenant, [pack.id]):
        raise PackExists(pack.name)
    _check_free(session, pack, owner=pack.owner)
    insert = (
        "INSERT INTO {schema}.pack_heads (tenant, id, owner, created_at, fingerprint, name, type, status,"
        " description, tags, metadata, decay, updated_at)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING key"
    )
    fingerprint = None if pack.embedding is None else pack.fingerprint
    row = (pack.tenant, pack.id, pack.owner, pack.created_at, fingerprint, *values_of_pack(pack))
    for (key,) in session.execute(insert, row).fetchall():
        _keep_vector(session, key, pack)


def get_packs(session: Session, tenant: str, ids: Sequence[str]) -> list[Pack]:
    """As `PackStore.get_packs`."""
    return [pack for _, pack in keyed_packs(session, tenant, ids)]


def keyed_packs(session: Session, tenant: str, ids: Sequence[str]) -> list[tuple[int, Pack]]:
    """The packs with their keys, by id."""
    query = "SELECT {pack} FROM {schema}.pack_heads AS p WHERE p.tenant = %s AND p.id = ANY(%s) ORDER BY p.id"
    return [(row[0], pack_of(row)) for row in session.execute(query, (tenant, list(ids)))]


def find_pack(session: Session, tenant: str, name: str, owner: str | None) -> Pack | None:
    """As `PackStore.find_pack`."""
    query: LiteralString = (
        "SELECT {pack} FROM {schema}.pack_heads AS p WHERE p.tenant = %(tenant)s AND p.name = %(name)s"
        " AND p.status <> 'deleted'"
    )
    query += " AND p.owner IS NULL" if owner is None else " AND p.owner = %(owner)s"
    row = session.execute(query, {"tenant": tenant, "name": name, "owner": owner}).fetchone()
    return None if row is None else pack_of(row)


def list_packs(session: Session, query: PackQuery, *, limit: int | None, offset: int) -> list[Pack]:
    """As `PackStore.list_packs`."""
    conditions, parameters = _conditions(query)
    text: LiteralString = "SELECT {pack} FROM {schema}.pack_heads AS p"
    text += f" WHERE {conditions} ORDER BY p.name, p.id LIMIT %(limit)s OFFSET %(offset)s"
    return [pack_of(row) for row in session.execute(text, parameters | {"limit": limit, "offset": offset})]


def pack_faces(session: Session, query: PackQuery, limit: int, after: str | None) -> list[PackFace]:
    """As `PackStore.pack_faces`."""
    conditions, parameters = _conditions(query)
    text: LiteralString = (
        "SELECT p.id, p.name, p.description, p.tags, v.vector, p.fingerprint FROM {schema}.pack_heads AS p"
        " LEFT JOIN {schema}.pack_vectors AS v ON v.pack = p.key"
    )
    text += f" WHERE {conditions} AND p.id > %(after)s ORDER BY p.id LIMIT %(limit)s"
    return [face_of(row) for row in session.execute(text, parameters | {"limit": limit, "after": after or ""})]


def count_packs(session: Session, query: PackQuery) -> int:
    """As `PackStore.count_packs`."""
    conditions, parameters = _conditions(query)
    (count,) = session.execute(
        f"SELECT count(*) FROM {{schema}}.pack_heads AS p WHERE {conditions}",  # noqa: S608 - literal texts only
        parameters,
    ).fetchone() or (0,)
    return int(count)


def save_pack(session: Session, pack: Pack, expected_revision: int) -> bool:
    """As `PackStore.save_pack`, with a pack that passed `storable_pack`."""
    found = keyed_packs(session, pack.tenant, [pack.id])
    if not found or found[0][1].revision != expected_revision:
        return False
    key, kept = found[0]
    check_pack_owner(pack.type, kept.owner)
    _check_free(session, pack, owner=kept.owner)
    keeps_vector = pack.embedding is None and pack.fingerprint == kept.fingerprint
    fingerprint = pack.fingerprint if pack.embedding is not None or keeps_vector else None
    update = (
        "UPDATE {schema}.pack_heads SET revision = revision + 1, fingerprint = %s, name = %s, type = %s, status = %s,"
        " description = %s, tags = %s, metadata = %s, decay = %s, updated_at = %s WHERE key = %s"
    )
    session.execute(update, (fingerprint, *values_of_pack(pack), key))
    if not keeps_vector:
        session.execute("DELETE FROM {schema}.pack_vectors WHERE pack = %s", (key,))
    _keep_vector(session, key, pack)
    was_deleted, is_deleted = (each.status is PackStatus.DELETED for each in (kept, pack))
    if pack.current_decay != kept.current_decay or was_deleted != is_deleted:
        reckon_pack(session, key, pack)
    return True


def tenants(session: Session) -> list[str]:
    """As `PackStore.tenants`, in a transaction that is for all of them."""
    rows = session.execute("SELECT DISTINCT tenant FROM {schema}.pack_heads ORDER BY tenant")
    return [tenant for (tenant,) in rows]


def _keep_vector(session: Session, key: int, pack: Pack) -> None:
    if pack.embedding is not None:
        insert = "INSERT INTO {schema}.pack_vectors (pack, tenant, vector) VALUES (%s, %s, %s)"
        session.execute(insert, (key, pack.tenant, vector_bytes(pack)))


def _check_free(session: Session, pack: Pack, *, owner: str | None) -> None:
    """Refuse the name of another pack that is not deleted."""
    if pack.status is PackStatus.DELETED:
        return
    other = find_pack(session, pack.tenant, pack.name, owner)
    if other is not None and other.id != pack.id:
        raise PackExists(pack.name)


def _conditions(query: PackQuery) -> tuple[LiteralString, dict[str, Any]]:
    text: LiteralString = "p.tenant = %(tenant)s AND p.status = ANY(%(statuses)s)"
    parameters: dict[str, Any] = {"tenant": query.tenant, "statuses": sorted(query.statuses), "owner": query.owner}
    if not query.any_owner:
        text += " AND (p.owner IS NULL OR p.owner = %(owner)s)"
    if query.type is not None:
        text += " AND p.type = %(type)s"
        parameters["type"] = query.type.value
    if query.tag is not None:
        text += " AND %(tag)s = ANY(p.tags)"
        parameters["tag"] = query.tag
    return text, parameters
