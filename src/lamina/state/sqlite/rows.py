"""Rows of the file as threads, events, summaries and documents, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from lamina.databases.sqlite.failures import damaged
from lamina.domain.document import Document
from lamina.domain.instants import from_micros, to_micros
from lamina.domain.message_json import json_text, message_from_json, message_to_json
from lamina.domain.thread import Summary, SummarySource, Thread, ThreadEvent, ThreadKind, ThreadStatus

__all__ = [
    "DOCUMENT",
    "EVENT",
    "SUMMARY",
    "THREAD",
    "document_of",
    "event_of",
    "index_of",
    "key_of",
    "loaded",
    "readable",
    "summary_of",
    "thread_of",
    "values_of_document",
    "values_of_event",
    "values_of_summary",
    "values_of_thread",
]

T = TypeVar("T")

THREAD: Final = (
    "tenant, kind, id, owner, namespace, status, created_at, updated_at, metadata, last_index, folded_through, revision"
)
EVENT: Final = "key, message, state, tokens, counter"
SUMMARY: Final = "from_index, to_index, created_at, source, tokens, topics, facts, form, text"
DOCUMENT: Final = "tenant, id, source, owner, ingested_at, digest, chunks, generation, options, metadata"
"""The columns that the functions below read."""

_BITS: Final = 32
_INDEX: Final = (1 << _BITS) - 1


def key_of(thread: int, index: int) -> int:
    """Where the message stands: those of one thread lie together, in order."""
    return thread << _BITS | index


def thread_of(row: Sequence[Any]) -> Thread:
    """The head in a row of `THREAD`."""
    tenant, kind, id, owner, namespace, status, created, updated, metadata, last, folded, revision = row
    with readable("thread", id):
        return Thread(
            id=id,
            tenant=tenant,
            created_at=from_micros(created),
            updated_at=from_micros(updated),
            kind=ThreadKind(kind),
            owner=owner,
            namespace=namespace,
            status=ThreadStatus(status),
            metadata=_object(metadata),
            last_index=last,
            folded_through=folded,
            revision=revision,
        )


def values_of_thread(thread: Thread) -> tuple[Any, ...]:
    """The head as values for the first nine columns of `THREAD`."""
    return (
        thread.tenant,
        thread.kind.value,
        thread.id,
        thread.owner,
        thread.namespace,
        thread.status.value,
        to_micros(thread.created_at),
        to_micros(thread.updated_at),
        json_text(thread.metadata),
    )


def event_of(row: Sequence[Any]) -> ThreadEvent:
    """The event in a row of `EVENT`."""
    key, message, state, tokens, counter = row
    with readable("message", key & _INDEX):
        found = message_from_json(json.loads(message))
        found.index = key & _INDEX
        return ThreadEvent(found, _object(state), tokens, counter)


def index_of(row: Sequence[Any]) -> int:
    """The index of the message in a row of `EVENT`, whatever else is in it."""
    return int(row[0]) & _INDEX


def values_of_event(event: ThreadEvent) -> tuple[Any, ...]:
    """The event as values for id, role, tokens, counter, state and message."""
    message = event.message
    data = message_to_json(message)
    data.pop("index", None)  # it is in the key
    return message.id, message.role.value, event.tokens, event.counter, json_text(event.state), json_text(data)


def summary_of(row: Sequence[Any]) -> Summary:
    """The summary in a row of `SUMMARY`."""
    from_index, to_index, created, source, tokens, topics, facts, form, text = row
    with readable("summary up to", to_index):
        return Summary(
            text=text,
            from_index=from_index,
            to_index=to_index,
            created_at=from_micros(created),
            source=SummarySource(source),
            topics=_list(topics),
            facts=_list(facts),
            form=_object(form),
            tokens=tokens,
        )


def values_of_summary(summary: Summary) -> tuple[Any, ...]:
    """The summary as values for `SUMMARY`."""
    return (
        summary.from_index,
        summary.to_index,
        to_micros(summary.created_at),
        summary.source.value,
        summary.tokens,
        json_text(summary.topics),
        json_text(summary.facts),
        json_text(summary.form),
        summary.text,
    )


def document_of(row: Sequence[Any]) -> Document:
    """The head in a row of `DOCUMENT`."""
    tenant, id, source, owner, ingested, digest, chunks, generation, options, metadata = row
    with readable("document", id):
        return Document(
            id=id,
            tenant=tenant,
            source=source,
            ingested_at=from_micros(ingested),
            owner=owner,
            metadata=_object(metadata),
            digest=digest,
            options=_object(options),
            chunks=chunks,
            generation=generation,
        )


def values_of_document(document: Document) -> tuple[Any, ...]:
    """The head as values for `DOCUMENT`."""
    return (
        document.tenant,
        document.id,
        document.source,
        document.owner,
        to_micros(document.ingested_at),
        document.digest,
        document.chunks,
        document.generation,
        json_text(document.options),
        json_text(document.metadata),
    )


def _object(text: str) -> dict[str, Any]:
    return {} if text == "{}" else loaded(text, dict)


def _list(text: str) -> list[Any]:
    return loaded(text, list)


def loaded(text: str, kind: Callable[..., T]) -> T:
    """The JSON value, which must be of this kind; inside `readable`."""
    value = json.loads(text)
    if type(value) is not kind:
        raise TypeError(text[:0])
    return value  # type: ignore[no-any-return]


@contextmanager
def readable(what: str, id: object) -> Iterator[None]:
    """A row that does not hold what was written is damage, and its content is not repeated."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise damaged(f"the row of the {what} {id!r} cannot be read") from None
