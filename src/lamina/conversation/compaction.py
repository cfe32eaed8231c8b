"""Reversible compaction: a short reference in the place of a message's content, the original beside it.

Only the content is replaced. Role, id, tool calls and the id of the call that a result answers stay, so that
what refers to the message still does. The original lies in `state["__compaction__"]`, and comes
back exactly. (Elsewhere in Lamina, compaction of a thread means a summary; this is not that.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from lamina.domain.message import ContentPart, Message
from lamina.domain.message_json import part_from_json, part_to_json
from lamina.domain.message_size import Count, message_tokens
from lamina.domain.thread import ThreadEvent
from lamina.errors import InvalidInput

__all__ = [
    "COMPACTION_KEY",
    "CompactionRecord",
    "compact_event",
    "compaction_of",
    "complete_compaction",
    "decompress_event",
    "is_compacted",
    "originals",
    "reference",
]

COMPACTION_KEY: Final = "__compaction__"
REFERENCE: Final = "reference"
"""The strategy of what is compacted here; code of a host names its own."""

_SPELLINGS: Final[dict[str, str]] = {
    "originalContent": "original_content",
    "originalTokens": "original_tokens",
    "compactedTokens": "compacted_tokens",
    "tokensSaved": "tokens_saved",
    "compactedAt": "compacted_at",
}


@dataclass(frozen=True, slots=True)
class CompactionRecord:
    """What was replaced, when, and what that saved; tokens are those of the whole message."""

    original_content: str | list[ContentPart]
    original_tokens: int
    compacted_tokens: int
    tokens_saved: int
    compacted_at: str
    """ISO 8601, in UTC."""
    strategy: str = REFERENCE


def is_compacted(event: ThreadEvent) -> bool:
    """Whether a reference stands in the place of the event's content."""
    return COMPACTION_KEY in event.state


def reference(label: str, message: Message) -> str:
    """What takes the content's place: the label, and by what name the original can be asked for."""
    handle = f"#{message.index}" if message.index else message.id
    return f"[COMPACTED: {label}; expand {handle}]" if handle else f"[COMPACTED: {label}]"


def compact_event(
    event: ThreadEvent, label: str, *, count: Count, now: datetime, strategy: str = REFERENCE
) -> ThreadEvent:
    """A copy with a reference in place of the content; the event as it is, if that would save nothing."""
    if is_compacted(event) or not event.message.content:
        return event
    message = event.message.replace(content=reference(label, event.message))
    return complete_compaction(event, event.replace(message=message), count=count, now=now, strategy=strategy)


def complete_compaction(
    original: ThreadEvent, compacted: ThreadEvent, *, count: Count, now: datetime, strategy: str = REFERENCE
) -> ThreadEvent:
    """The original with the content that somebody put in its place, and a record of that.

    Whatever else `compacted` changed does not count, save for state beside the record and the record's
    strategy. The original as it is, if the new content is no shorter.
    """
    message = original.message.replace(content=compacted.message.content)
    before = message_tokens(original.message, count)
    after = message_tokens(message, count)
    if after >= before or is_compacted(original):
        return original
    given = _read_keys(compacted.state.get(COMPACTION_KEY))
    content = original.message.content
    record = {
        **given,
        "original_content": content if isinstance(content, str) else [part_to_json(part) for part in content],
        "original_tokens": before,
        "compacted_tokens": after,
        "tokens_saved": before - after,
        "compacted_at": now.isoformat(),
        "strategy": given.get("strategy", strategy),
    }
    state = {**original.state, COMPACTION_KEY: record}
    return original.replace(message=message, state=state, tokens=after)


def compaction_of(event: ThreadEvent) -> CompactionRecord | None:
    """What was replaced, or None if nothing was. Keys in camelCase are read as well.

    Raises:
        InvalidInput: there is a record, but it does not hold an original content.
    """
    if not is_compacted(event):
        return None
    record = _read_keys(event.state[COMPACTION_KEY])
    return CompactionRecord(
        original_content=_content(record.get("original_content"), event.message.id),
        original_tokens=_whole(record.get("original_tokens")),
        compacted_tokens=_whole(record.get("compacted_tokens")),
        tokens_saved=_whole(record.get("tokens_saved")),
        compacted_at=str(record.get("compacted_at", "")),
        strategy=str(record.get("strategy", REFERENCE)),
    )


def decompress_event(event: ThreadEvent, *, count: Count | None = None) -> ThreadEvent:
    """A copy as it was before it was compacted; an event that is not compacted as it is.

    Its tokens are those that were counted then, or counted anew by `count`.

    Raises:
        InvalidInput: the record does not hold an original content.
    """
    record = compaction_of(event)
    if record is None:
        return event
    message = event.message.replace(content=record.original_content)
    state = {key: value for key, value in event.state.items() if key != COMPACTION_KEY}
    tokens = record.original_tokens if count is None else message_tokens(message, count)
    return event.replace(message=message, state=state, tokens=tokens)


def originals(events: Sequence[ThreadEvent]) -> list[Message]:
    """The messages of the events as they were added, whatever the token tiers put in their place."""
    return [decompress_event(event).message for event in events]


def _read_keys(record: Any) -> dict[str, Any]:
    if not isinstance(record, Mapping):
        return {}
    return {_SPELLINGS.get(key, key): value for key, value in record.items() if isinstance(key, str)}


def _content(value: Any, id: str) -> str | list[ContentPart]:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        try:
            return [part_from_json(part) for part in value]
        except (KeyError, TypeError, AttributeError, ValueError):
            pass
    problem = f"of the message {id!r} holds no original content"
    raise InvalidInput(f"state.{COMPACTION_KEY}", problem, "Put the text under `original_content`.")


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
