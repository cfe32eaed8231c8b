"""The adapter: the port's primitives over hashes, sorted sets and, where there is one, the query engine."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from lamina.adapters._shared.directions import direction, rank_by_closeness
from lamina.adapters._shared.entry_text import pack, text_of_entry
from lamina.adapters._shared.gaps import gap_of_tokens
from lamina.adapters._shared.options import DEFAULT_TABLE
from lamina.adapters._shared.record_adapter import RecordAdapter
from lamina.adapters._shared.records import Change, Commit, Control, Stale, Stored
from lamina.adapters._shared.threads import not_open
from lamina.adapters.redis.analyzer import follow_analyzer
from lamina.adapters.redis.conditions import (
    Both,
    Has,
    filter_tree,
    places,
    query_of,
    scope_tree,
    script_of,
)
from lamina.adapters.redis.failures import translated
from lamina.adapters.redis.index import Index
from lamina.adapters.redis.layout import (
    BACKEND,
    HAS_ZERO_VECTOR,
    Names,
    changed_row,
    name_token,
    stored_of,
    word_token,
)
from lamina.adapters.redis.options import read_options
from lamina.adapters.redis.server import Server, as_json, has_query_engine
from lamina.domain.filters import Filter, MemoryFilter
from lamina.domain.instants import to_micros
from lamina.domain.memory import Layer, MemoryEntry, Vector
from lamina.domain.scope import Scope
from lamina.errors import AdapterError
from lamina.ports.memory_adapter import HISTORY_KEPT, Capability, ListOptions, Order, SearchHit, SearchOptions

__all__ = ["RedisAdapter"]

GRACE: Final = 600_000
"""Milliseconds for which an expired memory is kept, since the clocks of machines differ."""

STEP: Final = 2_000
"""How many memories of each place one call of the server looks at, so that others get their turn."""
PAGE_BYTES: Final = 8_000_000
PAGE: Final = 500
KEY_BYTES: Final = 34
"""How much of what `scan.lua` answers with `keys` is sorted by, before the id."""

BRUTE_FORCE: Final = 10_000
"""Up to so many candidates are compared one by one, which is exact; beyond, the graph is asked."""
NEAR: Final = 1e-5
"""Distances that differ by less may stand in the wrong order: the query engine rounds to 32 bits."""
_EXACT_MICROS: Final = 2**53


class RedisAdapter(RecordAdapter):
    """Memories in Redis 6.2 or newer.

    Args:
        url: `redis://user:password@host:port/db`, `rediss://` for TLS, or `unix://path?db=0`.
        prefix: Put before the names of all keys, for a server that others use too.
        table: Names the collection; adapters with different ones never see each other's memories.
        timeout: Seconds to wait for an answer, and for a free connection.
        connect_timeout: Seconds to wait for a connection to be made.
        index_timeout: Seconds to wait for the query engine to read in what was there before.
        threads: How many calls may be under way at the same time, each on a connection of its own.
        accept_eviction: Work on a server that drops memories when it is full; not persistent then.
        query_engine: Whether to use it. By default, if the server has it.
    """

    name = BACKEND
    capabilities = frozenset(Capability)  # an open adapter without the query engine has neither search

    def __init__(
        self,
        url: str = "redis://localhost:6379/0",
        *,
        prefix: str = "",
        table: str = DEFAULT_TABLE,
        timeout: float = 30.0,
        connect_timeout: float = 10.0,
        index_timeout: float = 300.0,
        threads: int = 8,
        accept_eviction: bool = False,
        query_engine: bool | None = None,
    ) -> None:
        super().__init__(threads=threads)
        self._options = read_options(
            url,
            prefix=prefix,
            table=table,
            timeout=timeout,
            connect_timeout=connect_timeout,
            index_timeout=index_timeout,
            threads=threads,
            accept_eviction=accept_eviction,
            query_engine=query_engine,
        )
        self._names = Names(self._options.prefix)
        self._server_or_none: Server | None = None
        self._index: Index | None = None
        self._evicts = False

    def __repr__(self) -> str:
        return f"RedisAdapter({self._options.place!r}, {self._options.prefix!r})"

    def filter_gap(self, where: Filter) -> str | None:
        return gap_of_tokens(where, "Redis")

    # Opening ----------------------------------------------------------------------------------

    def _translated(self) -> AbstractContextManager[None]:
        return translated(self._options.place)

    def _open(self) -> None:
        options = self._options
        server = self._server_or_none = Server(options)
        self._evicts = server.check(accept_eviction=options.accept_eviction)
        follow_analyzer(server, self._names, options.place)
        is_there = options.query_engine is not False and has_query_engine(server.client)
        if options.query_engine and not is_there:
            remedy = "Use Redis 8 or newer, or load the module; or leave query_engine out."
            raise AdapterError(BACKEND, f"{options.place} has no query engine", remedy)
        lacking = set() if is_there else {Capability.VECTOR, Capability.TEXT}
        if self._evicts:
            lacking.add(Capability.PERSISTENCE)
        vars(self)["capabilities"] = type(self).capabilities - lacking
        self._index = None
        if is_there:
            self._index = Index(server, self._names, patience=options.index_timeout, timeout=options.timeout)
            self._index.prepare()

    def _shut(self) -> None:
        if self._server_or_none is not None:
            self._server_or_none.close()
        self._server_or_none = self._index = None

    @property
    def _server(self) -> Server:
        if self._server_or_none is None:
            raise not_open(self.name)
        return self._server_or_none

    # Records ----------------------------------------------------------------------------------

    def _load(self, tenant: str, ids: Sequence[str], *, with_vector: bool = True) -> builtins.list[Stored]:
        token, vectors = self._names.tenant(tenant), "1" if with_vector else "0"
        found: builtins.list[Stored] = []
        for start in range(0, len(ids), PAGE):
            answers = self._server.ask("load", token, vectors, *ids[start : start + PAGE])
            found += filter(None, map(stored_of, answers))
        return found

    def _load_controls(self, tenant: str, keys: Sequence[str]) -> dict[str, Control]:
        values = self._server.read("HMGET", self._names.key("c", self._names.tenant(tenant)), *keys)
        controls = {}
        for key, value in zip(keys, values, strict=True):
            if value is not None:
                version, _, text = value.decode().partition(" ")
                controls[key] = Control(text, version)
        return controls

    def _reserve(self, number: int) -> int:
        return int(self._server.client.incrby(self._names.key("seq"), number)) - number + 1

    def _commit(self, commit: Commit) -> None:
        tenant = self._names.tenant(commit.tenant)
        values: builtins.list[bytes | str] = []

        def place(value: bytes | str) -> int:
            values.append(value)
            return len(values)

        dimensions = {len(each.new.embedding) for each in commit.changes if each.new and each.new.embedding is not None}
        if self._index is not None:
            self._index.prepare(dimensions)
        todo = {
            "writes": any(each.new for each in commit.changes) or any(each.value for each in commit.controls),
            "controls": [
                {"key": each.key, "version": "" if each.old is None else each.old.version}
                | ({} if each.value is None else {"value": place(each.value)})
                for each in commit.controls
            ],
            "changes": [_change(tenant, each, place) for each in commit.changes],
            "dimensions": sorted(dimensions),
            "grace": GRACE,
            "kept": HISTORY_KEPT,
        }
        text = as_json(todo)
        outcome = b"behind"
        while outcome == b"behind":
            outcome = self._server.tell("commit", tenant, text, *values)
        if outcome == b"stale":
            raise Stale

    def _alike(self, scope: Scope, layer: Layer, digests: Sequence[str]) -> builtins.list[Stored]:
        owner = "" if scope.owner is None or scope.include_shared else name_token("", scope.owner)
        namespace = name_token("", scope.namespace) if owner and scope.namespace is not None else ""
        starts = [f"{layer.value[0]}{digest[:32]}{owner}{namespace}" for digest in dict.fromkeys(digests)]
        found: builtins.list[Stored] = []
        for start in range(0, len(starts), PAGE):
            answers = self._server.ask("alike", self._names.tenant(scope.tenant), *starts[start : start + PAGE])
            found += filter(None, map(stored_of, answers))
        alike = [each for each in found if scope.admits(each.entry) and each.entry.digest in digests]
        return sorted(alike, key=lambda each: each.entry.seq)

    def _history(self, tenant: str, id: str) -> builtins.list[MemoryEntry]:
        past = self._server.read("LRANGE", self._names.key("h", self._names.tenant(tenant), id), 0, -1)
        versions = [stored_of([text, b"", None]) for text in past]
        return [each.entry for each in versions if each is not None]

    # Lists ------------------------------------------------------------------------------------

    def _select(self, options: ListOptions) -> builtins.list[MemoryEntry]:
        if options.order is Order.RELEVANCE:
            return self._most_relevant(options)
        found = self._scan(
            options.scope,
            options.filter,
            "memories",
            after=options.after or 0,
            skip=options.offset,
            limit=options.limit,
            vectors=options.include_embeddings,
        )
        return [each.entry for each in map(stored_of, found) if each is not None]

    def _most_relevant(self, options: ListOptions) -> builtins.list[MemoryEntry]:
        keys: builtins.list[bytes] = self._scan(options.scope, options.filter, "keys")
        keys.sort(key=lambda key: key[KEY_BYTES:])  # by id, in the order of code points
        keys.sort(key=lambda key: key[:KEY_BYTES], reverse=True)  # before that, by relevance and creation
        ids = [key[KEY_BYTES:].decode() for key in keys[options.offset : options.offset + options.limit]]
        return self._admitted(ids, options)

    def _count(self, scope: Scope, filter: MemoryFilter) -> int:
        micros = to_micros(filter.now)
        if filter == MemoryFilter(now=filter.now, layers=filter.layers) and micros < _EXACT_MICROS and not self._evicts:
            sets = places(scope, filter.layers)
            return int(self._server.ask("count", self._names.tenant(scope.tenant), micros, *sets))
        return sum(self._scan(scope, filter, "count"))

    def _scan(
        self,
        scope: Scope,
        filter: MemoryFilter,
        answer: str,
        *,
        after: int = 0,
        skip: int = 0,
        limit: int | None = None,
        vectors: bool = False,
    ) -> builtins.list[Any]:
        """Walk through what the scope holds, in the order of `seq`, some thousand memories at a time."""
        asked: dict[str, Any] = {
            "places": places(scope, filter.layers),
            "condition": script_of(self._tree(scope, filter)),
            "after": str(after),
            "skip": skip,
            "answer": answer,
            "vectors": vectors,
            "bytes": PAGE_BYTES,
            "complete": not self._evicts,
            "step": STEP if limit is None else min(STEP, skip + limit),
        }
        found: builtins.list[Any] = []
        while True:
            asked["limit"] = -1 if limit is None else limit - len(found)
            position, asked["skip"], some = self._server.ask("scan", self._names.tenant(scope.tenant), as_json(asked))
            found += [some] if answer == "count" else some
            if not position or len(found) == limit:
                return found
            asked["after"], asked["step"] = position.decode(), STEP

    def _admitted(self, ids: Sequence[str], options: ListOptions | SearchOptions) -> builtins.list[MemoryEntry]:
        """Those of the ids that the scope and the filter still admit, in their order."""
        with_vector = options.include_embeddings or options.filter.has_embedding is not None
        stored = self._load(options.scope.tenant, ids, with_vector=with_vector)
        entries = [each.entry for each in stored if options.filter.admits(options.scope, each.entry)]
        return entries if options.include_embeddings else [each.replace(embedding=None) for each in entries]

    # Searches ---------------------------------------------------------------------------------

    @property
    def _engine(self) -> Index:
        if self._index is None:
            raise not_open(self.name)
        return self._index

    def _tree(self, scope: Scope, filter: MemoryFilter, *more: Has) -> Both:
        return Both((scope_tree(self._names.tenant(scope.tenant), scope), filter_tree(filter), *more))

    def _nearest(self, embedding: Vector, options: SearchOptions) -> builtins.list[SearchHit]:
        if not self._engine.knows(len(embedding)):
            return []
        unit = direction(embedding)
        if unit is None:
            ids = self._first_with_vector(options)
        else:
            zeros = query_of(self._tree(options.scope, options.filter, Has(HAS_ZERO_VECTOR)))
            ids = self._engine.everything(zeros) + self._closest(pack(unit), len(embedding), options)
        stored = self._load(options.scope.tenant, list(dict.fromkeys(ids)), with_vector=True)
        pool = [
            each.entry
            for each in stored
            if options.filter.admits(options.scope, each.entry)
            and each.entry.embedding is not None
            and len(each.entry.embedding) == len(embedding)
        ]
        return rank_by_closeness(embedding, pool, options.limit, include_embeddings=options.include_embeddings)

    def _first_with_vector(self, options: SearchOptions) -> builtins.list[str]:
        """What is closest to a zero vector: everything is, so the ids decide."""
        if options.filter.has_embedding is False:
            return []
        keys = self._scan(options.scope, replace(options.filter, has_embedding=True), "keys")
        return sorted(key[KEY_BYTES:].decode() for key in keys)[: options.limit]

    def _closest(self, unit: bytes, dimension: int, options: SearchOptions) -> builtins.list[str]:
        """The closest, and so many more that whatever ties with the last of them is among them."""
        query = query_of(self._tree(options.scope, options.filter))
        [total] = self._engine.count([query])
        limit = min(total, options.limit + max(50, options.limit // 2))
        while limit:
            exact = total <= BRUTE_FORCE
            hits = self._engine.nearest(query, unit, dimension, limit=limit, exact=exact).hits
            if limit == total or len(hits) < limit or _distance(hits[-1]) - _distance(hits[options.limit - 1]) > NEAR:
                return [id for id, _ in hits]
            limit = min(total, 2 * limit)
        return []

    def _holding(self, words: Sequence[str], options: SearchOptions) -> builtins.list[MemoryEntry]:
        query = f"({query_of(self._tree(options.scope, options.filter))}) {_with_word(words)}"
        found = self._engine.words(query, max(4 * options.limit, options.limit + 100))
        return self._admitted([id for id, _ in found.hits], options)

    def _frequencies(self, scope: Scope, words: Sequence[str], now: datetime) -> dict[str, int]:
        within = query_of(self._tree(scope, MemoryFilter(now=now)))
        return dict(zip(words, self._engine.count([f"({within}) {_with_word([word])}" for word in words]), strict=True))


def _with_word(words: Iterable[str]) -> str:
    """A query for what holds one of the words."""
    return f"@w:({'|'.join(dict.fromkeys(map(word_token, words)))})"


def _distance(hit: tuple[str, float | None]) -> float:
    return hit[1] or 0.0


def _change(tenant: str, change: Change, place: Callable[[bytes | str], int]) -> dict[str, Any]:
    """What `commit.lua` is told of one change; `place` puts a value among the arguments and says where."""
    before = None if change.old is None else change.old.entry
    told: dict[str, Any] = {
        "id": place(change.id),
        "version": "" if change.old is None else change.old.version.decode(),
        "forgets": change.forgets,
    }
    if change.new is None:
        return told
    row, removed = changed_row(tenant, before, change.new)
    told |= {
        "membership": row.membership,
        "seq": change.new.seq,
        "record": {name: place(value) for name, value in row.record.items()},
        "index": {name: place(value) for name, value in row.index.items()},
        "removed": removed,
        "past": [place(text_of_entry(each)) for each in change.past],
    }
    if change.new.expires_at is not None:
        micros = to_micros(change.new.expires_at)
        told |= {"expires": str(micros), "drop": str(-(-micros // 1_000))}
    return told
