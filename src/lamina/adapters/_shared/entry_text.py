"""A memory as one JSON text and back, for backends that keep it whole beside what they index.

The text is exact: whole numbers and floats stay what they are, times are whole microseconds, and no
backend's own types get in between. Vectors are kept apart, as 32-bit floats, little-endian.
"""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from datetime import datetime
from typing import Any, Final

from lamina.domain.instants import from_micros, to_micros
from lamina.domain.memory import Layer, MemoryEntry, Trust, Vector

__all__ = ["UNREADABLE", "entry_of_text", "pack", "short_form", "text_of_entry", "unpack", "written_out"]

UNREADABLE: Final = (ValueError, TypeError, KeyError, OverflowError, RecursionError, zlib.error)
"""What reading raises where something else is stored than was written. To be reported as `StoreDamaged`, and `from
None`: their own texts may quote what is stored."""

_SHORTENED_FROM: Final = 1_000
"""Bytes of a text from which on it is compressed, where what is read and written is billed by size."""

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
        Exception: one of `UNREADABLE`, if it was not written by `text_of_entry`.
    """
    fields: dict[str, Any] = json.loads(text)
    for name in _INSTANTS:
        if name in fields:
            fields[name] = from_micros(fields[name])
    fields["layer"], fields["trust"] = Layer(fields["layer"]), Trust(fields["trust"])
    return MemoryEntry(**fields, embedding=None if embedding is None else unpack(embedding))


def short_form(text: str) -> str | bytes:
    """The text, compressed if it is long."""
    data = text.encode()
    return zlib.compress(data) if len(data) >= _SHORTENED_FROM else text


def written_out(stored: str | bytes) -> str | bytes:
    """The text of a short form, for `entry_of_text`."""
    return zlib.decompress(stored) if isinstance(stored, bytes) else stored


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
