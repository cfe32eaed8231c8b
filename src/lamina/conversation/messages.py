"""What callers give as messages becomes messages that can be stored: read, cleaned and checked in one place."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from lamina.conversation.setbacks import RESERVED
from lamina.domain.message import ContentPart, FilePart, ImagePart, Message, ReasoningPart, Role, TextPart, ToolCall
from lamina.domain.message_formats import from_openai
from lamina.domain.message_json import canonical_json, message_to_json
from lamina.domain.message_size import message_tokens
from lamina.domain.storable import storable_event
from lamina.domain.text import check_name, is_blank
from lamina.domain.thread import ThreadEvent
from lamina.domain.validation import check_instant
from lamina.errors import ConfigError, Conflict, InvalidInput, InvalidType
from lamina.memory.inputs import read_instant
from lamina.memory.secret_screen import SecretScreen
from lamina.ports.clock import Clock, IdFactory
from lamina.ports.token_counter import TokenCounter

__all__ = [
    "MessageReader",
    "check_same",
    "check_settings",
    "check_thread_metadata",
    "message_of",
    "new_message_id",
    "read_calls",
    "read_role",
]

_OWN_KEYS: Final = ("id", "timestamp", "metadata")
"""Of a mapping: fields of ours, which OpenAI's shape does not know."""


def new_message_id() -> str:
    """`msg_` and 32 hex digits of a random UUID."""
    return f"msg_{uuid.uuid4().hex}"


class MessageReader:
    """Makes events to append from what callers give."""

    def __init__(self, *, counter: TokenCounter, clock: Clock, new_id: IdFactory, secrets: SecretScreen) -> None:
        self._counter = counter
        self._clock = clock
        self._new_id = new_id
        self._secrets = secrets

    def read(self, given: Iterable[Message | Mapping[str, Any]]) -> tuple[list[ThreadEvent], set[str]]:
        """The events of these messages, in order, and which of their ids were given.

        A mapping is a message in OpenAI's shape.

        Raises:
            InvalidInput: a message says nothing, is too large, or has a field that cannot be.
            InvalidType: a message or a field has a wrong type.
        """
        if isinstance(given, str | Mapping | Message) or not isinstance(given, Iterable):
            raise InvalidType("messages", "must be a list of messages", "Give a list, even of one message.")
        read = [message_of(f"messages[{place}]", each) for place, each in enumerate(given)]
        events = [self._event(message) for message in read]
        ids = [event.message.id for event in events]
        if len(set(ids)) < len(ids):
            raise InvalidInput("messages", "hold one id twice", "Give each message an id of its own, or none.")
        return events, {id for id, message in zip(ids, read, strict=True) if message.id}

    def _event(self, message: Message) -> ThreadEvent:
        checked = message.replace(
            role=read_role(message.role),
            id=message.id or self._new_id(),
            timestamp=read_instant("timestamp", message.timestamp) or self._clock(),
            index=0,
        )
        event = self._secrets.event(storable_event(ThreadEvent(checked)))
        _check_says_something(event.message)
        _check_calls(event.message)
        tokens = message_tokens(event.message, self._counter.count)
        return event.replace(tokens=tokens, counter=self._counter.name)


def read_role(role: object) -> Role:
    """The role of this name."""
    try:
        return Role(role)  # type: ignore[arg-type] # what is no text is no role either
    except ValueError:
        raise InvalidInput("role", f"{role!r:.50} is unknown", f"Use one of: {', '.join(Role)}.") from None


