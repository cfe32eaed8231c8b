"""Reading every row to see that it can be read, and says of itself what is so: the same for each store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from lamina.domain.pack import Pack, PackMemory
from lamina.errors import StoreDamaged

__all__ = ["SHOWN", "find_unreadable", "look_over_packs"]

SHOWN: Final = 5
"""Most findings of one kind; more of the same tell nothing new."""

Row: TypeAlias = Sequence[Any]


def find_unreadable(rows: Iterable[Row], read: Callable[[Row], object]) -> list[str]:
    """What is wrong with rows that cannot be read, for the first of them."""
    found: list[str] = []
    for row in rows:
        try:
            read(row)
        except StoreDamaged as error:
            if len(found) < SHOWN:
                found.append(error.problem)
    return found


def look_over_packs(
    heads: Iterable[Row],
    *,
    read_pack: Callable[[Row], Pack],
    memories: Callable[[Any], Iterable[Row]],
    read_memory: Callable[[Any], PackMemory],
    due_of: Callable[[PackMemory, Pack], object],
) -> list[str]:
    """What is wrong with packs and memories that cannot be read, or are due at another time than they are said to be.

    A row of `heads` begins with the pack's key; `memories` gives key and due time of each memory of that pack.
    """
    unreadable: list[str] = []
    wrongly_due = 0
    for row in heads:
        try:
            pack = read_pack(row)
        except StoreDamaged as error:
            unreadable.append(error.problem)
            continue
        for key, due_at in memories(row[0]):
            try:
                wrongly_due += due_of(read_memory(key), pack) != due_at
            except StoreDamaged as error:
                unreadable.append(error.problem)
    due = [f"{wrongly_due} memories are said to be due at another time than they are"] if wrongly_due else []
    return due + unreadable[:SHOWN]
