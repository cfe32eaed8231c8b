"""Messages from and to pydantic-ai's form."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lamina.domain.message import ContentPart, FilePart, ImagePart, Message, OpaquePart, ReasoningPart, Role, ToolCall
from lamina.domain.message import TextPart as Words
from lamina.domain.text import clean

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponsePart, UserContent

__all__ = ["from_model_messages", "to_model_messages"]


def to_model_messages(messages: Sequence[Message]) -> list[ModelMessage]:
    """The messages as pydantic-ai has them; results of neighbouring tool calls stand in one request.

    Thoughts of earlier turns are left out, and so is content of a kind that has no counterpart there.
    """
    from pydantic_ai.messages import ModelRequest, ModelResponse

    names = {call.id: call.name for message in messages for call in message.tool_calls}
    converted: list[ModelMessage] = []
    for message in messages:
        if message.role is Role.ASSISTANT:
            converted.append(ModelResponse(parts=_response_parts(message)))
            continue
        part = _request_part(message, names)
        last = converted[-1] if converted else None
        if message.role is Role.TOOL and isinstance(last, ModelRequest) and last.parts[-1].part_kind == "tool-return":
            converted[-1] = ModelRequest(parts=[*last.parts, part])
        else:
            converted.append(ModelRequest(parts=[part]))
    return converted


def from_model_messages(messages: Sequence[ModelMessage]) -> list[Message]:
    """The messages of a run, as Lamina has them: thoughts and provider details are kept in `extra`."""
    from pydantic_ai.messages import ModelResponse

    converted: list[Message] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            converted.append(_from_response(message.parts))
        else:
            converted.extend(_from_request(part) for part in message.parts)
    return converted


def _request_part(message: Message, names: dict[str, str]) -> ModelRequestPart:
    from pydantic_ai.messages import SystemPromptPart, ToolReturnPart, UserPromptPart

    if message.role is Role.SYSTEM:
        return SystemPromptPart(clean(message.text))
    if message.role is Role.TOOL:
        call_id = message.tool_call_id or ""
        name = message.name or names.get(call_id) or "tool"
        return ToolReturnPart(tool_name=name, content=clean(message.text), tool_call_id=call_id)
    if isinstance(message.content, str):
        return UserPromptPart(clean(message.content))
    content = [item for part in message.content for item in _user_content(part)]
    return UserPromptPart(content or "")


def _user_content(part: ContentPart) -> list[UserContent]:
    from pydantic_ai.messages import BinaryContent, DocumentUrl, ImageUrl

    if isinstance(part, Words):
        return [clean(part.text)]
    if isinstance(part, FilePart) and part.text:
        return [clean(part.text)]
    if isinstance(part, ImagePart | FilePart) and part.data:
        try:
            data = base64.b64decode(part.data, validate=True)
        except (binascii.Error, ValueError):
            return ["[a file that cannot be read]"]
        return [BinaryContent(data=data, media_type=part.media_type or "application/octet-stream")]
    if isinstance(part, ImagePart) and part.url:
        return [ImageUrl(part.url)]
    if isinstance(part, FilePart) and part.url:
        return [DocumentUrl(part.url)]
    return [f"[{part.kind}]"] if isinstance(part, OpaquePart) else []


def _response_parts(message: Message) -> list[ModelResponsePart]:
    from pydantic_ai.messages import TextPart, ToolCallPart

    text = clean(message.text)
    parts: list[ModelResponsePart] = [TextPart(text)] if text else []
    parts += [
        ToolCallPart(tool_name=each.name, args=each.arguments, tool_call_id=each.id) for each in message.tool_calls
    ]
    return parts or [TextPart("")]


def _from_response(parts: Sequence[ModelResponsePart]) -> Message:
    from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart

    content: list[ContentPart] = []
    calls: list[ToolCall] = []
    for part in parts:
        if isinstance(part, TextPart):
            content.append(Words(clean(part.content)))
        elif isinstance(part, ThinkingPart):
            extra = {"signature": part.signature, "provider_name": part.provider_name}
            content.append(ReasoningPart(clean(part.content), {k: v for k, v in extra.items() if v is not None}))
        elif isinstance(part, ToolCallPart):
            calls.append(ToolCall(part.tool_call_id, part.tool_name, clean(_arguments(part.args))))
    if all(isinstance(each, Words) for each in content):
        return Message.assistant("".join(each.text for each in content if isinstance(each, Words)), tool_calls=calls)
    return Message.assistant(content, tool_calls=calls)


def _arguments(given: str | Mapping[str, Any] | None) -> str:
    if isinstance(given, str):
        return given or "{}"
    return json.dumps(given or {}, ensure_ascii=False)


def _from_request(part: ModelRequestPart) -> Message:
    from pydantic_ai.messages import SystemPromptPart, ToolReturnPart

    if isinstance(part, ToolReturnPart):
        message = Message.tool(clean(part.model_response_str()), call_id=part.tool_call_id)
        message.name = part.tool_name
        return message
    content = getattr(part, "content", "")
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
    return Message.system(clean(text)) if isinstance(part, SystemPromptPart) else Message.user(clean(text))
