"""What a conversation is, and what stands for the part of it that is no longer shown in full."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from lamina.domain.message import Message

__all__ = [
    "Events",
    "LiveThread",
    "Summary",
    "SummarySource",
    "Thread",
    "ThreadContext",
    "ThreadEvent",
    "ThreadKind",
    "ThreadRef",
    "ThreadStatus",
]


class ThreadKind(StrEnum):
    """Threads and sessions are kept alike and never mixed: the same id may name one of each."""

    THREAD = "thread"
    """A conversation of the conversation manager."""
    SESSION = "session"
    """A session of short-term memory."""


class ThreadStatus(StrEnum):
    """Whether a thread takes part in contexts."""

    ACTIVE = "active"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True)
class ThreadRef:
    """Which thread: ids are compared for equality inside one tenant and kind."""

    tenant: str
    id: str
    kind: ThreadKind = ThreadKind.THREAD


@dataclass(slots=True)
class Thread:
    """The head of a thread. Treat it as a value.

    `last_index` is the index of its newest message. Messages up to `folded_through` are covered by the
    current summary and not live; system messages among them are shown all the same. `revision`
    grows with each change of the head that is not an append.
    """

    id: str
    tenant: str
    created_at: datetime
    updated_at: datetime
    """When a message was last added, or the head changed."""
    kind: ThreadKind = ThreadKind.THREAD
    owner: str | None = None
    namespace: str | None = None
    status: ThreadStatus = ThreadStatus.ACTIVE
    metadata: dict[str, Any] = field(default_factory=dict)
    last_index: int = 0
    folded_through: int = 0
    revision: int = 1
    messages: list[Message] = field(default_factory=list)
    """The live ones; filled by `ConversationManager.retrieve`, empty from the state store."""
    summaries: list[Summary] = field(default_factory=list)
    """The current one, if there is one; filled by `ConversationManager.retrieve`, empty from the state store."""

    @property
    def ref(self) -> ThreadRef:
        """What names it."""
        return ThreadRef(self.tenant, self.id, self.kind)

    def replace(self, **changes: Any) -> Thread:
        """A copy with these fields changed."""
        return dataclasses.replace(self, **changes)


@dataclass(slots=True)
class ThreadEvent:
    """A message as it is kept: with free state beside it, and its size.

    `tokens` is what the message costs as it stands now, by the counter named `counter`. `state` holds,
    under `__compaction__`, the original of a message that was replaced by a reference.
    """

    message: Message
    state: dict[str, Any] = field(default_factory=dict)
    tokens: int = 0
    counter: str = ""

    def replace(self, **changes: Any) -> ThreadEvent:
        """A copy with these fields changed."""
        return dataclasses.replace(self, **changes)


class Events(list[ThreadEvent]):
    """Messages that were read, in order, and the indexes of those that cannot be read and were left out.

    What is left out counts towards no limit. `lamina check` says what is wrong with it.
    """

    __slots__ = ("unreadable",)

    def __init__(self, events: Iterable[ThreadEvent] = (), unreadable: Sequence[int] = ()) -> None:
        super().__init__(events)
        self.unreadable = list(unreadable)


class SummarySource(StrEnum):
    """Who wrote a summary."""

    MODEL = "model"
    EXTRACTIVE = "extractive"
    """No model: sentences and facts picked from the text."""
    CUSTOM = "custom"
    """The host's own summariser."""


@dataclass(slots=True)
class Summary:
    """What stands for the messages `from_index` to `to_index` of a thread."""

    text: str
    from_index: int
    to_index: int
    created_at: datetime
    source: SummarySource = SummarySource.EXTRACTIVE
    topics: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    form: dict[str, Any] = field(default_factory=dict)
    """The structured summary as JSON, where the thread is kept under the token tiers; else empty."""
    tokens: int = 0

    def replace(self, **changes: Any) -> Summary:
        """A copy with these fields changed."""
        return dataclasses.replace(self, **changes)


@dataclass(slots=True)
class ThreadContext:
    """What of a thread goes into a context: the summary of older messages, and the live ones in order.

    `messages` begins with the thread's system messages, the folded ones among them.
    """

    summary: str | None = None
    messages: list[Message] = field(default_factory=list)
    thread_id: str | None = None
    tokens: int = 0
    """What the summary and the messages cost, by the counter in force."""
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class LiveThread:
    """A thread as it stands: its head, its current summary, and what is live beside it.

    `system` are the folded messages of the role system, which are shown all the same. `count` and `tokens` are of
    all live messages; `events` are these messages, or empty where they were not asked for.
    """

    head: Thread
    summary: Summary | None = None
    system: Events = field(default_factory=Events)
    events: Events = field(default_factory=Events)
    count: int = 0
    tokens: int = 0
