"""Messages in the shape of OpenAI's chat completions, in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from lamina.domain.message_groups import sendable
from lamina.domain.wire_fields import (
    as_mapping,
    as_messages,
    data_url,
    items_of,
    json_text,
    optional_text,
    parse_data_url,
    rest_of,
    text_of,
)
from lamina.errors import InvalidInput

__all__ = ["from_openai", "to_openai"]

_DEVELOPER: Final = "developer"
"""What newer models call the role system; kept in `extra`."""


def from_openai(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Messages of chat completions, requests or answers, as Lamina's.

    A content that is null, missing or empty becomes the empty text. The bytes of `data:` addresses stand in
    `data`; parts of unknown kinds, and unknown fields at every level, are kept and given back by `to_openai`.

    Raises:
        InvalidInput: a field is missing or has a value that cannot be taken; it is named by its place.
        InvalidType: something is not the list, mapping or text that it must be.
    """
    return [_read_message(field, as_mapping(field, item)) for field, item in items_of("messages", messages)]


def to_openai(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages as a request to chat completions takes them: see `sendable` for what is left out or moved.

    Thoughts have no place in this shape and are left out. A file of which only the text is known goes as text.
    """
    return [_written_message(message) for message in sendable(as_messages(messages))]


def _read_message(field: str, item: Mapping[str, Any]) -> Message:
    named = text_of(field, item, "role")
    known = ["role", "content", "name"]
    extra: dict[str, Any] = {}
    if named == _DEVELOPER:
        extra["role"] = named
        role = Role.SYSTEM
    elif named in {each.value for each in Role}:
        role = Role(named)
    else:
        problem = f"{named!r} is unknown"
        raise InvalidInput(f"{field}.role", problem, "Use system, developer, user, assistant or tool.")
    message = Message(role, _read_content(f"{field}.content", item.get("content")))
    message.name = optional_text(field, item, "name")
    if role is Role.TOOL:
        known.append("tool_call_id")
        message.tool_call_id = text_of(field, item, "tool_call_id")
    if role is Role.ASSISTANT and item.get("tool_calls"):
        known.append("tool_calls")
        message.tool_calls = [_read_call(*each) for each in items_of(f"{field}.tool_calls", item["tool_calls"])]
    message.extra = {**extra, **rest_of(item, *known)}
    return message


def _read_content(field: str, content: object) -> str | list[ContentPart]:
    if content is None or isinstance(content, str):
        return content or ""
    return [_read_part(each, as_mapping(each, part)) for each, part in items_of(field, content)]


def _read_part(field: str, part: Mapping[str, Any]) -> ContentPart:
    kind = text_of(field, part, "type")
    if kind == "text":
        return TextPart(text_of(field, part, "text"), rest_of(part, "type", "text"))
    if kind == "image_url":
        return _read_image(f"{field}.image_url", part)
    if kind == "file":
        return _read_file(f"{field}.file", part)
    return OpaquePart(kind, rest_of(part, "type"))


def _read_image(field: str, part: Mapping[str, Any]) -> ImagePart:
    image = as_mapping(field, part.get("image_url"))
    url = text_of(field, image, "url")
    extra = rest_of(part, "type", "image_url")
    if more := rest_of(image, "url", "detail"):
        extra["image_url"] = more
    detail = optional_text(field, image, "detail") or "auto"
    if inline := parse_data_url(url):
        return ImagePart(media_type=inline[0], data=inline[1], detail=detail, extra=extra)
    return ImagePart(url=url, detail=detail, extra=extra)


def _read_file(field: str, part: Mapping[str, Any]) -> FilePart:
    file = as_mapping(field, part.get("file"))
    name = optional_text(field, file, "filename")
    extra = rest_of(part, "type", "file")
    data = optional_text(field, file, "file_data")
    inline = parse_data_url(data) if data is not None else None
    if more := rest_of(file, "filename", *(["file_data"] if inline else [])):
        extra["file"] = more
    if inline is None:
        return FilePart(name, extra=extra)
    return FilePart(name, media_type=inline[0], data=inline[1], extra=extra)


def _read_call(field: str, item: object) -> ToolCall:
    call = as_mapping(field, item)
    kind = optional_text(field, call, "type") or "function"
    body = "custom" if kind == "custom" else "function"
    said = "input" if kind == "custom" else "arguments"
    inner = as_mapping(f"{field}.{body}", call.get(body))
    arguments = inner.get(said)
    if isinstance(arguments, Mapping):  # some servers parse them before the caller can
        arguments = json_text(f"{field}.{body}.{said}", arguments)
    elif arguments is not None:
        arguments = text_of(f"{field}.{body}", inner, said)
    extra = rest_of(call, "id", "type", body)
    if kind != "function":
        extra["type"] = kind
    if more := rest_of(inner, "name", said):
        extra[body] = more
    return ToolCall(text_of(field, call, "id"), text_of(f"{field}.{body}", inner, "name"), arguments or "", extra)


def _written_message(message: Message) -> dict[str, Any]:
    written: dict[str, Any] = {"role": message.role.value, "content": _written_content(message)}
    if message.name is not None:
        written["name"] = message.name
    if message.tool_calls:
        written["tool_calls"] = [_written_call(call) for call in message.tool_calls]
    if message.tool_call_id is not None and message.role is Role.TOOL:
        written["tool_call_id"] = message.tool_call_id
    return {**written, **message.extra}


def _written_content(message: Message) -> str | list[dict[str, Any]] | None:
    content = message.content
    if isinstance(content, str):
        says_otherwise = message.role is Role.ASSISTANT and (message.tool_calls or message.extra)
        return None if not content and says_otherwise else content
    parts = [_written_part(part) for part in content if not isinstance(part, ReasoningPart)]
    return parts or (None if message.tool_calls else "")


def _written_part(part: ContentPart) -> dict[str, Any]:
    if isinstance(part, ImagePart):
        return _written_image(part)
    if isinstance(part, FilePart):
        return _written_file(part)
    if isinstance(part, OpaquePart):
        return {"type": part.kind, **part.extra}
    return {"type": "text", "text": part.text, **part.extra}


def _written_image(part: ImagePart) -> dict[str, Any]:
    image: dict[str, Any] = {"url": part.url or data_url(part.media_type or "image/png", part.data or "")}
    if part.detail != "auto":
        image["detail"] = part.detail
    return {"type": "image_url", **part.extra, "image_url": {**image, **part.extra.get("image_url", {})}}


def _written_file(part: FilePart) -> dict[str, Any]:
    file: dict[str, Any] = {} if part.name is None else {"filename": part.name}
    if part.data is not None:
        file["file_data"] = data_url(part.media_type, part.data)
    file.update(part.extra.get("file", {}))
    if "file_data" in file or "file_id" in file:
        return {"type": "file", **part.extra, "file": file}
    told = [each for each in (part.name, part.url, part.text) if each]
    return {"type": "text", "text": "\n".join(told)}


def _written_call(call: ToolCall) -> dict[str, Any]:
    kind = call.extra.get("type", "function")
    body, said = ("custom", "input") if kind == "custom" else ("function", "arguments")
    inner = {"name": call.name, said: call.arguments, **call.extra.get(body, {})}
    return {"id": call.id, "type": kind, **call.extra, body: inner}
