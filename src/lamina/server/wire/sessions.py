"""Sessions of short-term memory on the wire."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Discriminator, Field, Tag

from lamina.conversation.memory_events import MemoryEvent, MemoryEventInput
from lamina.conversation.structured import StructuredSummary
from lamina.conversation.tiers import ContextReport
from lamina.domain.memory import UNSET
from lamina.domain.message_json import message_to_json
from lamina.domain.thread import ThreadEvent
from lamina.server.wire.messages import AContent, LaminaMessage, MessageForm, OpenAiMessage, content_of, format_of
from lamina.server.wire.strict import JsonObject, Limit, StrictBody, Text

__all__ = [
    "Cleared",
    "Deleted",
    "Event",
    "EventChanges",
    "Events",
    "Managed",
    "NewEvents",
    "Search",
    "Session",
    "Summaries",
]

MAX_EVENTS = 1000


class LaminaEvent(StrictBody):
    """A message in Lamina's own form, with free state beside it. Its size is counted here, whatever it was."""

    message: LaminaMessage
    state: JsonObject = Field(default_factory=dict)
    tokens: Annotated[int, Field(ge=0, le=2**40)] = 0
    counter: str = ""


class OpenAiEvent(StrictBody):
    """A message as OpenAI's chat completions have it, with free state beside it."""

    message: OpenAiMessage
    state: JsonObject = Field(default_factory=dict)


class OpenAiEvents(StrictBody):
    """Events to add, their messages as OpenAI's chat completions have them: all or none."""

    format: Literal["openai"] = "openai"
    events: Annotated[list[OpenAiEvent], Field(min_length=1, max_length=MAX_EVENTS)]

    def read(self) -> list[MemoryEventInput]:
        """As the library takes them."""
        return [{"message": each.message, "state": each.state} for each in self.events]


class LaminaEvents(StrictBody):
    """Events to add, their messages in Lamina's own form: all or none."""

    format: Literal["lamina"]
    events: Annotated[list[LaminaEvent], Field(min_length=1, max_length=MAX_EVENTS)]

    def read(self) -> list[MemoryEventInput]:
        """As the library takes them."""
        return [ThreadEvent(each.message.message(), dict(each.state)) for each in self.events]


NewEvents = Annotated[
    Annotated[OpenAiEvents, Tag("openai")] | Annotated[LaminaEvents, Tag("lamina")], Discriminator(format_of)
]


class EventChanges(StrictBody):
    """The fields to change. `state` takes the place of all state; new content also of a reference."""

    content: AContent | None = None
    state: JsonObject | None = None
    metadata: JsonObject | None = None

    def given(self) -> dict[str, Any]:
        """As `BaseMemory.update` takes them."""
        content = UNSET if self.content is None else content_of(self.content)
        return {
            "content": content,
            "state": UNSET if self.state is None else self.state,
            "metadata": UNSET if self.metadata is None else self.metadata,
        }


class Search(StrictBody):
    """The text that a message must hold."""

    text: Text
    limit: Limit = 10


class Event(BaseModel):
    """A message of a session with its state; `tokens` is its size as it stands, by the counter of this name."""

    message: MessageForm
    state: dict[str, Any]
    tokens: int
    counter: str

    @classmethod
    def of(cls, event: MemoryEvent) -> Self:
        """The event on the wire."""
        return cls(
            message=message_to_json(event.message), state=event.state, tokens=event.tokens, counter=event.counter
        )


class Events(BaseModel):
    """Events in order."""

    data: list[Event]

    @classmethod
    def of(cls, events: list[MemoryEvent]) -> Self:
        """The events on the wire."""
        return cls(data=[Event.of(each) for each in events])


class Session(BaseModel):
    """A session: how many events are shown of it, and in which tier of its size it is (1, 2 or 3)."""

    id: str
    count: int
    tier: int


class Deleted(BaseModel):
    """How many messages were deleted: a tool call goes with its results."""

    deleted: int


class Cleared(BaseModel):
    """How many sessions were deleted."""

    cleared: int


class Summaries(BaseModel):
    """The summaries that were ever current, the newest first."""

    data: list[dict[str, Any]]

    @classmethod
    def of(cls, summaries: list[StructuredSummary]) -> Self:
        """The summaries on the wire."""
        return cls(data=[each.to_json() for each in summaries])


class Managed(BaseModel):
    """What was done about the size of a session."""

    tier: int
    tokens_before: int
    tokens_after: int
    compacted: int
    summarized: int
    gain: int
    over_budget: bool
    warnings: list[str]

    @classmethod
    def of(cls, report: ContextReport) -> Self:
        """The report on the wire."""
        return cls(**{**asdict(report), "tier": report.tier.value})
