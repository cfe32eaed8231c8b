"""Rows as values of the domain and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, LiteralString, TypeAlias, TypeVar

from lamina.databases.postgres.failures import damaged
from lamina.domain.document import Document
from lamina.domain.message_json import message_from_json
from lamina.domain.thread import Summary, SummarySource, Thread, ThreadEvent, ThreadKind, ThreadRef, ThreadStatus

__all__ = [
    "FRAGMENTS",
    "document_from_row",
    "event_from_row",
    "json_text",
    "naming",
    "read_rows",
    "summary_from_row",
    "thread_from_row",
]

T = TypeVar("T")

Row: TypeAlias = Sequence[Any]

FRAGMENTS: Final[dict[str, LiteralString]] = {
    "of_tenant": "tenant = (SELECT key FROM {schema}.tenants WHERE name = %(tenant)s)",
    "this_thread": "{of_tenant} AND kind = %(kind)s AND id = %(id)s",
    "of_thread": "thread = (SELECT key FROM {schema}.threads WHERE {this_thread})",
    "head": (
        "%(tenant)s::text, kind, id, owner, namespace, status, metadata, created_at, updated_at,"
        " last_index, folded_through, revision"
    ),
    "event": "message, state, tokens, counter",
    "summary": "from_index, to_index, created_at, source, text, topics, facts, form, tokens",
    "document": "%(tenant)s::text, id, source, owner, ingested_at, metadata, digest, options, chunks, generation",
}
"""Conditions on rows of a tenant and of one thread, whose parameters are those of `naming`; and the columns that
the functions below read."""


def naming(ref: ThreadRef) -> dict[str, Any]:
    """The parameters of a statement on one thread."""
    return {"tenant": ref.tenant, "kind": ref.kind.value, "id": ref.id}


def json_text(value: Any) -> str:
    """The value as JSON, its keys in their order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def read_rows(read: Callable[[Row], T], rows: Iterable[Row]) -> list[T]:
    """The values of the rows.

    Raises:
        StoreDamaged: one of them cannot be read.
    """
    try:
        return [read(row) for row in rows]
    except (KeyError, ValueError, TypeError, AttributeError) as error:  # of JSON or of an enumeration
        raise damaged(f"a row that {read.__name__} reads has a {type(error).__name__}") from None


def thread_from_row(row: Row) -> Thread:
    """The head of a thread."""
    tenant, kind, id, owner, namespace, status, metadata, created_at, updated_at, last_index, folded, revision = row
    return Thread(
        id,
        tenant,
        _utc(created_at),
        _utc(updated_at),
        kind=ThreadKind(kind),
        owner=owner,
        namespace=namespace,
        status=ThreadStatus(status),
        metadata=_mapping(metadata),
        last_index=last_index,
        folded_through=folded,
        revision=revision,
    )


def event_from_row(row: Row) -> ThreadEvent:
    """A message with what is kept beside it."""
    message, state, tokens, counter = row
    return ThreadEvent(message_from_json(message), _mapping(state), tokens, counter)


def summary_from_row(row: Row) -> Summary:
    """A summary."""
    from_index, to_index, created_at, source, text, topics, facts, form, tokens = row
    return Summary(
        text,
        from_index,
        to_index,
        _utc(created_at),
        source=SummarySource(source),
        topics=list(topics),
        facts=list(facts),
        form=_mapping(form),
        tokens=tokens,
    )


def document_from_row(row: Row) -> Document:
    """The head of a document."""
    tenant, id, source, owner, ingested_at, metadata, digest, options, chunks, generation = row
    return Document(
        id,
        tenant,
        source,
        _utc(ingested_at),
        owner=owner,
        metadata=_mapping(metadata),
        digest=digest,
        options=_mapping(options),
        chunks=chunks,
        generation=generation,
    )


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError
    return dict(value)


def _utc(instant: datetime) -> datetime:
    return instant.astimezone(UTC)
