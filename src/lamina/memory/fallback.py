"""Searches that a backend cannot do itself: a bounded scan, in daylight.

The hits say `native=False`. A scope too large to scan is refused; there is never a partial scan.
"""

from __future__ import annotations

from typing import Final

from lamina.domain.closeness import cosines
from lamina.domain.lexical import similarities
from lamina.domain.memory import MemoryEntry, Vector
from lamina.errors import EmbeddingDimensionError, Unsupported
from lamina.memory.reading import count, pages
from lamina.ports.memory_adapter import Capability, MemoryAdapter, SearchHit, SearchOptions

__all__ = ["MAX_SCANNED", "scan_by_text", "scan_by_vector"]

MAX_SCANNED: Final = 50_000


async def scan_by_vector(adapter: MemoryAdapter, embedding: Vector, options: SearchOptions) -> list[SearchHit]:
    """What `search_by_vector` promises, by comparing with every vector of the scope.

    Raises:
        Unsupported: the scope holds more than 50,000 entries.
        EmbeddingDimensionError: a stored vector has another length.
    """
    entries = [entry for entry in await _all(adapter, options, Capability.VECTOR) if entry.embedding is not None]
    vectors = [entry.embedding for entry in entries if entry.embedding is not None]
    for vector in vectors:
        if len(vector) != len(embedding):
            raise EmbeddingDimensionError(len(vector), len(embedding))
    return _best(entries, cosines(embedding, vectors), options)


async def scan_by_text(adapter: MemoryAdapter, query: str, options: SearchOptions) -> list[SearchHit]:
    """What `search_by_text` promises, by reading every text of the scope.

    Raises:
        Unsupported: the scope holds more than 50,000 entries.
    """
    entries = await _all(adapter, options, Capability.TEXT)
    values = similarities(query, [entry.content for entry in entries])
    found = [(entry, value) for entry, value in zip(entries, values, strict=True) if value > 0]
    return _best([entry for entry, _ in found], [value for _, value in found], options)


async def _all(adapter: MemoryAdapter, options: SearchOptions, capability: Capability) -> list[MemoryEntry]:
    number = await count(adapter, options.scope, options.filter)
    if number > MAX_SCANNED:
        remedy = (
            f"Its {number} entries in this scope are more than the {MAX_SCANNED} that are scanned instead: "
            "narrow the scope (owner, namespace, layer), or choose a backend that declares it."
        )
        raise Unsupported(f"The {adapter.name} adapter", capability, remedy)
    walk = pages(adapter, options.scope, options.filter, include_embeddings=True)
    return [entry async for page in walk for entry in page]


def _best(entries: list[MemoryEntry], values: list[float], options: SearchOptions) -> list[SearchHit]:
    ranked = sorted(zip(values, entries, strict=True), key=lambda pair: (-pair[0], pair[1].id))
    hits = []
    for value, entry in ranked[: options.limit]:
        kept = entry if options.include_embeddings else entry.replace(embedding=None)
        hits.append(SearchHit(kept, value, native=False))
    return hits
