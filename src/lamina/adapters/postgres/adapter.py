"""The adapter: each method of the port as one transaction."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, ClassVar, TypeVar

from lamina.adapters._shared.draft import Draft
from lamina.adapters._shared.options import DEFAULT_TABLE
from lamina.adapters.postgres import checking, reading, words, writing
from lamina.adapters.postgres.analyzer import follow_analyzer
from lamina.adapters.postgres.pgvector import Pgvector, make_index, prepare_pgvector
from lamina.adapters.postgres.tables import TENANT, Collection, collection_of
from lamina.databases.postgres.database import (
    CONNECT_TIMEOUT,
    CONNECTIONS,
    STATEMENT_TIMEOUT,
    Handle,
    PostgresDatabase,
    database_of,
)
from lamina.databases.postgres.failures import BACKEND
from lamina.databases.postgres.schema import Session
from lamina.domain.filters import MemoryFilter
from lamina.domain.lexical import query_terms
from lamina.domain.memory import UNSET, Layer, MemoryEntry, Unset, Vector
from lamina.domain.scope import Scope
from lamina.domain.validation import check_entry, check_vector
from lamina.errors import AdapterError, Conflict, Unsupported
from lamina.ports.memory_adapter import (
    Capability,
    ListOptions,
    MemoryAdapter,
    SearchHit,
    SearchOptions,
    TermStatistics,
    Update,
    check_digest,
    check_in_scope,
    check_meta,
)

__all__ = ["PostgresAdapter"]

T = TypeVar("T")


class PostgresAdapter(MemoryAdapter):
    """Memories in a schema of a PostgreSQL database, 14 or newer, with pgvector if it is installed or can be.

    Without pgvector this instance does not declare `Capability.VECTOR` once it is initialised; vectors are kept
    all the same.

    Args:
        url: The database, as `PostgresDatabase` takes it.
        database: In place of `url` and of the limits: a database that others use too. It stays open as long as
            one of its users does.
        schema: Holds the tables; it is made if there is none.
        table: Name of the collection's table, with which those of the others begin; one schema holds several.
        connections: How many connections may be open at the same time; calls beyond that wait.
        connect_timeout: How long, in seconds, to wait for the server when one is made.
        statement_timeout: How long, in seconds, a statement may take, waiting for locks included.

    Any number of tasks, event loops, threads and processes may use one collection at the same time. Writers of one
    tenant take turns. A process that was forked off must call `initialize` itself.
    """

    name = BACKEND
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.VECTOR,
            Capability.TEXT,
            Capability.FILTER,
            Capability.COMPARE_AND_SET,
            Capability.TRANSACTIONS,
            Capability.HISTORY,
            Capability.PERSISTENCE,
        }
    )

    def __init__(
        self,
        url: str | None = None,
        *,
        database: PostgresDatabase | None = None,
        schema: str = "lamina",
        table: str = DEFAULT_TABLE,
        connections: int = CONNECTIONS,
        connect_timeout: float = CONNECT_TIMEOUT,
        statement_timeout: float = STATEMENT_TIMEOUT,
    ) -> None:
        self._database = database_of(
            url,
            database,
            connections=connections,
            connect_timeout=connect_timeout,
            statement_timeout=statement_timeout,
        )
        self._table = table
        self._component = collection_of(schema, table)
        self._handle: Handle | None = None
        self._pgvector: Pgvector | None = None
        self._indexed: set[int] = set()
        """Lengths of vectors whose index was seen to."""
        self._changing = threading.Lock()

    async def initialize(self) -> None:
        with self._changing:
            if self._handle is None or not self._handle.is_open:
                self._handle = self._database.join(self._component)
            handle = self._handle
        await handle.prepare()
        self._pgvector = await handle.write(self._make_ready)
        declared = type(self).capabilities
        if self._pgvector is None:  # the class's own declaration stays as it is
            declared -= {Capability.VECTOR}
        vars(self)["capabilities"] = declared

    async def close(self) -> None:
        with self._changing:
            handle, self._handle = self._handle, None
        if handle is not None:
            await handle.leave()

    async def store(self, scope: Scope, entry: MemoryEntry) -> None:
        await self.store_many(scope, [entry])

    async def store_many(
        self,
        scope: Scope,
        entries: Sequence[MemoryEntry],
        *,
        if_new: bool = False,
        expected_meta: Mapping[str, str | None] | None = None,
        updates: Sequence[Update] = (),
    ) -> builtins.list[MemoryEntry | None]:
        for entry in entries:
            check_entry(entry)
            check_in_scope(scope, entry)

        def store(draft: Draft) -> builtins.list[MemoryEntry | None]:
            return draft.store_all(scope, entries, if_new=if_new, updates=updates)

        def work(collection: Collection) -> builtins.list[MemoryEntry | None]:
            ids = [entry.id for entry in entries] + [update.id for update in updates]
            alike = entries if if_new else ()
            return writing.change(collection, ids, store, expected=expected_meta, alike=alike)

        found = await self._write(scope, work)
        await self._see_to_index(entry.embedding for entry in entries)
        return found

    async def get(self, scope: Scope, id: str) -> MemoryEntry | None:
        return await self._read(scope, lambda collection: reading.get(collection, scope, id))

    async def update(
        self, scope: Scope, id: str, updates: Mapping[str, Any], *, expected_revision: int | None = None
    ) -> bool:
        update = Update(id, updates, expected_revision)
        return await self._update(scope, [update], lambda draft: draft.update(scope, update))

    async def update_many(
        self, scope: Scope, updates: Sequence[Update], *, expected_meta: Mapping[str, str | None] | None = None
    ) -> builtins.list[bool]:
        def change(draft: Draft) -> builtins.list[bool]:
            return [_was_updated(draft, scope, update) for update in updates]

        return await self._update(scope, updates, change, expected_meta)

    async def delete(self, scope: Scope, id: str, *, expected_revision: int | None = None) -> bool:
        def delete(draft: Draft) -> bool:
            return draft.delete(scope, id, expected_revision=expected_revision)

        return await self._write(scope, lambda collection: writing.change(collection, [id], delete, embeddings=False))

    async def delete_many(
        self, scope: Scope, ids: Sequence[str], *, filter: MemoryFilter | None = None
    ) -> builtins.list[bool]:
        def delete(draft: Draft) -> builtins.list[bool]:
            return [draft.delete(scope, id, filter) for id in ids]

        embeddings = filter is not None and filter.has_embedding is not None
        return await self._write(
            scope, lambda collection: writing.change(collection, ids, delete, embeddings=embeddings)
        )

    async def touch(self, scope: Scope, ids: Sequence[str], now: datetime) -> None:
        await self._write(scope, lambda collection: writing.touch(collection, scope, ids, now), in_turn=False)

    async def drop_embeddings(self, scope: Scope) -> int:
        return await self._write(scope, lambda collection: writing.drop_embeddings(collection, scope))

    async def list(self, options: ListOptions) -> builtins.list[MemoryEntry]:
        return await self._read(options.scope, lambda collection: reading.list_entries(collection, options))

    async def count(self, scope: Scope, filter: MemoryFilter) -> int:
        return await self._read(scope, lambda collection: reading.count(collection, scope, filter))

    async def search_by_vector(self, embedding: Vector, options: SearchOptions) -> builtins.list[SearchHit]:
        pgvector = self._pgvector
        if Capability.VECTOR not in self.capabilities:
            raise Unsupported(f"The {self.name} adapter", Capability.VECTOR, "Install pgvector in the database.")
        check_vector(embedding)

        def work(collection: Collection) -> builtins.list[SearchHit]:
            from lamina.adapters.postgres.nearest import nearest

            assert pgvector is not None  # noqa: S101 - or it would not be declared
            return nearest(collection, embedding, options, pgvector)

        return await self._read(options.scope, work)

    async def search_by_text(self, query: str, options: SearchOptions) -> builtins.list[SearchHit]:
        terms = query_terms(query)
        if not terms:
            return []
        return await self._read(options.scope, lambda collection: words.matching(collection, terms, options))

    async def find_duplicate(self, scope: Scope, layer: Layer, digest: str, now: datetime) -> MemoryEntry | None:
        check_digest(digest)
        wanted = bytes.fromhex(digest)
        return await self._read(
            scope, lambda collection: reading.find_duplicate(collection, scope, layer, wanted, now=now)
        )

    async def find_twins(self, scope: Scope, entries: Sequence[MemoryEntry]) -> builtins.list[MemoryEntry | None]:
        for entry in entries:
            check_entry(entry)
            check_in_scope(scope, entry)
        return await self._read(scope, lambda collection: reading.find_twins(collection, scope, entries))

    async def term_statistics(self, scope: Scope, terms: Sequence[str], now: datetime) -> TermStatistics:
        return await self._read(scope, lambda collection: words.statistics(collection, scope, terms, now))

    async def history(self, scope: Scope, id: str) -> builtins.list[MemoryEntry]:
        return await self._read(scope, lambda collection: reading.history(collection, scope, id))

    async def load_meta(self, scope: Scope, key: str) -> str | None:
        return await self._read(scope, lambda collection: reading.meta_value(collection, key))

    async def save_meta(
        self, scope: Scope, key: str, value: str, now: datetime, *, expected: str | Unset | None = UNSET
    ) -> None:
        check_meta(key, value)
        wanted = {} if isinstance(expected, Unset) else {key: expected}

        await self._write(scope, lambda collection: writing.save_meta(collection, key, value, expected=wanted, now=now))

    async def save_meta_many(self, scope: Scope, keys: Sequence[str], value: str, now: datetime) -> None:
        for key in keys:
            check_meta(key, value)
        await self._write(scope, lambda collection: writing.save_meta_many(collection, keys, value, now=now))

    async def check_tenant(self, tenant: str) -> builtins.list[str]:
        """Look one tenant's memories over; what is wrong, in plain words. Empty if they are sound. Reads everything."""
        return await self._read(Scope(tenant), checking.find_contradictions)

    async def repair_tenant(self, tenant: str) -> builtins.list[str]:
        """Make words and digests of one tenant's memories anew of their rows; what was done. Nothing is dropped."""
        return await self._write(Scope(tenant), checking.repair)

    async def scrub(self) -> None:
        """Let the server take what was deleted out of the tables of the schema (VACUUM).

        What archives of its log and backups hold stays there until they expire.

        Raises:
            AdapterError: the role may not; it has to own the tables.
        """
        await self._opened().vacuum()

    async def _update(
        self,
        scope: Scope,
        updates: Sequence[Update],
        change: Callable[[Draft], T],
        expected: Mapping[str, str | None] | None = None,
    ) -> T:
        vectors = [update.changes["embedding"] for update in updates if "embedding" in update.changes]

        def work(collection: Collection) -> T:
            ids = [update.id for update in updates]
            return writing.change(collection, ids, change, expected=expected, embeddings=bool(vectors))

        done = await self._write(scope, work)
        await self._see_to_index(vectors)
        return done

    def _make_ready(self, session: Session) -> Pgvector | None:
        follow_analyzer(session, self._table)
        return prepare_pgvector(session)

    async def _see_to_index(self, vectors: Iterable[Vector | None]) -> None:
        """Give lengths of vectors that were stored for the first time an index of their own.

        In a transaction of its own, because it waits for all that write vectors, of whatever tenant.
        """
        pgvector = self._pgvector
        if pgvector is None:
            return
        for length in {len(vector) for vector in vectors if vector is not None} - self._indexed:
            await self._opened().write(partial(make_index, table=self._table, pgvector=pgvector, dimensions=length))
            self._indexed.add(length)

    def _opened(self) -> Handle:
        handle = self._handle
        if handle is None or not handle.is_open:
            raise AdapterError(self.name, f"{self._database} is not open", "Call `await adapter.initialize()` first.")
        return handle

    async def _read(self, scope: Scope, work: Callable[[Collection], T]) -> T:
        job = _of_tenant(scope.tenant, work)
        return await self._opened().read(job, settings={TENANT: scope.tenant})

    async def _write(self, scope: Scope, work: Callable[[Collection], T], *, in_turn: bool = True) -> T:
        job = _of_tenant(scope.tenant, work)
        lane = scope.tenant if in_turn else None
        return await self._opened().write(job, lane, settings={TENANT: scope.tenant})


def _of_tenant(tenant: str, work: Callable[[Collection], T]) -> Callable[[Session], T]:
    return lambda session: work(Collection(session, tenant))


def _was_updated(draft: Draft, scope: Scope, update: Update) -> bool:
    try:
        return draft.update(scope, update)
    except Conflict:
        return False
