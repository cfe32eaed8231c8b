"""Memories in Google Cloud Firestore."""

from __future__ import annotations

import builtins
import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from itertools import islice
from typing import Any, ClassVar, Final

from google.cloud.firestore_v1.types import query as types

from lamina.adapters._shared.directions import direction, rank_by_closeness
from lamina.adapters._shared.layout_version import made_by_newer
from lamina.adapters._shared.options import DEFAULT_TABLE, checked_table
from lamina.adapters._shared.record_adapter import RecordAdapter
from lamina.adapters._shared.records import Commit, Control, Stale, Stored
from lamina.adapters._shared.threads import not_open
from lamina.adapters.firestore.changes import PAST, Changes, control_name, memory_name
from lamina.adapters.firestore.conditions import MAX_VALUES, Conditions, gap_of, where
from lamina.adapters.firestore.documents import Documents, Found, Write, as_message, select
from lamina.adapters.firestore.failures import NAME, damaged, translated
from lamina.adapters.firestore.memories import entry_of
from lamina.adapters.firestore.options import Options
from lamina.adapters.firestore.values import NearVector, value_of
from lamina.domain.filters import Expiry, Filter, MemoryFilter
from lamina.domain.memory import Layer, MemoryEntry, Vector
from lamina.domain.scope import Scope
from lamina.errors import Unsupported
from lamina.ports.memory_adapter import Capability, ListOptions, Order, SearchHit, SearchOptions

__all__ = ["FirestoreAdapter"]

LAYOUT: Final = 1
"""The version of what the documents hold."""

MAX_NEAREST: Final = 1_000
"""How many neighbours Firestore gives: its limit."""

_SPARE: Final = 50
_IS_ZERO: Final = where("is_zero", "EQUAL", value=True)
_HAS_VECTOR: Final = where("embedded", "EQUAL", value=True)
_ANYTHING: Final = MemoryFilter(now=datetime.max.replace(tzinfo=UTC), expiry=Expiry.ANY)
_Direction: Final[Any] = types.StructuredQuery.Direction
_Measure: Final[Any] = types.StructuredQuery.FindNearest.DistanceMeasure
_ORDERS: Final = {
    Order.INSERTION: [("seq", "ASCENDING")],
    Order.RELEVANCE: [("relevance", "DESCENDING"), ("created", "DESCENDING"), ("id", "ASCENDING")],
}


