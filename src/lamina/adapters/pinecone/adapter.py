"""Memories in a serverless index of Pinecone: a tenant has a namespace, a memory is a record with its vector."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Final

from lamina.adapters._shared.clock_sequence import Sequence as Numbers
from lamina.adapters._shared.directions import rank_by_closeness
from lamina.adapters._shared.gaps import gap_of_tokens
from lamina.adapters._shared.layout_version import made_by_newer
from lamina.adapters._shared.names import key_of_names
from lamina.adapters._shared.options import DEFAULT_TABLE, checked_table
from lamina.adapters._shared.record_adapter import RecordAdapter
from lamina.adapters._shared.records import Commit, Control, Stored
from lamina.adapters._shared.relevance_order import by_relevance
from lamina.adapters._shared.threads import not_open
from lamina.adapters.pinecone.conditions import Condition, in_layer, in_scope, passing
from lamina.adapters.pinecone.failures import NAME, translated
from lamina.adapters.pinecone.index import IndexOptions, OpenIndex, open_index
from lamina.adapters.pinecone.namespaces import MAX_TOP_K, Found, Namespaces
from lamina.adapters.pinecone.recent_writes import RecentWrites
from lamina.adapters.pinecone.rows import (
    MAX_METADATA_BYTES,
    Kind,
    Record,
    marked,
    order,
    placed,
    read_entry,
    record_of,
    size_of,
)
from lamina.domain.filters import Filter, MemoryFilter
from lamina.domain.memory import Layer, MemoryEntry, Vector
from lamina.domain.scope import Scope
from lamina.errors import InvalidInput, StoreDamaged
from lamina.ports.clock import Clock, utc_now
from lamina.ports.memory_adapter import Capability, ListOptions, Order, SearchHit, SearchOptions

__all__ = ["PineconeAdapter"]

VERSION: Final = 1
"""Of how memories are laid out."""

_OUR_OWN: Final = "lamina"
"""Whose the controls are that belong to no tenant."""

_NEAR: Final = 1e-4
"""How far the service's similarity may be from the exact one, in 32-bit floats."""


