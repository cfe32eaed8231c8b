"""Bringing documents in and taking them out, so that readers see the old or the new one, never half."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Final

from lamina.domain.document import QUARANTINED, Document
from lamina.domain.memory import Vector
from lamina.errors import Conflict, LaminaError
from lamina.ports.clock import Clock, IdFactory
from lamina.ports.state_store import StateStore
from lamina.ports.token_counter import TokenCounter
from lamina.rag.chunk_index import ChunkIndex
from lamina.rag.chunk_rows import entry_of
from lamina.rag.chunking import Chunk, ChunkOptions, chunk_text
from lamina.rag.heads import EDITION, FORMER, canonical_id, edition_of, former_with, is_same
from lamina.telemetry import place_of

__all__ = ["Ingested", "Ingester"]

BATCH: Final = 64
"""Chunks that are made, embedded and written at a time: what a large document needs in memory at once."""

ATTEMPTS: Final = 20
"""How often an ingestion begins again because another one of the same source was faster."""

GRACE: Final = timedelta(hours=1)
"""Chunks without a head that are younger may belong to an ingestion under way, and are left."""

MAX_PENDING: Final = 50
PAGE: Final = 500

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ingested:
    """The document's id, and whether anything was written."""

    id: str
    changed: bool


class Ingester:
    """The writing half of the pipeline.

    An ingestion writes its chunks under an edition of its own, then makes that edition the head's, in one
    step and only if the head is as it was, then deletes the former edition. Which editions may have been
    left behind by a crash stands in the adapter's bookkeeping, for the next ingestion of the document.
    """

    def __init__(
        self, index: ChunkIndex, store: StateStore, *, counter: TokenCounter, clock: Clock, new_id: IdFactory
    ) -> None:
        self._index = index
        self._store = store
        self._counter = counter
        self._clock = clock
        self._new_id = new_id

    async def ingest(self, draft: Document, content: str, options: ChunkOptions, *, replace: bool) -> Ingested:
        """Make the draft a document: in the place of those of the same source and owner, or beside them.

        Raises:
            Conflict: others kept replacing the document meanwhile.
        """
        for _ in range(ATTEMPTS):
            old, others = await self._replaced(draft)
            away = next((each.options[QUARANTINED] for each in (old, *others) if each and each.is_quarantined), None)
            old, others = (old, others) if replace else (None, [])
            if old is not None and not others and is_same(old, draft) and await self._index.is_complete(old):
                return Ingested(old.id, changed=False)
            head = self._numbered(draft, old, replace=replace)
            if old is not None:
                head.options[FORMER] = former_with(old)
            if away is not None:  # what is said again from there stays where it is
                head.options[QUARANTINED] = away
            if await self._put_in_place(head, old, content, options):
                for other in others:
                    await self.remove(other)
                return Ingested(head.id, changed=True)
        raise Conflict(f"The document {draft.source!r}", f"it was replaced {ATTEMPTS} times while it was ingested")

    async def remove(self, head: Document) -> bool:
        """Delete the document with its chunks; False if it is gone, or was replaced meanwhile."""
        left = await self._note(head.id, [edition_of(head)])
        if not await self._store.delete_document(head.tenant, head.id, expected_generation=head.generation):
            return False
        await self._index.discard(left)
        await self._forget(head.id)
        return True

    async def purge(self) -> int:
        """Delete chunks that belong to no document, as a crash may leave them; how many there were."""
        tenant, before = self._index.scope.tenant, self._clock() - GRACE
        old = [(name, id) for name, (id, newest) in (await self._index.editions()).items() if newest < before]
        deleted = 0
        for start in range(0, len(old), PAGE):
            page = old[start : start + PAGE]
            heads = await self._store.get_documents(tenant, sorted({id for _, id in page}))
            committed = {edition_of(head) for head in heads}
            deleted += await self._index.discard(name for name, _ in page if name not in committed)
        return deleted

    async def _replaced(self, draft: Document) -> tuple[Document | None, list[Document]]:
        """The document whose id is kept, and others of the same source and owner."""
        found = await self._store.find_documents(
            draft.tenant, source=draft.source, owner=draft.owner, include_shared=draft.owner is None
        )
        first = canonical_id(draft.tenant, draft.owner, draft.source)
        own = [head for head in found if head.owner == draft.owner]
        own.sort(key=lambda head: (head.id != first, head.ingested_at, head.id))
        return (own[0], own[1:]) if own else (None, [])

    def _numbered(self, draft: Document, old: Document | None, *, replace: bool) -> Document:
        if old is not None:
            id, generation = old.id, old.generation + 1
        elif replace:
            id, generation = canonical_id(draft.tenant, draft.owner, draft.source), 1
        else:
            id, generation = self._new_id(), 1
        return draft.replace(id=id, generation=generation, options={**draft.options, EDITION: self._new_id()})

    async def _put_in_place(self, head: Document, old: Document | None, content: str, options: ChunkOptions) -> bool:
        """Write the head's chunks and then the head; False if another ingestion was faster."""
        edition = edition_of(head)
        left = await self._note(head.id, [edition] if old is None else [edition, edition_of(old)])
        try:
            head = head.replace(chunks=await self._write(head, old, content, options))
            expected = None if old is None else old.generation
            is_whole = await self._index.is_complete(head)
            done = is_whole and await self._store.save_document(head, expected_generation=expected)
        except LaminaError:
            if not await self._may_be_in_place(head):
                await self._clean_up([edition])
            raise
        if not done:
            await self._clean_up([edition])
            return False
        if await self._clean_up(name for name in left if name != edition):
            await self._forget(head.id)
        return True

    async def _may_be_in_place(self, head: Document) -> bool:
        """Whether the head was saved though that failed, as where the answer was lost; what is noted can wait."""
        try:
            found = await self._store.get_documents(head.tenant, [head.id])
        except LaminaError:
            return True
        return any(edition_of(each) == edition_of(head) for each in found)

    async def _write(self, head: Document, old: Document | None, content: str, options: ChunkOptions) -> int:
        known: dict[str, Vector] = {} if old is None else await self._index.vectors(old)
        chunks = chunk_text(content, options, self._counter.count)
        written = 0
        while batch := await asyncio.to_thread(_some, chunks):
            now = self._clock()
            await self._index.write([entry_of(head, chunk, content, now) for chunk in batch], known)
            written += len(batch)
        return written

    async def _clean_up(self, editions: Iterable[str]) -> bool:
        """Delete rows that do not count; a failure is logged, for what the call was about is decided."""
        try:
            await self._index.discard(editions)
        except LaminaError as error:
            log.warning("could not delete chunks that no longer count; the next ingestion will: %s", place_of(error))
            return False
        return True

    async def _note(self, id: str, editions: list[str]) -> list[str]:
        """Write down editions that may be left behind, and return them with those that were there already."""
        adapter, scope = self._index.adapter, self._index.scope
        before = await adapter.load_meta(scope, _key(id))
        noted = list(dict.fromkeys([*(json.loads(before) if before else []), *editions]))[-MAX_PENDING:]
        await adapter.save_meta(scope, _key(id), json.dumps(noted), self._clock())
        return noted

    async def _forget(self, id: str) -> None:
        await self._index.adapter.save_meta(self._index.scope, _key(id), "[]", self._clock())


def _key(id: str) -> str:
    return f"ingest:{id}"


def _some(chunks: Iterator[Chunk]) -> list[Chunk]:
    return list(islice(chunks, BATCH))
