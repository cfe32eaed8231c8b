"""Chunks as rows of a memory adapter, and back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from lamina.domain.document import Document, RagChunk
from lamina.domain.memory import DEFAULT_NAME, Layer, MemoryEntry, Trust
from lamina.errors import StoreDamaged
from lamina.rag.chunking import Chunk
from lamina.rag.heads import edition_of

__all__ = ["ChunkRow", "chunk_id", "entry_of", "read_row"]

OWN: Final = "chunk"
"""The key of an entry's metadata with what only this module reads."""

_TEXTS: Final = frozenset({"document", "edition"})
_NUMBERS: Final = frozenset({"index", "start", "end", "lead"})


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """What a stored chunk says of itself.

    Its entry's content is what is indexed: `lead` characters of titles and table header, then the chunk.
    """

    entry: MemoryEntry
    document: str
    edition: str
    index: int
    start: int
    end: int
    lead: int

    @property
    def content(self) -> str:
        """The chunk as it stands in the text."""
        return self.entry.content[self.lead :]

    def is_of(self, head: Document | None) -> bool:
        """Whether it is one of those that count."""
        return head is not None and self.edition == edition_of(head) and self.index < head.chunks

    def shown(self, head: Document, score: float) -> RagChunk:
        """The chunk as a caller gets it."""
        metadata = {key: value for key, value in self.entry.metadata.items() if key != OWN}
        return RagChunk(
            id=self.entry.id,
            content=self.content,
            source=head.source,
            score=score,
            document_id=head.id,
            chunk_index=self.index,
            start=self.start,
            end=self.end,
            metadata=metadata,
        )


def chunk_id(edition: str, index: int) -> str:
    """The id of a chunk: known without a look at the store."""
    return f"{edition}:{index}"


def entry_of(head: Document, chunk: Chunk, text: str, now: datetime) -> MemoryEntry:
    """The row: shared documents lie in a shared layer, those of an owner among the owner's own."""
    edition = edition_of(head)
    lead = _lead(chunk)
    metadata: dict[str, Any] = {
        **head.metadata,
        "headers": list(chunk.headers),
        OWN: {
            "document": head.id,
            "edition": edition,
            "index": chunk.index,
            "start": chunk.start,
            "end": chunk.end,
            "lead": len(lead),
        },
    }
    if chunk.page is not None:
        metadata["page"] = chunk.page
    if chunk.table_header is not None:
        metadata["table_header"] = chunk.table_header
    return MemoryEntry(
        id=chunk_id(edition, chunk.index),
        content=lead + text[chunk.start : chunk.end],
        created_at=now,
        updated_at=now,
        layer=Layer.ORGANIZATIONAL if head.owner is None else Layer.LONGTERM,
        tenant=head.tenant,
        owner=DEFAULT_NAME if head.owner is None else head.owner,
        metadata=metadata,
        trust=Trust.UNTRUSTED,
    )


def read_row(entry: MemoryEntry, adapter: str) -> ChunkRow:
    """What the entry says of itself.

    Raises:
        StoreDamaged: it is no chunk; the collection holds something else as well.
    """
    own = entry.metadata.get(OWN)
    if isinstance(own, dict) and own.keys() >= _TEXTS | _NUMBERS:
        texts, numbers = [own[key] for key in sorted(_TEXTS)], [own[key] for key in sorted(_NUMBERS)]
        if all(isinstance(each, str) for each in texts) and all(isinstance(each, int) for each in numbers):
            return ChunkRow(entry=entry, **{key: own[key] for key in _TEXTS | _NUMBERS})
    remedy = "Give documents a collection of their own, such as SqliteAdapter(path, table='lamina_chunks')."
    raise StoreDamaged(adapter, f"the entry {entry.id!r} is no chunk of a document", remedy)


def _lead(chunk: Chunk) -> str:
    """What is indexed in front of the chunk: titles that it does not hold, and a table's header."""
    titles = " > ".join(chunk.above)
    return (f"{titles}\n\n" if titles else "") + (chunk.table_header or "")
