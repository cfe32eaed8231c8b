"""Rows as values of the domain and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, LiteralString, TypeAlias

from lamina.databases.postgres.failures import damaged
from lamina.domain.document import Document
from lamina.domain.message_json import json_text, message_from_json, message_to_json
from lamina.domain.thread import Summary, SummarySource, Thread, ThreadEvent, ThreadKind, ThreadRef, ThreadStatus

__all__ = [
    "FRAGMENTS",
    "document_of",
    "event_of",
    "index_of",
    "mapping",
    "naming",
    "readable",
    "summary_of",
    "thread_of",
    "utc",
    "values_of_event",
]

Row: TypeAlias = Sequence[Any]

FRAGMENTS: Final[dict[str, LiteralString]] = {
    "of_tenant": "tenant = (SELECT key FROM {schema}.tenants WHERE name = %(tenant)s)",
    "this_thread": "{of_tenant} AND kind = %(kind)s AND id = %(id)s",
    "of_thread": "thread = (SELECT key FROM {schema}.threads WHERE {this_thread})",
    "head": (
        "%(tenant)s::text, kind, id, owner, namespace, status, metadata, created_at, updated_at,"
        " last_index, folded_through, revision"
    ),
    "event": "index, message, state, tokens, counter",
    "summary": "from_index, to_index, created_at, source, text, topics, facts, form, tokens",
    "document": "%(tenant)s::text, id, source, owner, ingested_at, metadata, digest, options, chunks, generation",
}
"""Conditions on rows of a tenant and of one thread, whose parameters are those of `naming`; and the columns that
the functions below read."""


def naming(ref: ThreadRef) -> dict[str, Any]:
    """The parameters of a statement on one thread."""
    return {"tenant": ref.tenant, "kind": ref.kind.value, "id": ref.id}


def thread_of(row: Row) -> Thread:
    """The head in a row of `{head}`."""
    tenant, kind, id, owner, namespace, status, metadata, created_at, updated_at, last_index, folded, revision = row
    with readable("thread", id):
        return Thread(
            id,
            tenant,
            utc(created_at),
            utc(updated_at),
            kind=ThreadKind(kind),
            owner=owner,
            namespace=namespace,
            status=ThreadStatus(status),
            metadata=mapping(metadata),
            last_index=last_index,
            folded_through=folded,
            revision=revision,
        )


def event_of(row: Row) -> ThreadEvent:
    """The event in a row of `{event}`."""
    index, message, state, tokens, counter = row
    with readable("message", index):
        found = message_from_json(message)
        found.index = index
        return ThreadEvent(found, mapping(state), tokens, counter)


def index_of(row: Row) -> int:
    """The index of the message in a row of `{event}`, whatever else is in it."""
    return int(row[0])


def values_of_event(event: ThreadEvent) -> tuple[Any, ...]:
    """What of an event may be replaced, as values for role, tokens, counter, message and state."""
    message = message_to_json(event.message)
    message.pop("index", None)  # it has a column of its own
    return event.message.role.value, event.tokens, event.counter, json_text(message), json_text(event.state)


def summary_of(row: Row) -> Summary:
    """The summary in a row of `{summary}`."""
    from_index, to_index, created_at, source, text, topics, facts, form, tokens = row
    with readable("summary up to", to_index):
        return Summary(
            text,
            from_index,
            to_index,
            utc(created_at),
            source=SummarySource(source),
            topics=list(topics),
            facts=list(facts),
            form=mapping(form),
            tokens=tokens,
        )


def document_of(row: Row) -> Document:
    """The head in a row of `{document}`."""
    tenant, id, source, owner, ingested_at, metadata, digest, options, chunks, generation = row
    with readable("document", id):
        return Document(
            id,
            tenant,
            source,
            utc(ingested_at),
            owner=owner,
            metadata=mapping(metadata),
            digest=digest,
            options=mapping(options),
            chunks=chunks,
            generation=generation,
        )


def mapping(value: Any) -> dict[str, Any]:
    """The JSON value, which must be an object; inside `readable`."""
    if not isinstance(value, dict):
        raise TypeError
    return value


def utc(instant: datetime) -> datetime:
    """The instant in UTC, whatever the session's time zone is."""
    return instant.astimezone(UTC)


@contextmanager
def readable(what: str, id: object) -> Iterator[None]:
    """A row that does not hold what was written is damage, and its content is not repeated."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise damaged(f"the row of the {what} {id!r} cannot be read") from None
