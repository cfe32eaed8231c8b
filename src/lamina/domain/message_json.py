"""The storage form of messages: JSON that gives back exactly what was put in.

What is empty is left out. A key that this version does not know is read into `extra`, and a part of
an unknown type into an `OpaquePart`, so that what a newer Lamina wrote is carried along and not lost.
The form is the same on every backend; providers' own forms are made elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from lamina.domain.message import (
    ContentPart,
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    ReasoningPart,
    Role,
    TextPart,
    ToolCall,
)

__all__ = ["canonical_json", "json_text", "message_from_json", "message_to_json", "part_from_json", "part_to_json"]

_OPAQUE: Final = "opaque"
_TYPES: Final[dict[str, type[ContentPart]]] = {
    "text": TextPart,
    "image": ImagePart,
    "file": FilePart,
    "reasoning": ReasoningPart,
    _OPAQUE: OpaquePart,
}
_NAMES: Final = {kind: name for name, kind in _TYPES.items()}
_FIELDS: Final = {kind: [name for name in kind.__slots__ if name != "extra"] for kind in _NAMES}
_DETAIL: Final = "auto"
"""Of a picture; what is not written."""
_CALL: Final = ("id", "name", "arguments")
_PLAIN: Final = ("name", "tool_call_id", "parent")
_MESSAGE: Final = frozenset({"role", "content", "id", "timestamp", "index", "tool_calls", "metadata", "extra", *_PLAIN})


def message_to_json(message: Message) -> dict[str, Any]:
    """The message as JSON values; `extra`, `metadata` and so on are the message's own, not copies."""
    content = message.content
    found: dict[str, Any] = {
        "role": message.role.value,
        "content": content if isinstance(content, str) else [part_to_json(part) for part in content],
    }
    if message.id:
        found["id"] = message.id
    if message.timestamp is not None:
        found["timestamp"] = message.timestamp.astimezone(UTC).isoformat()
    if message.index:
        found["index"] = message.index
    for name in _PLAIN:
        if getattr(message, name) is not None:
            found[name] = getattr(message, name)
    if message.tool_calls:
        found["tool_calls"] = [_call_to_json(call) for call in message.tool_calls]
    for name in ("metadata", "extra"):
        if getattr(message, name):
            found[name] = getattr(message, name)
    return found


def message_from_json(data: Mapping[str, Any]) -> Message:
    """The message of its storage form.

    Raises:
        ValueError: it is no storage form of a message; so are `KeyError`, `TypeError` and `AttributeError`.
    """
    content = data["content"]
    timestamp = data.get("timestamp")
    return Message(
        role=Role(data["role"]),
        content=content if isinstance(content, str) else [part_from_json(part) for part in content],
        id=data.get("id", ""),
        timestamp=None if timestamp is None else datetime.fromisoformat(timestamp),
        index=data.get("index", 0),
        name=data.get("name"),
        tool_calls=[_call_from_json(call) for call in data.get("tool_calls", ())],
        tool_call_id=data.get("tool_call_id"),
        metadata=dict(data.get("metadata", ())),
        parent=data.get("parent"),
        extra=_extra(data, _MESSAGE),
    )


def part_to_json(part: ContentPart) -> dict[str, Any]:
    """The part as JSON values, its kind under `type`."""
    kind = type(part)
    found: dict[str, Any] = {"type": _NAMES[kind]}
    for name in _FIELDS[kind]:
        value = getattr(part, name)
        if value is not None and (name, value) != ("detail", _DETAIL):
            found[name] = value
    if part.extra:
        found["extra"] = part.extra
    return found


def part_from_json(data: Mapping[str, Any]) -> ContentPart:
    """The part of its storage form; of a type that is not known, an `OpaquePart`."""
    kind = _TYPES.get(data["type"])
    if kind is None:
        return OpaquePart(data["type"], {name: value for name, value in data.items() if name != "type"})
    known = {name: data[name] for name in _FIELDS[kind] if name in data}
    return kind(**known, extra=_extra(data, {"type", "extra", *_FIELDS[kind]}))


def canonical_json(value: Any) -> str:
    """The value as JSON text that is equal for equal values, whatever the order of keys; 1, 1.0 and true differ."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def json_text(value: Any) -> str:
    """The value as JSON text as it is stored: keys in their order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _call_to_json(call: ToolCall) -> dict[str, Any]:
    found: dict[str, Any] = {name: getattr(call, name) for name in _CALL}
    if call.extra:
        found["extra"] = call.extra
    return found


def _call_from_json(data: Mapping[str, Any]) -> ToolCall:
    id, name, arguments = (data[each] for each in _CALL)
    return ToolCall(id, name, arguments, extra=_extra(data, {*_CALL, "extra"}))


def _extra(data: Mapping[str, Any], known: frozenset[str] | set[str]) -> dict[str, Any]:
    """What was kept as `extra`, and what this version does not know."""
    if known >= data.keys():
        return dict(data.get("extra", ()))
    return {name: value for name, value in data.items() if name not in known} | dict(data.get("extra", {}))
