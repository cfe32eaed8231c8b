"""Memories in MongoDB."""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, ClassVar, Final

from bson.binary import Binary
from pymongo import MongoClient, ReturnDocument, UpdateOne

from lamina.adapters._shared.directions import direction, rank_by_closeness
from lamina.adapters._shared.options import DEFAULT_TABLE
from lamina.adapters._shared.record_adapter import RecordAdapter
from lamina.adapters._shared.records import Commit, Control, Stored
from lamina.adapters._shared.word_ranking import rank_by_words, rarity
from lamina.adapters.mongodb.commits import Collections, in_transaction, write_commit
from lamina.adapters.mongodb.documents import (
    WHOLE,
    WITHOUT_VECTOR,
    entry_of,
    id_of,
    past_entry,
    stored_of,
)
from lamina.adapters.mongodb.failures import BACKEND, translated
from lamina.adapters.mongodb.layout import COUNTER, collections_of, prepare
from lamina.adapters.mongodb.matching import conjunction, fits_vector_index, match_of, scope_parts
from lamina.adapters.mongodb.options import checked_options
from lamina.adapters.mongodb.ranking import by_closeness, by_words, frequencies, keys_of
from lamina.adapters.mongodb.vector_index import VectorIndex
from lamina.domain.filters import MemoryFilter
from lamina.domain.instants import to_micros
from lamina.domain.lexical import Term
from lamina.domain.memory import Layer, MemoryEntry, Vector
from lamina.domain.scope import Scope
from lamina.errors import StoreDamaged
from lamina.ports.memory_adapter import Capability, ListOptions, Order, SearchHit, SearchOptions

__all__ = ["MongoDBAdapter"]

Match = dict[str, Any]

_BATCH: Final = 1_000
"""How many ids one query names."""

_MARGIN: Final = 16
"""How many more than asked for are ranked exactly: the server's sums may differ in the last bit."""


