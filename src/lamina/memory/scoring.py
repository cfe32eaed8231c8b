"""The score of a recalled memory: pure arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from math import exp, log, log1p
from typing import TYPE_CHECKING, Final, TypeAlias

from lamina.domain.memory import MemoryEntry
from lamina.domain.recall import ScoreBreakdown
from lamina.memory.candidates import Candidate
from lamina.ports.memory_requests import PoolEntry

if TYPE_CHECKING:
    from lamina.settings import ScoringConfig

__all__ = [
    "Components",
    "age_hours",
    "contributions",
    "frequency",
    "recency",
    "score_breakdown",
    "scorer",
    "total_score",
]

_LN_2: Final = log(2)

Components: TypeAlias = tuple[float, float, float, float]
"""Similarity, recency, frequency and relevance, each in [0, 1]."""


def recency(hours: float, half_life: float, curve: str) -> float:
    """Freshness in [0, 1] at this age in hours.

    The curve `exponential` is e^(-age / half_life), which is 0.368 at the age `half_life`; the
    curve `half_life` is 0.5^(age / half_life), which is 0.5 there.
    """
    rate = _LN_2 if curve == "half_life" else 1.0
    return exp(-rate * (hours if hours > 0 else 0.0) / half_life)


@lru_cache(maxsize=1024)
def frequency(count: int, cap: int) -> float:
    """How often the memory was recalled, in [0, 1]: log(1 + count) / log(1 + cap), at most 1."""
    return min(1.0, log1p(count) / log1p(cap))


def age_hours(entry: MemoryEntry | PoolEntry, now: datetime) -> float:
    """Hours since the memory was created or last changed or confirmed; never negative."""
    hours = (now - entry.last_changed_at).total_seconds() / 3600
    return hours if hours > 0 else 0.0


def scorer(now: datetime, scoring: ScoringConfig, *, version: int) -> Callable[[Candidate], tuple[Components, float]]:
    """What tells a candidate's components and its `total_score`: it is called for every one.

    The components come from the legs' similarities and their fused value with what surroundings add, less its lag. The
    access count is the one before this recall.
    """
    half_life, curve, cap = scoring.recency_half_life, scoring.recency_curve, scoring.frequency_cap
    score_of = _version_1 if version == 1 else _sum_of(scoring)

    def score(candidate: Candidate) -> tuple[Components, float]:
        entry = candidate.view
        components = (
            candidate.total - candidate.lag,
            recency(age_hours(entry, now), half_life, curve),
            frequency(entry.access_count, cap),
            entry.relevance,
        )
        return components, score_of(components)

    return score


def score_breakdown(candidate: Candidate, components: Components) -> ScoreBreakdown:
    """The components by name, and what the legs say."""
    return ScoreBreakdown(*components, vector=candidate.vector, text=candidate.text, match=candidate.match)


def contributions(breakdown: ScoreBreakdown, scoring: ScoringConfig) -> dict[str, float]:
    """Each component times its weight; their sum, limited to [0, 1], is the score."""
    names = ("similarity", "recency", "frequency", "relevance")
    values = zip(_components_of(breakdown), _weights(scoring), strict=True)
    return dict(zip(names, (value * weight for value, weight in values), strict=True))


def total_score(breakdown: ScoreBreakdown, scoring: ScoringConfig, *, version: int = 2) -> float:
    """The weighted sum of the components, limited to [0, 1]; for version 1, similarity times relevance."""
    score_of = _version_1 if version == 1 else _sum_of(scoring)
    return score_of(_components_of(breakdown))


def _version_1(components: Components) -> float:
    return components[0] * components[3]


def _sum_of(scoring: ScoringConfig) -> Callable[[Components], float]:
    similarly, recently, frequently, relevantly = _weights(scoring)

    def score(components: Components) -> float:
        similarity, recent, frequent, relevance = components
        total = similarity * similarly + recent * recently + frequent * frequently + relevance * relevantly
        return 0.0 if total < 0 else total if total < 1 else 1.0

    return score


def _components_of(breakdown: ScoreBreakdown) -> Components:
    return breakdown.similarity, breakdown.recency, breakdown.frequency, breakdown.relevance


def _weights(scoring: ScoringConfig) -> Components:
    return scoring.similarity_weight, scoring.recency_weight, scoring.frequency_weight, scoring.relevance_weight
