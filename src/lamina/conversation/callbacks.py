"""What a host may hang into short-term memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from lamina.conversation.memory_events import MemoryEvent
from lamina.errors import ConfigError

__all__ = ["BeforeSummarize", "Labeler", "MemorySummarizer", "check_callbacks"]

MemorySummarizer: TypeAlias = Callable[[list[MemoryEvent]], Any]
"""Gets events in full (before them, one that shows the former summary, if there is one), and returns a
`StructuredSummary`, a mapping of its fields or a text; sync or async."""

Labeler: TypeAlias = Callable[[MemoryEvent], str | Awaitable[str]]
"""Says in a few words what an event holds; sync or async."""

BeforeSummarize: TypeAlias = Callable[[str, list[MemoryEvent]], Awaitable[None] | None]
"""Gets a session's id and the events that are about to be replaced; sync or async."""


def check_callbacks(**callbacks: object) -> None:
    """Refuse what is neither None nor callable, by its name."""
    for name, callback in callbacks.items():
        if callback is not None and not callable(callback):
            raise ConfigError(name, f"must be a callable, not {type(callback).__name__}", "Give a function.")
