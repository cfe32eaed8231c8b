"""Threads on the wire."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field

from lamina.conversation.folding import CompactionReport
from lamina.domain import thread as domain
from lamina.domain.message import Message
from lamina.domain.message_json import message_to_json
from lamina.server.wire.messages import MessageForm
from lamina.server.wire.strict import BY_VALUE, Flag, JsonObject, Name, StrictBody

__all__ = [
    "Compact",
    "Compacted",
    "Extracted",
    "Messages",
    "NewThread",
    "Thread",
    "ThreadChanges",
    "ThreadContext",
    "ThreadWithMessages",
]


class NewThread(StrictBody):
    """A thread to begin. Without an `id` it gets one; without an `owner` every owner shares it."""

    id: Name | None = Field(default=None, examples=["ticket-7"])
    owner: Name | None = None
    namespace: Name | None = None
    metadata: JsonObject = Field(default_factory=dict)


class ThreadChanges(StrictBody):
    """What is to be changed: an archived thread takes part in no context and takes no messages; nothing is lost."""

    status: Annotated[domain.ThreadStatus, BY_VALUE]


class Thread(BaseModel):
    """The head of a thread. `last_index` is of its newest message, `folded_through` of the newest behind a summary.

    `revision` grows with each change of the head that is not a message.
    """

    id: str
    owner: str | None
    namespace: str | None
    status: domain.ThreadStatus
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    last_index: int
    folded_through: int
    revision: int

    @classmethod
    def of(cls, thread: domain.Thread) -> Self:
        """The head on the wire."""
        return cls(**{name: getattr(thread, name) for name in Thread.model_fields})


class Summary(BaseModel):
    """What stands for the messages `from_index` to `to_index`."""

    text: str
    from_index: int
    to_index: int
    created_at: datetime
    source: domain.SummarySource
    topics: list[str]
    facts: list[str]
    form: dict[str, Any]
    tokens: int

    @classmethod
    def of(cls, summary: domain.Summary) -> Self:
        """The summary on the wire."""
        return cls(**asdict(summary))


class ThreadWithMessages(Thread):
    """A thread with its live messages, and the summary that stands for the older ones."""

    messages: list[MessageForm]
    summaries: list[Summary]

    @classmethod
    def of(cls, thread: domain.Thread) -> Self:
        """The thread on the wire."""
        return cls(
            **Thread.of(thread).model_dump(),
            messages=[message_to_json(each) for each in thread.messages],
            summaries=[Summary.of(each) for each in thread.summaries],
        )


class Messages(BaseModel):
    """Messages as they are kept, in order."""

    data: list[MessageForm]

    @classmethod
    def of(cls, messages: list[Message]) -> Self:
        """The messages on the wire."""
        return cls(data=[message_to_json(each) for each in messages])


class ThreadContext(BaseModel):
    """What of a thread goes into a context. `tokens` is the size of the summary and the messages."""

    thread_id: str | None
    summary: str | None
    messages: list[MessageForm]
    tokens: int
    warnings: list[str]

    @classmethod
    def of(cls, context: domain.ThreadContext) -> Self:
        """The context on the wire."""
        return cls(
            thread_id=context.thread_id,
            summary=context.summary,
            messages=[message_to_json(each) for each in context.messages],
            tokens=context.tokens,
            warnings=context.warnings,
        )


class Compact(StrictBody):
    """Whether to fold whatever the number of messages, or with `force` off only if it is due."""

    force: Flag = True


class Compacted(BaseModel):
    """How many messages the summary stands for now, how many stay, and what did not work."""

    compacted: int
    kept: int
    summary: str | None
    facts_stored: int
    source: domain.SummarySource | None
    warnings: list[str]

    @classmethod
    def of(cls, report: CompactionReport) -> Self:
        """The report on the wire."""
        return cls(**asdict(report))


class Extracted(BaseModel):
    """The ids of the memories that hold the facts."""

    ids: list[str]
