"""Where things are kept in the table.

Every item has a partition key, which names its kind and hashes whatever it belongs to, and a number
as sort key. A name of a user never stands in a key: names of any length and script become 32
characters, and no two names run together.

| kind | belongs to | number | holds |
| --- | --- | --- | --- |
| `r` | tenant, id | 0 | a memory, whole |
| `t` | tenant | `seq` | a row about each memory: what filters look at |
| `o` | tenant, owner | `seq` | the same row |
| `s` | tenant | `seq` | the same row, for the memories of the shared layers alone |
| `a` | tenant, owner, namespace, layer, digest | `seq` | a row that says only which memory it is |
| `h` | tenant, id | 1, 2, ... | what the memory was |
| `c` | tenant, key | 0 | a control |
| `n` | - | 0 | the last `seq` that was given |
| `v` | - | 0 | the version of this layout |
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from lamina.adapters._shared.names import key_of_names
from lamina.domain.memory import SHARED_LAYERS, Layer, MemoryEntry

__all__ = ["COUNTER", "VERSION", "Item", "alike_place", "key_of", "place", "rows_of"]

Item: TypeAlias = dict[str, Any]
"""Attributes as the API writes them: `{"pk": {"S": "r#..."}}`."""


def place(kind: str, *names: str) -> str:
    """The partition key of this kind for these names."""
    return f"{kind}#{key_of_names(*names)}"


def key_of(partition: str, number: int = 0) -> Item:
    """The key of an item."""
    return {"pk": {"S": partition}, "sk": {"N": str(number)}}


def rows_of(entry: MemoryEntry) -> list[str]:
    """The partitions in which the memory has a row."""
    places = [place("t", entry.tenant), place("o", entry.tenant, entry.owner)]
    if entry.layer in SHARED_LAYERS:
        places.append(place("s", entry.tenant))
    return places


def alike_place(entry: MemoryEntry) -> str:
    """The partition of those that say the same in the same place."""
    return place("a", entry.tenant, entry.owner, entry.namespace, Layer(entry.layer).value, entry.digest)


COUNTER: Final = key_of("n")
VERSION: Final = key_of("v")