class FirestoreAdapter(RecordAdapter):
    """Memories as documents of one collection.

    Args:
        url: `host:port` of an emulator; None for the service.
        project_id: The project; None for the one of the credentials.
        table: The root collection's name; two adapters with different ones never see each other.
        database: The database's id.
        credentials: Google's credentials object, or the path of a file of them; None for what
            Google's library finds by itself.
        timeout: Seconds that a request may take.
        retry_timeout: Seconds for which a read is repeated while the service is unavailable; a change is sent once.
        threads: How many requests run side by side.
        collection_name: Another name for `table`.

    Raises:
        ConfigError: an option is wrong.
    """

    name: ClassVar[str] = NAME
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.VECTOR,
            Capability.FILTER,
            Capability.COMPARE_AND_SET,
            Capability.EXPIRY,
            Capability.HISTORY,
            Capability.PERSISTENCE,
        }
    )
    group = 100  # of up to three writes each, and their claims: a commit has five hundred

    def __init__(
        self,
        url: str | None = None,
        *,
        project_id: str | None = None,
        table: str = DEFAULT_TABLE,
        database: str = "(default)",
        credentials: Any = None,
        timeout: float = 30,
        retry_timeout: float = 10,
        threads: int = 8,
        collection_name: str | None = None,
    ) -> None:
        self._options = Options(
            table=checked_table(table, collection_name=collection_name),
            project=project_id,
            database=database,
            url=url,
            credentials=credentials,
            timeout=timeout,
            retry_timeout=retry_timeout,
            threads=threads,
        )
        super().__init__(threads=threads)
        self._opened: Documents | None = None

    def __repr__(self) -> str:
        """Where it is, without secrets."""
        return f"FirestoreAdapter({self._options.place})"

    def filter_gap(self, where: Filter) -> str | None:
        return gap_of(where)

    # In a thread -------------------------------------------------------------------------------

    def _open(self) -> None:
        self._opened = Documents(self._options)
        about = self._documents.name("lamina")
        found = self._documents.get([about])
        if not found:
            try:
                self._documents.commit([as_message(Write(about, {"layout": LAYOUT}, condition=True))])
            except Stale:  # somebody else was faster
                found = self._documents.get([about])
        layout = next((each.values.get("layout") for each in found.values()), LAYOUT)
        if not isinstance(layout, int) or layout < 1:
            raise damaged(f"the collection {self._options.table!r} was not made by Lamina")
        if layout > LAYOUT:
            raise made_by_newer(NAME, f"the collection {self._options.table!r}", layout, LAYOUT)

    def _shut(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def _translated(self) -> AbstractContextManager[None]:
        return translated(self._options.place)

    @property
    def _documents(self) -> Documents:
        if self._opened is None:
            raise not_open(self.name)
        return self._opened

    def _load(self, tenant: str, ids: Sequence[str]) -> builtins.list[Stored]:
        documents = self._documents
        found = documents.get(memory_name(documents, tenant, id) for id in ids)
        return [_stored(each) for each in found.values()]

    def _load_controls(self, tenant: str, keys: Sequence[str]) -> dict[str, Control]:
        documents = self._documents
        names = {control_name(documents, tenant, key): key for key in keys}
        found = documents.get(names)
        return {names[name]: Control(each.values["value"], each.changed) for name, each in found.items()}

    def _commit(self, commit: Commit) -> None:
        Changes(self._documents, commit).send()

    def _reserve(self, number: int) -> int:
        counter = self._documents.name("lamina", "controls", "seq")
        return self._documents.add(counter, "last", number) - number + 1

    def _alike(self, scope: Scope, layer: Layer, digests: Sequence[str]) -> builtins.list[Stored]:
        place = Conditions.of(scope, _ANYTHING).filters
        room = MAX_VALUES // (1 + scope.include_shared)
        alike: builtins.list[Stored] = []
        for start in range(0, len(digests), room):
            said = where("digest", "IN", builtins.list(digests[start : start + room]))
            asked = select(self._options.table, [*place, where("layer", "EQUAL", layer.value), said])
            alike += [_stored(each) for each in self._documents.query(asked)]
        wanted = [each for each in alike if scope.admits(each.entry) and each.entry.digest in digests]
        return sorted(wanted, key=lambda each: each.entry.seq)

    def _select(self, options: ListOptions) -> builtins.list[MemoryEntry]:
        conditions = Conditions.of(options.scope, options.filter)
        filters = conditions.filters
        if options.after:
            filters = [*filters, where("seq", "GREATER_THAN", options.after)]
        fields = ["entry", "embedding"] if options.include_embeddings else ["entry"]
        asked = select(self._options.table, filters, *fields)
        for name, way in _ORDERS[options.order]:
            asked.order_by.add(direction=_Direction[way].value).field.field_path = name
        skipped = options.offset
        if conditions.is_whole:
            asked.offset, asked.limit.value, skipped = skipped, options.limit, 0
        entries = self._admitted(asked, options.scope, options.filter)
        return builtins.list(islice(entries, skipped, skipped + options.limit))

    def _count(self, scope: Scope, filter: MemoryFilter) -> int:
        conditions = Conditions.of(scope, filter)
        if conditions.is_whole:
            return self._documents.count(select(self._options.table, conditions.filters))
        asked = select(self._options.table, conditions.filters, "entry")
        return sum(1 for _ in self._admitted(asked, scope, filter))

    def _admitted(self, asked: Any, scope: Scope, filter: MemoryFilter) -> Iterator[MemoryEntry]:
        """What the query finds and the filter admits, of which the query may be only a part."""
        filter = dataclasses.replace(filter, has_embedding=None)  # asked of Firestore always; vectors may not be read
        for found in self._documents.query(asked):
            entry = entry_of(found.values)
            if filter.admits(scope, entry):
                yield entry

    def _nearest(self, embedding: Vector, options: SearchOptions) -> builtins.list[SearchHit]:
        """The neighbours that Firestore gives, with enough beyond the limit to know that none is missing."""
        towards = direction(embedding)
        filters = Conditions.of(options.scope, options.filter, with_ranges=False).filters
        length = len(embedding)
        if towards is None:
            pool = self._checked(select(self._options.table, [*filters, _HAS_VECTOR]), length, options)[1]
        else:  # what has no direction is close to nothing, and in no index
            pool = self._checked(select(self._options.table, [*filters, _IS_ZERO]), length, options)[1]
            pool += self._neighbours(towards, filters, options)
        return rank_by_closeness(embedding, pool, options.limit, include_embeddings=options.include_embeddings)

    def _neighbours(
        self, towards: Sequence[float], filters: Sequence[Any], options: SearchOptions
    ) -> builtins.list[MemoryEntry]:
        asked = select(self._options.table, filters)
        nearest = asked.find_nearest
        nearest.vector_field.field_path = "vector"
        nearest.query_vector.CopyFrom(value_of(NearVector(towards)))
        nearest.distance_measure = _Measure.COSINE.value
        size = min(2 * options.limit + _SPARE, MAX_NEAREST)
        while True:
            nearest.limit.value = size
            number, near = self._checked(asked, len(towards), options)
            if number < size or len(near) >= options.limit:
                return near
            if size == MAX_NEAREST:
                remedy = f"Of the {MAX_NEAREST} neighbours that it gives at most, only {len(near)} pass the filter."
                raise Unsupported(f"The {self.name} adapter", "a vector search this deep", remedy)
            size = min(4 * size, MAX_NEAREST)

    def _checked(self, asked: Any, length: int, options: SearchOptions) -> tuple[int, builtins.list[MemoryEntry]]:
        """How many are found, and those of them whose vector has this length and that the filter admits."""
        entries = [entry_of(each.values) for each in self._documents.query(asked)]
        of_length = [each for each in entries if each.embedding is not None and len(each.embedding) == length]
        return len(entries), [each for each in of_length if options.filter.admits(options.scope, each)]

    def _history(self, tenant: str, id: str) -> builtins.list[MemoryEntry]:
        asked = select(PAST, [])
        found = self._documents.query(asked, memory_name(self._documents, tenant, id))
        versions = [each.values for each in found if "entry" in each.values]  # without: it went as its expiry changed
        return [entry_of(each) for each in sorted(versions, key=lambda each: each["number"])]


def _stored(found: Found) -> Stored:
    entry = entry_of(found.values)
    past = found.values.get("past")
    if not isinstance(past, int):
        raise damaged("a document lacks what Lamina wrote beside the memory")
    return Stored(entry, (found.changed, past))
