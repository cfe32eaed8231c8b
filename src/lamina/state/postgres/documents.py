"""Heads of documents, replaced by compare and set of their generation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.databases.postgres.schema import Session
from lamina.domain.document import Document
from lamina.domain.message_json import json_text
from lamina.state.postgres.rows import document_of
from lamina.state.postgres.threads import tenant_key

__all__ = ["delete_document", "find_documents", "get_documents", "save_document"]


def save_document(session: Session, document: Document, expected_generation: int | None) -> bool:
    """As `StateStore.save_document`, with a head that passed `storable_document`."""
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
        "expected": expected_generation,
    }
    if expected_generation is None:
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


def get_documents(session: Session, tenant: str, ids: Sequence[str]) -> list[Document]:
    """As `StateStore.get_documents`."""
    query = "SELECT {document} FROM {schema}.documents WHERE {of_tenant} AND id = ANY(%(ids)s) ORDER BY id"
    return [document_of(row) for row in session.execute(query, {"tenant": tenant, "ids": list(ids)})]


def find_documents(
    session: Session,
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
    query = "SELECT {document} FROM {schema}.documents WHERE {of_tenant}"
    if source is not None:
        query += " AND source = %(source)s"
    if owner is not None:
        query += " AND (owner = %(owner)s OR owner IS NULL)" if include_shared else " AND owner = %(owner)s"
    elif not include_shared:
        query += " AND owner IS NOT NULL"
    if after is not None:
        query += " AND (source, id) > (%(after_source)s, %(after_id)s)"
    query += " ORDER BY source, id LIMIT %(limit)s OFFSET %(offset)s"
    parameters: dict[str, Any] = {"tenant": tenant, "source": source, "owner": owner, "limit": limit, "offset": offset}
    parameters["after_source"], parameters["after_id"] = after or (None, None)
    return [document_of(row) for row in session.execute(query, parameters)]


def delete_document(session: Session, tenant: str, id: str, expected_generation: int | None) -> bool:
    """As `StateStore.delete_document`."""
    query = (
        "DELETE FROM {schema}.documents WHERE {of_tenant} AND id = %(id)s"
        " AND generation = coalesce(%(expected)s, generation)"
    )
    return session.execute(query, {"tenant": tenant, "id": id, "expected": expected_generation}).rowcount > 0
