"""Numbers that grow, without anybody who counts.

Some backends have no counter: nothing there can be changed on a condition. So a `seq` is the instant,
in microseconds, with chance below it. Those of one adapter grow whatever the clock does; those of
several processes differ, and lie in the order of their machines' clocks.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import Final

from lamina.domain.instants import to_micros
from lamina.ports.clock import Clock

__all__ = ["SLOTS", "Sequence"]

SLOTS: Final = 2048
"""How many `seq`s a microsecond has."""

AHEAD: Final = 60 * 1_000_000 * SLOTS
"""A minute of numbers: how far ahead of the last one the mark lies that is kept in the store."""


class Sequence:
    """Gives numbers.

    Args:
        clock: What they begin with.
        kept: The mark that is stored, or 0.
        keep: Stores a mark above every number that was given; called once in a minute of writing at most.
    """

    def __init__(self, clock: Clock, kept: int, keep: Callable[[int], None]) -> None:
        self._clock = clock
        self._keep = keep
        self._mark = kept
        self._last = 0
        self._lock = threading.Lock()
        if kept > self._now() + 2 * AHEAD:  # the clock was set back since
            self._last = kept + secrets.randbelow(AHEAD)

    def take(self, number: int) -> int:
        """The first of so many numbers in a row, greater than all before."""
        with self._lock:
            first = max(self._now(), self._last + 1)
            last = first + number - 1
            if last > self._mark:
                self._keep(last + AHEAD)
                self._mark = last + AHEAD
            self._last = last
            return first

    def _now(self) -> int:
        return to_micros(self._clock()) * SLOTS + secrets.randbelow(SLOTS)
