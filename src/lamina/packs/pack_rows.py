"""Pack memories as rows of a memory adapter, and back."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from lamina.domain.memory import DEFAULT_NAME, Layer, MemoryEntry, Trust
from lamina.domain.pack import Pack, PackMemory, PackSource
from lamina.domain.pack_decay import Tier
from lamina.errors import StoreDamaged

__all__ = [
    "LIVE",
    "MARKER",
    "OWN",
    "REDUCED",
    "SLOTS",
    "PackRow",
    "digest_of",
    "entry_of",
    "read_row",
    "row_id",
    "trust_of",
]

OWN: Final = "pack_memory"
"""The key of an entry's metadata with what only this module reads."""

MARKER: Final = "…"
"""What stands for the text of an existence marker: no words, so that only its meaning is found."""

LIVE: Final = 0.5
"""From this relevance on a row is that of a memory which no other one has superseded."""

REDUCED: Final = frozenset({Tier.SUMMARY, Tier.KEY_FACTS})
"""Tiers whose texts a reducer has made."""

SLOTS: Final = (0, 1)

_TEXTS: Final = frozenset({"tier", "digest", "memory_type"})


@dataclass(frozen=True, slots=True)
class PackRow:
    """What a stored row says of itself. Its entry's content is what the tier has left of the memory."""

    entry: MemoryEntry
    id: str
    pack_id: str
    revision: int
    tier: Tier
    digest: str
    """Of the original, which the vector was made of."""


def row_id(id: str, revision: int) -> str:
    """Where the row of this revision is.

    Each revision takes the other one of two places, so that a row is there before the former one goes, and
    goes with all that the adapter remembers of it: a replaced row would leave the full text in the history.
    """
    return f"{revision % len(SLOTS)}:{id}"


def digest_of(content: str) -> str:
    """What tells one original from another."""
    return hashlib.sha256(content.encode()).hexdigest()


def entry_of(memory: PackMemory, pack: Pack, text: str, digest: str) -> MemoryEntry:
    """The row, without a vector: shared packs lie in a shared layer, an owner's among the owner's own."""
    return MemoryEntry(
        id=row_id(memory.id, memory.revision),
        content=text,
        created_at=memory.created_at,
        updated_at=memory.updated_at,
        layer=Layer.ORGANIZATIONAL if pack.owner is None else Layer.LONGTERM,
        tenant=memory.tenant,
        owner=DEFAULT_NAME if pack.owner is None else pack.owner,
        namespace=memory.pack_id,
        tags=list(memory.tags),
        metadata={
            OWN: {
                "tier": memory.tier.value,
                "revision": memory.revision,
                "digest": digest,
                "memory_type": memory.memory_type.value,
                "name": memory.name,
            }
        },
        relevance=1.0 if memory.superseded_by is None else 0.0,
        confidence=memory.confidence,
        trust=trust_of(memory.source),
    )


def trust_of(source: PackSource) -> Trust:
    """Whether somebody said it who may: what a document or another agent says is not the owner's word."""
    return Trust.TRUSTED if source is PackSource.CONVERSATION else Trust.UNTRUSTED


def read_row(entry: MemoryEntry, adapter: str) -> PackRow:
    """What the entry says of itself.

    Raises:
        StoreDamaged: it is no pack memory; the collection holds something else as well.
    """
    own = entry.metadata.get(OWN)
    slot, _, id = entry.id.partition(":")
    if isinstance(own, dict) and all(isinstance(own.get(key), str) for key in _TEXTS) and slot.isdecimal() and id:
        revision = own.get("revision")
        if isinstance(revision, int) and own["tier"] in set(Tier):
            return PackRow(entry, id, entry.namespace, revision, Tier(own["tier"]), own["digest"])
    remedy = "Give packs a collection of their own, such as SqliteAdapter(path, table='lamina_packs')."
    raise StoreDamaged(adapter, f"the entry {entry.id!r} is no memory of a pack", remedy)
