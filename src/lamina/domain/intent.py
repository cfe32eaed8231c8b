"""What somebody wants of an agent, and what came of it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from lamina.domain.context import ComputedContext
from lamina.domain.message import Message
from lamina.domain.usage import Usage

__all__ = ["Intent", "IntentError", "IntentResult", "IntentStatus", "IntentTimings"]


class IntentStatus(StrEnum):
    """How far an intent is."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(slots=True)
class Intent:
    """A goal of an owner. Treat it as a value.

    `metadata` may name the `thread_id` that it belongs to, the `agent` that is to serve it, and the `namespace`
    that its memories and a thread made for it are of.
    """

    id: str
    goal: str
    owner: str
    created_at: datetime
    metadata: dict[str, Any] = field(default_factory=dict)
    status: IntentStatus = IntentStatus.PENDING

    @property
    def thread_id(self) -> str | None:
        """The thread that the intent joins, if it names one."""
        return self.metadata.get("thread_id")

    @property
    def agent(self) -> str | None:
        """The agent that is to serve the intent, if it names one."""
        return self.metadata.get("agent")

    @property
    def namespace(self) -> str | None:
        """The namespace that the intent keeps to, if it names one."""
        return self.metadata.get("namespace")

    def replace(self, **changes: Any) -> Intent:
        """A copy with these fields changed."""
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True, slots=True)
class IntentError:
    """Why an intent failed: the class of the error, and its words."""

    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


@dataclass(slots=True)
class IntentTimings:
    """Seconds that each part of an intent took; zero for what was not come to."""

    context: float = 0.0
    agent: float = 0.0
    append: float = 0.0
    auto_save: float = 0.0
    total: float = 0.0


@dataclass(slots=True)
class IntentResult:
    """What came of an intent.

    If it failed, `error` says why. An `answer` beside an error was given, but could not be kept.
    `messages` are those that the turn added to the thread, or would have added without one: the goal, calls of
    tools and their results, the answer. `saved` are the ids of memories that auto-save stored.
    """

    intent_id: str
    status: IntentStatus
    answer: str | None = None
    context: ComputedContext | None = None
    agent: str | None = None
    thread_id: str | None = None
    error: IntentError | None = None
    usage: Usage = field(default_factory=Usage)
    timings: IntentTimings = field(default_factory=IntentTimings)
    messages: list[Message] = field(default_factory=list)
    saved: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def duration(self) -> float:
        """Seconds from submission to the end."""
        return self.timings.total

    def replace(self, **changes: Any) -> IntentResult:
        """A copy with these fields changed."""
        return dataclasses.replace(self, **changes)
