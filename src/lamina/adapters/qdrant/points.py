"""A memory as a point of Qdrant, and back.

A point has the memory whole, as exact text and bytes, and beside them what conditions and indexes
read. Its id is derived from tenant and id. The collection has other kinds of points too, without
vectors: former versions, controls, and one head that counts.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from qdrant_client import models

from lamina.adapters._shared.directions import direction
from lamina.adapters._shared.entry_text import UNREADABLE, entry_of_text, pack, text_of_entry, unpack
from lamina.adapters._shared.leaves import leaf_tokens, presence_token
from lamina.adapters._shared.names import key_of_names
from lamina.adapters._shared.records import Control, Stored
from lamina.adapters._shared.word_ranking import distinct_terms
from lamina.adapters.qdrant.failures import damaged
from lamina.domain.memory import MemoryEntry, Vector

__all__ = [
    "CONTROL",
    "HEAD",
    "MEMORY",
    "PAST",
    "TERMS",
    "control_id",
    "control_of",
    "control_point",
    "entry_of",
    "light_payload",
    "memory_id",
    "memory_point",
    "past_point",
    "point_id",
    "sparse",
    "stored_of",
    "vector_name",
]

MEMORY: Final = "memory"
PAST: Final = "past"
CONTROL: Final = "control"
HEAD: Final = "head"
TERMS: Final = "terms"
"""The sparse vector of a memory's words, and the payload field that has them as keywords."""


def point_id(*names: str) -> str:
    """One UUID for each sequence of names, whatever stands in them."""
    return str(uuid.UUID(hex=key_of_names(*names), version=5))


def memory_id(tenant: str, id: str) -> str:
    """The id of a memory's point."""
    return point_id(MEMORY, tenant, id)


def control_id(tenant: str, key: str) -> str:
    """The id of a control's point."""
    return point_id(CONTROL, tenant, key)


def vector_name(dimensions: int) -> str:
    """The named vector of all memories whose vectors have this length."""
    return f"d{dimensions}"


def memory_point(entry: MemoryEntry, *, write: str, versions: int) -> models.PointStruct:
    """The whole point; `write` is another one in every write, `versions` counts its history."""
    words = distinct_terms(entry.content)
    vectors: dict[str, Any] = {TERMS: sparse(words)} if words else {}
    payload = light_payload(entry, write=write, versions=versions)
    payload |= {TERMS: words, "dimensions": None, "vector": None}
    if entry.embedding is not None:
        packed = pack(entry.embedding)
        payload |= {"dimensions": len(entry.embedding), "vector": base64.b64encode(packed).decode()}
        vectors[vector_name(len(entry.embedding))] = _unit(unpack(packed))
    return models.PointStruct(id=memory_id(entry.tenant, entry.id), vector=vectors, payload=payload)


def light_payload(entry: MemoryEntry, *, write: str, versions: int) -> dict[str, Any]:
    """All of the payload but what follows from content and embedding."""
    scalars = list(_scalars((), entry.metadata))
    numbers = [(path, each) for path, each in scalars if isinstance(each, int | float) and not isinstance(each, bool)]
    texts = [(path, each) for path, each in scalars if isinstance(each, str)]
    return {
        "kind": MEMORY,
        "tenant": entry.tenant,
        "owner": entry.owner,
        "namespace": entry.namespace,
        "layer": entry.layer.value,
        "id": entry.id,
        "text": text_of_entry(entry),
        "digest": entry.digest,
        "tags": list(entry.tags),
        "leaves": leaf_tokens(entry.metadata),
        "numbers": [{"at": presence_token(path), "is": each} for path, each in numbers],
        "texts": [{"at": presence_token(path), "is": each} for path, each in texts],
        "seq": entry.seq,
        "relevance": entry.relevance,
        "confidence": entry.confidence,
        "created_at": _instant(entry.created_at),
        "updated_at": _instant(entry.updated_at),
        "expires_at": None if entry.expires_at is None else _instant(entry.expires_at),
        "current_until": None if entry.current_until is None else _instant(entry.current_until),
        "write": write,
        "versions": versions,
    }


def past_point(of: str, version: MemoryEntry) -> models.PointStruct:
    """A former version of the memory whose point this is; its revision numbers it."""
    payload = {
        "kind": PAST,
        "tenant": version.tenant,
        "of": of,
        "revision": version.revision,
        "id": version.id,
        "text": text_of_entry(version),
    }
    return models.PointStruct(id=point_id(PAST, of, str(version.revision)), vector={}, payload=payload)


def control_point(tenant: str, key: str, value: str) -> models.PointStruct:
    """A control of the tenant."""
    payload = {"kind": CONTROL, "tenant": tenant, "key": key, "value": value}
    return models.PointStruct(id=control_id(tenant, key), vector={}, payload=payload)


def sparse(words: Sequence[str]) -> models.SparseVector:
    """Each word once, with the weight 1; two words that fall on one number count once, and are told apart elsewhere."""
    numbers = sorted({int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest()) for word in words})
    return models.SparseVector(indices=numbers, values=[1.0] * len(numbers))


def entry_of(record: models.Record | models.ScoredPoint) -> MemoryEntry:
    """The memory that was written; without its embedding if that was not asked for.

    Raises:
        StoreDamaged: the point is not one of ours, or cannot be read.
    """
    payload = record.payload or {}
    try:
        vector = payload.get("vector")
        entry = entry_of_text(payload["text"], None if vector is None else base64.b64decode(vector, validate=True))
    except UNREADABLE as error:
        raise damaged(f"a point cannot be read as a memory ({type(error).__name__})") from None
    if payload.get("tenant") != entry.tenant or payload.get("id") != entry.id:
        raise damaged("a point has the memory of another one")
    return entry


def stored_of(record: models.Record, tenant: str, id: str | None = None) -> Stored:
    """The memory as the write rules take it; its mark is what the next write of it has to know.

    Raises:
        StoreDamaged: as `entry_of`, or it is another memory than was asked for.
    """
    entry = entry_of(record)
    if entry.tenant != tenant or id not in {None, entry.id}:
        raise damaged("two memories share the id of a point")
    payload = record.payload or {}
    return Stored(entry, (payload.get("write"), payload.get("versions") or 0))


def control_of(record: models.Record, tenant: str, key: str) -> Control:
    """The control that was written.

    Raises:
        StoreDamaged: it is another one than was asked for.
    """
    payload = record.payload or {}
    if (payload.get("tenant"), payload.get("key")) != (tenant, key) or not isinstance(payload.get("value"), str):
        raise damaged("two controls share the id of a point, or one cannot be read")
    return Control(payload["value"], payload["value"])


def _unit(vector: Vector) -> list[float]:
    """Of length one, since the engine squares in 32 bits; the zero vector stays what it is and is close to nothing."""
    return direction(vector) or [0.0] * len(vector)


def _instant(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="microseconds")


def _scalars(path: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _scalars((*path, key), each)
    elif not isinstance(value, list):
        yield path, value
