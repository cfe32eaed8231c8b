"""Two ways in turn, block by block, so that a busy moment of the machine falls on both."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

BLOCK: Final = 10

Step = Callable[[Any], Awaitable[object]]


async def timed(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


async def alternate(things: Sequence[Any], *ways: Step, seconds: float, block: int = BLOCK) -> list[list[float]]:
    """Seconds for each thing of each way: blocks of the ways in turn, the order turned round each time.

    It ends with a whole round when the things do or the seconds are over; at least one block is done.
    """
    times: list[list[float]] = [[] for _ in ways]
    until = time.perf_counter() + seconds
    order = list(range(len(ways)))
    for begin in range(0, len(things), block):
        for way in order:
            times[way] += [await timed(ways[way](thing)) for thing in things[begin : begin + block]]
        if time.perf_counter() > until:
            break
        order.reverse()
    return times
