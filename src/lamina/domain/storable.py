"""Conversations and heads of documents as they can be stored: copied, texts cleaned, the rest checked.

Every state store passes what it is given through these first, so that what one backend takes is
taken, and comes back the same, on every other. Texts are cleaned (`lamina.domain.text.clean`); names
that identify are refused instead. Nothing of what is returned is shared with what was given.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from lamina.domain.document import Document
from lamina.domain.message import Message, Role
from lamina.domain.message_json import canonical_json, message_from_json, message_to_json
from lamina.domain.text import check_name, clean, is_clean
from lamina.domain.thread import Summary, SummarySource, Thread, ThreadEvent, ThreadKind, ThreadRef, ThreadStatus
from lamina.domain.validation import check_instant, check_whole_number
from lamina.errors import InvalidInput, InvalidType

__all__ = [
    "MAX_HEAD_BYTES",
    "MAX_INDEX",
    "MAX_MESSAGE_BYTES",
    "MAX_TOKENS",
    "check_change",
    "check_class",
    "check_delete",
    "check_expected",
    "check_kind",
    "check_paging",
    "check_range",
    "check_ref",
    "check_update",
    "is_same_event",
    "placed_event",
    "possible_ids",
    "storable_document",
    "storable_event",
    "storable_events",
    "storable_fold",
    "storable_json",
    "storable_metadata",
    "storable_replacement",
    "storable_summary",
    "storable_text",
    "storable_thread",
]

MAX_MESSAGE_BYTES: Final = 64 * 1024 * 1024
"""Of a message with its state, as JSON: room for some large pictures."""

MAX_HEAD_BYTES: Final = 4 * 1024 * 1024
"""Of the metadata of a thread or a document, as JSON."""

MAX_DEPTH: Final = 100
MAX_INDEX: Final = 2**31 - 1
"""The greatest index of a message; backends keep it in 32 bits."""

MAX_TOKENS: Final = 2**40
_MAX_PIXELS: Final = 2**31 - 1
_PART_TEXTS: Final = ("text", "url", "data", "media_type", "detail", "name", "kind")
_INT64: Final = 2**63 - 1
_JSON_REMEDY: Final = "Use text, finite numbers, bool, None, lists and dicts with text keys."


def check_ref(ref: ThreadRef) -> None:
    """Refuse a reference that can name no thread."""
    check_class("ref", ref, ThreadRef)
    check_name("tenant", ref.tenant)
    check_name("thread_id", ref.id)
    check_kind("kind", ref.kind, ThreadKind)


def check_change(ref: ThreadRef, now: datetime) -> None:
    """Refuse a change of what can be no thread, or at no instant."""
    check_ref(ref)
    check_instant("now", now)


def check_update(ref: ThreadRef, now: datetime, *, status: ThreadStatus | None, expected_revision: int | None) -> None:
    """Refuse a change of a head to what can be no status, or of what can be no revision."""
    check_change(ref, now)
    if status is not None:
        check_kind("status", status, ThreadStatus)
    check_expected("expected_revision", expected_revision)


def check_expected(field: str, value: int | None) -> None:
    """Refuse what can be no revision or generation; None says that any will do."""
    if value is not None:
        check_whole_number(field, value, 0, _INT64)


def check_range(ref: ThreadRef, after: int, before: int | None, limit: int | None) -> None:
    """Refuse a range of messages that can be none."""
    check_ref(ref)
    check_whole_number("after", after, 0, _INT64)
    if before is not None:
        check_whole_number("before", before, 0, _INT64)
    check_paging(limit)


def check_delete(ref: ThreadRef, expected_revision: int | None, expected_created_at: datetime | None) -> None:
    """Refuse to delete what can be no thread, or of what can be no revision or instant."""
    check_ref(ref)
    check_expected("expected_revision", expected_revision)
    if expected_created_at is not None:
        check_instant("expected_created_at", expected_created_at)


def check_paging(limit: int | None, offset: int = 0) -> None:
    """Refuse a limit or an offset below 0, or beyond 64 bits."""
    if limit is not None:
        check_whole_number("limit", limit, 0, _INT64)
    check_whole_number("offset", offset, 0, _INT64)


def possible_ids(ids: Sequence[object]) -> list[str]:
    """Those of the ids that can be kept at all; a single text, which is a sequence too, is refused."""
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise InvalidType("ids", f"must be a list, not {type(ids).__name__}", "Give a list of ids.")
    return [id for id in ids if isinstance(id, str) and is_clean(id)]


def storable_thread(thread: Thread) -> Thread:
    """The head of a new thread: nothing in it yet, and of revision 1."""
    check_class("thread", thread, Thread)
    check_ref(thread.ref)
    _check_optional_names(owner=thread.owner, namespace=thread.namespace)
    check_kind("status", thread.status, ThreadStatus)
    return thread.replace(
        created_at=check_instant("created_at", thread.created_at),
        updated_at=check_instant("updated_at", thread.updated_at),
        metadata=storable_metadata(thread.metadata),
        last_index=0,
        folded_through=0,
        revision=1,
        messages=[],
        summaries=[],
    )


def storable_events(events: Sequence[ThreadEvent]) -> list[ThreadEvent]:
    """The events, each as `storable_event`."""
    if isinstance(events, str | Mapping) or not isinstance(events, Iterable):
        raise InvalidType("events", f"must be a list, not {type(events).__name__}", "Give a list of ThreadEvent.")
    return [storable_event(each) for each in events]


def storable_event(event: ThreadEvent) -> ThreadEvent:
    """The event with a copy of its message.

    Raises:
        InvalidInput: the message has no id, is too large, or holds what JSON cannot carry.
        InvalidType: a field has a type that cannot be stored.
    """
    check_class("event", event, ThreadEvent)
    message = event.message
    check_class("event.message", message, Message)
    check_name("message.id", message.id)
    check_kind("message.role", message.role, Role)
    if not isinstance(message.content, str | list):
        problem = f"must be text or a list of parts, not {type(message.content).__name__}"
        raise InvalidType("message.content", problem, "Give a str, or parts such as TextPart.")
    if message.parent is not None:
        check_name("message.parent", message.parent)
    if message.timestamp is not None:
        check_instant("message.timestamp", message.timestamp)
    try:
        data = message_to_json(message)
    except (KeyError, AttributeError, TypeError):
        remedy = "Use the parts and the ToolCall of lamina.domain.message."
        raise InvalidType("message", "holds a part or a tool call of an unknown class", remedy) from None
    data = storable_json("message", data)
    _check_fields(data)
    state = storable_json("state", event.state)
    size = sum(len(json.dumps(each, ensure_ascii=False).encode()) for each in (data, state))
    if size > MAX_MESSAGE_BYTES:
        remedy = f"Use at most {MAX_MESSAGE_BYTES}, or ingest it as a document."
        raise InvalidInput("message", f"has {size} bytes with its state", remedy)
    check_whole_number("tokens", event.tokens, 0, MAX_TOKENS)
    return ThreadEvent(_read_back(data), state, event.tokens, storable_text("counter", event.counter))


def placed_event(event: ThreadEvent, index: int, *, parent: str | None, now: datetime) -> ThreadEvent:
    """The event as it is kept at this index, behind the message `parent`.

    Raises:
        InvalidInput: no thread has such an index.
    """
    if index > MAX_INDEX:
        raise InvalidInput("events", f"would be more than {MAX_INDEX} in one thread", "Begin a new thread.")
    message = event.message
    return event.replace(
        message=message.replace(index=index, timestamp=message.timestamp or now, parent=message.parent or parent)
    )


def storable_replacement(
    events: Sequence[ThreadEvent], expected: Sequence[ThreadEvent]
) -> tuple[list[ThreadEvent], list[ThreadEvent]]:
    """Events that are to take the place of kept ones, and what is expected there.

    Raises:
        InvalidInput: one has no index, or two have the same.
    """
    new, old = storable_events(events), storable_events(expected)
    for given in (new, old):
        for event in given:
            check_whole_number("index", event.message.index, 1, MAX_INDEX)
        if len({event.message.index for event in given}) < len(given):
            raise InvalidInput("events", "has two of the same index", "Give each once.")
    return new, old


def storable_fold(summary: Summary, expected_folded_through: int) -> Summary:
    """A summary that may become the current one of a thread that is folded through this index."""
    checked = storable_summary(summary)
    if checked.to_index < check_whole_number("expected_folded_through", expected_folded_through, 0, MAX_INDEX):
        problem = f"is {checked.to_index}, and the thread is folded through {expected_folded_through} already"
        raise InvalidInput("to_index", problem, "A new summary covers at least what the former one did.")
    return checked


def is_same_event(one: ThreadEvent, other: ThreadEvent) -> bool:
    """Whether nothing tells them apart in storage: 1, 1.0 and True do, the order of keys does not."""
    return _whole(one) == _whole(other)


def storable_summary(summary: Summary) -> Summary:
    """The summary with a copy of all that it holds."""
    check_class("summary", summary, Summary)
    check_whole_number("to_index", summary.to_index, 1, MAX_INDEX)
    check_whole_number("from_index", summary.from_index, 1, summary.to_index)
    check_whole_number("tokens", summary.tokens, 0, MAX_TOKENS)
    check_kind("source", summary.source, SummarySource)
    return summary.replace(
        text=storable_text("text", summary.text),
        created_at=check_instant("created_at", summary.created_at),
        topics=_listed("topics", summary.topics),
        facts=_listed("facts", summary.facts),
        form=storable_json("form", summary.form),
    )


def storable_document(document: Document) -> Document:
    """The head with a copy of all that it holds."""
    check_class("document", document, Document)
    for name in ("tenant", "id", "source"):
        check_name(name, getattr(document, name))
    _check_optional_names(owner=document.owner)
    check_whole_number("chunks", document.chunks, 0, 2**53)
    check_whole_number("generation", document.generation, 0, 2**53)
    return document.replace(
        ingested_at=check_instant("ingested_at", document.ingested_at),
        metadata=storable_metadata(document.metadata),
        digest=storable_text("digest", document.digest),
        options=storable_json("options", document.options),
    )


def storable_metadata(metadata: Any) -> Any:
    """A copy of the metadata of a head, which is read whole by every call that looks at the head.

    Raises:
        InvalidInput: as `storable_json`, or it is too large.
    """
    copied = storable_json("metadata", metadata)
    size = len(json.dumps(copied, ensure_ascii=False).encode())
    if size > MAX_HEAD_BYTES:
        raise InvalidInput("metadata", f"has {size} bytes as JSON", f"Use at most {MAX_HEAD_BYTES}.")
    return copied


def storable_json(field: str, value: Any) -> Any:
    """A copy of a dict with every text cleaned, and tuples as lists.

    Raises:
        InvalidInput: it is nested too deep, holds a number that is not finite or what is no JSON, or two keys
            become one.
        InvalidType: it is no dict.
    """
    if not isinstance(value, Mapping):
        raise InvalidType(field, f"must be a dict, not {type(value).__name__}", "Give a dict with text keys.")
    copied = _copied(field, value, MAX_DEPTH)
    try:
        json.dumps(copied)
    except ValueError:  # of thousands of digits
        raise InvalidInput(field, "holds a number that is too long to be written", "Store it as text.") from None
    return copied


def _copied(field: str, value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return clean(str.__str__(value))  # not str(): of an enumeration's member that is its name
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if depth and isinstance(value, Mapping):
        return _copied_mapping(field, value, depth - 1)
    if depth and isinstance(value, list | tuple):
        return [_copied(field, each, depth - 1) for each in value]
    if not depth:
        raise InvalidInput(field, f"is nested deeper than {MAX_DEPTH} levels", "Flatten it.")
    problem = f"holds {value}" if isinstance(value, float) else f"holds a {type(value).__name__}"
    raise InvalidInput(field, f"{problem}, which JSON cannot carry", _JSON_REMEDY)


def _copied_mapping(field: str, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    copied: dict[str, Any] = {}
    for key, each in value.items():
        if not isinstance(key, str):
            raise InvalidInput(field, f"has a key that is a {type(key).__name__}", _JSON_REMEDY)
        copied[clean(str.__str__(key))] = _copied(field, each, depth)
    if len(copied) < len(value):
        problem = "has two keys that differ only in characters that cannot be stored"
        raise InvalidInput(field, problem, "Rename one: NUL and lone surrogates become U+FFFD.")
    return copied


def _read_back(data: dict[str, Any]) -> Message:
    try:
        return message_from_json(data)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidType("message", "has a field of the wrong type", "See lamina.domain.message.") from None


def _whole(event: ThreadEvent) -> str:
    return canonical_json([message_to_json(event.message), event.state, event.tokens, event.counter])


def storable_text(field: str, value: object) -> str:
    """The text, cleaned."""
    if not isinstance(value, str):
        raise InvalidType(field, f"must be text, not {type(value).__name__}", "Give a str.")
    return clean(value)


def _check_optional_names(**names: str | None) -> None:
    for field, name in names.items():
        if name is not None:
            check_name(field, name)


def _listed(field: str, texts: object) -> list[str]:
    if not isinstance(texts, list | tuple):
        raise InvalidType(field, f"must be a list of text, not {type(texts).__name__}", "Give a list of str.")
    return [storable_text(field, each) for each in texts]


def _check_fields(data: Mapping[str, Any]) -> None:
    """Refuse a message, in its storage form, with a field that is of another type than the field's own."""
    _check_form("message", data, ("name", "tool_call_id"))
    for place, part in enumerate(data["content"] if isinstance(data["content"], list) else ()):
        _check_form(f"message.content[{place}]", part, _PART_TEXTS)
        for name in ("width", "height"):
            if part.get(name) is not None:
                check_whole_number(f"message.content[{place}].{name}", part[name], 0, _MAX_PIXELS)
    for place, call in enumerate(data.get("tool_calls", ())):
        for name in ("id", "name", "arguments"):
            storable_text(f"message.tool_calls[{place}].{name}", call.get(name))
        _check_form(f"message.tool_calls[{place}]", call, ())


def _check_form(field: str, data: Mapping[str, Any], texts: Iterable[str]) -> None:
    for name in texts:
        if data.get(name) is not None:
            storable_text(f"{field}.{name}", data[name])
    for name in ("metadata", "extra"):
        if not isinstance(data.get(name, {}), Mapping):
            raise InvalidType(f"{field}.{name}", f"must be a dict, not {type(data[name]).__name__}", "Give a dict.")


def check_class(field: str, value: object, kind: type) -> None:
    """Refuse what is not of this class."""
    if not isinstance(value, kind):
        raise InvalidType(field, f"must be a {kind.__name__}, not {type(value).__name__}", "Give one.")


def check_kind(field: str, value: object, kind: type[StrEnum]) -> None:
    """Refuse what is no member of the enumeration, its name as a text among it."""
    if not isinstance(value, kind):
        known = ", ".join(kind)
        raise InvalidInput(field, f"{value!r:.50} is unknown", f"Use one of: {known}.")
