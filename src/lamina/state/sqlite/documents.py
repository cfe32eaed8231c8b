"""Heads of documents, inside the transaction of one job."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from lamina.domain.document import Document
from lamina.state.sqlite.rows import DOCUMENT, document_of, values_of_document

__all__ = ["delete_document", "find_documents", "get_documents", "save_document"]

_ASSIGNED: Final = ", ".join(f"{name.strip()} = ?" for name in DOCUMENT.split(",")[2:])


def save_document(connection: sqlite3.Connection, document: Document, expected_generation: int | None) -> bool:
    """As `StateStore.save_document`, with a head that passed `storable_document`."""
    values = values_of_document(document)
    if expected_generation is None:
        query = (
            f"INSERT INTO lamina_documents ({DOCUMENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "  # noqa: S608
            "ON CONFLICT (tenant, id) DO NOTHING"
        )
        return connection.execute(query, values).rowcount > 0
    query = f"UPDATE lamina_documents SET {_ASSIGNED} WHERE tenant = ? AND id = ? AND generation = ?"  # noqa: S608
    row = (*values[2:], document.tenant, document.id, expected_generation)
    return connection.execute(query, row).rowcount > 0


def get_documents(connection: sqlite3.Connection, tenant: str, ids: Sequence[str]) -> list[Document]:
    """As `StateStore.get_documents`."""
    query = (
        f"SELECT {DOCUMENT} FROM lamina_documents WHERE tenant = ? AND id IN (SELECT value FROM json_each(?)) "  # noqa: S608
        "ORDER BY id"
    )
    return [document_of(row) for row in connection.execute(query, (tenant, json.dumps(list(ids))))]


def find_documents(
    connection: sqlite3.Connection,
    tenant: str,
    *,
    source: str | None,
    owner: str | None,
    include_shared: bool,
    limit: int | None,
    offset: int,
    after: tuple[str, str] | None,
) -> list[Document]:
    """As `StateStore.find_documents`."""
    conditions: list[str] = ["tenant = ?"]
    parameters: list[Any] = [tenant]
    if source is not None:
        conditions.append("source = ?")
        parameters.append(source)
    if owner is not None:
        conditions.append("(owner = ? OR owner IS NULL)" if include_shared else "owner = ?")
        parameters.append(owner)
    elif not include_shared:
        conditions.append("owner IS NOT NULL")
    if after is not None:
        conditions.append("(source, id) > (?, ?)")
        parameters += after
    query = (
        f"SELECT {DOCUMENT} FROM lamina_documents WHERE {' AND '.join(conditions)} "  # noqa: S608
        "ORDER BY source, id LIMIT ? OFFSET ?"
    )
    row = (*parameters, -1 if limit is None else limit, offset)
    return [document_of(row) for row in connection.execute(query, row)]


def delete_document(connection: sqlite3.Connection, tenant: str, id: str, expected_generation: int | None) -> bool:
    """As `StateStore.delete_document`."""
    query = "DELETE FROM lamina_documents WHERE tenant = ? AND id = ? AND generation = ifnull(?, generation)"
    return connection.execute(query, (tenant, id, expected_generation)).rowcount > 0
