"""Whether anything that was found has to do with the query at all: pure arithmetic.

There is always something that is closest. Whether it is close is told by its `match` (see `ScoreBreakdown`), against
a level that was measured: nothing that stands in a store is an answer to what was never told, and an empty list says
so. What is no answer but stands near one cannot be told apart in this way. The figures are in `docs/retrieval.md`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from lamina.domain.recall import AUTO, Cutoff
from lamina.domain.validation import check_unit_interval
from lamina.errors import InvalidInput

__all__ = ["cut_off", "read_min_match"]

SHARE_OF_BEST: Final = 0.5
"""What matches less than so much of what the best does is no answer beside it."""


def read_min_match(value: object, default: Cutoff | None = None, *, field: str = "min_match") -> Cutoff | None:
    """The cut-off, or the default where none is given."""
    if value is None:
        return default
    if value == AUTO:
        return AUTO
    if isinstance(value, str):
        raise InvalidInput(field, f"{value!r} is no cut-off", f"Give 0 to 1, or {AUTO!r}.")
    return check_unit_interval(field, value)


def cut_off(asked: Cutoff | None, matches: Iterable[float], level: float | None) -> float:
    """The match that a result must have, in figures, given those of the first candidates.

    Under `auto` it is the level as long as nothing reaches it, then a share of the best match. Where there is no
    level, because nothing but words is compared, `auto` asks for nothing.
    """
    if asked != AUTO:
        return asked or 0.0
    if level is None:
        return 0.0
    best = max(matches, default=0.0)
    return level if best < level else SHARE_OF_BEST * best
