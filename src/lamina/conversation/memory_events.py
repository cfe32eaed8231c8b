"""Reads what a caller adds to short-term memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

from lamina.conversation.compaction import COMPACTION_KEY, compaction_of
from lamina.conversation.messages import message_of
from lamina.conversation.structured_summarizer import SUMMARY_KEY
from lamina.domain.memory import Unset
from lamina.domain.message import ContentPart, Message
from lamina.domain.message_size import message_tokens
from lamina.domain.storable import storable_event
from lamina.domain.text import check_name
from lamina.domain.thread import ThreadEvent
from lamina.domain.validation import check_instant
from lamina.domain.wire_fields import as_mapping
from lamina.errors import InvalidInput, InvalidType
from lamina.memory.secret_screen import SecretScreen
from lamina.ports.token_counter import TokenCounter

__all__ = [
    "DEFAULT_SESSION",
    "MemoryEvent",
    "MemoryEventInput",
    "changed_event",
    "event_of",
    "named_session",
    "read_event",
    "session_of",
]

MemoryEvent: TypeAlias = ThreadEvent
"""A message of a session, with free state beside it."""

MemoryEventInput: TypeAlias = ThreadEvent | Message | Mapping[str, Any]
"""An event; a message; `{"message": {...}, "state": {...}}`; or a message as OpenAI's chat completions have it."""

DEFAULT_SESSION: Final = "default"
_SESSION_KEYS: Final = ("session_id", "sessionId")
_EVENT_KEYS: Final = {"message", "state"}


def read_event(
    given: MemoryEventInput, counter: TokenCounter, new_id: Callable[[], str], now: datetime, *, secrets: SecretScreen
) -> ThreadEvent:
    """The event, with an id, a time and its size; nothing of it is changed but what `secrets` asks for.

    Raises:
        InvalidInput: a field has a value that cannot be taken.
        InvalidType: it is no event, or a field has the wrong type.
    """
    event = event_of(given)
    if SUMMARY_KEY in event.state:
        raise InvalidInput(f"state.{SUMMARY_KEY}", "is kept for summaries", "Use another key.")
    compaction_of(event)  # of one that comes from elsewhere: it must be possible to restore it
    message = event.message
    timestamp = now if message.timestamp is None else check_instant("message.timestamp", message.timestamp)
    id = check_name("message.id", message.id) if message.id else new_id()
    numbered = ThreadEvent(message.replace(id=id, timestamp=timestamp, index=0), dict(event.state))
    return _measured(numbered, counter, secrets)


def named_session(session_id: str | None) -> str:
    """The session of this id, or `default`."""
    return DEFAULT_SESSION if session_id is None else check_name("session_id", session_id)


def session_of(event: ThreadEvent, session_id: str | None) -> str:
    """The session that is asked for, else the one that the event's state names, else `default`."""
    if session_id is None:
        named = (event.state[key] for key in _SESSION_KEYS if event.state.get(key) is not None)
        session_id = next(named, DEFAULT_SESSION)
    return check_name("session_id", session_id)


def changed_event(
    event: ThreadEvent,
    *,
    content: str | list[ContentPart] | Unset,
    state: Mapping[str, Any] | Unset,
    metadata: Mapping[str, Any] | Unset,
    counter: TokenCounter,
    secrets: SecretScreen,
) -> ThreadEvent:
    """The event with what is given changed, and its size; new content takes the place of a reference too."""
    message = event.message
    record = {key: event.state[key] for key in (COMPACTION_KEY,) if key in event.state}
    kept = {key: value for key, value in event.state.items() if key not in record}
    if not isinstance(content, Unset):
        message, record = message.replace(content=content), {}
    if not isinstance(metadata, Unset):
        message = message.replace(metadata=dict(as_mapping("metadata", metadata)))
    if not isinstance(state, Unset):
        kept = dict(as_mapping("state", state))
        if reserved := sorted({COMPACTION_KEY, SUMMARY_KEY} & kept.keys()):
            raise InvalidInput(f"state.{reserved[0]}", "cannot be changed", "Use another key.")
    return _measured(event.replace(message=message, state={**kept, **record}), counter, secrets)


def _measured(event: ThreadEvent, counter: TokenCounter, secrets: SecretScreen) -> ThreadEvent:
    """The event as it can be stored, with its size: what cannot be is refused before anything is written."""
    event = secrets.event(storable_event(event))
    return event.replace(tokens=message_tokens(event.message, counter.count), counter=counter.name)


def event_of(given: object) -> ThreadEvent:
    """The event of what a caller gives, as it is.

    Raises:
        InvalidInput: a field is unknown, or has a value that cannot be taken.
        InvalidType: it is no event, or a field has the wrong type.
    """
    if isinstance(given, Message):
        return ThreadEvent(given)
    if isinstance(given, ThreadEvent):
        if not isinstance(given.message, Message):
            raise InvalidType("event.message", f"must be a Message, not {type(given.message).__name__}", "Give one.")
        if not isinstance(given.state, Mapping):
            raise InvalidType("event.state", f"must be a dict, not {type(given.state).__name__}", "Give a dict.")
        return given
    if not isinstance(given, Mapping):
        problem = f"must be a MemoryEvent, a Message or a mapping, not {type(given).__name__}"
        raise InvalidType("event", problem, 'Give {"message": {"role": ..., "content": ...}}.')
    if "message" not in given:
        return ThreadEvent(message_of("event", given))
    if unknown := [str(key) for key in given if key not in _EVENT_KEYS]:
        raise InvalidInput(f"event.{unknown[0]}", "is unknown", "An event has a message and a state.")
    state = given.get("state")
    if state is not None and not isinstance(state, Mapping):
        raise InvalidType("event.state", f"must be a mapping, not {type(state).__name__}", "Give a dict.")
    return ThreadEvent(message_of("event.message", given["message"]), dict(state or {}))