def check_thread_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a new thread, if no key of it is reserved."""
    if not isinstance(metadata, Mapping):
        raise InvalidType("metadata", f"must be a dict, not {type(metadata).__name__}", "Give a dict.")
    for key in metadata:
        if str(key).startswith(RESERVED):
            raise InvalidInput("metadata", f"has the reserved key {key!r}", f"Begin no key with {RESERVED!r}.")
    return dict(metadata)


def check_settings(**given: tuple[object, Any]) -> None:
    """Refuse a setting that is given and of another class: found at the first message, it would be found too late.

    Raises:
        ConfigError: one is no instance of its class.
    """
    for name, (value, kind) in given.items():
        if value is not None and not isinstance(value, kind):
            raise ConfigError(name, f"must be a {kind.__name__}, not {type(value).__name__}", "Give one, or None.")


def check_same(kept: Message, given: Message) -> None:
    """Refuse a message under the id of another: under one id, only the same words may be added again.

    Raises:
        Conflict: the two say different things.
    """
    said = (
        message_to_json(each.replace(id="", timestamp=None, index=0, parent=None, metadata={}))
        for each in (kept, given)
    )
    first, second = map(canonical_json, said)
    if first != second:
        raise Conflict(f"The message id {given.id!r}", "it is taken by another message", "Give another id, or none.")


def message_of(field: str, given: object) -> Message:
    """The message; a mapping is one in OpenAI's shape, with `id`, `timestamp` and `metadata` of ours beside it.

    Raises:
        InvalidInput: a field has a value that cannot be; it is named by its place in `field`.
        InvalidType: it is neither, or a field has a wrong type.
    """
    if isinstance(given, Message):
        return given
    if not isinstance(given, Mapping):
        problem = f"must be a Message or a mapping, not {type(given).__name__}"
        raise InvalidType(field, problem, 'Give Message.user("…"), or {"role": "user", "content": "…"}.')
    try:
        (message,) = from_openai([{name: value for name, value in given.items() if name not in _OWN_KEYS}])
    except (InvalidInput, InvalidType) as error:
        raise type(error)(error.field.replace("messages[0]", field, 1), error.problem, error.remedy) from error
    id, timestamp, metadata = (given.get(name) for name in _OWN_KEYS)
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidType(f"{field}.metadata", f"must be a mapping, not {type(metadata).__name__}", "Give a dict.")
    return message.replace(
        id="" if id is None else check_name(f"{field}.id", id),
        timestamp=_instant(f"{field}.timestamp", timestamp),
        metadata=dict(metadata or {}),
    )


def _instant(field: str, value: Any) -> datetime | None:
    """An aware datetime, a text in ISO 8601, or seconds since 1970."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise InvalidInput(field, "is no time in ISO 8601", "Give an aware datetime.") from None
    elif isinstance(value, int | float) and not isinstance(value, bool):
        try:
            value = datetime.fromtimestamp(value, UTC)
        except (ValueError, OverflowError, OSError):
            raise InvalidInput(field, "is no time that there is", "Give an aware datetime.") from None
    return None if value is None else check_instant(field, value)


def _check_says_something(message: Message) -> None:
    """Refuse a message without anything in it. A tool may well give nothing, and its call needs the result."""
    if message.tool_calls or (message.role is Role.TOOL and message.tool_call_id is not None):
        return
    if message.role is Role.ASSISTANT and any(value is not None for value in message.extra.values()):
        return  # a refusal, say, or sound
    content = message.content
    if is_blank(content) if isinstance(content, str) else all(_is_empty(part) for part in content):
        remedy = "Give text with a visible character, a part, or a tool call."
        raise InvalidInput("content", "is blank", remedy)


def _is_empty(part: ContentPart) -> bool:
    match part:
        case TextPart() | ReasoningPart():
            return is_blank(part.text) and not part.extra
        case ImagePart():
            return not (part.url or part.data or part.extra)
        case FilePart():
            return not (part.url or part.data or part.text or part.name or part.extra)
    return False


def _check_calls(message: Message) -> None:
    if message.tool_calls and message.role is not Role.ASSISTANT:
        raise InvalidInput("tool_calls", f"stand in a message of the role {message.role.value}", "Only a model calls.")
    ids = [call.id for call in message.tool_calls]
    if len(set(ids)) < len(ids) or not all(ids):
        raise InvalidInput("tool_calls", "have an id twice, or none", "Give each call an id of its own.")
    if message.tool_call_id is not None and message.role is not Role.TOOL:
        problem = f"stands in a message of the role {message.role.value}"
        raise InvalidInput("tool_call_id", problem, "It says of which call a tool's message is the result.")


def read_calls(calls: Sequence[ToolCall | Mapping[str, Any]]) -> list[ToolCall]:
    """The tool calls; mappings are in OpenAI's shape."""
    if isinstance(calls, str | Mapping) or not isinstance(calls, Iterable):
        raise InvalidType("tool_calls", "must be a list of calls", "Give a list of ToolCall.")
    found: list[ToolCall] = []
    for call in calls:
        if isinstance(call, ToolCall):
            found.append(call)
        else:
            carrier = {"role": "assistant", "content": "", "tool_calls": [call]}
            found += message_of("message", carrier).tool_calls
    return found
