"""Finding chunks: only those of documents as they are now, with their neighbours if asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from lamina.domain.document import Document, RagChunk
from lamina.domain.recall import Results
from lamina.memory.recall import RecallRequest
from lamina.ports.state_store import StateStore
from lamina.rag.chunk_index import ChunkIndex
from lamina.rag.chunk_rows import ChunkRow
from lamina.rag.heads import edition_of

__all__ = ["Retriever"]

ROUNDS: Final = 20
"""How often a search is repeated for more, or because documents changed while it ran."""


@dataclass(frozen=True, slots=True)
class _Hit:
    row: ChunkRow
    head: Document
    score: float


class Retriever:
    """The reading half of the pipeline."""

    def __init__(self, index: ChunkIndex, store: StateStore) -> None:
        self._index = index
        self._store = store

    async def retrieve(self, request: RecallRequest, neighbors: int) -> Results[RagChunk]:
        """The request's `limit` best chunks that count, best first.

        Rows of other editions are passed over, and the search goes on for as many as they were. If one was
        passed over because its document was replaced, perhaps while the search ran, the search is repeated:
        the new edition was whole before its head was.
        """
        limit, rounds = request.limit, 0
        seen: dict[str, str] = {}
        while True:
            rounds += 1
            rows = await self._index.search(replace(request, limit=limit))
            heads = await self._heads(request, [row for row, _ in rows])
            hits = [_Hit(row, heads[row.document], score) for row, score in rows if row.is_of(heads.get(row.document))]
            passed_over = {row.document for row, _ in rows if not row.is_of(heads.get(row.document))}
            changed = [id for id in passed_over if id in heads and seen.get(id) != edition_of(heads[id])]
            seen.update({id: edition_of(head) for id, head in heads.items()})
            chosen = _chosen(hits, request.limit, neighbors)
            lacks = len(chosen) < request.limit and len(rows) == limit
            if rounds == ROUNDS or not (changed or lacks):
                break
            if lacks:
                limit *= 2
        chunks = [await self._joined(hit, neighbors) for hit in chosen]
        return Results(chunks, degraded=rows.degraded)

    async def _heads(self, request: RecallRequest, rows: list[ChunkRow]) -> dict[str, Document]:
        """The documents of the rows that the request may see; those in quarantine are not among them."""
        found = await self._store.get_documents(request.scope.tenant, sorted({row.document for row in rows}))
        owner = request.scope.owner
        seen = (head for head in found if owner is None or head.owner in {None, owner})
        return {head.id: head for head in seen if not head.is_quarantined}

    async def _joined(self, hit: _Hit, neighbors: int) -> RagChunk:
        """The chunk with those before and after it, as one exact span of the text."""
        chunk = hit.row.shown(hit.head, hit.score)
        if not neighbors:
            return chunk
        index = hit.row.index
        around = self._index.rows(hit.head, index - neighbors, index + neighbors + 1)
        rows = {row.index: row async for row in around}
        first = chunk
        for place in range(index - 1, index - neighbors - 1, -1):
            row = rows.get(place)
            if row is None or row.end < chunk.start:
                break
            content = row.content[: chunk.start - row.start] + chunk.content
            chunk = chunk.replace(content=content, start=row.start)
            first = row.shown(hit.head, hit.score)
        for place in range(index + 1, index + neighbors + 1):
            row = rows.get(place)
            if row is None or row.start > chunk.end:
                break
            chunk = chunk.replace(content=chunk.content + row.content[chunk.end - row.start :], end=row.end)
        # Where a span begins is where its first chunk does; what it is about is what was found.
        at_start = {key: value for key, value in first.metadata.items() if key in {"page", "table_header"}}
        others = {key: value for key, value in chunk.metadata.items() if key not in {"page", "table_header"}}
        return chunk.replace(metadata={**others, **at_start})


def _chosen(hits: list[_Hit], wanted: int, neighbors: int) -> list[_Hit]:
    """The best hits, without those that a better one brings along as its neighbour."""
    covered: set[tuple[str, int]] = set()
    chosen: list[_Hit] = []
    for hit in hits:
        key = (hit.row.document, hit.row.index)
        if key in covered or len(chosen) == wanted:
            continue
        covered.update((hit.row.document, hit.row.index + step) for step in range(-neighbors, neighbors + 1))
        chosen.append(hit)
    return chosen
