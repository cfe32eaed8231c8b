"""What a recall is asked, read and checked, and what it has found so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from lamina.domain.filters import MemoryFilter
from lamina.domain.memory import Vector
from lamina.domain.recall import Cutoff, Degraded, Leg, SearchMode
from lamina.domain.scope import Scope
from lamina.domain.validation import check_unit_interval, check_whole_number
from lamina.memory.candidates import Candidate
from lamina.memory.cutoff import read_min_match
from lamina.memory.inputs import Filters, read_mode, read_query
from lamina.memory.ranking import Ranked
from lamina.memory.runtime import Runtime
from lamina.memory.wording import Wording
from lamina.ports.memory_requests import MAX_LIMIT
from lamina.ports.reranker import Reranker

__all__ = ["RecallRequest", "Search", "recall_request"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """One recall, read and checked."""

    query: str
    scope: Scope
    filter: MemoryFilter
    mode: SearchMode
    limit: int
    offset: int
    min_score: float | None
    touch: bool
    explain: bool
    reranker: Reranker | None = None
    min_match: Cutoff | None = None


def recall_request(
    runtime: Runtime,
    query: object,
    filters: Filters,
    *,
    mode: SearchMode | str | None,
    limit: int,
    offset: int,
    min_score: float | None,
    rerank: str | None,
    min_match: Cutoff | None,
    touch: bool,
    explain: bool,
) -> RecallRequest:
    """The arguments of a recall, read and checked."""
    asked: Filters = {**filters, "include_superseded": filters.get("include_superseded") or False}
    scope, filter = runtime.read(runtime.clock(), asked)
    return RecallRequest(
        query=read_query(query),
        scope=scope,
        filter=filter,
        mode=read_mode(mode, runtime.search_mode),
        limit=check_whole_number("limit", limit, 1, MAX_LIMIT),
        offset=check_whole_number("offset", offset, 0, MAX_LIMIT),
        min_score=None if min_score is None else check_unit_interval("min_score", min_score),
        min_match=read_min_match(min_match, runtime.min_match),
        touch=touch,
        explain=explain,
        reranker=runtime.rerankers.choose(rerank),
    )


@dataclass(slots=True)
class Search:
    """What a recall searches with, and what it has found so far."""

    request: RecallRequest
    words: Wording
    vector: Vector | None
    is_repeated: bool = False
    """Whether it was begun again, because another engine changed the store's vectors meanwhile."""
    degraded: dict[Degraded, None] = field(default_factory=dict)
    """As an ordered set: a leg that is asked again for more says the same again."""
    candidates: dict[Leg, int] = field(default_factory=dict)
    overlap: float | None = None
    """How much of the query's words the best of the first candidates holds, if the keyword leg runs."""
    min_match: float | None = None
    """What a result must match at least; None until the first candidates are known."""
    best: float | None = None
    """The highest similarity of the first candidates, with all that is added; None until they are known."""
    known: list[Candidate] = field(default_factory=list)
    """All candidates so far."""
    ranked: list[Ranked] = field(default_factory=list)
    foreign: set[str] = field(default_factory=set)
    """Ids of memories that are in no store of ours."""

    @property
    def is_hybrid(self) -> bool:
        """Both legs are asked, and can answer."""
        return self.request.mode is SearchMode.HYBRID and self.vector is not None

    @property
    def wants_text(self) -> bool:
        """The keyword leg runs unless vectors were asked for and can answer: one leg answers for the other."""
        return self.request.mode is not SearchMode.VECTOR or self.vector is None
