"""Whether two texts say nearly the same, by the runs of characters that they share: no model, no chance."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

__all__ = ["Fingerprint", "fingerprint", "may_resemble", "resemblance"]

_RUN: Final = 5
MAX_CHARS: Final = 20_000
"""Longer texts resemble only their equals: comparing them would cost more than it saves."""

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
    shared = len(first.runs & second.runs)
    return shared / (len(first.runs) + len(second.runs) - shared)


def may_resemble(first: Fingerprint, second: Fingerprint, least: float) -> bool:
    """Whether sizes alone do not rule out so much resemblance: the quick test before `resemblance`."""
    small, large = sorted((len(first.runs), len(second.runs)))
    return small >= least * large
