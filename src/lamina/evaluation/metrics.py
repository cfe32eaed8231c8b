"""What a ranking is worth, given which documents answer the query."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median

__all__ = ["mean", "median_of", "ndcg_at", "percentile_95", "recall_at", "recall_within"]


def recall_at(depth: int, ranking: Sequence[str], evidence: frozenset[str]) -> float:
    """The share, in [0, 1], of the evidence that stands among the first `depth` of the ranking."""
    return len(evidence.intersection(ranking[:depth])) / len(evidence)


def recall_within(budget: int, ranking: Sequence[tuple[str, int]], evidence: frozenset[str]) -> float:
    """The share, in [0, 1], of the evidence among the documents that fit into the budget; each comes with its tokens.

    They are taken in order, up to the first that does not fit.
    """
    found, left = 0, budget
    for document, tokens in ranking:
        left -= tokens
        if left < 0:
            break
        found += document in evidence
    return found / len(evidence)


def ndcg_at(depth: int, ranking: Sequence[str], gains: Mapping[str, int]) -> float:
    """The discounted gain of the first `depth`, in [0, 1], as a share of what the best order would have.

    A document at rank r counts its gain over the binary logarithm of r + 1.
    """
    best = _discounted(sorted(gains.values(), reverse=True)[:depth])
    return _discounted([gains.get(document, 0) for document in ranking[:depth]]) / best


def mean(values: Sequence[float]) -> float:
    """The mean; 0 of nothing."""
    return fmean(values) if values else 0.0


def median_of(values: Sequence[float]) -> float | None:
    """The median; None of nothing."""
    return median(values) if values else None


def percentile_95(values: Sequence[float]) -> float | None:
    """The least value that 95 % of them do not exceed; None of nothing."""
    return sorted(values)[math.ceil(0.95 * len(values)) - 1] if values else None


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))
