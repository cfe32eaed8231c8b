"""Where time and ids come from, so that both can be driven in tests."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, TypeAlias

__all__ = ["Clock", "IdFactory", "new_memory_id", "utc_now"]

Clock: TypeAlias = Callable[[], datetime]
"""Returns the current instant, timezone-aware."""

IdFactory: TypeAlias = Callable[[], str]
"""Returns an id that was never returned before."""

_VERSION_7: Final = 0x7 << 76 | 0b10 << 62
_RANDOM: Final = (1 << 12) - 1 << 64 | (1 << 62) - 1
"""The bits of a UUID of version 7 that nothing is said about."""


def utc_now() -> datetime:
    """The system's clock: the one place in Lamina that reads it."""
    return datetime.now(UTC)


def new_memory_id() -> str:
    """`mem_` and 32 hex digits of a UUID of version 7: the millisecond, then 74 random bits.

    So the ids of what is stored together stand together in an index, which is written in fewer places.
    """
    milliseconds = time.time_ns() // 1_000_000
    chance = int.from_bytes(os.urandom(10), "big")
    return f"mem_{milliseconds << 80 | _VERSION_7 | chance & _RANDOM:032x}"
