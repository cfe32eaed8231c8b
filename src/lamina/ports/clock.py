"""Where time and ids come from, so that both can be driven in tests."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, TypeAlias

__all__ = ["Clock", "IdFactory", "new_memory_id", "utc_now"]

Clock: TypeAlias = Callable[[], datetime]
"""Returns the current instant, timezone-aware."""

IdFactory: TypeAlias = Callable[[], str]
"""Returns an id that was never returned before."""

_DRAWN_AT_ONCE: Final = 256
_drawn: Final[list[str]] = []
if hasattr(os, "register_at_fork"):  # or a forked process would go on with the ids of its parent
    os.register_at_fork(after_in_child=_drawn.clear)


def utc_now() -> datetime:
    """The system's clock: the one place in Lamina that reads it."""
    return datetime.now(UTC)


def new_memory_id() -> str:
    """`mem_` and 32 hex digits of a random UUID."""
    return f"mem_{_random_uuid()}"


def _random_uuid() -> str:
    """The hex digits of one; many are drawn at once, since asking the system lets other threads go first."""
    try:
        return _drawn.pop()
    except IndexError:
        data = os.urandom(16 * _DRAWN_AT_ONCE)
        first, *others = (uuid.UUID(bytes=data[at : at + 16], version=4).hex for at in range(0, len(data), 16))
        _drawn.extend(others)
        return first
