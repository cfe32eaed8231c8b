"""How the two legs of a hybrid search become one similarity: pure arithmetic.

A convex sum of the two absolute similarities, weighted by the script of the query. It was chosen
by measurement over rank fusion and over sums of per-query normalised scores: see
`docs/retrieval.md` for the figures. Both legs' values are known for every candidate, whichever
leg found it, so none is punished for having been found by one leg only.
"""

from __future__ import annotations

from typing import Final

__all__ = ["fuse", "text_weight"]

TEXT_WEIGHT_LATIN: Final = 0.25
TEXT_WEIGHT_OTHER: Final = 0.6
"""Small embedding models know little of other scripts, and pairs of characters find nearly all there."""

_LAST_LATIN: Final = "\u024f"


def text_weight(query: str) -> float:
    """The share of the keyword leg, in [0, 1]: smaller where most of the query's letters are Latin."""
    letters = [character for character in query if character.isalpha()]
    latin = sum(character <= _LAST_LATIN for character in letters)
    return TEXT_WEIGHT_LATIN if 2 * latin >= len(letters) else TEXT_WEIGHT_OTHER


def fuse(vector: float | None, text: float | None, weight: float) -> float:
    """One similarity in [0, 1] from a cosine and a lexical similarity; a leg that has none has no say."""
    closeness = None if vector is None else min(1.0, max(0.0, vector))
    if closeness is None or text is None:
        return closeness or text or 0.0
    return weight * text + (1 - weight) * closeness
