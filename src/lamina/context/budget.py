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


def settle(guess: int, total: int, fits: Callable[[int], bool]) -> int:
    """How many of `total` items fit, found by few tests near a guess; 0 if not even one does.

    More fit no better than fewer. The steps away from the guess double until the border is passed.
    """
    fitting, failing, step = 0, total + 1, 1
    if guess and not fits(guess):
        failing = guess
        while failing - step > 0 and not fits(failing - step):
            failing, step = failing - step, 2 * step
        fitting = max(0, failing - step)
    else:
        fitting = guess
        while fitting < total:
            more = min(total, fitting + step)
            if not fits(more):
                failing = more
                break
            fitting, step = more, 2 * step
    while failing - fitting > 1:
        middle = (fitting + failing) // 2
        if fits(middle):
            fitting = middle
        else:
            failing = middle
    return fitting
