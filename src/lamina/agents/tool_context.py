"""What a tool or an executor may reach of the turn that it serves."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Protocol

from lamina.domain.intent import Intent
from lamina.domain.message import Message
from lamina.domain.thread import ThreadContext
from lamina.memory.owner_view import OwnerMemory

__all__ = ["ThreadView", "ToolContext"]


class ThreadView(Protocol):
    """The thread of the turn, to be read. What the turn itself says is added to it after the answer."""

    @property
    @abstractmethod
    def id(self) -> str:
        """The thread's id."""
        ...

    @abstractmethod
    async def context(self) -> ThreadContext:
        """The summary and the live messages."""
        ...

    @abstractmethod
    async def history(self, *, offset: int = 0, limit: int = 100) -> list[Message]:
        """All messages that there were, oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The intent, its owner's memories and its thread.

    A parameter of a tool or an executor that is annotated with this class gets it; a model neither sees
    nor fills it.
    """

    intent: Intent
    memory: OwnerMemory = field(repr=False)
    thread: ThreadView | None = field(default=None, repr=False)
    """None where the intent names no thread."""
