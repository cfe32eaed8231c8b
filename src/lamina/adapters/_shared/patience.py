"""Trying again for a while: what others hold up, or a backend has not done yet."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

__all__ = ["attempts"]


def attempts(patience: float, *, first: float, longest: float) -> Iterator[None]:
    """One turn at once, and more until so many seconds are over, with growing waits between them.

    The waits are chance ones, of no more than `first` seconds and then twice as long each time, up to
    `longest`: so those that were in each other's way do not meet again.
    """
    until = time.monotonic() + patience
    wait = first
    while True:
        yield
        if time.monotonic() > until:
            return
        time.sleep(random.uniform(0, wait))  # noqa: S311 - no secret
        wait = min(2 * wait, longest)
