"""What the legs of a recall found, and what each says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lamina.domain.closeness import cosines
from lamina.domain.memory import MemoryEntry, Vector
from lamina.domain.recall import LegHit
from lamina.memory.fusion import closeness
from lamina.ports.embedder import Embedder
from lamina.ports.memory_adapter import SearchHit
from lamina.ports.memory_requests import PoolEntry, PoolHit

__all__ = ["Candidate", "complete_vectors", "gather"]


@dataclass(slots=True)
class Candidate:
    """An entry that some leg found, and what each leg says of it."""

    view: MemoryEntry | PoolEntry
    """What the ranking reads of the entry."""
    in_vector: tuple[int, SearchHit | PoolHit] | None = None
    """Its place in the vector leg, counting from 1; None if that did not find it."""
    in_text: tuple[int, SearchHit | PoolHit] | None = None
    vector: float | None = None
    text: float | None = None
    whole: float | None = None
    """The cosine of the whole vectors; `vector` weighs their parts by the query."""
    similarity: float = 0.0
    """What both legs say, as one."""
    match: float = 0.0
    """The same of the whole vectors."""
    support: float = 0.0
    """What its surroundings add: see `lamina.memory.surroundings`."""
    rerank: float | None = None
    """What the reranker says, if one has read it."""
    lag: float = 0.0
    """What it loses of its similarity for being behind the best one: see `lamina.memory.comparing`."""

    @property
    def total(self) -> float:
        """Its similarity with what its surroundings add, at most 1."""
        total = self.similarity + self.support
        return total if total < 1 else 1.0

    @property
    def entry(self) -> MemoryEntry:
        """The whole entry; made once, when somebody wants it."""
        if not isinstance(self.view, MemoryEntry):
            self.view = self.view.whole()
        return self.view

    def leg_hits(self) -> tuple[LegHit | None, LegHit | None]:
        """Where the vector leg and the keyword leg placed it."""
        places = (self.in_vector, self.in_text)
        first, second = (
            None if each is None else LegHit(each[0], each[1].similarity, each[1].native) for each in places
        )
        return first, second


def gather(
    by_vector: Sequence[SearchHit | PoolHit], by_text: Sequence[SearchHit | PoolHit], *, current: bool = True
) -> list[Candidate]:
    """The union of both legs' hits, with each one's place in each leg; nothing in quarantine.

    `current` says that the legs left out what is superseded, and so what is in quarantine, already.
    """
    candidates: dict[str, Candidate] = {}
    for rank, hit in enumerate(by_text, start=1):
        candidates[hit.entry.id] = Candidate(hit.entry, in_text=(rank, hit), text=hit.similarity)
    for rank, hit in enumerate(by_vector, start=1):
        candidate = candidates.get(hit.entry.id)
        if candidate is None:
            candidate = candidates[hit.entry.id] = Candidate(hit.entry)
        candidate.in_vector = (rank, hit)
        candidate.vector = candidate.whole = hit.similarity
        if isinstance(candidate.view, MemoryEntry) and hit.entry.embedding is not None:
            candidate.view.embedding = hit.entry.embedding
    return [each for each in candidates.values() if current or not each.entry.is_quarantined]


def complete_vectors(
    candidates: Sequence[Candidate],
    embedder: Embedder | None,
    query: str,
    vector: Vector | None,
    *,
    overlap: float | None,
    known: Mapping[str, float],
) -> None:
    """Tell how close each candidate is to the query's vector, if it has a vector itself.

    `known` are cosines by id, of whole vectors.
    """
    if vector is not None:
        for each in candidates:
            if each.whole is None:
                each.vector = each.whole = known.get(each.view.id)
        comparable = [
            (each, embedding)
            for each in candidates
            if (embedding := each.view.embedding) is not None and len(embedding) == len(vector)
        ]
        if not comparable:
            return
        values = closeness(embedder, query, vector, [embedding for _, embedding in comparable], overlap=overlap)
        for (candidate, _), value in zip(comparable, values, strict=True):
            candidate.vector = value
        unseen = [(each, embedding) for each, embedding in comparable if each.whole is None]  # by the vector leg
        wholes = cosines(vector, [embedding for _, embedding in unseen])
        for (candidate, _), whole in zip(unseen, wholes, strict=True):
            candidate.whole = whole
