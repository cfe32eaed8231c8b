"""Memories in a collection of Weaviate: a tenant has a shard of its own, a memory is an object with its vector."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, ClassVar, Final

import weaviate
from weaviate.classes.query import Filter as Native

from lamina.adapters._shared.clock_sequence import Sequence as Numbers
from lamina.adapters._shared.directions import direction, rank_by_closeness
from lamina.adapters._shared.gaps import gap_of_tokens
from lamina.adapters._shared.layout_version import made_by_newer
from lamina.adapters._shared.names import key_of_names
from lamina.adapters._shared.options import DEFAULT_TABLE, checked_table
from lamina.adapters._shared.record_adapter import RecordAdapter
from lamina.adapters._shared.records import Commit, Control, Stored
from lamina.adapters._shared.relevance_order import by_relevance
from lamina.adapters._shared.threads import not_open
from lamina.adapters.weaviate.conditions import (
    Condition,
    after,
    any_in,
    in_layers,
    in_scope,
    is_whole,
    passing,
)
from lamina.adapters.weaviate.connection import Connection, connected
from lamina.adapters.weaviate.failures import NAME, translated
from lamina.adapters.weaviate.objects import LATEST, MAX_RESULTS, RELEVANCE, Objects, Properties, Scored
from lamina.adapters.weaviate.rows import Row, key, read_entry, row_of, version_of
from lamina.domain.filters import Filter, MemoryFilter
from lamina.domain.memory import Layer, MemoryEntry, Vector
from lamina.domain.scope import Scope
from lamina.errors import ConfigError, StoreDamaged
from lamina.ports.clock import Clock, utc_now
from lamina.ports.memory_adapter import HISTORY_KEPT, Capability, ListOptions, Order, SearchHit, SearchOptions

__all__ = ["WeaviateAdapter"]

VERSION: Final = 1
"""Of how memories are laid out."""

_OUR_OWN: Final = "lamina"
"""Whose the controls are that belong to no tenant."""

_CONTROLS: Final = "controls"
"""The tenant in which controls lie; those of memories have names of other lengths."""

_PLAIN: Final = ("memory",)
_WHOLE: Final = ("memory", "embedding")

_NEAR: Final = 1e-4
"""How far the service's similarity may be from the exact one, in 32-bit floats."""


