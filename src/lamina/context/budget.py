"""How much of what was found is kept, so that what is sent stays within a budget: pure arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["fits_alone", "keep_count", "settle"]

T = TypeVar("T")


def fits_alone(items: Sequence[T], sizes: Sequence[int], room: int) -> tuple[list[T], list[tuple[T, int]]]:
    """The items that could be kept if nothing else were, and the others with their sizes.

    Without this, one item larger than the room would drive out everything below it and then go itself.
    """
    kept = [item for item, size in zip(items, sizes, strict=True) if size <= room]
    return kept, [(item, size) for item, size in zip(items, sizes, strict=True) if size > room]


def keep_count(total: int, budget: int, measure: Callable[[int], int]) -> int:
    """How many of `total` items, the most important first, may be kept: the most for which `measure` fits.

    `measure` gives the size of everything that is sent with that many items. What is dropped is dropped from
    the end; 0 if even nothing fits.
    """
    if total == 0 or measure(total) <= budget:
        return total
    fitting, failing = 0, total
    while failing - fitting > 1:
        middle = (fitting + failing) // 2
        if measure(middle) <= budget:
            fitting = middle
        else:
            failing = middle
    return fitting


def settle(kept: int, total: int, fits: Callable[[int], bool]) -> int:
    """The count corrected by an exact test, where it was found by an estimate: fewer until they fit, or more."""
    fewer = kept
    while fewer and not fits(fewer):
        fewer -= 1
    if fewer < kept:
        return fewer
    while kept < total and fits(kept + 1):
        kept += 1
    return kept
