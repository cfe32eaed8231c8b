"""A memory as one JSON text and back, for backends that keep it whole beside what they index.

The text is exact: whole numbers and floats stay what they are, times are whole microseconds, and no
backend's own types get in between. Vectors are kept apart, as 32-bit floats, little-endian.
"""

from __future__ import annotations

import json
import sys
from array import array
from datetime import datetime
from typing import Any, Final

from lamina.domain.instants import from_micros, to_micros
from lamina.domain.memory import Layer, MemoryEntry, Trust, Vector

__all__ = ["entry_of_text", "pack", "text_of_entry", "unpack"]

_PLAIN: Final = (
    "id content tenant owner namespace tags metadata relevance base_relevance confidence ttl access_count seq "
    "revision superseded_by source derived_from"
).split()
_INSTANTS: Final = "created_at updated_at expires_at last_accessed_at occurred_at valid_until".split()


def text_of_entry(entry: MemoryEntry) -> str:
    """Every field but the embedding; fields that are None are left out."""
    fields: dict[str, Any] = {name: getattr(entry, name) for name in _PLAIN}
    fields |= {name: _micros(getattr(entry, name)) for name in _INSTANTS}
    fields |= {"layer": entry.layer.value, "trust": entry.trust.value}
    present = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(present, ensure_ascii=False, separators=(",", ":"))


def entry_of_text(text: str | bytes, embedding: bytes | None = None) -> MemoryEntry:
    """The entry that was written.

    Raises:
        ValueError, TypeError, KeyError, OverflowError, RecursionError: it was not written by `text_of_entry`;
            for the adapter to report as `StoreDamaged`, without the text.
    """
    fields: dict[str, Any] = json.loads(text)
    for name in _INSTANTS:
        if name in fields:
            fields[name] = from_micros(fields[name])
    fields["layer"], fields["trust"] = Layer(fields["layer"]), Trust(fields["trust"])
    return MemoryEntry(**fields, embedding=None if embedding is None else unpack(embedding))


def pack(vector: Vector) -> bytes:
    """The vector as 32-bit floats, little-endian; it passed `check_vector`."""
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def unpack(data: bytes) -> array[float]:
    """The vector that was packed."""
    vector = array("f")
    vector.frombytes(data)
    if sys.byteorder == "big":
        vector.byteswap()
    return vector


def _micros(instant: datetime | None) -> int | None:
    return None if instant is None else to_micros(instant)
