"""Rows as packs and pack memories, and back."""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, LiteralString

from lamina.domain.message_json import json_text
from lamina.domain.pack import MemoryType, Pack, PackFace, PackMemory, PackSource, PackStatus, PackType, Relationship
from lamina.domain.pack_decay import Decay, Tier
from lamina.state.postgres.rows import mapping, readable, utc

__all__ = [
    "MEMORY_WIDTH",
    "PACK_FRAGMENTS",
    "compressed",
    "face_of",
    "memory_of",
    "pack_of",
    "text_of",
    "values_of_memory",
    "values_of_pack",
    "vector_bytes",
]

PACK_FRAGMENTS: Final[dict[str, LiteralString]] = {
    "pack": (
        "p.key, p.tenant, p.id, p.owner, p.name, p.type, p.status, p.description, p.tags, p.metadata, p.decay,"
        " p.created_at, p.updated_at, p.revision, p.fingerprint"
    ),
    "memory": (
        "m.key, m.tenant, m.id, p.id, m.memory_type, m.name, m.source, m.confidence, m.provenance, m.tags, m.metadata,"
        " m.created_at, m.updated_at, m.last_accessed, m.access_count, m.superseded_by, m.tier, m.tier_since,"
        " m.pinned_at, m.expires_at, m.is_deleted, m.revision"
    ),
    "changed": (
        "memory_type, name, source, confidence, provenance, tags, metadata, updated_at, last_accessed, tier,"
        " tier_since, pinned_at, expires_at, is_deleted"
    ),
    "joined": "{schema}.pack_memories AS m JOIN {schema}.pack_heads AS p ON p.key = m.pack",
    "live": "superseded_by IS NULL AND NOT is_deleted",
}
"""The columns that the functions below read, of a pack `p` and of a memory `m` in it, and what is asked of them."""

MEMORY_WIDTH: Final = PACK_FRAGMENTS["memory"].count(",") + 1
_MICROSECOND: Final = timedelta(microseconds=1)
_FLOAT: Final = 4


def pack_of(row: Sequence[Any]) -> Pack:
    """The pack in a row of `{pack}`."""
    (_, tenant, id, owner, name, type, status, description, tags, metadata, decay, *rest) = row
    created, updated, revision, fingerprint = rest
    with readable("pack", id):
        return Pack(
            id=id,
            tenant=tenant,
            name=name,
            type=PackType(type),
            created_at=utc(created),
            updated_at=utc(updated),
            owner=owner,
            description=description,
            tags=list(tags),
            status=PackStatus(status),
            metadata=mapping(metadata),
            decay=None if decay is None else Decay(timedelta(microseconds=decay[0]), tuple(decay[1:])),
            revision=revision,
            fingerprint=fingerprint,
        )


def face_of(row: Sequence[Any]) -> PackFace:
    """What is found of a pack, in a row of id, name, description, tags, vector and fingerprint."""
    id, name, description, tags, vector, fingerprint = row
    with readable("pack", id):
        embedding = None if vector is None else array("f", struct.unpack(f"<{len(vector) // _FLOAT}f", vector))
        return PackFace(id, name, description, list(tags), embedding, fingerprint)


def values_of_pack(pack: Pack) -> tuple[Any, ...]:
    """The pack as values for name, type, status, description, tags, metadata, decay and updated_at."""
    return (
        pack.name,
        pack.type.value,
        pack.status.value,
        pack.description,
        pack.tags,
        json_text(pack.metadata),
        None if pack.decay is None else json_text([pack.decay.unit // _MICROSECOND, *pack.decay.steps]),
        pack.updated_at,
    )


def memory_of(row: Sequence[Any], relationships: Sequence[Relationship] = (), content: str = "") -> PackMemory:
    """The memory in a row of `{memory}`."""
    (_, tenant, id, pack_id, memory_type, name, source, confidence, provenance, tags, metadata, *rest) = row
    created, updated, accessed, count, superseded_by, tier, since, pinned, expires, is_deleted, revision = rest
    with readable("pack memory", id):
        return PackMemory(
            id=id,
            tenant=tenant,
            pack_id=pack_id,
            content=content,
            created_at=utc(created),
            updated_at=utc(updated),
            memory_type=MemoryType(memory_type),
            name=name,
            source=PackSource(source),
            confidence=confidence,
            provenance=provenance,
            tags=list(tags),
            metadata=mapping(metadata),
            relationships=list(relationships),
            last_accessed=_instant(accessed),
            access_count=count,
            superseded_by=superseded_by,
            tier=Tier(tier),
            tier_since=_instant(since),
            pinned_at=_instant(pinned),
            expires_at=_instant(expires),
            is_deleted=is_deleted,
            revision=revision,
        )


def values_of_memory(memory: PackMemory) -> tuple[Any, ...]:
    """The memory as values for `{changed}`."""
    return (
        memory.memory_type.value,
        memory.name,
        memory.source.value,
        memory.confidence,
        memory.provenance,
        memory.tags,
        json_text(memory.metadata),
        memory.updated_at,
        memory.last_accessed,
        memory.tier.value,
        memory.tier_since,
        memory.pinned_at,
        memory.expires_at,
        memory.is_deleted,
    )


def compressed(content: str) -> bytes:
    """The original as it lies in cold storage."""
    return zlib.compress(content.encode())


def text_of(blob: bytes | None, id: object) -> str:
    """The original, byte for byte."""
    with readable("original of the pack memory", id):
        try:
            return zlib.decompress(blob).decode()  # type: ignore[arg-type]  # what is missing is damage too
        except zlib.error:
            raise ValueError from None


def vector_bytes(pack: Pack) -> bytes | None:
    """The pack's vector as it is stored: 32-bit floats, little-endian."""
    return None if pack.embedding is None else struct.pack(f"<{len(pack.embedding)}f", *pack.embedding)


def _instant(value: datetime | None) -> datetime | None:
    return None if value is None else utc(value)
