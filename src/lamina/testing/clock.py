"""Time and ids that a test drives."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count

from lamina.domain.validation import check_instant
from lamina.ports.clock import IdFactory

__all__ = ["FrozenClock", "counting_ids"]


class FrozenClock:
    """A clock that stands still until it is moved: by `advance`, or by setting `now`."""

    def __init__(self, now: datetime = datetime(2026, 3, 1, 9, tzinfo=UTC)) -> None:
        self._now = check_instant("now", now)

    def __call__(self) -> datetime:
        """The instant at which the clock stands, in UTC."""
        return self._now

    @property
    def now(self) -> datetime:
        """The instant at which the clock stands, in UTC; set it to an aware datetime to move it anywhere."""
        return self._now

    @now.setter
    def now(self, instant: datetime) -> None:
        self._now = check_instant("now", instant)

    def advance(self, by: timedelta | float) -> datetime:
        """Move on by a timedelta, or by seconds (back, if negative), and return the new instant."""
        self._now += by if isinstance(by, timedelta) else timedelta(seconds=by)
        return self._now


def counting_ids(prefix: str = "mem_") -> IdFactory:
    """A factory of `mem_000001`, `mem_000002` and so on: ids that sort as they were made."""
    numbers = count(1)
    return lambda: f"{prefix}{next(numbers):06d}"
