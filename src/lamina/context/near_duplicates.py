"""Whether two texts say nearly the same, by the runs of characters that they share: no model, no chance."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import islice
from typing import Final

__all__ = ["Fingerprint", "Resembling", "fingerprint", "resemblance"]

_RUN: Final = 5
MAX_CHARS: Final = 20_000
"""Longer texts resemble only their equals: comparing them would cost more than it saves."""

_ROUNDING: Final = 1e-6

_WORD: Final = re.compile(r"[^\W_]+")
_NEGATION: Final = re.compile(
    r"\b(?:not|no|never|none|nor|without|cannot|don|doesn|didn|isn|aren|wasn|weren|won|wouldn|shouldn|couldn|can|"
    r"nicht|nie|niemals|ohne|kein\w*|ne|pas|jamais|sans|non|sin|nunca|sem|não|nao|niet|geen|inte|ikke|değil|yok|"
    r"не|нет|никогда|без|لا|لم|لن|ليس|नहीं)\b|[不没沒無无非未ない]|아니|않|없|못"
)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is compared of a text: its words in order, folded, and the runs of five characters in them."""

    text: str
    runs: frozenset[str]
    words: frozenset[str]


def fingerprint(text: str) -> Fingerprint | None:
    """Of letters and digits alone, without case; None for a text that is too long or has none of them."""
    if len(text) > MAX_CHARS:
        return None
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    folded = " ".join(words)
    if not folded:
        return None
    runs = {folded[place : place + _RUN] for place in range(max(1, len(folded) - _RUN + 1))}
    return Fingerprint(folded, frozenset(runs), frozenset(words))


def resemblance(first: Fingerprint, second: Fingerprint) -> float:
    """The share of runs that both have, of those that either has, in [0, 1].

    0 where the words that only one of them has hold a digit or a negation: such texts say different things
    however alike they look.
    """
    if first.text == second.text:
        return 1.0
    differing = " ".join(sorted(first.words ^ second.words))
    if any(character.isdigit() for character in differing) or _NEGATION.search(differing):
        return 0.0
    return _share(first, second)


def _share(first: Fingerprint, second: Fingerprint) -> float:
    shared = len(first.runs & second.runs)
    return shared / (len(first.runs) + len(second.runs) - shared)


class Resembling:
    """Texts, among which one that resembles another by at least `least` is found without comparing it with all.

    Two sets with such a share in common have, of the first runs in any one order, one in common: as many of the
    first as leave too few behind them. The runs that stand there are looked up. Of what has one of them, the sizes
    and then a few runs more rule out nearly all.
    """

    def __init__(self, least: float) -> None:
        self._least = least
        self._kept: list[tuple[str, Fingerprint]] = []
        self._places: dict[str, list[int]] = {}
        self._last: tuple[Fingerprint, list[str]] | None = None

    def find(self, mark: Fingerprint) -> str | None:
        """The id of the first that was added and resembles this; None if none does."""
        places = {place for run in self._first_runs(mark) for place in self._places.get(run, ())}
        apart = self._most_apart(mark)
        some = frozenset(islice(mark.runs, 3 * apart + 1))
        for place in sorted(places):
            id, other = self._kept[place]
            small, large = sorted((len(mark.runs), len(other.runs)))
            if small < self._least * large or len(some & other.runs) < len(some) - apart:
                continue
            if _share(mark, other) >= self._least and resemblance(mark, other) >= self._least:
                return id
        return None

    def add(self, id: str, mark: Fingerprint) -> None:
        """Remember the text under this id."""
        for run in self._first_runs(mark):
            self._places.setdefault(run, []).append(len(self._kept))
        self._kept.append((id, mark))

    def _most_apart(self, mark: Fingerprint) -> int:
        """How many of its runs a text that resembles it may lack."""
        return int(len(mark.runs) * (1 - self._least) + _ROUNDING)

    def _first_runs(self, mark: Fingerprint) -> list[str]:
        if self._last is None or self._last[0] is not mark:
            self._last = mark, sorted(mark.runs)[: self._most_apart(mark) + 1]
        return self._last[1]
