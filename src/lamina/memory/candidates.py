"""What the legs of a recall found, and what each says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lamina.domain.closeness import cosines
from lamina.domain.memory import MemoryEntry, Vector
from lamina.domain.recall import Leg, LegHit
from lamina.memory.fusion import closeness
from lamina.ports.embedder import Embedder
from lamina.ports.memory_adapter import SearchHit

__all__ = ["Candidate", "complete_vectors", "gather"]


@dataclass(slots=True)
class Candidate:
    """An entry that some leg found, and what each leg says of it."""

    entry: MemoryEntry
    hits: dict[Leg, LegHit] = field(default_factory=dict)
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


def gather(by_vector: Sequence[SearchHit], by_text: Sequence[SearchHit]) -> list[Candidate]:
    """The union of both legs' hits, with each one's place in each leg; without what is in quarantine."""
    candidates: dict[str, Candidate] = {}
    for leg, hits in ((Leg.TEXT, by_text), (Leg.VECTOR, by_vector)):
        for rank, hit in enumerate(hits, start=1):
            if hit.entry.is_quarantined:  # not even for who asks for what is superseded
                continue
            candidate = candidates.setdefault(hit.entry.id, Candidate(hit.entry))
            candidate.hits[leg] = LegHit(rank, hit.similarity, hit.native)
            if leg is Leg.VECTOR:
                candidate.vector = candidate.whole = hit.similarity
                if hit.entry.embedding is not None:
                    candidate.entry.embedding = hit.entry.embedding
            else:
                candidate.text = hit.similarity
    return list(candidates.values())


def complete_vectors(
    candidates: Sequence[Candidate],
    embedder: Embedder | None,
    query: str,
    vector: Vector | None,
    *,
    overlap: float | None,
) -> None:
    """Tell how close each candidate is to the query's vector, if it has a vector itself; then drop the vectors."""
    if vector is not None:
        comparable = [
            (each, each.entry.embedding)
            for each in candidates
            if each.entry.embedding is not None and len(each.entry.embedding) == len(vector)
        ]
        values = closeness(embedder, query, vector, [embedding for _, embedding in comparable], overlap=overlap)
        for (candidate, _), value in zip(comparable, values, strict=True):
            candidate.vector = value
        unseen = [(each, embedding) for each, embedding in comparable if each.whole is None]  # by the vector leg
        wholes = cosines(vector, [embedding for _, embedding in unseen])
        for (candidate, _), whole in zip(unseen, wholes, strict=True):
            candidate.whole = whole
    for candidate in candidates:
        candidate.entry.embedding = None
