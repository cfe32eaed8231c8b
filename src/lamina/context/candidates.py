"""What was found for a context, as one kind of thing, in the order in which it is kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from lamina.domain.context import DroppedItem, DropReason, ItemKind, PackHit
from lamina.domain.context_block import chunk_text, memory_text, pack_text
from lamina.domain.document import RagChunk
from lamina.domain.memory import Layer, MemoryEntry
from lamina.domain.recall import RecallResult

__all__ = ["Candidate", "chunk_candidates", "memory_candidates", "pack_candidates", "preference_candidates"]

Value: TypeAlias = MemoryEntry | RagChunk | PackHit


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that was found; `piece` is how it is rendered, for its size."""

    kind: ItemKind
    id: str
    content: str
    piece: str
    value: Value
    source: str | None = None
    layer: Layer | None = None
    score: float | None = None
    owner: str | None = None
    key: str | None = None

    def dropped(self, reason: DropReason, tokens: int, *, of: str | None = None) -> DroppedItem:
        """The account of leaving it out."""
        return DroppedItem(self.kind, self.id, tokens, reason, self.source, self.layer, self.score, of)


def preference_candidates(entries: Iterable[MemoryEntry]) -> list[Candidate]:
    """Preferences; they are charged as the memories that they are."""
    return [_of_memory(entry, ItemKind.PREFERENCE, entry.relevance) for entry in entries]


def memory_candidates(found: Iterable[MemoryEntry | RecallResult]) -> list[Candidate]:
    """Memories with the score of their recall, or with their relevance where they were listed."""
    return [
        _of_memory(each.entry, ItemKind.MEMORY, each.score)
        if isinstance(each, RecallResult)
        else _of_memory(each, ItemKind.MEMORY, each.relevance)
        for each in found
    ]


def chunk_candidates(chunks: Iterable[RagChunk]) -> list[Candidate]:
    """Pieces of documents, best first."""
    ordered = sorted(chunks, key=lambda chunk: (-chunk.score, chunk.id))
    return [
        Candidate(
            ItemKind.CHUNK, chunk.id, chunk.content, chunk_text(chunk), chunk, source=chunk.source, score=chunk.score
        )
        for chunk in ordered
    ]


def pack_candidates(hits: Iterable[PackHit]) -> list[Candidate]:
    """Memories of packs, best first."""
    ordered = sorted(hits, key=lambda hit: (-hit.score, hit.id))
    return [
        Candidate(ItemKind.PACK, hit.id, hit.content, pack_text(hit), hit, source=hit.pack, score=hit.score)
        for hit in ordered
    ]


def _of_memory(entry: MemoryEntry, kind: ItemKind, score: float) -> Candidate:
    key = entry.metadata.get("key")
    return Candidate(
        kind,
        entry.id,
        entry.content,
        memory_text(entry),
        entry,
        source=entry.source,
        layer=entry.layer,
        score=score,
        owner=entry.owner,
        key=key if isinstance(key, str) and key else None,
    )
