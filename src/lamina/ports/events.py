"""What the parts tell a host about: names, and what an event carries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

__all__ = ["Emit", "Event", "EventName"]


class EventName(StrEnum):
    """Everything that a host can subscribe to."""

    MEMORY_STORED = "memory.stored"
    MEMORY_VETOED = "memory.vetoed"
    MEMORY_RECALLED = "memory.recalled"
    MEMORY_FORGOTTEN = "memory.forgotten"
    MEMORY_DECAYED = "memory.decayed"
    SECRETS_FOUND = "secrets.found"
    THREAD_SUMMARIZED = "thread.summarized"
    THREAD_SUMMARY_FAILED = "thread.summary_failed"
    THREAD_ARCHIVED = "thread.archived"
    CONTEXT_COMPUTED = "context.computed"
    CONTEXT_TRIMMED = "context.trimmed"
    CONTEXT_COMPACTED = "context.compacted"
    CONTEXT_SUMMARIZED = "context.summarized"
    ENGINE_QUARANTINED = "engine.quarantined"
    PACK_DEGRADED = "pack.degraded"
    PACK_REPROMOTED = "pack.repromoted"
    INTENT_COMPLETED = "intent.completed"
    INTENT_FAILED = "intent.failed"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that has happened: ids, counts and names, never content."""

    name: EventName
    at: datetime
    tenant: str
    facts: Mapping[str, Any] = field(default_factory=dict)


Emit: TypeAlias = Callable[[Event], None]
"""Takes an event; returns at once and raises nothing."""