class WeaviateAdapter(RecordAdapter):
    """A `MemoryAdapter` over a collection with one tenant of Weaviate for each tenant.

    Args:
        url: Where the service answers over HTTP; `https` makes gRPC use TLS too.
        api_key: Of a user of the service; without it, access is anonymous.
        table: Names the collection, whose first letter Weaviate makes a capital: two of them never see each other.
        class_name: Another name for `table`.
        grpc_host: Where gRPC answers; without it, the host of `url`, or what belongs to it in Weaviate Cloud.
        grpc_port: Without it, 50051, or 443 in Weaviate Cloud.
        threads: How many requests may be under way at the same time.
        timeout: Seconds for one attempt of one request.
        freshness_timeout: Seconds that a search by vector waits for vectors that were written before.
        clock: Where `seq`s come from.

    Raises:
        ConfigError: an option cannot be taken.
    """

    name: ClassVar[str] = NAME
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.VECTOR, Capability.TEXT, Capability.FILTER, Capability.HISTORY, Capability.PERSISTENCE}
    )
    group: ClassVar[int | None] = 500

    def __init__(
        self,
        url: str = "http://localhost:8080",
        *,
        api_key: str | None = None,
        table: str = DEFAULT_TABLE,
        class_name: str | None = None,
        grpc_host: str | None = None,
        grpc_port: int | None = None,
        threads: int = 8,
        timeout: float = 30,
        freshness_timeout: float = 60,
        clock: Clock = utc_now,
    ) -> None:
        self._option = "table" if class_name is None else "class_name"
        self._table = checked_table(table, letter_first=True, class_name=class_name)
        self._connection = Connection(
            url=url,
            api_key=api_key,
            grpc_host=grpc_host,
            grpc_port=grpc_port,
            threads=threads,
            timeout=timeout,
            freshness_timeout=freshness_timeout,
        )
        super().__init__(threads=threads)
        self._clock = clock
        self._client: weaviate.WeaviateClient | None = None
        self._store: Objects | None = None
        self._numbers: Numbers | None = None

    def __repr__(self) -> str:
        return f"WeaviateAdapter({self._connection.place!r}, table={self._table!r})"

    def filter_gap(self, where: Filter) -> str | None:
        return gap_of_tokens(where, "Weaviate")

    # The primitives ----------------------------------------------------------------------------

    def _open(self) -> None:
        client = self._client = connected(self._connection)
        patience = self._connection.freshness_timeout
        self._store = Objects(client, self._table[0].upper() + self._table[1:], self._option, patience=patience)
        controls = self._load_controls(_OUR_OWN, ["version", "table", "seq"])
        if "version" not in controls:
            self._keep(_OUR_OWN, {"version": str(VERSION), "table": self._table})
        elif controls["version"].value != str(VERSION):
            raise made_by_newer(NAME, f"the table {self._table!r}", controls["version"].value, VERSION)
        elif controls["table"].value != self._table:
            problem = f"is {self._table!r}, and its collection is that of {controls['table'].value!r}"
            raise ConfigError(self._option, problem, "Write it as it was first written, or name another one.")
        kept = int(controls["seq"].value) if "seq" in controls else 0
        self._numbers = Numbers(self._clock, kept, lambda mark: self._keep(_OUR_OWN, {"seq": str(mark)}))

    def _shut(self) -> None:
        client, self._client, self._store = self._client, None, None
        if client is not None:
            client.close()

    def _translated(self) -> AbstractContextManager[None]:
        return translated(self._connection.place)

    def _load(self, tenant: str, ids: Sequence[str]) -> builtins.list[Stored]:
        found = self._opened.load(key_of_names(tenant), map(key, ids), _WHOLE)
        return [Stored(read_entry(found[key(id)]), None) for id in ids if key(id) in found]

    def _load_controls(self, tenant: str, keys: Sequence[str]) -> dict[str, Control]:
        found = self._opened.load(_CONTROLS, [key(tenant, each) for each in keys], ["value"])
        return {each: Control(_value(found[key(tenant, each)]), None) for each in keys if key(tenant, each) in found}

    def _commit(self, commit: Commit) -> None:
        """Controls, then what must not be there any more, then former versions, then memories.

        So no history is ever left of what is gone, and a memory that is there has its history.
        """
        store, tenant, past = self._opened, key_of_names(commit.tenant), _past(commit.tenant)
        rows = [row_of(each.new) for each in commit.changes if each.new is not None]
        versions = [version_of(version) for each in commit.changes for version in each.past]
        forgotten = [key_of_names(each.id) for each in commit.changes if each.forgets]
        removed = [key(each.id) for each in commit.changes if each.new is None]
        self._keep(commit.tenant, {each.key: each.value for each in commit.controls if each.value is not None})
        if forgotten:
            store.remove(past, any_in("version_of", forgotten))
        if removed:
            store.remove(tenant, Native.by_id().contains_any(removed))
        store.write(past, versions)
        store.write(tenant, rows)

    def _reserve(self, number: int) -> int:
        if self._numbers is None:
            raise not_open(self.name)
        return self._numbers.take(number)

    def _alike(self, scope: Scope, layer: Layer, digests: Sequence[str]) -> builtins.list[Stored]:
        conditions = [*in_scope(scope), in_layers([layer]), any_in("digest", digests)]
        found = self._opened.walk(key_of_names(scope.tenant), conditions, properties=_WHOLE)
        return [Stored(read_entry(each), None) for each in found]

    def _select(self, options: ListOptions) -> builtins.list[MemoryEntry]:
        tenant, offset, limit = key_of_names(options.scope.tenant), options.offset, options.limit
        conditions = [*in_scope(options.scope), *passing(options.filter)]
        properties = _WHOLE if options.include_embeddings else _PLAIN
        if options.after:
            conditions.append(after(options.after))
        if options.order is Order.RELEVANCE and offset + limit <= MAX_RESULTS:
            page: Iterable[Properties] = self._opened.page(
                tenant, conditions, RELEVANCE, offset=offset, limit=limit, properties=properties
            )
        elif options.order is Order.RELEVANCE:  # further than Weaviate sorts
            entries = sorted(
                map(read_entry, self._opened.walk(tenant, conditions, properties=properties)), key=by_relevance
            )
            return entries[offset : offset + limit]
        else:
            page = self._opened.walk(tenant, conditions, offset=offset, limit=limit, properties=properties)
        return [read_entry(each) for each in page]

    def _count(self, scope: Scope, filter: MemoryFilter) -> int:
        return self._opened.count(key_of_names(scope.tenant), [*in_scope(scope), *passing(filter)])

    def _nearest(self, embedding: Vector, options: SearchOptions) -> builtins.list[SearchHit]:
        unit, length = direction(embedding), is_whole("length", len(embedding))
        if unit is None or options.limit >= MAX_RESULTS // 2:
            pool = self._admitted(options, [length])
        else:
            pool = self._close(unit, options, length)
        return rank_by_closeness(embedding, pool, options.limit, include_embeddings=options.include_embeddings)

    def _holding(self, words: Sequence[str], options: SearchOptions) -> builtins.list[MemoryEntry]:
        store, tenant = self._opened, key_of_names(options.scope.tenant)
        conditions = [*in_scope(options.scope), *passing(options.filter)]
        needs_vectors = options.include_embeddings or options.filter.has_embedding is not None
        properties = _WHOLE if needs_vectors else _PLAIN
        if options.limit >= MAX_RESULTS // 8:
            conditions.append(any_in("words", words))
            found: Iterable[Properties] = store.walk(tenant, conditions, properties=properties)
        else:
            best, _ = _enough(lambda top: store.holding(tenant, words, conditions, top), 4 * options.limit + 100)
            found = store.load(tenant, [each for each, _ in best], properties).values()
        entries = [each for each in map(read_entry, found) if options.filter.admits(options.scope, each)]
        return entries if options.include_embeddings else [each.replace(embedding=None) for each in entries]

    def _frequencies(self, scope: Scope, words: Sequence[str], now: datetime) -> dict[str, int]:
        tenant, live = key_of_names(scope.tenant), [*in_scope(scope), *passing(MemoryFilter(now=now))]
        return {word: self._opened.count(tenant, [*live, any_in("words", [word])]) for word in words}

    def _history(self, tenant: str, id: str) -> builtins.list[MemoryEntry]:
        conditions = [any_in("version_of", [key_of_names(id)])]
        found = self._opened.page(_past(tenant), conditions, LATEST, limit=HISTORY_KEPT, properties=_PLAIN)
        return [read_entry(each) for each in reversed(found)]

    # What they are made of ---------------------------------------------------------------------

    @property
    def _opened(self) -> Objects:
        if self._store is None:
            raise not_open(self.name)
        return self._store

    def _keep(self, tenant: str, values: dict[str, str]) -> None:
        self._opened.write(_CONTROLS, [Row(key(tenant, name), {"value": value}) for name, value in values.items()])

    def _admitted(self, options: SearchOptions, more: Iterable[Condition]) -> builtins.list[MemoryEntry]:
        conditions = [*in_scope(options.scope), *passing(options.filter), *more]
        found = self._opened.walk(key_of_names(options.scope.tenant), conditions, properties=_WHOLE)
        return [read_entry(each) for each in found]

    def _close(self, unit: Sequence[float], options: SearchOptions, length: Condition) -> builtins.list[MemoryEntry]:
        """What may be among the closest, and all that the service holds for as close as the last of them."""
        store, tenant = self._opened, key_of_names(options.scope.tenant)
        conditions = [*in_scope(options.scope), *passing(options.filter), length]
        closest, least = _enough(lambda top: store.closest(tenant, unit, conditions, top), options.limit)
        near = [each for each, similarity in closest if similarity >= least]
        pool = [read_entry(each) for each in store.load(tenant, near, _WHOLE).values()]
        if least <= 0:  # vectors that are zero have the similarity 0, and no direction to be found by
            pool += self._admitted(options, [length, Native.by_property("is_indexed").equal(val=False)])
        return [each for each in pool if options.filter.admits(options.scope, each)]  # some may have changed


def _enough(ask: Callable[[int], builtins.list[Scored]], limit: int) -> tuple[builtins.list[Scored], float]:
    """So many results that the last one is worse than the one at the limit, and how good one must be to reach that."""
    top = min(MAX_RESULTS, 2 * limit + 50)
    while True:
        found = ask(top)
        least = found[limit - 1][1] - _NEAR if len(found) >= limit else float("-inf")
        if len(found) < top or top == MAX_RESULTS or found[-1][1] < least:
            return found, least
        top = min(MAX_RESULTS, 4 * top)


def _past(tenant: str) -> str:
    """The tenant in which former versions lie."""
    return f"{key_of_names(tenant)}-past"


def _value(properties: Properties) -> str:
    value: Any = properties.get("value")
    if not isinstance(value, str):
        raise StoreDamaged(NAME, "a control is no text", "Use another table.")
    return value
