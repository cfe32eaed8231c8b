"""Messages in the shape of Anthropic's Messages API, in and out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

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
from lamina.domain.message_groups import sendable
from lamina.domain.wire_fields import as_mapping, as_messages, items_of, json_text, optional_text, rest_of, text_of
from lamina.errors import InvalidInput

__all__ = ["from_anthropic", "to_anthropic"]

Blocks: TypeAlias = list[dict[str, Any]]

_OPENING: Final = "(The conversation goes on.)"
"""Said for the user where the model would speak first, which the API refuses."""


def from_anthropic(
    messages: Sequence[Mapping[str, Any]], *, system: str | Sequence[Mapping[str, Any]] | None = None
) -> list[Message]:
    """Messages of the Messages API, with its `system` first, as Lamina's.

    Each `tool_result` becomes a message of its own, each block of `system` too. Blocks of unknown
    kinds, and unknown fields of blocks, are kept and given back by `to_anthropic`. What an answer says
    of itself beside its content (`id`, `usage` and the like) goes to the metadata, and not back.

    Raises:
        InvalidInput: a field is missing or has a value that cannot be taken; it is named by its place.
        InvalidType: something is not the list, mapping or text that it must be.
    """
    read = _read_system(system)
    for field, item in items_of("messages", messages):
        message = as_mapping(field, item)
        role = text_of(field, message, "role")
        if role not in {Role.USER, Role.ASSISTANT}:
            raise InvalidInput(f"{field}.role", f"{role!r} is unknown", "Use user or assistant; system goes apart.")
        read += _read_message(field, Role(role), message)
    return read


def to_anthropic(messages: Sequence[Message]) -> tuple[str | Blocks | None, Blocks]:
    """The `system` (None if there is none) and the `messages` of a request; see `sendable` for what is left out.

    Roles alternate and the user speaks first: what one side says in a row is one message, in which the results
    of tools stand before all else. Empty texts, thoughts without the signature that the API asks for, and names
    of speakers have no place in this shape and are left out.
    """
    system: list[Message] = []
    turns: list[tuple[str, list[Message]]] = []
    for message in sendable(as_messages(messages)):
        if message.role is Role.SYSTEM:
            system.append(message)
            continue
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        if not turns or turns[-1][0] != role:
            turns.append((role, []))
        turns[-1][1].append(message)
    written = [{"role": role, "content": _written_turn(said)} for role, said in turns if _says_anything(said)]
    if written and written[0]["role"] == "assistant":
        written.insert(0, {"role": "user", "content": _OPENING})
    return _written_system(system), _joined(written)


def _read_system(system: str | Sequence[Mapping[str, Any]] | None) -> list[Message]:
    if system is None or isinstance(system, str):
        return [Message.system(system)] if system else []
    blocks = [(field, as_mapping(field, block)) for field, block in items_of("system", system)]
    return [Message(Role.SYSTEM, [_read_block(*each)]) for each in blocks]


def _read_message(field: str, role: Role, message: Mapping[str, Any]) -> list[Message]:
    content = message.get("content")
    about = rest_of(message, "role", "content")
    if isinstance(content, str):
        return [Message(role, content, metadata=about)]
    read: list[Message] = []
    for each, item in items_of(f"{field}.content", content):
        block = as_mapping(each, item)
        kind = text_of(each, block, "type")
        if kind == "tool_result" and role is Role.USER:
            read.append(_read_result(each, block))
            continue
        if not read or read[-1].role is not role:
            read.append(Message(role, []))
        spoken = read[-1]
        if kind == "tool_use" and role is Role.ASSISTANT:
            spoken.tool_calls.append(_read_call(each, block))
        elif isinstance(spoken.content, list):
            spoken.content.append(_read_block(each, block))
    if not read:
        read.append(Message(role, []))
    read[-1].metadata.update(about)
    return [each.replace(content="") if each.content == [] else each for each in read]


def _read_result(field: str, block: Mapping[str, Any]) -> Message:
    content = block.get("content")
    parts: str | list[ContentPart] = content if isinstance(content, str) else []
    if content is not None and not isinstance(content, str):
        parts = [_read_block(each, as_mapping(each, part)) for each, part in items_of(f"{field}.content", content)]
    return Message(
        Role.TOOL,
        parts or "",
        tool_call_id=text_of(field, block, "tool_use_id"),
        extra=rest_of(block, "type", "tool_use_id", "content"),
    )


def _read_call(field: str, block: Mapping[str, Any]) -> ToolCall:
    given = as_mapping(f"{field}.input", block.get("input", {}))
    arguments = json_text(f"{field}.input", given)
    extra = rest_of(block, "type", "id", "name", "input")
    return ToolCall(text_of(field, block, "id"), text_of(field, block, "name"), arguments, extra)


def _read_block(field: str, block: Mapping[str, Any]) -> ContentPart:
    kind = text_of(field, block, "type")
    if kind == "text":
        return TextPart(text_of(field, block, "text"), rest_of(block, "type", "text"))
    if kind == "thinking":
        return ReasoningPart(text_of(field, block, "thinking"), rest_of(block, "type", "thinking"))
    if kind in {"image", "document"}:
        return _read_source(field, kind, block)
    return OpaquePart(kind, rest_of(block, "type"))


def _read_source(field: str, kind: str, block: Mapping[str, Any]) -> ImagePart | FilePart:
    """A picture or a document; a source of a kind that has no field of ours stays in `extra`."""
    named = f"{field}.source"
    source = as_mapping(named, block.get("source"))
    extra = rest_of(block, "type", "source", *(["title"] if kind == "document" else []))
    part: ImagePart | FilePart = ImagePart() if kind == "image" else FilePart()
    if isinstance(part, FilePart):
        part.name = optional_text(field, block, "title")
    where = text_of(named, source, "type")
    if where == "base64":
        part.data = text_of(named, source, "data")
        part.media_type = optional_text(named, source, "media_type")
    elif where == "url":
        part.url = text_of(named, source, "url")
    elif where == "text" and isinstance(part, FilePart):
        part.text = text_of(named, source, "data")
        part.media_type = optional_text(named, source, "media_type")
    else:
        extra["source"] = dict(source)
    part.extra = extra
    return part


def _written_system(messages: Sequence[Message]) -> str | Blocks | None:
    texts = [message.content for message in messages]
    if len(texts) == 1 and isinstance(texts[0], str):
        return texts[0] or None
    return [block for message in messages for block in _written_content(message)] or None


def _says_anything(messages: Sequence[Message]) -> bool:
    return any(_written_blocks(message) for message in messages)


def _written_turn(messages: Sequence[Message]) -> str | Blocks:
    """What one side says in a row: plain text if it is no more, else blocks, the results of tools first."""
    first = messages[0]
    if len(messages) == 1 and first.role is not Role.TOOL and isinstance(first.content, str) and not first.tool_calls:
        return first.content
    results = [message for message in messages if message.role is Role.TOOL]
    others = [message for message in messages if message.role is not Role.TOOL]
    return [block for message in (*results, *others) for block in _written_blocks(message)]


def _joined(turns: Blocks) -> Blocks:
    """The turns, with neighbours of one role made one, as there are where an empty turn stood between them."""
    joined: Blocks = []
    for turn in turns:
        if joined and joined[-1]["role"] == turn["role"]:
            joined[-1]["content"] = [*_as_blocks(joined[-1]["content"]), *_as_blocks(turn["content"])]
        else:
            joined.append(turn)
    return joined


def _as_blocks(content: str | Blocks) -> Blocks:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _written_blocks(message: Message) -> Blocks:
    content = _written_content(message)
    if message.role is Role.TOOL:
        said = message.content if isinstance(message.content, str) else content
        given = {} if not said else {"content": said}
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id, **given, **message.extra}]
    return content + [_written_call(call) for call in message.tool_calls]


def _written_content(message: Message) -> Blocks:
    if isinstance(message.content, str):
        return _as_blocks(message.content) if message.content.strip() else []
    return [block for part in message.content if (block := _written_part(part)) is not None]


def _written_part(part: ContentPart) -> dict[str, Any] | None:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text, **part.extra} if part.text.strip() else None
    if isinstance(part, ReasoningPart):
        return {"type": "thinking", "thinking": part.text, **part.extra} if part.extra.get("signature") else None
    if isinstance(part, OpaquePart):
        return {"type": part.kind, **part.extra}
    block: dict[str, Any] = {"type": "image" if isinstance(part, ImagePart) else "document"}
    block["source"] = part.extra.get("source") or _written_source(part)
    if isinstance(part, FilePart) and part.name is not None:
        block["title"] = part.name
    return {**block, **part.extra}


def _written_source(part: ImagePart | FilePart) -> dict[str, Any]:
    if part.data is not None:
        default = "image/png" if isinstance(part, ImagePart) else "application/pdf"
        return {"type": "base64", "media_type": part.media_type or default, "data": part.data}
    if part.url is not None:
        return {"type": "url", "url": part.url}
    text = part.text if isinstance(part, FilePart) else None
    return {"type": "text", "media_type": part.media_type or "text/plain", "data": text or ""}


def _written_call(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": _arguments(call.arguments), **call.extra}


def _arguments(text: str) -> dict[str, Any]:
    """The arguments as an object; what is none, as models sometimes write, stands under `arguments` as it is."""
    try:
        parsed = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        parsed = None
    if isinstance(parsed, dict):
        return parsed
    return {"arguments": text} if text.strip() else {}


def _refuse(name: str) -> None:
    raise ValueError(name)
