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

_DRAWN_AT_ONCE: Final = 256
_drawn: Final[list[int]] = []
if hasattr(os, "register_at_fork"):  # or a forked process would go on with the numbers of its parent
    os.register_at_fork(after_in_child=_drawn.clear)


def utc_now() -> datetime:
    """The system's clock, which nothing but this module reads."""
    return datetime.now(UTC)


def new_memory_id() -> str:
    """`mem_` and 32 hex digits of a UUID of version 7: the millisecond, then 74 random bits.

    So the ids of what is stored together stand together in an index, which is written in fewer places.
    """
    milliseconds = time.time_ns() // 1_000_000
    return f"mem_{milliseconds << 80 | _VERSION_7 | _chance() & _RANDOM:032x}"


def _chance() -> int:
    """Eighty random bits; many are drawn at once, since each time the system is asked other threads take over."""
    try:
        return _drawn.pop()
    except IndexError:
        data = os.urandom(10 * _DRAWN_AT_ONCE)
        first, *others = (int.from_bytes(data[start : start + 10], "big") for start in range(0, len(data), 10))
        _drawn.extend(others)
        return first
