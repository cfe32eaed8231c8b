"""The searchable chunks of one tenant: rows of a memory adapter, found by the engine's own recall."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from lamina.domain.document import Document
from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.memory import MemoryEntry, Vector
from lamina.domain.recall import Results
from lamina.domain.scope import Scope
from lamina.memory.reading import pages
from lamina.memory.recall import RecallRequest
from lamina.memory.side_collection import SideCollection
from lamina.ports.clock import Clock, IdFactory
from lamina.ports.embedder import Embedder
from lamina.ports.memory_adapter import MemoryAdapter
from lamina.rag.chunk_rows import ChunkRow, chunk_id, read_row
from lamina.rag.heads import edition_of

__all__ = ["ChunkIndex"]

BATCH: Final = 256
"""Rows that are deleted at a time."""


class ChunkIndex:
    """Writes, finds and deletes rows; which of them count is the pipeline's to say.

    The rows of an ingestion, its edition, belong to it alone: no other one writes or needs them.
    """

    def __init__(
        self, adapter: MemoryAdapter, *, tenant: str, embedder: Embedder | None, clock: Clock, new_id: IdFactory
    ) -> None:
        self._rows = SideCollection(adapter, tenant=tenant, embedder=embedder, clock=clock, new_id=new_id)
        self.adapter = adapter
        self.scope = self._rows.scope
        self.space = self._rows.space
        self._clock = clock

    def read_scope(self, owner: str | None) -> Scope:
        """An owner's own chunks and the shared ones; without an owner all of the tenant's."""
        return self._rows.read_scope(owner)

    async def write(self, entries: Sequence[MemoryEntry], known: Mapping[str, Vector]) -> None:
        """Embed and write the rows; one whose text has a vector among the known ones gets that.

        Where the embedder fails the rows are kept without a vector.

        Raises:
            EmbeddingDimensionError: the embedder gives vectors of another length than before.
        """
        for entry in entries:
            entry.embedding = known.get(entry.content)
        await self.space.embed_new([entry for entry in entries if entry.embedding is None])
        await self._rows.write(entries)

    async def vectors(self, head: Document) -> dict[str, Vector]:
        """The vectors of the head's chunks by the text that they were made of, if they are the embedder's own."""
        if self.space.embedder is None or self.space.needs_reembed:
            return {}
        found: dict[str, Vector] = {}
        async for row in self.rows(head):
            if row.entry.embedding is not None:
                found[row.entry.content] = row.entry.embedding
        return found

    async def search(self, request: RecallRequest) -> Results[tuple[ChunkRow, float]]:
        """The best rows with their scores, of whatever edition."""
        results = await self._rows.search(request)
        rows = [(self._row(result.entry), result.score) for result in results]
        return Results(rows, degraded=results.degraded)

    async def rows(self, head: Document, start: int = 0, stop: int | None = None) -> AsyncIterator[ChunkRow]:
        """The head's rows from `start` to before `stop`, in order; those that are gone are passed over."""
        last = head.chunks if stop is None else min(stop, head.chunks)
        for index in range(max(start, 0), last):
            row = await self.row(head, index)
            if row is not None:
                yield row

    async def row(self, head: Document, index: int) -> ChunkRow | None:
        """The head's row of this index, if it is there."""
        entry = await self.adapter.get(self.scope, chunk_id(edition_of(head), index))
        return None if entry is None else self._row(entry)

    async def is_complete(self, head: Document) -> bool:
        """Whether the first and the last row are there: the rest was written between them."""
        ends = {0, head.chunks - 1}
        return head.chunks > 0 and all([await self.row(head, index) is not None for index in ends])

    async def discard(self, editions: Iterable[str]) -> int:
        """Delete the rows of the editions, and return how many there were.

        Rows are written in order, and deleted in batches from the last to the first: where that is broken off, what
        is left begins at the first row, and the next call finds it all.
        """
        return sum([await self._discard(edition) for edition in dict.fromkeys(editions)])

    async def _discard(self, edition: str) -> int:
        whole = 0  # batches whose first row is there; the one behind them may have lost it, and hold others
        while await self.adapter.get(self.scope, chunk_id(edition, whole * BATCH)) is not None:
            whole += 1
        deleted = 0
        for batch in range(whole, -1, -1):
            ids = [chunk_id(edition, index) for index in range(batch * BATCH, (batch + 1) * BATCH)]
            deleted += sum(await self.adapter.delete_many(self.scope, ids))
        return deleted

    async def editions(self) -> dict[str, tuple[str, datetime]]:
        """Of every edition that has rows: its document, and when its newest row was written."""
        found: dict[str, tuple[str, datetime]] = {}
        everything = MemoryFilter(now=self._clock(), expiry=Expiry.ANY)
        async for page in pages(self.adapter, self.scope, everything):
            for row in map(self._row, page):
                newest = found[row.edition][1] if row.edition in found else row.entry.created_at
                found[row.edition] = (row.document, max(newest, row.entry.created_at))
        return found

    def _row(self, entry: MemoryEntry) -> ChunkRow:
        return read_row(entry, self.adapter.name)
