"""Rows as memory entries, and back."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from psycopg.types.numeric import Int8

from lamina.adapters._shared.entry_text import UNREADABLE, entry_of_text
from lamina.adapters._shared.word_ranking import distinct_terms
from lamina.adapters.postgres.arrays import Bigints, bigints_of, texts_of, vector_of
from lamina.adapters.postgres.conditions import comparable
from lamina.databases.postgres.failures import damaged
from lamina.domain.memory import Layer, MemoryEntry, Trust

__all__ = [
    "COLUMNS",
    "SELECTED",
    "SELECTED_VECTOR",
    "entry_of",
    "hashes_of",
    "values_of",
    "version_of",
    "words_of",
]

COLUMNS: Final = (
    "seq id owner namespace layer revision digest created_at updated_at expires_at last_accessed_at occurred_at "
    "valid_until access_count relevance base_relevance confidence ttl trust source superseded_by tags derived_from "
    "metadata metadata_text content"
).split()
"""The columns of a memory beside `tenant`, in the order of `values_of`."""

_READ: Final = [name for name in COLUMNS if name not in {"digest", "metadata"}]
SELECTED: Final = ", ".join(f"m.{name}" for name in _READ)
"""What `entry_of` reads of a memory `m`; after it in the row, the vector as `SELECTED_VECTOR` gives it, or NULL."""

SELECTED_VECTOR: Final = "array_send(v.exact)"


def entry_of(row: Sequence[Any], tenant: str) -> MemoryEntry:
    """The tenant's entry in a row of `SELECTED` and a vector.

    Raises:
        StoreDamaged: the row does not hold what was written.
    """
    try:
        return _entry(row, tenant)
    except (*UNREADABLE, struct.error):
        raise damaged(f"the row of the memory {row[1]!r} cannot be read") from None  # which would repeat it


def _entry(row: Sequence[Any], tenant: str) -> MemoryEntry:
    seq, id, owner, namespace, layer, revision = row[:6]
    created, updated, expires, accessed, occurred, valid = map(_utc, row[6:12])
    access_count, relevance, base_relevance, confidence, ttl, trust, source, superseded_by = row[12:20]
    tags, derived_from, metadata, content, vector = row[20:]
    if created is None or updated is None:
        raise ValueError("no time of creation")
    return MemoryEntry(
        id=id,
        content=content,
        created_at=created,
        updated_at=updated,
        layer=Layer(layer),
        tenant=tenant,
        owner=owner,
        namespace=namespace,
        tags=tags,
        metadata={} if metadata == "{}" else json.loads(metadata),
        relevance=relevance,
        base_relevance=base_relevance,
        confidence=confidence,
        ttl=ttl,
        expires_at=expires,
        embedding=None if vector is None else vector_of(vector),
        last_accessed_at=accessed,
        access_count=access_count,
        seq=seq,
        revision=revision,
        occurred_at=occurred,
        valid_until=valid,
        superseded_by=superseded_by,
        source=source,
        trust=Trust(trust),
        derived_from=derived_from,
    )


def values_of(entry: MemoryEntry) -> tuple[Any, ...]:
    """The entry as values for `COLUMNS`."""
    metadata = "{}" if not entry.metadata else json.dumps(entry.metadata, ensure_ascii=False)
    looked_at = "{}" if not entry.metadata else json.dumps(comparable(entry.metadata), ensure_ascii=False)
    return (
        Int8(entry.seq),
        entry.id,
        entry.owner,
        entry.namespace,
        entry.layer.value,
        Int8(entry.revision),
        bytes.fromhex(entry.digest),
        entry.created_at,
        entry.updated_at,
        entry.expires_at,
        entry.last_accessed_at,
        entry.occurred_at,
        entry.valid_until,
        Int8(entry.access_count),
        float(entry.relevance),
        float(entry.base_relevance),
        float(entry.confidence),
        None if entry.ttl is None else float(entry.ttl),
        entry.trust.value,
        entry.source,
        entry.superseded_by,
        texts_of(entry.tags),
        texts_of(entry.derived_from),
        looked_at,
        metadata,
        entry.content,
    )


def version_of(text: str) -> MemoryEntry:
    """A former version of an entry."""
    try:
        return entry_of_text(text)
    except UNREADABLE:
        raise damaged("a former version in the history cannot be read") from None


def words_of(entry: MemoryEntry) -> Bigints:
    """What the index of words holds of the entry."""
    return bigints_of(hashes_of(entry.tenant, distinct_terms(entry.content)))


def hashes_of(tenant: str, terms: Iterable[str]) -> list[int]:
    """Each term as the number under which it stands in the index.

    A number, because a GIN index takes no word of some thousand bytes, and a tsvector no text of more
    than 1 MiB of them; of term and tenant, so that one tenant's words are found, and told, by that tenant alone.
    Where two terms should share one of the 2**64 numbers, what is found is compared by its words anyway.
    """
    start = hashlib.blake2b(tenant.encode(), digest_size=8)
    start.update(b"\0")
    found = []
    for term in terms:
        one = start.copy()
        one.update(term.encode())
        found.append(int.from_bytes(one.digest(), "little", signed=True))
    return found


def _utc(instant: datetime | None) -> datetime | None:
    return None if instant is None else instant.astimezone(UTC)
