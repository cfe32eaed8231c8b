"""What a recall returns, and how it explains itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from lamina.domain.memory import MemoryEntry
from lamina.domain.periods import Period

__all__ = [
    "AUTO",
    "Cutoff",
    "Degraded",
    "DroppedHit",
    "HitExplanation",
    "Leg",
    "LegHit",
    "Reason",
    "RecallExplanation",
    "RecallResult",
    "Results",
    "ScoreBreakdown",
    "SearchMode",
    "Source",
]

T = TypeVar("T")

AUTO: Final = "auto"
"""The cut-off that fits the embedder and the query."""

Cutoff: TypeAlias = float | Literal["auto"]
"""From where a memory has to do with a query, in [0, 1] and inclusive."""


class SearchMode(StrEnum):
    """Which legs of the search run."""

    HYBRID = "hybrid"
    VECTOR = "vector"
    TEXT = "text"


class Leg(StrEnum):
    """One way of searching; and the reranker, which reads what those found."""

    VECTOR = "vector"
    TEXT = "text"
    RERANK = "rerank"


class Source(StrEnum):
    """Which legs found a result, or that none did and it stands beside one that was found."""

    VECTOR = "vector"
    TEXT = "text"
    BOTH = "both"
    CONVERSATION = "conversation"


class Reason(StrEnum):
    """Why a leg that was asked for did not answer, or answered only in part."""

    NO_EMBEDDER = "no_embedder"
    EMBEDDER_FAILED = "embedder_failed"
    OTHER_MODEL = "other_model"
    """The store's vectors come from another model; `reembed` mends it."""
    NO_VECTORS = "no_vectors"
    """Nothing in the scope has a vector, or the query has none."""
    SOME_WITHOUT_VECTOR = "some_without_vector"
    """Some memories of the tenant have no vector yet, and are found by keyword only; `reembed_missing` mends it."""
    NOT_NATIVE = "not_native"
    """The backend has no such search; the engine's bounded scan answered in its place."""
    OTHER_LANGUAGE = "other_language"
    """The reranker does not know the language of the query or of what was found; code is one, too."""
    RERANKER_FAILED = "reranker_failed"


@dataclass(frozen=True, slots=True)
class Degraded:
    """A leg that is missing or weaker than asked for, and why."""

    leg: Leg
    reason: Reason
    detail: str = ""


@dataclass(slots=True)
class ScoreBreakdown:
    """The unweighted components of a score, each in [0, 1].

    `vector` and `text` are the legs' own similarities behind `similarity`: None where that leg
    has nothing to say about the entry. `match` tells whether it has to do with the query at all: what its own words
    and its whole vector say, in shares that are the same for all queries in one kind of script, so that it can be
    compared from query to query, as `similarity` cannot.
    """

    similarity: float
    recency: float
    frequency: float
    relevance: float
    vector: float | None = None
    text: float | None = None
    match: float | None = None


@dataclass(frozen=True, slots=True)
class LegHit:
    """Where a leg placed an entry: its rank, counting from 1, and its similarity."""

    rank: int
    similarity: float
    native: bool


@dataclass(frozen=True, slots=True)
class HitExplanation:
    """Why a result has its score: its place in each leg, and each component times its weight.

    `support` is the part of the similarity that comes from its conversation, its speaker, and the time that it is of,
    less what it loses for being behind the best one; so it may be negative.
    `rerank` is how well the reranker says it answers, in [0, 1]; None if none read it.
    """

    vector: LegHit | None
    text: LegHit | None
    contributions: dict[str, float]
    support: float = 0.0
    rerank: float | None = None


@dataclass(slots=True)
class RecallResult:
    """One recalled memory. Treat it as a value: change a copy, made with `replace`."""

    entry: MemoryEntry
    score: float
    score_breakdown: ScoreBreakdown
    source: Source
    explanation: HitExplanation | None = None

    def replace(self, **changes: Any) -> RecallResult:
        """A copy with these fields changed."""
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True, slots=True)
class DroppedHit:
    """A candidate that is not among the results, its score, and why.

    `why` is `min_match`, `min_score`, `hook` or `limit`.
    """

    id: str
    score: float
    why: str


@dataclass(frozen=True, slots=True)
class RecallExplanation:
    """What a recall did: how many each leg found, what was dropped, and the terms searched for.

    `min_match` is the cut-off that was in force, in figures; 0 if there was none. `periods` are those that the query
    was read to name.
    """

    mode: SearchMode
    candidates: dict[Leg, int]
    dropped: list[DroppedHit]
    terms: list[str]
    weights: dict[str, float]
    min_match: float = 0.0
    periods: tuple[Period, ...] = ()


class Results(list[T], Generic[T]):
    """A list of results that also says how it came about.

    `degraded` is empty if every leg that was asked for answered natively; an empty list with an
    empty `degraded` truly means that nothing was found.
    """

    def __init__(
        self,
        items: Iterable[T] = (),
        *,
        degraded: tuple[Degraded, ...] = (),
        explanation: RecallExplanation | None = None,
    ) -> None:
        super().__init__(items)
        self.degraded = degraded
        self.explanation = explanation
