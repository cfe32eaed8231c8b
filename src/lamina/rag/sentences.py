"""Where sentences end. Rules, not a model: an end that is doubtful is no end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

__all__ = ["sentence_spans"]

_STOP: Final = re.compile(
    r"(?P<full>[。！？｡]++[」』”’）】》\"')]*+)"  # needs no space after it  # noqa: RUF001
    r"|[.!?…؟۔।॥։።]++[\"'”’»)\]*_]*+"  # noqa: RUF001
)
_SPACE: Final = re.compile(r"\s*+")
_WORD_CHARS: Final = 16
"""How far back a word before a full stop is looked for: no abbreviation is longer."""
_WORD: Final = re.compile(r"[^\s(\[\"'“‘«]*\Z")  # noqa: RUF001
_LONGEST_ORDINAL: Final = 2
"""Digits before a full stop that more often make an ordinal or a list's number than end a sentence."""

_ABBREVIATIONS: Final = frozenset(
    "mr mrs ms dr prof rev hon gen col capt lt sgt gov sen rep st mt ft "
    "vs cf fig figs eq eqs sec no nos vol vols ch chap p pp ed eds al approx dept est viz resp incl excl max min "
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thurs fri sat sun "
    "nr bzw ca abb bd ggf evtl inkl sog vgl zzgl str hr fr art abs tel "
    "mme mlle mgr env av sra srta pág núm sig dott ing avv".split()
)
"""Words that end with a full stop and hardly ever end a sentence, in lower case."""


def sentence_spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The sentences of the span, in order and without gaps: the space after one belongs to it.

    Abbreviations, initials, decimals and ordinals end none; nor does a stop before a lower-case letter.
    """
    begin = start
    for stop in _STOP.finditer(text, start, end):
        space = _SPACE.match(text, stop.end(), end)
        after = stop.end() if space is None else space.end()
        if after == end:
            break
        if stop["full"] or (after > stop.end() and _ends(text, begin, stop, after)):
            yield begin, after
            begin = after
    if begin < end:
        yield begin, end


def _ends(text: str, begin: int, stop: re.Match[str], after: int) -> bool:
    if text[after].islower():
        return False
    if stop[0][0] != ".":
        return True
    start = stop.start()
    found = _WORD.search(text, max(begin, start - _WORD_CHARS), start)
    word = "" if found is None else found[0]
    if stop[0].startswith(".."):
        return True
    if word.isdecimal():
        return len(word) > _LONGEST_ORDINAL
    is_initial = len(word) == 1 and word.isalpha()
    is_acronym = "." in word and all(len(part) == 1 for part in word.split("."))
    return not (is_initial or is_acronym or word.lower() in _ABBREVIATIONS)
