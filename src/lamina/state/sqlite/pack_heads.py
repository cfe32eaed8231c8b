"""Packs without their memories, inside the transaction of one job."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from lamina.domain.instants import to_micros
from lamina.domain.pack import Pack, PackFace, PackStatus
from lamina.domain.pack_query import PackQuery
from lamina.domain.storable_pack import check_pack_owner
from lamina.errors import PackExists
from lamina.state.sqlite.pack_due import reckon_pack
from lamina.state.sqlite.pack_rows import PACK, face_of, pack_of, values_of_pack, vector_bytes

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


def create_pack(connection: sqlite3.Connection, pack: Pack) -> None:
    """As `PackStore.create_pack`, with a pack that passed `storable_pack`."""
    query = "SELECT 1 FROM lamina_pack_heads WHERE tenant = ? AND id = ?"
    if connection.execute(query, (pack.tenant, pack.id)).fetchone():
        raise PackExists(pack.name)
    _check_free(connection, pack, owner=pack.owner)
    query = (
        "INSERT INTO lamina_pack_heads (tenant, id, owner, created_at, fingerprint, "
        "name, type, status, description, tags, metadata, decay, updated_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    )
    fingerprint = None if pack.embedding is None else pack.fingerprint
    row = (pack.tenant, pack.id, pack.owner, to_micros(pack.created_at), fingerprint, *values_of_pack(pack))
    key = connection.execute(query, row).lastrowid
    if pack.embedding is not None:
        connection.execute("INSERT INTO lamina_pack_vectors VALUES (?, ?)", (key, vector_bytes(pack)))


def get_packs(connection: sqlite3.Connection, tenant: str, ids: Sequence[str]) -> list[Pack]:
    """As `PackStore.get_packs`."""
    return [pack for _, pack in keyed_packs(connection, tenant, ids)]


def keyed_packs(connection: sqlite3.Connection, tenant: str, ids: Sequence[str]) -> list[tuple[int, Pack]]:
    """The packs with their keys, by id."""
    query = (
        f"SELECT {PACK} FROM lamina_pack_heads AS p WHERE p.tenant = ? "  # noqa: S608 - our own columns
        "AND p.id IN (SELECT value FROM json_each(?)) ORDER BY p.id"
    )
    return [(row[0], pack_of(row)) for row in connection.execute(query, (tenant, json.dumps(list(ids))))]


def find_pack(connection: sqlite3.Connection, tenant: str, name: str, owner: str | None) -> Pack | None:
    """As `PackStore.find_pack`."""
    query = (
        f"SELECT {PACK} FROM lamina_pack_heads AS p "  # noqa: S608 - our own columns
        f"WHERE p.tenant = ? AND p.name = ? AND p.owner IS ? AND p.status <> 'deleted'"
    )
    row = connection.execute(query, (tenant, name, owner)).fetchone()
    return None if row is None else pack_of(row)


def list_packs(connection: sqlite3.Connection, query: PackQuery, *, limit: int | None, offset: int) -> list[Pack]:
    """As `PackStore.list_packs`."""
    conditions, parameters = _conditions(query)
    text = (
        f"SELECT {PACK} FROM lamina_pack_heads AS p "  # noqa: S608 - our own columns
        f"WHERE {conditions} ORDER BY p.name, p.id LIMIT ? OFFSET ?"
    )
    return [pack_of(row) for row in connection.execute(text, (*parameters, -1 if limit is None else limit, offset))]


def pack_faces(connection: sqlite3.Connection, query: PackQuery, limit: int, after: str | None) -> list[PackFace]:
    """As `PackStore.pack_faces`."""
    conditions, parameters = _conditions(query)
    text = (
        "SELECT p.id, p.name, p.description, p.tags, v.vector, p.fingerprint FROM lamina_pack_heads AS p "  # noqa: S608
        f"LEFT JOIN lamina_pack_vectors AS v ON v.pack = p.key WHERE {conditions} AND p.id > ? ORDER BY p.id LIMIT ?"
    )
    return [face_of(row) for row in connection.execute(text, (*parameters, after or "", limit))]


def count_packs(connection: sqlite3.Connection, query: PackQuery) -> int:
    """As `PackStore.count_packs`."""
    conditions, parameters = _conditions(query)
    text = f"SELECT count(*) FROM lamina_pack_heads AS p WHERE {conditions}"  # noqa: S608 - our own columns
    (count,) = connection.execute(text, parameters).fetchone()
    return int(count)


def save_pack(connection: sqlite3.Connection, pack: Pack, expected_revision: int) -> bool:
    """As `PackStore.save_pack`, with a pack that passed `storable_pack`."""
    found = keyed_packs(connection, pack.tenant, [pack.id])
    if not found or found[0][1].revision != expected_revision:
        return False
    key, kept = found[0]
    check_pack_owner(pack.type, kept.owner)
    _check_free(connection, pack, owner=kept.owner)
    keeps_vector = pack.embedding is None and pack.fingerprint == kept.fingerprint
    fingerprint = pack.fingerprint if pack.embedding is not None or keeps_vector else None
    query = (
        "UPDATE lamina_pack_heads SET revision = revision + 1, fingerprint = ?, name = ?, type = ?, status = ?, "
        "description = ?, tags = ?, metadata = ?, decay = ?, updated_at = ? WHERE key = ?"
    )
    connection.execute(query, (fingerprint, *values_of_pack(pack), key))
    if not keeps_vector:
        connection.execute("DELETE FROM lamina_pack_vectors WHERE pack = ?", (key,))
    if pack.embedding is not None:
        connection.execute("INSERT INTO lamina_pack_vectors VALUES (?, ?)", (key, vector_bytes(pack)))
    was_deleted, is_deleted = (each.status is PackStatus.DELETED for each in (kept, pack))
    if pack.current_decay != kept.current_decay or was_deleted != is_deleted:
        reckon_pack(connection, key, pack)
    return True


def tenants(connection: sqlite3.Connection) -> list[str]:
    """As `PackStore.tenants`."""
    rows = connection.execute("SELECT DISTINCT tenant FROM lamina_pack_heads ORDER BY tenant")
    return [tenant for (tenant,) in rows]


def _check_free(connection: sqlite3.Connection, pack: Pack, *, owner: str | None) -> None:
    """Refuse the name of another pack that is not deleted."""
    if pack.status is PackStatus.DELETED:
        return
    other = find_pack(connection, pack.tenant, pack.name, owner)
    if other is not None and other.id != pack.id:
        raise PackExists(pack.name)


def _conditions(query: PackQuery) -> tuple[str, list[Any]]:
    conditions = ["p.tenant = ?", "p.status IN (SELECT value FROM json_each(?))"]
    parameters: list[Any] = [query.tenant, json.dumps(sorted(query.statuses))]
    if not query.any_owner:
        conditions.append("(p.owner IS NULL OR p.owner = ?)")
        parameters.append(query.owner)
    if query.type is not None:
        conditions.append("p.type = ?")
        parameters.append(query.type.value)
    if query.tag is not None:
        conditions.append("? IN (SELECT value FROM json_each(p.tags))")
        parameters.append(query.tag)
    return " AND ".join(conditions), parameters
