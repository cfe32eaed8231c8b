"""The memory engine: one class over storing, recalling, fading and forgetting."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from os import PathLike
from typing import Any, Self, Unpack

from lamina.domain.filters import Expiry
from lamina.domain.memory import UNSET, Layer, MemoryEntry, Trust, Unset
from lamina.domain.recall import Cutoff, RecallResult, Results, SearchMode
from lamina.domain.validation import check_whole_number
from lamina.errors import InvalidInput, InvalidType
from lamina.memory.access import AccessCounters
from lamina.memory.backend import MemoryBackend
from lamina.memory.earlier import MigrationReport
from lamina.memory.inputs import Filters, MemoryInput, Relations, read_input
from lamina.memory.migration import migrate
from lamina.memory.reading import listing
from lamina.memory.recall import Recaller, recall_request
from lamina.memory.runtime import Runtime
from lamina.memory.statistics import EngineStats, engine_stats
from lamina.memory.superseding import Superseder
from lamina.memory.upkeep import Upkeep
from lamina.memory.walking import walk
from lamina.memory.working import WorkingMemory
from lamina.memory.writing import RestoreReport, Writer
from lamina.ports.embedder import Embedder, Fingerprint
from lamina.ports.memory_adapter import MemoryAdapter
from lamina.ports.memory_requests import MAX_LIMIT

__all__ = ["MemoryEngine"]


class MemoryEngine(Upkeep):
    """Stores, recalls and forgets the memories of one tenant.

    Make one with `create_memory_engine`; use it as an async context manager, or call `close`. All coroutines may run
    side by side. Reads see the memories that are live: an expired one is as absent as a deleted one. With an `owner`,
    a read sees that owner's own and the tenant's shared layers (organizational, global); without, all owners'.
    """

    def __init__(self, runtime: Runtime, working: WorkingMemory, *, owned: MemoryBackend | None = None) -> None:
        """`owned` is what the engine itself opens and closes; without it, that is its maker's to do."""
        self.working, self._owned = working, owned
        super().__init__(runtime)
        self._writer = Writer(runtime)
        self._superseder = Superseder(runtime)
        self._accesses = AccessCounters(runtime)
        self._recaller = Recaller(runtime, self._accesses)

    @property
    def tenant(self) -> str:
        """The tenant that every call is bound to."""
        return self._runtime.defaults.tenant

    @property
    def adapter(self) -> MemoryAdapter:
        """The store of all layers but, by default, the working one."""
        return self._runtime.adapter

    @property
    def embedder(self) -> Embedder | None:
        """What makes the vectors, if anything does."""
        return self._runtime.space.embedder

    async def initialize(self) -> None:
        """Open the stores, and purge what has expired. Idempotent."""
        if self._owned is not None:
            await self._owned.initialize()
        await self._runtime.space.load()
        if self._runtime.earlier is not None:
            await self._runtime.earlier.check()
        await self._forgetter.purge_now_and_then()

    async def close(self) -> None:
        """Write pending access counts, and let go of the stores and the embedder. Idempotent."""
        await self._accesses.close()
        if self._owned is not None:
            await self._owned.close()

    async def __aenter__(self) -> Self:
        await self.initialize()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def store(
        self,
        content: str | Mapping[str, Any] | MemoryInput,
        *,
        layer: Layer | str | None = None,
        owner: str | None = None,
        namespace: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        relevance: float | None = None,
        confidence: float | None = None,
        ttl: float | timedelta | Unset | None = UNSET,
        id: str | None = None,
        occurred_at: datetime | str | None = None,
        valid_until: datetime | str | None = None,
        source: str | None = None,
        trust: Trust | str | None = None,
        **relations: Unpack[Relations],
    ) -> str | None:
        """Remember a text and return its id; None if the `on_before_store` hook vetoed it.

        A live memory that says the same (same owner, namespace and layer; white space and Unicode form do not count) is
        confirmed in place of storing a second one: its id is returned, its relevance becomes the one given here or 1.0,
        and tags and metadata are united. `ttl` in seconds counts from now: None means never, left out means the layer's
        default. An `id` of the caller's own makes a repeated call harmless. If the embedder fails, the memory is kept
        without a vector and found by keyword; `reembed_missing` repairs that.

        What `supersedes` names, memories of the same owner, is kept and no longer recalled: see
        `supersede`. One that was superseded and is said again, without an `id`, holds again.

        Raises:
            InvalidInput: a field has a value that cannot be stored; nothing was written.
            InvalidType: a field has a type that cannot be stored; nothing was written.
            Conflict: the given id names a memory that says something else, or a memory to supersede is
                superseded by another one already.
        """
        if not isinstance(content, str):
            return (await self.store_many([content]))[0]
        given = MemoryInput(
            content=content,
            layer=layer,
            owner=owner,
            namespace=namespace,
            tags=tags,
            metadata=metadata,
            relevance=relevance,
            confidence=confidence,
            ttl=ttl,
            id=id,
            occurred_at=occurred_at,
            valid_until=valid_until,
            source=source,
            trust=trust,
            **relations,
        )
        return (await self.store_many([given]))[0]

    async def store_many(self, items: Iterable[str | Mapping[str, Any] | MemoryInput]) -> list[str | None]:
        """Remember many texts: one batch of embeddings and one of writing; ids in order, None for vetoed ones.

        The rules are those of `store`, item by item. If one item cannot be stored, none is.
        """
        if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
            raise InvalidType("items", "must be a list", "Use store for a single memory.")
        ids = await self._writer.store_many([read_input(item) for item in items])
        await self._forgetter.purge_now_and_then()
        return ids

    async def update(
        self, id: str, *, owner: str | None = None, expected_revision: int | None = None, **changes: Any
    ) -> MemoryEntry:
        """Edit a memory's content, layer, tags, metadata, relevance, confidence, ttl or provenance; returns it.

        `expected_revision` makes the edit fail if somebody else changed the memory since it was
        read. New content is guarded by `on_before_store` and embedded anew.

        Raises:
            MemoryNotFound: there is no live memory of this id (and owner).
            Conflict: the memory has another revision than the expected one.
            InvalidInput: a field cannot be edited, has an impossible value, or the hook vetoed the edit.
        """
        return await self._writer.update(id, changes, owner=owner, expected_revision=expected_revision)

    async def supersede(
        self, old_id: str, *, by: str, reason: str | None = None, owner: str | None = None
    ) -> MemoryEntry:
        """Say that the memory `by` holds in place of the old one; the old one, as it is now.

        The old one gets `superseded_by`, and as `valid_until` when the new one came to hold (its
        `occurred_at`, else when it was stored), unless it has an earlier one; `metadata["superseded"]`
        has the reason. Both are changed in one transaction, where the adapter has some. Recalls leave it
        out from now on. When the new one is forgotten, what it superseded goes to whatever supersedes
        that, or holds again as before.

        Raises:
            MemoryNotFound: there is no live old memory of this id (and owner).
            InvalidInput: `by` is the same, or names none of its owner, or is superseded by the old one, or lies
                outside the shared layers, and the old one in one; nothing was written.
            Conflict: the old one is superseded by a third.
        """
        return await self._superseder.supersede(old_id, by=by, reason=reason, owner=owner)

    async def restore(
        self,
        entries: Sequence[MemoryEntry],
        *,
        replace: bool = False,
        fingerprint: Fingerprint | None = None,
        revive: bool = False,
    ) -> RestoreReport:
        """Write entries exactly as they are, ids, times and counts included: for imports and moves.

        They become this tenant's. Ids that exist are skipped, or overwritten with `replace`. Hooks do not run, and
        nothing is embedded: see `reembed_missing`. `fingerprint` says which model made the entries' vectors (None: the
        store's own); if that is another one than the store's, they are left out. What was stored before it was
        deleted, or its owner erased, is left out too, unless `revive` asks for it.
        """
        return await self._writer.restore(entries, replace=replace, fingerprint=fingerprint, revive=revive)

    async def migrate_v1(self, path: str | PathLike[str] | None = None) -> MigrationReport:
        """Copy the memories of version 1 from an SQLite file, by default that of `v1_path`; it is not changed.

        `path` may also be a `postgresql://` URL. They keep their ids, become this tenant's, and say `v1:` and their
        table as `source`. Those whose id exists are skipped, so doing it twice changes nothing; rows that cannot be
        stored are reported. Hooks do not run, nothing is embedded, and recalls no longer look into the file.

        Raises:
            InvalidInput: there is no such file, or it holds no memories of version 1.
            AdapterError: the file cannot be read.
        """
        return await migrate(self._runtime, self._writer, path)

    async def get(self, id: str, *, owner: str | None = None, namespace: str | None = None) -> MemoryEntry | None:
        """The live memory of this id, with its embedding, or None."""
        found = await self._runtime.find(self._runtime.read_scope(owner, None, namespace), id)
        return None if found is None else found[1]

    async def history(self, id: str, *, owner: str | None = None) -> list[MemoryEntry]:
        """What the memory was before each edit, oldest first.

        Raises:
            Unsupported: the adapter keeps no history.
        """
        scope = self._runtime.read_scope(owner, None, None)
        found = await self._runtime.find(scope, id)
        return [] if found is None else await found[0].history(scope, id)

    async def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        offset: int = 0,
        mode: SearchMode | str | None = None,
        min_score: float | None = None,
        rerank: str | None = None,
        min_match: Cutoff | None = None,
        touch: bool = True,
        explain: bool = False,
        **filters: Unpack[Filters],
    ) -> Results[RecallResult]:
        """The memories that answer the query best, best first, each with its score broken down.

        What is superseded or no longer valid is left out, unless `include_superseded` asks for it.
        `min_score` (inclusive) is on the score, `min_match` on the breakdown's `match`: with "auto" nothing comes if
        nothing matches as far as the embedder can tell, else what matches half as well as the best, or better; 0
        drops nothing, None takes the setting. For the filters see `Filters`. `rerank` names what reads the best
        candidates again, together with the query, such as `cross-encoder`; `none` overrides the settings. The results
        count as accessed unless `touch` is off. `explain` adds to each result its place in both legs and its components
        times their weights, to the list what was dropped and why. If a leg or the reranker cannot answer, the others
        do; the list's `degraded` says so.

        Raises:
            InvalidInput: the query is blank, or an argument is out of range.
            Unsupported: the backend lacks a search and the scope is too large to scan in its place.
        """
        request = recall_request(
            self._runtime,
            query,
            filters,
            mode=mode,
            limit=limit,
            offset=offset,
            min_score=min_score,
            rerank=rerank,
            min_match=min_match,
            touch=touch,
            explain=explain,
        )
        results = await self._recaller.recall(request)
        await self._forgetter.purge_now_and_then()
        return results

    async def query(
        self,
        query: str | None = None,
        *,
        limit: int = 20,
        offset: int = 0,
        mode: SearchMode | str | None = None,
        min_score: float | None = None,
        touch: bool = True,
        **filters: Unpack[Filters],
    ) -> Results[MemoryEntry]:
        """Bare memories: with a text, those that `recall` finds; without, a listing.

        A listing is by stored relevance, best first, then newest first, then id; it counts no accesses.
        """
        if query is not None and not isinstance(query, str):
            raise InvalidType("query", f"must be text, not {type(query).__name__}", "Give a str, or None to list.")
        if query is not None and query.strip():
            recalled = await self.recall(
                query, limit=limit, offset=offset, mode=mode, min_score=min_score, touch=touch, **filters
            )
            return Results([result.entry for result in recalled], degraded=recalled.degraded)
        if min_score is not None:
            raise InvalidInput("min_score", "needs a query text", "Use min_relevance for a listing.")
        scope, filter = self._runtime.read(self._runtime.clock(), filters)
        page = await listing(
            self._runtime.stores(filter.layers),
            scope,
            filter,
            limit=check_whole_number("limit", limit, 1, MAX_LIMIT),
            offset=check_whole_number("offset", offset, 0, MAX_LIMIT),
        )
        return Results(page)

    async def scan(
        self,
        *,
        include_expired: bool = False,
        include_embeddings: bool = False,
        after: tuple[Layer, int] | None = None,
        **filters: Unpack[Filters],
    ) -> AsyncIterator[MemoryEntry]:
        """Every memory that the filters admit, in insertion order; with `after` those behind this layer and `seq`."""
        scope, filter = self._runtime.read(self._runtime.clock(), filters)
        filter = replace(filter, expiry=Expiry.ANY) if include_expired else filter
        async for page in walk(self._runtime, scope, filter, include_embeddings=include_embeddings, after=after):
            for entry in page:
                yield entry

    async def count(self, **filters: Unpack[Filters]) -> int:
        """How many memories the filters admit."""
        scope, filter = self._runtime.read(self._runtime.clock(), filters)
        return await self._forgetter.count(scope, filter)

    async def stats(self) -> EngineStats:
        """Counts, and the state of the vectors."""
        return await engine_stats(self._runtime)
