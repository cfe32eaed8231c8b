"""The adapter: the port's write rules over points of one collection."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from os import PathLike
from typing import ClassVar, Final

from qdrant_client import QdrantClient, models

from lamina.adapters._shared.directions import direction, rank_by_closeness
from lamina.adapters._shared.options import DEFAULT_TABLE, check_count, check_seconds, checked_table
from lamina.adapters._shared.record_adapter import RecordAdapter
from lamina.adapters._shared.records import Commit, Control, Stored
from lamina.adapters._shared.threads import not_open
from lamina.adapters.qdrant import reading
from lamina.adapters.qdrant.collection import Collection
from lamina.adapters.qdrant.conditions import admitted, any_of, gap_of, is_equal, scoped, within
from lamina.adapters.qdrant.connection import IN_MEMORY, Connection, locate
from lamina.adapters.qdrant.failures import BACKEND, translated
from lamina.adapters.qdrant.points import (
    TERMS,
    control_id,
    control_of,
    entry_of,
    memory_id,
    stored_of,
    vector_name,
)
from lamina.adapters.qdrant.writing import MAX_DIMENSIONS, write
from lamina.domain.filters import Filter, MemoryFilter
from lamina.domain.memory import Layer, MemoryEntry, Vector
from lamina.domain.scope import Scope
from lamina.ports.memory_adapter import Capability, ListOptions, Order, SearchHit, SearchOptions

__all__ = ["QdrantAdapter"]

_MAX_REPLICAS: Final = 99


class QdrantAdapter(RecordAdapter):
    """Memories in one collection of Qdrant.

    Args:
        url: The server's, such as `http://127.0.0.1:6333`.
        path: In place of `url`: the folder of the client library's local engine, made if there is none, which
            one process at a time may open; `:memory:` keeps all in this process's memory, until `close`.
        api_key: The server's key. Over plain http it travels in the clear.
        table: The collection, made if there is none; one server holds several.
        collection_name: Another name for `table`.
        vector_size: How long the vectors will be. Without it the collection gets its place for vectors with the
            first one, which needs Qdrant 1.18 or newer.
        timeout: Seconds for each request; fractions count up.
        threads: How many requests may be under way at a time.
        replication_factor: On how many nodes of a cluster a collection that is made is kept; each write then
            waits for all of them.
    """

    name = BACKEND
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.VECTOR, Capability.TEXT, Capability.FILTER, Capability.HISTORY, Capability.PERSISTENCE}
    )
    group = 64

    def __init__(
        self,
        url: str | None = None,
        *,
        path: str | PathLike[str] | None = None,
        api_key: str | None = None,
        table: str = DEFAULT_TABLE,
        collection_name: str | None = None,
        vector_size: int | None = None,
        timeout: float = 30,
        threads: int = 8,
        replication_factor: int | None = None,
    ) -> None:
        super().__init__(threads=threads)
        self._location = locate(url, path, api_key)
        self._table = checked_table(table, collection_name=collection_name)
        if vector_size is not None:
            check_count("vector_size", vector_size, MAX_DIMENSIONS)
        if replication_factor is not None:
            check_count("replication_factor", replication_factor, _MAX_REPLICAS)
        check_seconds(timeout=timeout)
        self._vector_size, self._replicas, self._timeout = vector_size, replication_factor, timeout
        self._connection: Connection | None = None
        self._collection: Collection
        if path == IN_MEMORY:  # this one forgets; the class's own declaration stays as it is
            vars(self)["capabilities"] = type(self).capabilities - {Capability.PERSISTENCE}

    def __repr__(self) -> str:
        return f"QdrantAdapter({self._location}, table={self._table!r})"

    def filter_gap(self, where: Filter) -> str | None:
        return gap_of(where, finds_parts=self._connection is not None and self._collection.finds_parts)

    # The primitives ------------------------------------------------------------------------

    def _open(self) -> None:
        self._collection = Collection(self._table, vector_size=self._vector_size, replication_factor=self._replicas)
        self._connection = Connection(self._location, timeout=self._timeout, threads=self._size)
        with self._client() as client:
            self._collection.prepare(self._connection, client)

    def _shut(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _translated(self) -> AbstractContextManager[None]:
        return translated(str(self._location))

    @contextmanager
    def _client(self) -> Iterator[QdrantClient]:
        if self._connection is None:
            raise not_open(self.name)
        with self._connection.turn() as client:
            yield client

    def _load(self, tenant: str, ids: Sequence[str]) -> builtins.list[Stored]:
        points = {memory_id(tenant, id): id for id in ids}
        with self._client() as client:
            records = reading.retrieve(client, self._table, list(points))
        return [stored_of(each, tenant, points[str(each.id)]) for each in records]

    def _load_controls(self, tenant: str, keys: Sequence[str]) -> dict[str, Control]:
        points = {control_id(tenant, key): key for key in keys}
        with self._client() as client:
            records = reading.retrieve(client, self._table, list(points))
        return {points[str(each.id)]: control_of(each, tenant, points[str(each.id)]) for each in records}

    def _commit(self, commit: Commit) -> None:
        with self._client() as client:
            limited = self._connection is not None and not self._connection.is_local
            write(client, self._collection, commit, limited=limited)

    def _reserve(self, number: int) -> int:
        with self._client() as client:
            return self._collection.reserve(client, number)

    def _alike(self, scope: Scope, layer: Layer, digests: Sequence[str]) -> builtins.list[Stored]:
        alike = models.Filter(must=[*scoped(scope), is_equal("layer", layer.value), any_of("digest", digests)])
        with self._client() as client:
            found = list(reading.by_seq(client, self._table, alike, fields=reading.WHOLE))
        return [stored_of(each, scope.tenant) for each in found]

    def _select(self, options: ListOptions) -> builtins.list[MemoryEntry]:
        filter = admitted(options.scope, options.filter)
        with self._client() as client:
            if options.order is Order.RELEVANCE:
                return reading.by_relevance(client, self._table, filter, options)
            records = reading.by_seq(
                client,
                self._table,
                filter,
                after=options.after or 0,
                skip=options.offset,
                limit=options.limit,
                fields=reading.fields_of(options),
            )
            return [entry_of(each) for each in records]

    def _count(self, scope: Scope, filter: MemoryFilter) -> int:
        return self._number(admitted(scope, filter))

    def _nearest(self, embedding: Vector, options: SearchOptions) -> builtins.list[SearchHit]:
        dimensions = len(embedding)
        filter = admitted(options.scope, options.filter, within("dimensions", gte=dimensions, lte=dimensions))
        towards = direction([float(each) for each in embedding])
        with self._client() as client:
            if not self._collection.has_length(client, dimensions):
                return []
            if towards is None:  # which is as close to the one as to the other
                pool: Sequence[reading.Point] = reading.first_by_id(client, self._table, filter, options.limit)
            else:
                using, tuned = vector_name(dimensions), self._collection.is_tuned
                pool = reading.nearest(client, self._table, filter, towards, options=options, using=using, tuned=tuned)
        entries = [entry_of(each) for each in pool]
        return rank_by_closeness(embedding, entries, options.limit, include_embeddings=options.include_embeddings)

    def _holding(self, words: Sequence[str], options: SearchOptions) -> builtins.list[MemoryEntry]:
        filter = admitted(options.scope, options.filter, any_of(TERMS, words))
        with self._client() as client:
            pool = reading.holding(client, self._table, filter, words, options=options)
        return [entry_of(each) for each in pool]

    def _frequencies(self, scope: Scope, words: Sequence[str], now: datetime) -> dict[str, int]:
        return {word: self._number(admitted(scope, MemoryFilter(now=now), is_equal(TERMS, word))) for word in words}

    def _history(self, tenant: str, id: str) -> builtins.list[MemoryEntry]:
        with self._client() as client:
            records = reading.past(client, self._table, tenant, memory_id(tenant, id))
        return [entry_of(each) for each in records]

    def _number(self, filter: models.Filter) -> int:
        with self._client() as client:
            return client.count(self._table, filter, exact=True).count