class PineconeAdapter(RecordAdapter):
    """A `MemoryAdapter` over one namespace of Pinecone for each tenant.

    Args:
        index_name: The index; it is made if it is not there and `dimension` is given.
        api_key: Of the project; without it, the environment's PINECONE_API_KEY.
        table: Names the collection: two of them in one index never see each other.
        namespace: Another name for `table`.
        url: The control plane's address, if it is not Pinecone's own.
        dimension: The most numbers that a vector may have, which an index keeps for ever.
        cloud: Where an index is made.
        region: Where an index is made.
        threads: How many requests may be under way at the same time.
        timeout: Seconds for one attempt of one request; the client makes four at most.
        create_timeout: Seconds to wait for an index that is being made.
        freshness_timeout: Seconds that a write waits, if the index is far behind earlier ones.
        clock: Where `seq`s come from.

    Raises:
        ConfigError: an option cannot be taken.
    """

    name: ClassVar[str] = NAME
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.VECTOR, Capability.FILTER, Capability.PERSISTENCE}
    )
    group: ClassVar[int | None] = 500

    def __init__(
        self,
        index_name: str = "lamina",
        *,
        api_key: str | None = None,
        table: str = DEFAULT_TABLE,
        namespace: str | None = None,
        url: str | None = None,
        dimension: int | None = None,
        cloud: str = "aws",
        region: str = "us-east-1",
        threads: int = 8,
        timeout: float = 30,
        create_timeout: float = 300,
        freshness_timeout: float = 60,
        clock: Clock = utc_now,
    ) -> None:
        self._table = checked_table(table, namespace=namespace)
        self._options = IndexOptions(
            name=index_name,
            api_key=api_key,
            url=url,
            dimension=dimension,
            cloud=cloud,
            region=region,
            threads=threads,
            timeout=timeout,
            create_timeout=create_timeout,
            freshness_timeout=freshness_timeout,
        )
        super().__init__(threads=threads)
        self._clock = clock
        self._recent = RecentWrites()
        self._index: OpenIndex | None = None
        self._store: Namespaces | None = None
        self._numbers: Numbers | None = None

    def __repr__(self) -> str:
        return f"PineconeAdapter({self._options.name!r}, table={self._table!r})"

    def filter_gap(self, where: Filter) -> str | None:
        return gap_of_tokens(where, "Pinecone")

    # The primitives ----------------------------------------------------------------------------

    def _open(self) -> None:
        index = self._index = open_index(self._options)
        self._store = Namespaces(index.index, index.dimension, self._recent, patience=self._options.freshness_timeout)
        controls = self._load_controls(_OUR_OWN, ["version", "seq"])
        if "version" not in controls:
            self._keep(_OUR_OWN, {"version": str(VERSION)})
        elif controls["version"].value != str(VERSION):
            raise made_by_newer(NAME, f"the table {self._table!r}", controls["version"].value, VERSION)
        kept = int(controls["seq"].value) if "seq" in controls else 0
        self._numbers = Numbers(self._clock, kept, lambda mark: self._keep(_OUR_OWN, {"seq": str(mark)}))

    def _shut(self) -> None:
        index, self._index, self._store = self._index, None, None
        if index is not None:
            index.close()

    def _translated(self) -> AbstractContextManager[None]:
        return translated(self._options.place)

    def _load(self, tenant: str, ids: Sequence[str]) -> builtins.list[Stored]:
        wanted = [key_of_names(id) for id in ids]
        found = self._opened.load(self._of_tenant(tenant), wanted)
        return [Stored(read_entry(found[id]), None) for id in wanted if id in found]

    def _load_controls(self, tenant: str, keys: Sequence[str]) -> dict[str, Control]:
        wanted = {key: key_of_names(tenant, key) for key in keys}
        found = self._opened.load(self._controls, list(wanted.values()))
        return {key: Control(_value(found[id]), None) for key, id in wanted.items() if id in found}

    def _commit(self, commit: Commit) -> None:
        dimension = self._dimension
        news = [each.new for each in commit.changes if each.new is not None]
        records = [record_of(entry, dimension, self._options.name) for entry in news]  # refused before all writes
        removed = [key_of_names(each.id) for each in commit.changes if each.new is None]
        self._keep(commit.tenant, {each.key: each.value for each in commit.controls if each.value is not None})
        self._opened.write(self._of_tenant(commit.tenant), records, removed)

    def _reserve(self, number: int) -> int:
        if self._numbers is None:
            raise not_open(self.name)
        return self._numbers.take(number)

    def _alike(self, scope: Scope, layer: Layer, digests: Sequence[str]) -> builtins.list[Stored]:
        conditions = [*in_scope(scope), in_layer(layer), {"digest": {"$in": builtins.list(digests)}}]
        found = self._opened.matching(self._of_tenant(scope.tenant), conditions)
        entries = _read(found, lambda each: scope.admits(each) and each.layer is layer and each.digest in set(digests))
        return [Stored(each, None) for each in sorted(entries, key=_seq)]

    def _select(self, options: ListOptions) -> builtins.list[MemoryEntry]:
        after = options.after or 0
        entries = self._admitted(options.scope, options.filter, [{"order": {"$gte": order(after)}}] if after else [])
        entries = [each for each in entries if each.seq > after]
        entries.sort(key=_seq if options.order is Order.INSERTION else by_relevance)
        page = entries[options.offset : options.offset + options.limit]
        return page if options.include_embeddings else [each.replace(embedding=None) for each in page]

    def _count(self, scope: Scope, filter: MemoryFilter) -> int:
        found = self._opened.matching(self._of_tenant(scope.tenant), [*in_scope(scope), *passing(filter)])
        return len(found.shown) + sum(filter.admits(scope, read_entry(each)) for each in found.recent)

    def _nearest(self, embedding: Vector, options: SearchOptions) -> builtins.list[SearchHit]:
        length = len(embedding)
        if length > self._dimension:
            return []
        kind, values = placed(embedding, self._dimension)
        if kind == Kind.ZERO or options.limit >= MAX_TOP_K // 2:
            pool = self._admitted(options.scope, options.filter, [{"length": {"$eq": length}}])
        else:
            pool = self._pool(values, length, options)
        pool = [each for each in pool if each.embedding is not None and len(each.embedding) == length]
        return rank_by_closeness(embedding, pool, options.limit, include_embeddings=options.include_embeddings)

    # What they are made of ---------------------------------------------------------------------

    @property
    def _opened(self) -> Namespaces:
        if self._store is None:
            raise not_open(self.name)
        return self._store

    @property
    def _dimension(self) -> int:
        return 0 if self._index is None else self._index.dimension

    @property
    def _controls(self) -> str:
        return f"{self._table}.controls"

    def _of_tenant(self, tenant: str) -> str:
        """A namespace of the tenant's own: names of namespaces are ASCII, and tenants' need not be."""
        return f"{self._table}.{key_of_names(tenant)}"

    def _keep(self, tenant: str, values: dict[str, str]) -> None:
        records = []
        for key, value in values.items():
            metadata = {"owner": tenant, "key": key, "value": value}
            if size_of(metadata) > MAX_METADATA_BYTES:
                raise InvalidInput("value", "is longer than Pinecone's 40 KB for a record", "Keep it elsewhere.")
            records.append(marked(key_of_names(tenant, key), self._dimension, metadata))
        if records:
            self._opened.write(self._controls, records)

    def _admitted(
        self, scope: Scope, filter: MemoryFilter, more: Iterable[Condition] = ()
    ) -> builtins.list[MemoryEntry]:
        conditions = [*in_scope(scope), *passing(filter), *more]
        found = self._opened.matching(self._of_tenant(scope.tenant), conditions)
        return _read(found, lambda each: filter.admits(scope, each))

    def _pool(self, values: Sequence[float], length: int, options: SearchOptions) -> builtins.list[MemoryEntry]:
        """What may be among the closest, and all that the service holds for as close as the last of them."""
        scope, filter, limit = options.scope, options.filter, options.limit
        namespace = self._of_tenant(scope.tenant)
        vectors: builtins.list[Condition] = [
            {"length": {"$eq": length}},
            {"kind": {"$in": [Kind.PLAIN, Kind.SCALED]}},
        ]
        conditions = [*in_scope(scope), *passing(filter), *vectors]
        top_k = 2 * limit + 50
        while True:
            closest = self._opened.closest(namespace, values, conditions, top_k)
            matches = closest.matches
            least = matches[limit - 1][1] - _NEAR if len(matches) >= limit else -1 - _NEAR
            if closest.is_all or not matches or top_k >= MAX_TOP_K or matches[-1][1] < least:
                break
            top_k = min(MAX_TOP_K, 4 * top_k)
        ids = [id for id, similarity in matches if similarity >= least]
        pool = [read_entry(each) for each in self._opened.load(namespace, ids).values()]
        recent = [read_entry(each) for each in closest.recent]
        if least <= 0:  # vectors that are zero have the similarity 0, and no direction to be found by
            pool += self._admitted(scope, filter, [{"kind": {"$eq": Kind.ZERO}}, {"length": {"$eq": length}}])
        pool += [each for each in recent if each.id not in {other.id for other in pool}]
        return [each for each in pool if filter.admits(scope, each)]  # some may have changed in between


def _read(found: Found, admits: Callable[[MemoryEntry], bool]) -> builtins.list[MemoryEntry]:
    recent = [entry for each in found.recent if admits(entry := read_entry(each))]
    return [*map(read_entry, found.shown), *recent]


def _value(record: Record) -> str:
    value: Any = record.metadata.get("value")
    if not isinstance(value, str):
        raise StoreDamaged(NAME, "a control is no text", "Use another table.")
    return value


def _seq(entry: MemoryEntry) -> int:
    return entry.seq
