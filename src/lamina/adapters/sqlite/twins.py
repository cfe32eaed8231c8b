"""Which memories a new one would repeat: the one with its id, or else the one that says the same.

Most new memories repeat none. That is found for many at a time, by what two indexes hold, so that
only those are looked at singly that may have a twin.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import Final, TypeAlias, TypeVar

from lamina.adapters.sqlite.partitions import resolve
from lamina.adapters.sqlite.reading import entries_by_key, find_by_id, find_duplicate, with_vector
from lamina.adapters.sqlite.tables import Collection
from lamina.adapters.sqlite.vectors import read_vectors
from lamina.domain.memory import MemoryEntry
from lamina.domain.scope import Scope
from lamina.domain.validation import check_entry
from lamina.ports.memory_adapter import check_in_scope

__all__ = [
    "Place",
    "Standing",
    "check_all",
    "find_twin",
    "find_twins",
    "find_twins_together",
    "parted",
    "place_of",
    "standings",
]

T = TypeVar("T")

Place: TypeAlias = tuple[str, str, str, str]
"""What a partition is of: tenant, owner, namespace and layer."""

AT_ONCE: Final = 100
"""Entries in one statement, five values each: fewer than any SQLite takes."""

_ID_IS_TAKEN: Final = "EXISTS (SELECT 1 FROM {memories} AS m WHERE m.tenant = ? AND m.id = w.id)"

# The index is named, or SQLite takes the one sorted by seq and reads the whole partition for a digest it lacks.
_IS_SAID: Final = """
    EXISTS (SELECT 1 FROM {memories} AS m INDEXED BY {memories_by_digest}
    WHERE m.partition = p.id AND m.digest = w.digest)
"""
_STANDINGS: Final = """
    WITH wanted (number, id, owner, namespace, layer, digest) AS (VALUES {wanted})
    SELECT w.number, p.id, p.last, CASE WHEN p.vectors > 0 THEN p.dimensions END, {is_taken}, {is_said}
    FROM wanted AS w LEFT JOIN {partitions} AS p
    ON p.tenant = ? AND p.owner = w.owner AND p.namespace = w.namespace AND p.layer = w.layer
"""


def place_of(entry: MemoryEntry) -> Place:
    """Of the partition that the entry belongs to."""
    return entry.tenant, entry.owner, entry.namespace, entry.layer.value


@dataclass(frozen=True, slots=True)
class Standing:
    """What the store holds that bears upon a new entry."""

    partition: tuple[int, int, int | None] | None
    """Number, greatest count and dimensions, if it has vectors, of the partition of its place."""
    may_have_twin: bool
    """Whether some memory, which may have expired, has the entry's id, or in its place its digest."""


def standings(
    collection: Collection, tenant: str, entries: Sequence[MemoryEntry], digests: Sequence[str] | None
) -> list[Standing]:
    """That of each of the entries, which are all of the tenant; without `digests` only ids count.

    Those that come earlier among the entries are not looked at.
    """
    found = []
    parts = {"is_taken": collection.tables.sql(_ID_IS_TAKEN), "is_said": collection.tables.sql(_IS_SAID)}
    for start in range(0, len(entries), AT_ONCE):
        part = entries[start : start + AT_ONCE]
        values: list[object] = []
        for number, entry in enumerate(part, start):
            digest = None if digests is None else bytes.fromhex(digests[number])
            values += (entry.id, entry.owner, entry.namespace, entry.layer.value, digest)
        rows = collection.execute(_STANDINGS, (*values, tenant, tenant), wanted=_marks(len(part)), **parts)
        for _, id, last, dimensions, is_taken, is_said in sorted(rows):
            found.append(Standing(None if id is None else (id, last, dimensions), bool(is_taken or is_said)))
    return found


@lru_cache(maxsize=AT_ONCE)
def _marks(count: int) -> str:
    return ", ".join(f"({number}, ?, ?, ?, ?, ?)" for number in range(count))


def find_twin(collection: Collection, scope: Scope, entry: MemoryEntry) -> tuple[int, MemoryEntry] | None:
    """Key and row, without its vector, of the live one that has the entry's id, or else says the same.

    Raises:
        ScopeError: the one that has its id lies outside the scope.
    """
    named = find_by_id(collection, entry.tenant, entry.id)
    if named is not None:
        check_in_scope(scope, named[1])
        if not named[1].is_expired(entry.created_at):
            return named
    reach = resolve(collection, Scope(entry.tenant, entry.owner, entry.namespace), frozenset({entry.layer}))
    key = find_duplicate(collection, reach, entry.digest, entry.created_at)
    return None if key is None else (key, entries_by_key(collection, [key], embeddings=False)[key])


def find_twins(collection: Collection, scope: Scope, entries: Sequence[MemoryEntry]) -> list[MemoryEntry | None]:
    """As `MemoryAdapter.find_twins`."""
    check_all(scope, entries)
    digests = [entry.digest for entry in entries]
    twins = [
        find_twin(collection, scope, entry) if standing.may_have_twin else None
        for entry, standing in zip(entries, standings(collection, scope.tenant, entries, digests), strict=True)
    ]
    keys = [twin[0] for twin in twins if twin is not None]
    vectors = read_vectors(collection, keys) if keys else {}
    return [None if twin is None else with_vector(twin[1], vectors.get(twin[0])) for twin in twins]


def find_twins_together(
    collection: Collection, batches: Sequence[Sequence[MemoryEntry]], *, scope: Scope
) -> list[list[MemoryEntry | None]]:
    """`find_twins` of several callers, in one go."""
    return parted(find_twins(collection, scope, list(chain(*batches))), batches)


def parted(found: Sequence[T], batches: Sequence[Sequence[object]]) -> list[list[T]]:
    """What was found for all of the batches, in parts as long as those."""
    rest = iter(found)
    return [list(islice(rest, len(batch))) for batch in batches]


def check_all(scope: Scope, entries: Iterable[MemoryEntry]) -> None:
    """Refuse entries that cannot be stored, or lie outside the scope."""
    for entry in entries:
        check_entry(entry)
        check_in_scope(scope, entry)
