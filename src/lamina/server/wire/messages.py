"""Messages on the wire: in Lamina's own form, which loses nothing, or as OpenAI's chat completions have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Discriminator, Field, StringConstraints, Tag, WithJsonSchema

from lamina.domain.message import Message, Role
from lamina.domain.message_json import message_from_json, part_from_json
from lamina.server.wire.strict import BY_VALUE, NO_NUL, JsonObject, Moment, Name, StrictBody

__all__ = [
    "AContent",
    "Format",
    "LaminaMessage",
    "MessageForm",
    "NewMessages",
    "OpenAiMessage",
    "Words",
    "content_of",
    "format_of",
]

MAX_MESSAGES: Final = 1000
ARole = Annotated[Role, BY_VALUE]
Words = Annotated[str, StringConstraints(max_length=1_000_000, pattern=NO_NUL)]
"""Text that may be empty."""
Pixels = Annotated[int, Field(ge=1, le=2**31 - 1)]
Format = Literal["openai", "lamina"]

_PROPERTIES: Final = {
    "role": {"type": "string", "enum": [each.value for each in Role]},
    "content": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]},
    "id": {"type": "string"},
    "timestamp": {"type": "string", "format": "date-time"},
    "index": {"type": "integer", "description": "Its place in its thread or session, from 1 on."},
    "name": {"type": "string"},
    "tool_calls": {"type": "array", "items": {"type": "object"}},
    "tool_call_id": {"type": "string"},
    "metadata": {"type": "object"},
    "parent": {"type": "string"},
    "extra": {"type": "object", "description": "What else its provider gave with it."},
}
MessageForm = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "title": "Message",
            "description": "A message in Lamina's own form. What is empty is left out.",
            "properties": _PROPERTIES,
            "required": ["role", "content"],
        }
    ),
]


class Speech(StrictBody):
    """Words."""

    type: Literal["text"]
    text: str
    extra: JsonObject = Field(default_factory=dict)


class Picture(StrictBody):
    """A picture: where it is, or its bytes in base64."""

    type: Literal["image"]
    url: str | None = None
    data: str | None = None
    media_type: str | None = None
    width: Pixels | None = None
    height: Pixels | None = None
    detail: str = "auto"
    extra: JsonObject = Field(default_factory=dict)


class File(StrictBody):
    """A file: where it is, its bytes in base64, or the text taken from it."""

    type: Literal["file"]
    name: str | None = None
    media_type: str | None = None
    url: str | None = None
    data: str | None = None
    text: str | None = None
    extra: JsonObject = Field(default_factory=dict)


class Reasoning(StrictBody):
    """What a model thought before it spoke."""

    type: Literal["reasoning"]
    text: str
    extra: JsonObject = Field(default_factory=dict)


class Opaque(StrictBody):
    """A kind of content that Lamina does not know, kept as it came."""

    type: Literal["opaque"]
    kind: str
    extra: JsonObject = Field(default_factory=dict)


Part = Annotated[Speech | Picture | File | Reasoning | Opaque, Field(discriminator="type")]
AContent: TypeAlias = str | Annotated[list[Part], Field(max_length=1000)]


class Call(StrictBody):
    """A wish of a model that a tool be run; `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str
    extra: JsonObject = Field(default_factory=dict)


class LaminaMessage(StrictBody):
    """A message in Lamina's own form, as this server gives messages. Its `index` is given here, whatever it was."""

    role: ARole
    content: AContent
    id: Name | None = None
    timestamp: Moment | None = None
    index: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    name: str | None = None
    tool_calls: Annotated[list[Call], Field(max_length=1000)] = Field(default_factory=list)
    tool_call_id: str | None = None
    metadata: JsonObject = Field(default_factory=dict)
    parent: Name | None = None
    extra: JsonObject = Field(default_factory=dict)

    def message(self) -> Message:
        """The message."""
        form = self.model_dump(mode="json", exclude_unset=True, exclude={"index"})
        return message_from_json({name: value for name, value in form.items() if value is not None})


OpenAiMessage = Annotated[
    JsonObject,
    WithJsonSchema(
        {
            "type": "object",
            "title": "OpenAiMessage",
            "description": "A message of OpenAI's chat completions; `id`, `timestamp` and `metadata` may stand beside.",
            "properties": {"role": {"type": "string"}},
            "required": ["role"],
            "examples": [{"role": "user", "content": "Which tea does Ann like?"}],
        }
    ),
]


def content_of(content: AContent) -> Any:
    """The content as the library takes it."""
    if isinstance(content, str):
        return content
    return [part_from_json(each.model_dump(mode="json", exclude_unset=True)) for each in content]


class OpenAiMessages(StrictBody):
    """Messages to add, as OpenAI's chat completions have them: all or none."""

    format: Literal["openai"] = "openai"
    messages: Annotated[list[OpenAiMessage], Field(min_length=1, max_length=MAX_MESSAGES)]

    def read(self) -> list[Message | Mapping[str, Any]]:
        """As the library takes them."""
        return [*self.messages]


class LaminaMessages(StrictBody):
    """Messages to add, in Lamina's own form: all or none."""

    format: Literal["lamina"]
    messages: Annotated[list[LaminaMessage], Field(min_length=1, max_length=MAX_MESSAGES)]

    def read(self) -> list[Message | Mapping[str, Any]]:
        """As the library takes them."""
        return [each.message() for each in self.messages]


def format_of(body: Any) -> str:
    """Which of the two forms a body says that it has; without a word, OpenAI's."""
    said = body.get("format") if isinstance(body, Mapping) else getattr(body, "format", None)
    return "lamina" if said == "lamina" else "openai"


NewMessages = Annotated[
    Annotated[OpenAiMessages, Tag("openai")] | Annotated[LaminaMessages, Tag("lamina")], Discriminator(format_of)
]
