"""A memory as one record of an index, and back.

A record has an id, as many numbers as the index has dimensions, and flat metadata: texts, numbers
(64-bit floats), booleans and lists of text, 40 KB in all. The memory itself is kept whole, as text,
in one field; the others are there to be compared with. Since numbers are floats, an instant is two of
them, seconds and microseconds, which are exact. Since every record must have a vector that is not
zero, a memory without one has a vector of no meaning, and a field that says so.
"""

from __future__ import annotations

import base64
import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lamina.adapters._shared.clock_sequence import SLOTS
from lamina.adapters._shared.directions import direction
from lamina.adapters._shared.entry_text import UNREADABLE, entry_of_text, pack, text_of_entry, unpack
from lamina.adapters._shared.leaves import leaf_tokens, tag_token
from lamina.adapters._shared.names import key_of_names
from lamina.adapters._shared.split_instants import instant
from lamina.adapters.pinecone.failures import NAME
from lamina.domain.memory import MemoryEntry, Vector
from lamina.errors import InvalidInput, StoreDamaged

__all__ = [
    "ANY_RECORD",
    "MAX_METADATA_BYTES",
    "Kind",
    "Record",
    "marked",
    "order",
    "placed",
    "read_entry",
    "record_of",
    "size_of",
]

MAX_METADATA_BYTES: Final = 40_000
"""Pinecone takes 40 KB of metadata beside a vector, and does not say how it counts them."""

ANY_RECORD: Final = "-"
"""A label of every record, so that the list of labels is never empty."""

PLAIN: Final = (1e-6, 1e6)
"""Vectors whose largest number lies in between are kept as they are: no sum of squares leaves 32-bit floats."""


class Kind:
    """What the numbers of a record are."""

    NONE: Final = "none"
    """Nothing: the memory has no vector."""
    ZERO: Final = "zero"
    """Nothing: the memory's vector is zero."""
    PLAIN: Final = "plain"
    """The vector itself, with zeros behind it, which change no cosine."""
    SCALED: Final = "scaled"
    """Its direction; the vector itself is in the metadata."""


@dataclass(frozen=True, slots=True)
class Record:
    """What an index keeps under an id."""

    id: str
    values: Sequence[float]
    metadata: Mapping[str, Any]


def order(seq: int) -> int:
    """What of a `seq` is exact in a 64-bit float: records compare by it in steps of a microsecond."""
    return seq // SLOTS


def placed(vector: Vector | None, dimension: int) -> tuple[str, list[float]]:
    """The kind of the vector, and the numbers that stand for it in an index of this dimension."""
    largest = 0.0 if vector is None else max(abs(each) for each in vector)
    if vector is None or largest == 0:
        return (Kind.NONE if vector is None else Kind.ZERO), [1.0, *[0.0] * (dimension - 1)]
    kind = Kind.PLAIN if PLAIN[0] <= largest <= PLAIN[1] else Kind.SCALED
    numbers = list(array("f", vector)) if kind == Kind.PLAIN else direction(vector) or []
    return kind, numbers + [0.0] * (dimension - len(numbers))


def record_of(entry: MemoryEntry, dimension: int, index: str) -> Record:
    """The record of the memory.

    Raises:
        InvalidInput: its texts are too long for a record, or its vector for the index.
    """
    length = 0 if entry.embedding is None else len(entry.embedding)
    if length > dimension:
        problem = f"has {length} dimensions, and the index {index!r} takes {dimension}"
        remedy = f"Use another index_name with dimension={length}: an index keeps its dimension for ever."
        raise InvalidInput("embedding", problem, remedy)
    kind, values = placed(entry.embedding, dimension)
    labels = [ANY_RECORD, *map(tag_token, dict.fromkeys(entry.tags)), *leaf_tokens(entry.metadata)]
    metadata: dict[str, Any] = {
        "memory": text_of_entry(entry),
        "tenant": entry.tenant,
        "owner": entry.owner,
        "namespace": entry.namespace,
        "layer": entry.layer.value,
        "digest": entry.digest,
        "labels": labels,
        "relevance": entry.relevance,
        "confidence": entry.confidence,
        "order": order(entry.seq),
        "kind": kind,
        "length": length,
        **instant("created", entry.created_at),
        **instant("updated", entry.updated_at),
        **instant("expires", entry.expires_at),
    }
    if entry.current_until is not None:
        metadata |= instant("holds", entry.current_until)
    if kind == Kind.SCALED and entry.embedding is not None:
        metadata["vector"] = base64.b64encode(pack(entry.embedding)).decode()
    _check_size(entry, size_of(metadata))
    return Record(key_of_names(entry.id), values, metadata)


def read_entry(record: Record) -> MemoryEntry:
    """The memory of the record.

    Raises:
        StoreDamaged: the record is none of ours.
    """
    try:
        metadata = record.metadata
        return entry_of_text(metadata["memory"], _packed(record, metadata["kind"], int(metadata["length"])))
    except UNREADABLE:
        problem = "a record in the place of memories is none of Lamina's, or was changed by others"
        raise StoreDamaged(NAME, problem, "Use another table or index.") from None


def marked(id: str, dimension: int, metadata: Mapping[str, Any]) -> Record:
    """A record that is no memory."""
    return Record(id, placed(None, dimension)[1], metadata)


def size_of(metadata: Mapping[str, Any]) -> int:
    """Bytes of the metadata as JSON."""
    return len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode())


def _packed(record: Record, kind: str, length: int) -> bytes | None:
    match kind:
        case Kind.NONE:
            return None
        case Kind.ZERO:
            return pack([0.0] * length)
        case Kind.PLAIN:
            return pack(record.values[:length])
    vector = base64.b64decode(record.metadata["vector"], validate=True)
    if len(unpack(vector)) != length:
        raise ValueError(length)
    return vector


def _check_size(entry: MemoryEntry, size: int) -> None:
    if size <= MAX_METADATA_BYTES:
        return
    named = ("content", "metadata", "tags", "derived_from")
    parts = {name: getattr(entry, name) for name in named}
    sizes = {name: len(json.dumps(part, ensure_ascii=False).encode()) for name, part in parts.items()}
    field = max(sizes, key=lambda name: sizes[name])
    problem = f"has {sizes[field]} bytes, and with what goes beside it {size}: more than Pinecone's 40 KB for a record"
    raise InvalidInput(field, problem, "Shorten it, ingest it as a document, or use another backend.")
