"""Pack memories made of a memory engine's entries, and entries made of pack memories."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import Any, Final

from lamina.domain.context import ENTRY_ID
from lamina.domain.memory import DEFAULT_NAME, Layer, MemoryEntry, Trust
from lamina.domain.pack import MemoryType, Pack, PackMemory, PackSource, PackType
from lamina.domain.text import clean, is_blank
from lamina.packs.inputs import PackMemoryInput, read_kind
from lamina.packs.pack_rows import trust_of

__all__ = ["ImportReport", "entry_of_memory", "imported_id", "input_of"]

MEMORY_TYPE: Final = "memory_type"
"""The key of an entry's metadata that says which kind of knowledge it is."""

_NAMESPACE: Final = uuid.UUID("6d0f1b1e-6c0a-5f43-9a0e-3d1a7b0c5e21")
_LAYERS: Final = {
    PackType.SESSION: Layer.SESSION,
    PackType.USER: Layer.LONGTERM,
    PackType.AGENT: Layer.LONGTERM,
    PackType.PROJECT: Layer.ORGANIZATIONAL,
    PackType.DOMAIN: Layer.ORGANIZATIONAL,
}


@dataclass(slots=True)
class ImportReport:
    """The ids of the memories that were added, and of those that an earlier import had added."""

    added: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def imported_id(pack: Pack, entry: MemoryEntry) -> str:
    """The id of what the entry becomes in the pack: the same each time."""
    return str(uuid.uuid5(_NAMESPACE, json.dumps([pack.tenant, pack.id, entry.id])))


def input_of(entry: MemoryEntry, pack: Pack, memory_type: MemoryType | str | None) -> PackMemoryInput:
    """The entry as a memory to add; without a type, that of its metadata, or a fact.

    Raises:
        InvalidInput: its metadata names a type that there is not.
    """
    metadata = {key: value for key, value in entry.metadata.items() if key != MEMORY_TYPE}
    named = entry.metadata.get(MEMORY_TYPE, MemoryType.FACT) if memory_type is None else memory_type
    return PackMemoryInput(
        content=entry.content,
        memory_type=read_kind(MEMORY_TYPE, named, MemoryType),
        source=PackSource.CONVERSATION if entry.trust is Trust.TRUSTED else PackSource.DOCUMENT,
        confidence=entry.confidence,
        provenance=entry.source,
        tags=entry.tags,
        metadata={**metadata, ENTRY_ID: entry.id},
        expires_at=entry.expires_at,
        id=imported_id(pack, entry),
    )


def entry_of_memory(memory: PackMemory, pack: Pack) -> MemoryEntry:
    """The memory as an entry, which an engine's `restore` takes; its id is the memory's.

    What belongs to an owner never goes into a layer that owners share.
    """
    layer = _LAYERS[pack.type]
    if pack.owner is not None and layer is Layer.ORGANIZATIONAL:
        layer = Layer.LONGTERM
    if pack.owner is None:
        layer = Layer.ORGANIZATIONAL
    metadata: dict[str, Any] = {**memory.metadata, MEMORY_TYPE: memory.memory_type.value, "pack": pack.name}
    metadata |= {
        key: value for key, value in (("name", memory.name), ("provenance", memory.provenance)) if value is not None
    }
    origin = memory.metadata.get(ENTRY_ID)
    return MemoryEntry(
        id=memory.id,
        content=clean(memory.content),
        created_at=memory.created_at,
        updated_at=memory.updated_at,
        layer=layer,
        tenant=memory.tenant,
        owner=DEFAULT_NAME if pack.owner is None else pack.owner,
        tags=list(memory.tags),
        metadata=metadata,
        confidence=memory.confidence,
        expires_at=memory.expires_at,
        last_accessed_at=memory.last_accessed,
        access_count=memory.access_count,
        superseded_by=memory.superseded_by,
        source=f"pack:{pack.name}",
        trust=trust_of(memory.source),
        derived_from=[origin] if isinstance(origin, str) and not is_blank(origin) else [],
    )
