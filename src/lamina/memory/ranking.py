"""The order of a recall's candidates. Only what comes out of it is made a result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING

from lamina.domain.recall import HitExplanation, RecallResult, Source
from lamina.memory.candidates import Candidate
from lamina.memory.scoring import Components, contributions, score_breakdown, scorer

if TYPE_CHECKING:
    from lamina.settings import ScoringConfig

__all__ = ["Ranked", "ranked"]


@dataclass(slots=True)
class Ranked:
    """A candidate with its score."""

    candidate: Candidate
    score: float
    components: Components

    @property
    def id(self) -> str:
        """Of the entry."""
        return self.candidate.view.id

    def result(self, scoring: ScoringConfig | None = None) -> RecallResult:
        """What a caller gets, explained if the scoring is given."""
        candidate = self.candidate
        sources = {
            (True, True): Source.BOTH,
            (True, False): Source.VECTOR,
            (False, True): Source.TEXT,
            (False, False): Source.CONVERSATION,
        }
        source = sources[candidate.in_vector is not None, candidate.in_text is not None]
        breakdown = score_breakdown(candidate, self.components)
        explanation = None
        if scoring is not None:
            parts = contributions(breakdown, scoring)
            legs = candidate.leg_hits()
            explanation = HitExplanation(*legs, parts, candidate.support - candidate.lag, candidate.rerank)
        return RecallResult(candidate.entry, self.score, breakdown, source, explanation)


def ranked(candidates: Iterable[Candidate], now: datetime, scoring: ScoringConfig, *, version: int) -> list[Ranked]:
    """The candidates by score, best first; those that a reranker read come before the others.

    Ties go by the keyword leg's rank, then by id.
    """
    score_of = scorer(now, scoring, version=version)
    scored = []
    for candidate in candidates:
        parts, score = score_of(candidate)
        text_rank = inf if candidate.in_text is None else candidate.in_text[0]
        place = (candidate.rerank is None, -score, text_rank, candidate.view.id)
        scored.append((place, Ranked(candidate, score, parts)))
    scored.sort(key=itemgetter(0))
    return [each for _, each in scored]
