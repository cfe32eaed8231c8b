"""Messages with tool calls and parts, as plain text for models that know no others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lamina.domain.message import FilePart, ImagePart, Message, OpaquePart, Role, TextPart
from lamina.ports.language_model import ChatMessage, ChatRole

__all__ = ["to_chat"]

_ROLES: Final = {
    Role.SYSTEM: ChatRole.SYSTEM,
    Role.USER: ChatRole.USER,
    Role.ASSISTANT: ChatRole.ASSISTANT,
    Role.TOOL: ChatRole.USER,
}


def to_chat(messages: Sequence[Message]) -> list[ChatMessage]:
    """The messages in words; what has none (a picture, a file) is named in brackets, thoughts are left out.

    A call of a tool is told by its speaker, its result in the user's role, since models of plain text know no
    other that is not their own. Neighbours of one role, but for system messages, are joined.
    """
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    chat: list[ChatMessage] = []
    for message in messages:
        said = _said(message, names)
        role = _ROLES[message.role]
        if not said:
            continue
        if chat and chat[-1].role is role and role is not ChatRole.SYSTEM:
            chat[-1] = ChatMessage(role, f"{chat[-1].content}\n\n{said}")
        else:
            chat.append(ChatMessage(role, said))
    return chat


def _said(message: Message, names: dict[str, str]) -> str:
    text = (
        message.content if isinstance(message.content, str) else "\n\n".join(filter(None, map(_part, message.content)))
    )
    if message.role is Role.TOOL:
        name = message.name or names.get(message.tool_call_id or "", "a tool")
        return f"[result of {name}]\n{text}"
    calls = [f"[called {call.name} with {call.arguments}]" for call in message.tool_calls]
    return "\n\n".join(filter(None, [text, *calls]))


def _part(part: object) -> str:
    match part:
        case TextPart():
            return part.text
        case FilePart():
            return part.text or f"[file: {part.name or part.media_type or 'unnamed'}]"
        case ImagePart():
            return "[picture]"
        case OpaquePart():
            return f"[{part.kind}]"
        case _:
            return ""
