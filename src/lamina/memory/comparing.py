"""What each candidate of a recall is worth: by itself, with the turn before it, and in its conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lamina.domain.memory import MemoryEntry, Vector
from lamina.domain.periods import Period
from lamina.memory.candidates import Candidate, complete_vectors
from lamina.memory.fusion import fuse, text_share
from lamina.memory.neighbours import join_turns
from lamina.memory.surroundings import support
from lamina.memory.wording import Wording
from lamina.ports.embedder import Embedder, weighted_parts

__all__ = ["Comparison", "lend", "set_apart"]

FALL: Final = 1.0
LEAST: Final = 0.25
"""What is behind the best loses its distance to it this many times over, but keeps this share at least. The best ten of
a question mostly lie within a tenth of each other: a memory that was confirmed would come before all of them."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What candidates are compared with: the query's words, unless None, and its vector, if there is one."""

    query: str
    words: Wording | None
    embedder: Embedder | None
    vector: Vector | None
    overlap: float | None
    """As in `weighted_parts`."""

    async def judge(self, candidates: list[Candidate], cosines: Mapping[str, float]) -> list[Candidate]:
        """Give each candidate its similarity and match, by its own words and vector.

        `cosines` are those of whole vectors that are known already, by id.
        """
        if not candidates:
            return candidates
        complete_vectors(candidates, self.embedder, self.query, self.vector, overlap=self.overlap, known=cosines)
        if self.words is not None:
            await self.words.complete(candidates)
        share = text_share(self.query)
        for each in candidates:
            each.similarity = fuse(each.vector, each.text, share)
            each.match = fuse(each.whole, each.text, share)
        return candidates

    def join(self, candidates: Sequence[Candidate]) -> None:
        """Let each turn have a predecessor's say, if all vectors are at hand (see `weighted_parts`); then drop them."""
        embedder = self.embedder
        if self.vector is not None and embedder is not None and weighted_parts(embedder, self.query, self.overlap):
            join_turns(candidates, embedder, self.query, self.vector, overlap=self.overlap)
        for each in candidates:
            if isinstance(each.view, MemoryEntry):
                each.view.embedding = None


def lend(query: str, known: Sequence[Candidate], fresh: Sequence[Candidate], periods: Sequence[Period]) -> None:
    """Tell what their surroundings, and the periods that the query names, add to the fresh ones: the last known."""
    added = support(query, [each.view for each in known], [each.similarity for each in known], periods)
    for each, lent in zip(fresh, added[len(added) - len(fresh) :], strict=True):
        each.support = lent


def set_apart(fresh: Sequence[Candidate], best: float) -> None:
    """Tell what each of the fresh ones loses for being behind the best total similarity; their order stays."""
    for each in fresh:
        behind = best - each.total
        if behind > 0:
            each.lag = min(FALL * behind, (1 - LEAST) * each.total)