class MongoDBAdapter(RecordAdapter):
    """Memories as documents of one collection, with two more beside it, in MongoDB 4.4 or newer.

    Args:
        url: `mongodb://` or `mongodb+srv://`, with the options of MongoDB's connection strings.
        database: The database; by default the one that the URL names, or else `lamina`.
        table: The collection; two adapters with different ones never see each other's memories.
        collection: Another name for `table`.
        vector_index: The name of a vector search index of Atlas; without one, the server compares every
            vector that scope and filter admit.
        timeout: How long, in seconds, one operation may take with its retries.
        connect_timeout: How long, in seconds, to look for a server that can be written to.
        connections: How many may be open at the same time to each server.
        threads: How many operations run side by side.

    On a server that is no member of a replica set there are no transactions: what needs them is then not
    declared, once the adapter is open.
    """

    name = BACKEND
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)

    def __init__(
        self,
        url: str,
        *,
        database: str | None = None,
        table: str = DEFAULT_TABLE,
        collection: str | None = None,
        vector_index: str | None = None,
        timeout: float = 30.0,
        connect_timeout: float = 10.0,
        connections: int = 16,
        threads: int = 8,
    ) -> None:
        super().__init__(threads=threads)
        self._options = checked_options(
            url,
            database=database,
            table=table,
            collection=collection,
            vector_index=vector_index,
            timeout=timeout,
            connect_timeout=connect_timeout,
            connections=connections,
        )
        self._client: MongoClient[dict[str, Any]] | None = None
        self._collections: Collections
        self._vector_index: VectorIndex | None = None
        self._version: Sequence[int] = ()
        self._has_transactions = True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._options.place!r})"

    # Opening ---------------------------------------------------------------------------------

    def _open(self) -> None:
        self._shut()
        options = self._options
        client: MongoClient[dict[str, Any]] = MongoClient(options.url, **options.client)
        self._client = client
        hello = client.admin.command("hello")
        self._has_transactions = "setName" in hello or hello.get("msg") == "isdbgrid"
        if not self._has_transactions:  # the class's own declaration stays as it is
            lost = {Capability.TRANSACTIONS, Capability.COMPARE_AND_SET}
            vars(self).update(capabilities=type(self).capabilities - lost, group=1)
        self._version = client.server_info().get("versionArray", ())
        self._collections = collections_of(client, options.database, options.table)
        prepare(self._collections, with_vector_index=options.vector_index is not None)
        if options.vector_index is not None:
            self._vector_index = VectorIndex(self._collections.memories, options.vector_index)
            self._vector_index.check()

    def _shut(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _translated(self) -> AbstractContextManager[None]:
        return translated(self._options.place)

    # Records ---------------------------------------------------------------------------------

    def _load(self, tenant: str, ids: Sequence[str]) -> builtins.list[Stored]:
        return [stored_of(each) for each in self._found([id_of(tenant, id) for id in ids], WHOLE)]

    def _load_controls(self, tenant: str, keys: Sequence[str]) -> dict[str, Control]:
        found = self._collections.controls.find({"_id": {"$in": [id_of(tenant, key) for key in keys]}})
        controls = [each for each in found if each.get("value") is not None]
        return {each["key"]: Control(each["value"], each["mark"]) for each in controls}

    def _commit(self, commit: Commit) -> None:
        client = self._client
        if self._has_transactions and client is not None:
            in_transaction(
                client, lambda session: write_commit(self._collections, commit, session), self._options.timeout
            )
        else:
            write_commit(self._collections, commit, None)

    def _reserve(self, number: int) -> int:
        counted = self._collections.controls.find_one_and_update(
            {"_id": COUNTER}, {"$inc": {"last": number}}, return_document=ReturnDocument.AFTER
        )
        if counted is None:
            raise StoreDamaged(self.name, "the count of insertions is missing", "Restore it from a backup.")
        return int(counted["last"]) - number + 1

    def _alike(self, scope: Scope, layer: Layer, digests: Sequence[str]) -> builtins.list[Stored]:
        found: builtins.list[Stored] = []
        for start in range(0, len(digests), _BATCH):
            batch = list(digests[start : start + _BATCH])
            match = conjunction([*scope_parts(scope), {"layer": layer.value}, {"digest": {"$in": batch}}])
            found += map(stored_of, self._collections.memories.find(match, WHOLE))
        return sorted(found, key=lambda each: each.entry.seq)

    def _history(self, tenant: str, id: str) -> builtins.list[MemoryEntry]:
        current = self._load(tenant, [id])
        past = self._collections.history.find({"of": id_of(tenant, id)}).sort([("seq", 1), ("revision", 1)])
        entries = [past_entry(each) for each in past]
        # Where there are no transactions, a version may be there whose successor never came.
        return [each for each in entries if current and each.revision < current[0].entry.revision]

    async def touch(self, scope: Scope, ids: Sequence[str], now: datetime) -> None:
        """As the port says; one atomic addition for each entry, after which no other write has to begin anew."""
        times = Counter(ids)

        def count() -> None:
            accessed = {"read_at": to_micros(now)}
            requests = [
                UpdateOne(
                    conjunction([{"_id": id_of(scope.tenant, id)}, *scope_parts(scope)]),
                    {"$inc": {"reads": number}, "$set": accessed},
                )
                for id, number in times.items()
            ]
            if requests:
                self._collections.memories.bulk_write(requests, ordered=False)

        await self._run(count)

    # Reading ---------------------------------------------------------------------------------

    def _select(self, options: ListOptions) -> builtins.list[MemoryEntry]:
        match = match_of(options.scope, options.filter)
        if options.after is not None:
            match = conjunction([match, {"seq": {"$gt": options.after}}])
        order = [("seq", 1)]
        if options.order is Order.RELEVANCE:
            order = [("relevance", -1), ("created", -1), ("id", 1)]
        shown = _shown(include_embeddings=options.include_embeddings)
        found = self._collections.memories.find(match, shown, allow_disk_use=True).sort(order)
        return [entry_of(each) for each in found.skip(options.offset).limit(options.limit)]

    def _count(self, scope: Scope, filter: MemoryFilter) -> int:
        return self._collections.memories.count_documents(match_of(scope, filter))

    def _frequencies(self, scope: Scope, words: Sequence[str], now: datetime) -> dict[str, int]:
        keys = keys_of(words)
        match = match_of(scope, MemoryFilter(now=now))
        found = self._collections.memories.aggregate(frequencies(match, list(keys)), allowDiskUse=True)
        return {**dict.fromkeys(words, 0), **{keys[each["_id"]]: each["documents"] for each in found}}

    def _matching(self, terms: Sequence[Term], options: SearchOptions) -> builtins.list[SearchHit]:
        """The server takes those that hold most by weight; the final ranking also counts repeats and length."""
        scope, now = options.scope, options.filter.now
        documents = self._count(scope, MemoryFilter(now=now))
        weights = rarity(terms, documents, lambda words: self._frequencies(scope, words, now))
        match = match_of(scope, options.filter)
        ranked = self._ids(by_words(match, terms, weights, 2 * options.limit + 100))
        shown = _shown(include_embeddings=options.include_embeddings)
        pool = [entry_of(each) for each in self._found(ranked, shown, match)]
        return rank_by_words(terms, weights, pool, options.limit)

    def _nearest(self, embedding: Vector, options: SearchOptions) -> builtins.list[SearchHit]:
        match = match_of(options.scope, options.filter)
        ids = self._near(embedding, match, options)
        pool = [entry_of(each) for each in self._found(ids, WHOLE, match)]
        return rank_by_closeness(embedding, pool, options.limit, include_embeddings=options.include_embeddings)

    def _near(self, embedding: Vector, match: Match, options: SearchOptions) -> builtins.list[Binary]:
        """The ids of the closest: by the index and what it may lack, or else by all that matches."""
        towards = direction(embedding)
        indexed = None
        if self._vector_index is not None and towards is not None and _fits(options.filter):
            indexed = self._vector_index.pipeline(match, towards, options.limit)
        if indexed is not None and self._vector_index is not None:
            match = self._vector_index.unsettled(match)
        towards = towards or [0.0] * len(embedding)
        found = self._ids(by_closeness(match, towards, options.limit + _MARGIN, self._version))
        return found if indexed is None else list(dict.fromkeys([*found, *self._ids(indexed)]))

    def _ids(self, pipeline: builtins.list[dict[str, Any]]) -> builtins.list[Binary]:
        return [each["_id"] for each in self._collections.memories.aggregate(pipeline, allowDiskUse=True)]

    def _found(
        self, ids: Sequence[Binary], shown: dict[str, int], match: Match | None = None
    ) -> Iterable[dict[str, Any]]:
        """The documents with these ids, if they still match, in any order."""
        for start in range(0, len(ids), _BATCH):
            named: dict[str, Any] = {"_id": {"$in": list(ids[start : start + _BATCH])}}
            yield from self._collections.memories.find(named if match is None else conjunction([named, match]), shown)


def _fits(filter: MemoryFilter) -> bool:
    return filter.has_embedding is not False and fits_vector_index(filter.where)


def _shown(*, include_embeddings: bool) -> dict[str, int]:
    return {**WITHOUT_VECTOR, "vector": 1} if include_embeddings else WITHOUT_VECTOR
