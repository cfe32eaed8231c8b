"""Messages with tool calls and parts, as plain text for models that know no others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from lamina.domain.message import FilePart, ImagePart, Message, OpaquePart, Role, TextPart
from lamina.domain.text_fencing import fenced, label
from lamina.ports.language_model import ChatMessage, ChatRole

__all__ = ["to_chat"]

_MARK: Final = re.compile(
    r"(?:^|(?<=[\r\v\f\x1c-\x1e\x85\u2028\u2029]))(?=[^\w\n\[]*\[\s*(?:end of\b|result of\b|file:|called\b))",
    re.MULTILINE | re.IGNORECASE,
)
_ROLES: Final = {
    Role.SYSTEM: ChatRole.SYSTEM,
    Role.USER: ChatRole.USER,
    Role.ASSISTANT: ChatRole.ASSISTANT,
    Role.TOOL: ChatRole.USER,
}


def to_chat(messages: Sequence[Message]) -> list[ChatMessage]:
    """The messages in words; what has none (a picture, a file) is named in brackets, thoughts are left out.

    A call of a tool is told by its speaker, its result in the user's role, since models of plain text know no
    other that is not their own. Neighbours of one role, but for system messages, are joined. The text of a result
    or a file stands between marks, and a line of it that looks like a mark gets a backslash, so that it cannot
    pass for the user's words.
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
        return _quoted(f"result of {message.name or names.get(message.tool_call_id or '', 'a tool')}", text)
    calls = [f"[called {call.name} with {call.arguments}]" for call in message.tool_calls]
    return "\n\n".join(filter(None, [text, *calls]))


def _quoted(name: str, text: str) -> str:
    mark = label(name)
    return f"[{mark}]\n{_MARK.sub(lambda _: chr(92), fenced(text))}\n[end of {mark}]"


def _part(part: object) -> str:
    match part:
        case TextPart():
            return part.text
        case FilePart():
            name = f"file: {part.name or part.media_type or 'unnamed'}"
            return _quoted(name, part.text) if part.text else f"[{label(name)}]"
        case ImagePart():
            return "[picture]"
        case OpaquePart():
            return f"[{label(part.kind)}]"
        case _:
            return ""
