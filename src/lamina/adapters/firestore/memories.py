"""A memory as the document that it becomes, and back.

What queries compare by equality are hashes, since Firestore's indexes see no more than the first
1,500 bytes of a text: of places, tags and metadata. The memory itself is one JSON text, compressed
where it is long.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from lamina.adapters._shared.directions import direction
from lamina.adapters._shared.entry_text import UNREADABLE, entry_of_text, pack, short_form, text_of_entry, written_out
from lamina.adapters._shared.leaves import leaf_tokens
from lamina.adapters._shared.names import key_of_names
from lamina.adapters.firestore.failures import damaged
from lamina.adapters.firestore.values import NearVector, size_of
from lamina.domain.instants import to_micros
from lamina.domain.memory import SHARED_LAYERS, MemoryEntry
from lamina.errors import InvalidInput

__all__ = ["NEVER", "check_limits", "document_of", "entry_of", "version_of"]

NEVER: Final = 2**63 - 1
"""Stands for the expiry of what does not expire, so that one comparison finds what is live."""

MAX_DOCUMENT: Final = 1_048_576
MAX_DIMENSIONS: Final = 2_048
MAX_TOKENS: Final = 5_000
"""Bytes of a document, numbers of a vector: Firestore's limits. It also indexes at most 40,000 values of a
document, and each token counts once in every index that it stands in."""

_INDEXED: Final = 1_500
"""Bytes of a text that an index sees."""


def document_of(entry: MemoryEntry, past: int) -> dict[str, Any]:
    """The values of the memory's document, `past` of whose versions were ever made."""
    tenant, owner, namespace = entry.tenant, entry.owner, entry.namespace
    values: dict[str, Any] = {
        "tenant_key": key_of_names("tenant", tenant),
        "owner_key": key_of_names("owner", tenant, owner),
        "namespace_key": key_of_names("namespace", tenant, namespace),
        "place_key": key_of_names("place", tenant, owner, namespace),
        "layer": entry.layer.value,
        "digest": entry.digest,
        "seq": entry.seq,
        "relevance": float(entry.relevance),
        "confidence": float(entry.confidence),
        "created": to_micros(entry.created_at),
        "updated": to_micros(entry.updated_at),
        "expires": NEVER if entry.expires_at is None else to_micros(entry.expires_at),
        "id": entry.id.encode()[:_INDEXED].decode(errors="ignore"),  # for the order of those that tie
        "embedded": entry.embedding is not None,
        "tags": [key_of_names("tag", tag) for tag in dict.fromkeys(entry.tags)],
        "leaves": leaf_tokens(entry.metadata),
        "past": past,
    }
    if entry.layer in SHARED_LAYERS:
        values["shared_key"] = values["tenant_key"]
        values["shared_namespace_key"] = values["namespace_key"]
    if entry.embedding is not None:
        values["embedding"] = pack(entry.embedding)
        towards = direction(entry.embedding)
        values |= {"is_zero": True} if towards is None else {"vector": NearVector(towards)}
    return values | version_of(entry)


def version_of(entry: MemoryEntry) -> dict[str, Any]:
    """The memory's text without its vector, and when it may go: what a memory and its history have in common."""
    values: dict[str, Any] = {"entry": short_form(text_of_entry(entry))}
    if entry.expires_at is not None:
        values["expires_at"] = _whole_second(entry.expires_at)
    return values


def entry_of(values: Mapping[str, Any]) -> MemoryEntry:
    """The memory of a document.

    Raises:
        StoreDamaged: it cannot be read.
    """
    try:
        return entry_of_text(written_out(values["entry"]), values.get("embedding"))
    except UNREADABLE as error:
        raise damaged(f"a document cannot be read as a memory ({type(error).__name__})") from None


def check_limits(name: str, entry: MemoryEntry, values: Mapping[str, Any]) -> None:
    """Refuse a memory that Firestore would not keep.

    Raises:
        InvalidInput: it is too large, and the field named is the largest; or its vector too long, or its
            metadata have too many values.
    """
    if entry.embedding is not None and len(entry.embedding) > MAX_DIMENSIONS:
        problem = f"has {len(entry.embedding)} dimensions, and Firestore takes at most {MAX_DIMENSIONS}"
        raise InvalidInput("embedding", problem, "Use a model with shorter vectors.")
    if len(values["leaves"]) > MAX_TOKENS:
        problem = f"makes {len(values['leaves'])} values to be indexed, and at most {MAX_TOKENS} are"
        raise InvalidInput("metadata", problem, "Use fewer keys and shorter lists.")
    size = size_of(name, values)
    if size > MAX_DOCUMENT:
        sizes = {
            "content": len(entry.content.encode()),
            "metadata": len(json.dumps(entry.metadata).encode()),
            "derived_from": sum(len(each.encode()) for each in entry.derived_from),
        }
        field = max(sizes, key=lambda each: sizes[each])
        problem = f"makes a document of {size} bytes, compressed, and Firestore keeps at most {MAX_DOCUMENT}"
        raise InvalidInput(field, problem, "Make it smaller, or ingest it as a document.")


def _whole_second(instant: datetime) -> datetime:
    """The second after which Firestore may remove it; never before it is expired."""
    seconds = math.ceil(to_micros(instant) / 1_000_000)
    last = datetime.max.replace(tzinfo=UTC, microsecond=0)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return min(epoch + timedelta(seconds=min(seconds, (last - epoch) // timedelta(seconds=1))), last)
