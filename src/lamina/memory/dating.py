"""When a memory's event was, beside when the query says: pure arithmetic.

A memory whose `occurred_at` lies in a period that the query names is more likely to answer it; one that lies outside
is the less so the further away it is. Where it is not known when something was, nothing is assumed. And a text that
speaks of a time is more likely to answer when something was. The figures are in `docs/retrieval.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from math import exp
from typing import Final

from lamina.domain.memory import MemoryEntry
from lamina.domain.periods import Period, time_words
from lamina.ports.memory_requests import PoolEntry

__all__ = ["timeliness"]

TIMELY: Final = 0.15
"""What it adds to the similarity that the event lies within a period."""

SHORTEST_FALL: Final = timedelta(days=7)
"""At this distance from a period, or at half its length if that is more, e^-1 of it is left."""


TELLING: Final = 0.1
"""What it adds that the query asks for a time, and the text has a word for one."""

BEGINNING: Final = 2_000
"""Characters of a text that are searched for such a word."""


def timeliness(query: str, entries: Sequence[MemoryEntry | PoolEntry], periods: Sequence[Period]) -> list[float]:
    """What is added to each entry's similarity, for each in order: by its best period, and by telling a time."""
    words = time_words(query)
    if words is None and not periods:
        return [0.0] * len(entries)
    return [
        max((_nearness(entry, period) for period in periods), default=0.0)
        + TELLING * (words is not None and words.search(entry.content[:BEGINNING].casefold()) is not None)
        for entry in entries
    ]


def _nearness(entry: MemoryEntry | PoolEntry, period: Period) -> float:
    """From 0 to `TIMELY`; 0 where it is not known when it was."""
    moment = entry.occurred_at
    if moment is None:
        return 0.0
    distance = max(period.start - moment, moment - period.end, timedelta())
    return TIMELY * exp(-distance / max(SHORTEST_FALL, (period.end - period.start) / 2))
