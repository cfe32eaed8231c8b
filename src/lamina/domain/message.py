"""What is said in a conversation: text, pictures, files, thoughts, tool calls and what they gave.

The shape follows what agents really send. The text of most messages is a plain `str`; a message of
several kinds of content is a list of parts. What a provider adds to a message, a part or a call
and Lamina does not know (signatures, cache marks, encrypted thoughts) is kept in `extra` and given back
as it came.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

__all__ = [
    "ContentPart",
    "FilePart",
    "ImagePart",
    "Message",
    "OpaquePart",
    "ReasoningPart",
    "Role",
    "TextPart",
    "ToolCall",
]


class Role(StrEnum):
    """Who speaks."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    """The outcome of a tool call; `tool_call_id` says of which."""


@dataclass(slots=True)
class TextPart:
    """Words."""

    text: str
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ImagePart:
    """A picture: where it is (`url`), or its bytes in base64 (`data`, with the `media_type`).

    `width` and `height`, in pixels, are used for its cost in tokens where they are known; `detail`
    is `low`, `high` or `auto`.
    """

    url: str | None = None
    data: str | None = field(default=None, repr=False)
    media_type: str | None = None
    width: int | None = None
    height: int | None = None
    detail: str = "auto"
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class FilePart:
    """A file: where it is (`url`), its bytes in base64 (`data`), or the text taken from it (`text`)."""

    name: str | None = None
    media_type: str | None = None
    url: str | None = None
    data: str | None = field(default=None, repr=False)
    text: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ReasoningPart:
    """What the model thought before it spoke; shown to it again, never to be searched or summarised as speech."""

    text: str
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class OpaquePart:
    """A kind of content that Lamina does not know, kept as it came: `kind` is its `type`, `extra` the rest."""

    kind: str
    extra: dict[str, Any] = field(default_factory=dict)


ContentPart: TypeAlias = TextPart | ImagePart | FilePart | ReasoningPart | OpaquePart


@dataclass(slots=True)
class ToolCall:
    """A wish of the model that a tool be run; `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str = "{}"
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Message:
    """One message, treated as a value: change a copy, made with `replace`.

    `index` is its place in its thread, counting from 1 and never given twice; 0 before it is stored.
    An empty `id` and a missing `timestamp` are filled in when it is stored. `parent` is the id of the
    message that it follows.
    """

    role: Role
    content: str | list[ContentPart]
    id: str = ""
    timestamp: datetime | None = None
    index: int = 0
    name: str | None = None
    tool_calls: list[ToolCall] = field(default_factory=list)
    tool_call_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    parent: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def system(cls, content: str) -> Message:
        """A message that instructs the model."""
        return cls(Role.SYSTEM, content)

    @classmethod
    def user(cls, content: str | list[ContentPart]) -> Message:
        """A message of the user."""
        return cls(Role.USER, content)

    @classmethod
    def assistant(cls, content: str | list[ContentPart], *, tool_calls: list[ToolCall] | None = None) -> Message:
        """A message of the model."""
        return cls(Role.ASSISTANT, content, tool_calls=tool_calls or [])

    @classmethod
    def tool(cls, content: str | list[ContentPart], *, call_id: str) -> Message:
        """The outcome of the tool call of this id."""
        return cls(Role.TOOL, content, tool_call_id=call_id)

    @property
    def text(self) -> str:
        """What was said, in words alone: the text parts and the texts of files, a blank line between them."""
        if isinstance(self.content, str):
            return self.content
        texts = (part.text for part in self.content if isinstance(part, TextPart | FilePart))
        return "\n\n".join(text for text in texts if text)

    def replace(self, **changes: Any) -> Message:
        """A copy with these fields changed; lists and mappings are shared unless changed."""
        return dataclasses.replace(self, **changes)
