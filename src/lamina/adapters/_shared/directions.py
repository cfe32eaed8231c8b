"""Vectors as backends can compare them: of length one, whatever their length was."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from lamina.domain.closeness import cosines
from lamina.domain.memory import MemoryEntry, Vector
from lamina.ports.memory_adapter import SearchHit

__all__ = ["direction", "rank_by_closeness"]


def direction(vector: Vector) -> list[float] | None:
    """The vector scaled to length one, in steps that neither overflow nor vanish; None for a zero vector."""
    numbers = [float(each) for each in vector]  # those of numpy stay in 32 bits, and are no JSON
    largest = max(map(abs, numbers))
    if largest == 0:
        return None
    scaled = [each / largest for each in numbers]
    length = math.hypot(*scaled)
    return [each / length for each in scaled]


def rank_by_closeness(
    embedding: Vector, pool: Iterable[MemoryEntry], limit: int, *, include_embeddings: bool
) -> list[SearchHit]:
    """The closest of the pool by exact cosine, ties by id; entries without a vector fall out."""
    entries: Sequence[MemoryEntry] = [each for each in pool if each.embedding is not None]
    values = cosines(embedding, [each.embedding for each in entries if each.embedding is not None])
    ranked = sorted(zip(values, entries, strict=True), key=lambda pair: (-pair[0], pair[1].id))[:limit]
    return [SearchHit(entry if include_embeddings else entry.replace(embedding=None), value) for value, entry in ranked]
