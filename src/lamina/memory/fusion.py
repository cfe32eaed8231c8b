"""How the similarities of a search become one: pure arithmetic.

A convex sum of absolute similarities. It was chosen by measurement over rank fusion and over sums of per-query
normalised scores: see `docs/retrieval.md` for the figures. Both legs' values are known for every candidate,
whichever leg found it, so none is punished for having been found by one leg only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lamina.domain.closeness import cosines, cosines_of_parts
from lamina.domain.memory import Vector
from lamina.domain.text import is_mostly_latin
from lamina.ports.embedder import Embedder, matches_from, weighted_parts

__all__ = ["closeness", "fuse", "least_match", "text_share"]

TEXT_SHARE_LATIN: Final = 0.2
TEXT_SHARE_OTHER: Final = 0.4
"""Small embedding models know less of other scripts, and pairs of characters find nearly all there."""

UNRELATED_WORDS: Final = 0.1
"""The keyword similarity that a text may have with a query that it has nothing to do with."""


def text_share(query: str) -> float:
    """The share of the keyword leg, in [0, 1]: smaller where most of the query's letters are Latin."""
    return TEXT_SHARE_LATIN if is_mostly_latin(query) else TEXT_SHARE_OTHER


def closeness(
    embedder: Embedder | None, query: str, vector: Vector, others: Sequence[Vector], *, overlap: float | None
) -> list[float]:
    """How close each of the embedder's vectors is to the query's: their cosine, or those of its parts.

    `overlap` is as in `weighted_parts`.
    """
    parts = () if embedder is None else weighted_parts(embedder, query, overlap)
    if not parts:
        return cosines(vector, others)
    lengths, shares = zip(*parts, strict=True)
    return [
        sum(share * value for share, value in zip(shares, values, strict=True))
        for values in cosines_of_parts(vector, others, lengths)
    ]


def fuse(vector: float | None, text: float | None, share: float) -> float:
    """One similarity in [0, 1] from a cosine and a lexical similarity; a leg that has none has no say."""
    if vector is None:
        return text or 0.0
    near = 0.0 if vector < 0 else vector if vector < 1 else 1.0
    if text is None:
        return near
    return share * text + (1 - share) * near


def least_match(embedder: Embedder, query: str, *, with_text: bool) -> float:
    """The fused value, of the cosine of whole vectors, from where something has to do with the query."""
    near = matches_from(embedder, query)
    return fuse(near, UNRELATED_WORDS, text_share(query)) if with_text else near
