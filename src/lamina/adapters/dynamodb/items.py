"""A memory as the items that it becomes, and back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from lamina.adapters._shared.entry_text import UNREADABLE, entry_of_text, pack, short_form, text_of_entry, written_out
from lamina.adapters._shared.number_order import number_key
from lamina.adapters.dynamodb.failures import damaged
from lamina.adapters.dynamodb.keys import Item, alike_place, key_of, place, rows_of
from lamina.domain.conditions import MAX_PATH
from lamina.domain.instants import to_micros
from lamina.domain.memory import MemoryEntry
from lamina.errors import InvalidInput

__all__ = ["Mark", "check_size", "entry_of", "name_in_metadata", "record", "rows", "size_of", "typed", "version"]

MAX_ITEM: Final = 400 * 1024
"""Bytes of an item, names of attributes included: DynamoDB's quota."""

_LONG_NAME: Final = 255


class Mark(NamedTuple):
    """What a memory's record says beside the memory."""

    version: str
    past: int
    """How many versions its history ever had; the last of them has this number."""


def record(entry: MemoryEntry, mark: Mark) -> Item:
    """The item that holds the memory whole."""
    item = key_of(place("r", entry.tenant, entry.id)) | version(entry)
    if entry.embedding is not None:
        item["vector"] = {"B": pack(entry.embedding)}
    return item | {"version": {"S": mark.version}, "past": {"N": str(mark.past)}}


def version(entry: MemoryEntry) -> Item:
    """The memory's text without its vector, and when it may go: what records and histories have in common."""
    stored = short_form(text_of_entry(entry))
    return {"entry": {"B" if isinstance(stored, bytes) else "S": stored}} | _expiry(entry.expires_at)


def entry_of(item: Item) -> MemoryEntry:
    """The memory of a record or of a version.

    Raises:
        StoreDamaged: it cannot be read.
    """
    try:
        stored = item["entry"]
        text = written_out(stored["B"] if "B" in stored else stored["S"])
        return entry_of_text(text, item["vector"]["B"] if "vector" in item else None)
    except UNREADABLE as error:
        raise damaged(f"an item of the table cannot be read as a memory ({type(error).__name__})") from None


def rows(entry: MemoryEntry) -> dict[str, Item]:
    """The rows about the memory, by their partitions."""
    row = key_of("", entry.seq) | _expiry(entry.expires_at)
    row |= {name: {"S": getattr(entry, name)} for name in ("id", "owner", "namespace")}
    row |= {name: {"B": number_key(float(getattr(entry, name)))} for name in ("relevance", "confidence")}
    row |= {
        "layer": {"S": entry.layer.value},
        "digest": {"S": entry.digest},
        "created": {"N": str(to_micros(entry.created_at))},
        "updated": {"N": str(to_micros(entry.updated_at))},
        "embedded": {"BOOL": entry.embedding is not None},
        "metadata": typed(entry.metadata),
    }
    if entry.expires_at is not None:
        row["expires"] = {"N": str(to_micros(entry.expires_at))}
    if entry.current_until is not None:
        row["holds"] = {"N": str(to_micros(entry.current_until))}
    if entry.tags:
        row["tags"] = {"SS": sorted(set(entry.tags))}
    made = {partition: row | {"pk": {"S": partition}} for partition in rows_of(entry)}
    alike = alike_place(entry)
    made[alike] = key_of(alike, entry.seq) | {"id": row["id"]} | _expiry(entry.expires_at)
    return made


def typed(value: Any, depth: int = 0) -> Item:
    """The value as filters compare it: numbers by their order keys, and nothing deeper than a path reaches."""
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int | float):
        return {"B": number_key(value)}
    if isinstance(value, list):  # of a list, a filter sees the elements that are no list or object
        return {"L": [typed(each) for each in value if not isinstance(each, list | Mapping)]}
    if isinstance(value, Mapping):
        inner = value.items() if depth < MAX_PATH else ()
        return {"M": {name_in_metadata(key): typed(each, depth + 1) for key, each in inner}}
    return {"NULL": True}


def name_in_metadata(key: str) -> str:
    """The attribute for a key, which may be empty or longer than a name may be."""
    if len(key.encode()) <= _LONG_NAME:
        return f"_{key}"
    return place("key", key)


def check_size(entry: MemoryEntry, made: Iterable[Item]) -> None:
    """Refuse a memory of which DynamoDB would not keep an item.

    Raises:
        InvalidInput: one is too large; the field named is the largest.
    """
    size = max(size_of(item) for item in made)
    if size <= MAX_ITEM:
        return
    sizes = {
        "content": len(entry.content.encode()),
        "metadata": _size(typed(entry.metadata)),
        "embedding": 0 if entry.embedding is None else 4 * len(entry.embedding),
        "derived_from": sum(len(each.encode()) for each in entry.derived_from),
        "tags": sum(len(each.encode()) for each in entry.tags),
    }
    field = max(sizes, key=lambda name: sizes[name])
    problem = f"makes an item of {size} bytes, compressed, and DynamoDB keeps at most {MAX_ITEM}"
    raise InvalidInput(field, problem, "Make it smaller, or ingest it as a document.")


def size_of(item: Item) -> int:
    """Bytes that DynamoDB counts for an item."""
    return sum(len(name.encode()) + _size(value) for name, value in item.items())


def _size(value: Item) -> int:
    [(kind, held)] = value.items()
    match kind:
        case "S":
            return len(held.encode())
        case "B":
            return len(held)
        case "N":
            return len(held) // 2 + 2
        case "SS":
            return sum(len(each.encode()) for each in held)
        case "L":
            return 3 + sum(1 + _size(each) for each in held)
        case "M":
            return 3 + sum(1 + len(name.encode()) + _size(each) for name, each in held.items())
        case _:
            return 1


def _expiry(expires_at: datetime | None) -> Item:
    """The attribute by which DynamoDB removes the item some time after that second."""
    if expires_at is None:
        return {}
    return {"ttl": {"N": str(math.ceil(to_micros(expires_at) / 1_000_000))}}
