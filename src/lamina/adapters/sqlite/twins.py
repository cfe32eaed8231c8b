"""Which memories a new one would repeat: the one with its id, or else the one that says the same.

Most new memories repeat none. That is found for many at a time, by what two indexes hold, so that
only those are looked at singly that may have a twin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias, TypeVar

from lamina.adapters.sqlite.partitions import resolve
from lamina.adapters.sqlite.reading import entries_by_key, find_by_id, find_duplicate, with_vector
from lamina.adapters.sqlite.tables import Collection
from lamina.adapters.sqlite.vectors import read_vectors
from lamina.domain.memory import MemoryEntry
from lamina.domain.scope import Scope
from lamina.domain.validation import check_entry
from lamina.ports.memory_adapter import check_in_scope

__all__ = ["Place", "Taken", "check_all", "find_twin", "find_twins", "place_of"]

T = TypeVar("T")

Place: TypeAlias = tuple[str, str, str, str]
"""What a partition is of: tenant, owner, namespace and layer."""

AT_ONCE: Final = 500
"""Values bound to one statement: fewer than any SQLite takes."""


def place_of(entry: MemoryEntry) -> Place:
    """Of the partition that the entry belongs to."""
    return entry.tenant, entry.owner, entry.namespace, entry.layer.value


class Taken:
    """The ids, and the digests by place, that are in the store or came earlier in a batch.

    An entry whose id and digest are not among them has no twin. One that has may still have none:
    what is stored may have expired.
    """

    def __init__(
        self,
        collection: Collection,
        tenant: str,
        entries: Sequence[MemoryEntry],
        digests: Sequence[str],
        *,
        number_of: Callable[[Place], int | None] | None = None,
    ) -> None:
        """Look up those of these entries, which are all of the tenant; `digests` is empty where only ids count.

        `number_of` tells the number of a place's partition, if there is one: what the caller looks up too.
        """
        self._ids = _stored_ids(collection, tenant, [entry.id for entry in entries])
        by_place: defaultdict[Place, list[bytes]] = defaultdict(list)
        for entry, digest in zip(entries, digests, strict=False):
            by_place[place_of(entry)].append(bytes.fromhex(digest))
        number_of = number_of or partial(_number_of, collection)
        self._digests = {
            (place, digest)
            for place, own in by_place.items()
            for digest in _stored_digests(collection, number_of(place), own)
        }

    def holds(self, id: str, place: Place, digest: str) -> bool:
        """Whether an entry with these may have a twin."""
        return id in self._ids or (place, digest) in self._digests

    def add(self, id: str, place: Place, digest: str) -> None:
        """Let the entries that follow see these as stored."""
        self._ids.add(id)
        self._digests.add((place, digest))


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
    taken = Taken(collection, scope.tenant, entries, digests)
    twins = [
        find_twin(collection, scope, entry) if taken.holds(entry.id, place_of(entry), digest) else None
        for entry, digest in zip(entries, digests, strict=True)
    ]
    keys = [twin[0] for twin in twins if twin is not None]
    vectors = read_vectors(collection, keys) if keys else {}
    return [None if twin is None else with_vector(twin[1], vectors.get(twin[0])) for twin in twins]


def check_all(scope: Scope, entries: Iterable[MemoryEntry]) -> None:
    """Refuse entries that cannot be stored, or lie outside the scope."""
    for entry in entries:
        check_entry(entry)
        check_in_scope(scope, entry)


def _stored_ids(collection: Collection, tenant: str, ids: Sequence[str]) -> set[str]:
    query = "SELECT id FROM {memories} WHERE tenant = ? AND id IN ({marks})"
    return {id for part, marks in _parts(ids) for (id,) in collection.execute(query, (tenant, *part), marks=marks)}


def _number_of(collection: Collection, place: Place) -> int | None:
    query = "SELECT id FROM {partitions} WHERE tenant = ? AND owner = ? AND namespace = ? AND layer = ?"
    row = collection.execute(query, place).fetchone()
    return row[0] if row else None


def _stored_digests(collection: Collection, partition: int | None, digests: Sequence[bytes]) -> set[str]:
    if partition is None:
        return set()
    # Named, or SQLite takes the index that is sorted by seq and reads the whole partition for a digest it lacks.
    query = "SELECT digest FROM {memories} INDEXED BY {memories_by_digest} WHERE partition = ? AND digest IN ({marks})"
    return {
        digest.hex()
        for part, marks in _parts(digests)
        for (digest,) in collection.execute(query, (partition, *part), marks=marks)
    }


def _parts(values: Sequence[T]) -> Iterator[tuple[Sequence[T], str]]:
    """The values in parts that one statement takes, with their question marks."""
    for start in range(0, len(values), AT_ONCE):
        part = values[start : start + AT_ONCE]
        yield part, ", ".join("?" * len(part))
