"""Heads of documents, replaced by compare and set of their generation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.databases.postgres.schema import Session
from lamina.domain.document import Document
from lamina.state.postgres.rows import document_from_row, json_text, read_rows
from lamina.state.postgres.threads import tenant_key

__all__ = ["delete", "find", "get_all", "save"]


def save(session: Session, document: Document, expected: int | None) -> bool:
    """Insert the head, or replace the one of the expected generation."""
    parameters: dict[str, Any] = {
        "tenant": document.tenant,
        "id": document.id,
        "source": document.source,
        "owner": document.owner,
        "ingested_at": document.ingested_at,
        "metadata": json_text(document.metadata),
        "digest": document.digest,
        "options": json_text(document.options),
        "chunks": document.chunks,
        "generation": document.generation,
        "expected": expected,
    }
    if expected is None:
        change = (
            "INSERT INTO {schema}.documents"
            " (tenant, id, source, owner, ingested_at, metadata, digest, options, chunks, generation)"
            " VALUES (%(key)s, %(id)s, %(source)s, %(owner)s, %(ingested_at)s, %(metadata)s, %(digest)s, %(options)s,"
            " %(chunks)s, %(generation)s) ON CONFLICT (tenant, id) DO NOTHING"
        )
        parameters["key"] = tenant_key(session, document.tenant)
    else:
        change = (
            "UPDATE {schema}.documents SET source = %(source)s, owner = %(owner)s, ingested_at = %(ingested_at)s,"
            " metadata = %(metadata)s, digest = %(digest)s, options = %(options)s, chunks = %(chunks)s,"
            " generation = %(generation)s WHERE {of_tenant} AND id = %(id)s AND generation = %(expected)s"
        )
    return session.execute(change, parameters).rowcount > 0


def get_all(session: Session, tenant: str, ids: Sequence[str]) -> list[Document]:
    """The heads of these ids, by id."""
    query = "SELECT {document} FROM {schema}.documents WHERE {of_tenant} AND id = ANY(%(ids)s) ORDER BY id"
    return read_rows(document_from_row, session.execute(query, {"tenant": tenant, "ids": list(ids)}))


def find(
    session: Session,
    tenant: str,
    *,
    source: str | None,
    owner: str | None,
    include_shared: bool,
    limit: int | None,
    offset: int,
) -> list[Document]:
    """Heads, by source and then id."""
    query = "SELECT {document} FROM {schema}.documents WHERE {of_tenant}"
    if source is not None:
        query += " AND source = %(source)s"
    if owner is not None:
        query += " AND (owner = %(owner)s OR owner IS NULL)" if include_shared else " AND owner = %(owner)s"
    elif not include_shared:
        query += " AND owner IS NOT NULL"
    query += " ORDER BY source, id LIMIT %(limit)s OFFSET %(offset)s"
    parameters = {"tenant": tenant, "source": source, "owner": owner, "limit": limit, "offset": offset}
    return read_rows(document_from_row, session.execute(query, parameters))


def delete(session: Session, tenant: str, id: str, expected: int | None) -> bool:
    """Delete the head, if it has this generation or if none is expected."""
    query = (
        "DELETE FROM {schema}.documents WHERE {of_tenant} AND id = %(id)s"
        " AND generation = coalesce(%(expected)s, generation)"
    )
    return session.execute(query, {"tenant": tenant, "id": id, "expected": expected}).rowcount > 0
