"""A memory as one object of a collection, and back.

The memory itself is kept whole, as text, in one property, and its vector as it is in another; the others
are there to be compared with. Weaviate trims texts before it compares them, so names are compared by
their hash. It takes whole numbers as 64-bit floats on the way in, so an instant is two of them, seconds
and microseconds, and so is a `seq`.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lamina.adapters._shared.clock_sequence import SLOTS
from lamina.adapters._shared.directions import direction
from lamina.adapters._shared.entry_text import UNREADABLE, entry_of_text, pack, text_of_entry
from lamina.adapters._shared.leaves import leaf_tokens, tag_token
from lamina.adapters._shared.names import key_of_names
from lamina.adapters._shared.split_instants import instant
from lamina.adapters._shared.word_ranking import distinct_terms
from lamina.adapters.weaviate.failures import NAME
from lamina.adapters.weaviate.layout import vector_name
from lamina.domain.memory import MemoryEntry
from lamina.errors import StoreDamaged

__all__ = [
    "ANY_OBJECT",
    "Row",
    "key",
    "place_of",
    "read_entry",
    "row_of",
    "version_of",
]

ANY_OBJECT: Final = "-"
"""A label of every memory, so that the list of labels is never empty."""


@dataclass(frozen=True, slots=True)
class Row:
    """An object of the collection."""

    key: uuid.UUID
    properties: dict[str, Any]
    length: int = 0
    """Of its vector; 0 for none."""
    unit: list[float] | None = None
    """The vector's direction, which is what is indexed; None for none."""

    @property
    def vectors(self) -> dict[str, list[float]]:
        """What is indexed, by the name of its index."""
        return {} if self.unit is None else {vector_name(self.length): self.unit}

    @property
    def size(self) -> int:
        """About how many bytes a request spends on it."""
        texts = sum(4 * len(each) for each in self.properties.values() if isinstance(each, str))
        return 1_000 + texts + 30 * len(self.properties.get("labels", ())) + 4 * self.length


def key(*names: str) -> uuid.UUID:
    """A UUID for names of any length and script."""
    return uuid.UUID(hex=key_of_names(*names), version=5)


def place_of(seq: int) -> dict[str, int]:
    """The two properties of a `seq`, exact in 64-bit floats."""
    return {"order": seq // SLOTS, "place": seq % SLOTS}


def row_of(entry: MemoryEntry) -> Row:
    """The object of the memory."""
    unit = None if entry.embedding is None else direction(entry.embedding)
    properties: dict[str, Any] = {
        "memory": text_of_entry(entry),
        "id_hex": entry.id.encode().hex(),  # sorts by code point, whatever Weaviate makes of case
        "owner": key_of_names(entry.owner),
        "namespace": key_of_names(entry.namespace),
        "layer": entry.layer.value,
        "digest": entry.digest,
        "labels": [ANY_OBJECT, *map(tag_token, dict.fromkeys(entry.tags)), *leaf_tokens(entry.metadata)],
        "words": " ".join(distinct_terms(entry.content)),
        "relevance": float(entry.relevance),
        "confidence": float(entry.confidence),
        **place_of(entry.seq),
        "length": 0 if entry.embedding is None else len(entry.embedding),
        **instant("created", entry.created_at),
        **instant("updated", entry.updated_at),
        **instant("expires", entry.expires_at),
        "is_indexed": unit is not None,
    }
    if entry.current_until is not None:
        properties |= instant("holds", entry.current_until)
    if entry.embedding is None:
        return Row(key(entry.id), properties)
    properties["embedding"] = base64.b64encode(pack(entry.embedding)).decode()
    return Row(key(entry.id), properties, len(entry.embedding), unit)


def version_of(entry: MemoryEntry) -> Row:
    """The object of a former version."""
    properties = {
        "memory": text_of_entry(entry),
        "version_of": key_of_names(entry.id),
        "revision": entry.revision,
    }
    return Row(key(entry.id, str(entry.revision)), properties)


def read_entry(properties: Mapping[str, Any]) -> MemoryEntry:
    """The memory of the object; without its vector if that was not asked for.

    Raises:
        StoreDamaged: the object is none of ours.
    """
    try:
        encoded = properties.get("embedding")
        vector = None if encoded is None else base64.b64decode(encoded, validate=True)
        return entry_of_text(properties["memory"], vector)
    except UNREADABLE:
        problem = "an object in the place of memories is none of Lamina's, or was changed by others"
        raise StoreDamaged(NAME, problem, "Use another table.") from None
