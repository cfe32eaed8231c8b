"""Where time and ids come from, so that both can be driven in tests."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

__all__ = ["Clock", "IdFactory", "new_memory_id", "utc_now"]

Clock: TypeAlias = Callable[[], datetime]
"""Returns the current instant, timezone-aware."""

IdFactory: TypeAlias = Callable[[], str]
"""Returns an id that was never returned before."""


def utc_now() -> datetime:
    """The system's clock: the one place in Lamina that reads it."""
    return datetime.now(UTC)


def new_memory_id() -> str:
    """`mem_` and 32 hex digits of a random UUID."""
    return f"mem_{uuid.uuid4().hex}"
