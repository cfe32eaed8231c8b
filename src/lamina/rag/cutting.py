"""Cuts by tokens alone, for texts that have no better place to be cut at."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from typing import Final

from lamina.rag.units import Count

__all__ = ["pieces", "tail_start", "windows"]

_JOINERS: Final = "\u200d\ufe0e\ufe0f"
_MAX_BACK: Final = 32
"""How many characters a cut gives way at most, so that it does not part what is one sign."""
_CHARS_PER_TOKEN: Final = 4
"""The first guess."""
_GROWTH: Final = 8
_GUESSES: Final = 5
_SNAP: Final = 8
"""A cut that may choose its place goes back to a space within the last 1/8 of the piece."""


def windows(text: str, size: int, overlap: int, *, count: Count) -> Iterator[tuple[int, int, int]]:
    """Start, end of what the window before has, and end of windows of `size` tokens that overlap by `overlap`.

    Each goes beyond the one before. Only a single character of more tokens than `size` makes a larger one.
    """
    end = 0
    while end < len(text):
        start = tail_start(text, 0, end, limit=overlap, count=count) if end else 0
        after = head_end(text, start, len(text), limit=size, count=count)
        if after <= end:
            start = end
            after = head_end(text, start, len(text), limit=size, count=count)
        yield start, end, after
        end = after


def pieces(text: str, start: int, end: int, *, size: int, count: Count) -> Iterator[tuple[int, int]]:
    """The span in pieces of at most `size` tokens each, cut at spaces where there are some."""
    while start < end:
        after = head_end(text, start, end, limit=size, count=count)
        if after < end:
            snapped = _snapped(text, start, after)
            after = snapped if count(text[start:snapped]) <= size else after
        yield start, after
        start = after


def head_end(text: str, start: int, end: int, *, limit: int, count: Count) -> int:
    """Up to where from `start` on there are at most `limit` tokens, and not many less; always beyond `start`."""
    length = _longest(lambda n: count(text[start : start + n]), end - start, limit)
    most = start + max(length, 1)
    cut = most
    while cut < end and cut > max(start + 1, most - _MAX_BACK) and _parts_a_sign(text, cut):
        cut -= 1
    if cut == most or (cut < end and _parts_a_sign(text, cut)):
        return most  # there was nothing to give way to, or it gave way in vain
    return cut if count(text[start:cut]) <= limit else most  # a shorter text may have more tokens


def tail_start(text: str, start: int, end: int, *, limit: int, count: Count) -> int:
    """From where on before `end` there are at most `limit` tokens; `end` itself if there is no room for any."""
    if limit < 1:
        return end
    least = end - _longest(lambda n: count(text[end - n : end]), end - start, limit)
    cut = least
    while cut < min(end, least + _MAX_BACK) and _parts_a_sign(text, cut):
        cut += 1
    return cut if count(text[cut:end]) <= limit else least


def _longest(size_of: Callable[[int], int], most: int, limit: int) -> int:
    """The greatest length within the limit, as far as sizes grow with it; guessed from what was counted last."""
    fits, exceeds = 0, most + 1  # as far as is known
    guess = min(most, limit * _CHARS_PER_TOKEN)
    step = 0
    while fits < guess < exceeds:
        step += 1
        tokens = size_of(guess)
        if tokens > limit:
            exceeds = guess
        else:
            fits = guess
            if tokens == limit:
                break
        aimed = guess * limit // max(tokens, 1)
        if exceeds <= most and step > _GUESSES:  # guesses by ratio may creep: halving ends soon
            guess = (fits + exceeds) // 2
        elif exceeds <= most:
            guess = min(max(aimed, fits + 1), exceeds - 1)
        else:
            least = guess + 1 if step <= _GUESSES else guess + guess // 4 + 1
            guess = min(max(aimed, least), guess * _GROWTH, most)
    return _to_the_edge(size_of, limit, fits, exceeds)


def _to_the_edge(size_of: Callable[[int], int], limit: int, fits: int, exceeds: int) -> int:
    """From a length that fits up to where the next token begins: first in strides, then by halving."""
    stride = 1
    while fits + stride < exceeds and size_of(fits + stride) <= limit:
        fits += stride
        stride *= 2
    exceeds = min(exceeds, fits + stride)
    while exceeds - fits > 1:
        middle = (fits + exceeds) // 2
        if size_of(middle) <= limit:
            fits = middle
        else:
            exceeds = middle
    return fits


def _snapped(text: str, start: int, cut: int) -> int:
    least = cut - (cut - start) // _SNAP
    for place in range(cut, max(least, start + 1), -1):
        if text[place - 1].isspace() and not text[place : place + 1].isspace():
            return place
    return cut


def _parts_a_sign(text: str, cut: int) -> bool:
    """Whether a cut here would part a line break, or a letter from its marks."""
    before, after = text[cut - 1 : cut], text[cut : cut + 1]
    if before == "\r" and after == "\n":
        return True
    return bool(after) and (unicodedata.combining(after) != 0 or after in _JOINERS or before == "\u200d")
