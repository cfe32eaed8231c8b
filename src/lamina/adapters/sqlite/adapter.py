"""The adapter: each method of the port as one job for the threads that own the connections."""

from __future__ import annotations

import builtins
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from os import PathLike
from typing import Any, ClassVar, Final, TypeVar

from lamina.adapters._shared.entry_text import pack
from lamina.adapters._shared.options import DEFAULT_TABLE
from lamina.adapters.sqlite import checking, reading, repairing, twins, words
from lamina.adapters.sqlite.kept_codes import KEPT_BYTES, Kept
from lamina.adapters.sqlite.migrations import MIGRATIONS, CollectionTables, Migration
from lamina.adapters.sqlite.partitions import resolve
from lamina.adapters.sqlite.tables import Collection, Tables
from lamina.adapters.sqlite.writing import Writing, store_together
from lamina.databases.sqlite.database import BUSY_TIMEOUT, READERS, Handle, SqliteDatabase, database_of
from lamina.databases.sqlite.failures import BACKEND
from lamina.databases.sqlite.size import Compaction
from lamina.databases.sqlite.workers import Joint
from lamina.domain.filters import MemoryFilter
from lamina.domain.lexical import query_terms
from lamina.domain.memory import UNSET, Layer, MemoryEntry, Unset, Vector
from lamina.domain.scope import Scope
from lamina.domain.validation import check_vector, check_whole_number
from lamina.errors import (
    AdapterError,
    Conflict,
    StoreDamaged,
)
from lamina.ports.memory_adapter import (
    BothLegs,
    Capability,
    ListOptions,
    MemoryAdapter,
    SearchHit,
    SearchOptions,
    TermStatistics,
    Update,
    check_all_written,
    check_digest,
    check_meta,
    check_updated,
)

__all__ = ["SqliteAdapter"]

T = TypeVar("T")

MOST_KEPT_BYTES: Final = 2**40


class SqliteAdapter(MemoryAdapter):
    """Memories in one SQLite file, on the standard library alone.

    Args:
        path: The file, made with its folders if there is none; a relative one is taken from where
            the process is now. `:memory:` keeps all in this process's memory, until `close`.
        database: In place of `path` and what follows `table`: a database that others use too. It stays
            open as long as one of its users does.
        table: Prefix of the collection's tables; one file holds several collections.
        busy_timeout: How long, in seconds, a call waits for another process that is writing.
        readers: How many threads read beside the one that writes; with 0 that one does both.
        backup: Whether the file is copied beside itself before a newer Lamina changes its layout.
        kept_bytes: How much memory vectors and words that were searched may take, vectors in eight bits per number,
            so that the next search need not read them; with 0 none are kept.

    Any number of tasks, event loops, threads and processes may use one file at the same time. A
    process that was forked off must call `initialize` itself.
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
    _migrations: ClassVar[tuple[Migration, ...]] = MIGRATIONS

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        *,
        database: SqliteDatabase | None = None,
        table: str = DEFAULT_TABLE,
        busy_timeout: float = BUSY_TIMEOUT,
        readers: int = READERS,
        backup: bool = True,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        self._kept = Kept(check_whole_number("kept_bytes", kept_bytes, 0, MOST_KEPT_BYTES))
        self._database = database_of(path, database, busy_timeout=busy_timeout, readers=readers, backup=backup)
        self._tables = Tables(table)
        self._handle: Handle | None = None
        self._changing = threading.Lock()
        if self._database.is_in_memory:  # this one forgets; the class's own declaration stays as it is
            vars(self)["capabilities"] = type(self).capabilities - {Capability.PERSISTENCE}

    async def initialize(self) -> None:
        with self._changing:
            if self._handle is None or not self._handle.is_open:
                self._handle = self._database.join(CollectionTables(self._tables, self._migrations))
            handle = self._handle
        await handle.prepare()

    async def close(self) -> None:
        with self._changing:
            handle, self._handle = self._handle, None
        self._kept.clear()
        if handle is not None:
            await handle.leave()

    async def store(self, scope: Scope, entry: MemoryEntry) -> None:
        await self._write(lambda writing: writing.store(scope, [entry], if_new=False))

    async def store_many(
        self,
        scope: Scope,
        entries: Sequence[MemoryEntry],
        *,
        if_new: bool = False,
        expected_meta: Mapping[str, str | None] | None = None,
        updates: Sequence[Update] = (),
    ) -> builtins.list[MemoryEntry | None]:
        if not updates:
            expected = expected_meta or {}
            kind = (self, scope, if_new, tuple(sorted(expected.items())))
            work = self._together(store_together, scope=scope, if_new=if_new, expected_meta=expected)
            return await self._opened().write(Joint(kind, entries, work))

        def change(writing: Writing) -> builtins.list[MemoryEntry | None]:
            writing.expect_meta(scope, expected_meta or {})
            found = writing.store(scope, entries, if_new=if_new)
            check_all_written(found)
            for each in updates:
                check_updated(each.id, writing.update(scope, each.id, each.changes, each.expected_revision))
            return found

        return await self._write(change)

    async def get(self, scope: Scope, id: str) -> MemoryEntry | None:
        return await self._read(lambda collection: reading.get(collection, scope, id))

    async def update(
        self, scope: Scope, id: str, updates: Mapping[str, Any], *, expected_revision: int | None = None
    ) -> bool:
        return await self._write(lambda writing: writing.update(scope, id, updates, expected_revision))

    async def update_many(
        self, scope: Scope, updates: Sequence[Update], *, expected_meta: Mapping[str, str | None] | None = None
    ) -> builtins.list[bool]:
        def change(writing: Writing) -> builtins.list[bool]:
            writing.expect_meta(scope, expected_meta or {})
            return [_was_updated(writing, scope, update) for update in updates]

        return await self._write(change)

    async def delete(self, scope: Scope, id: str, *, expected_revision: int | None = None) -> bool:
        return await self._write(lambda writing: writing.delete(scope, id, expected_revision=expected_revision))

    async def delete_many(
        self, scope: Scope, ids: Sequence[str], *, filter: MemoryFilter | None = None
    ) -> builtins.list[bool]:
        return await self._write(lambda writing: [writing.delete(scope, id, filter) for id in ids])

    async def touch(self, scope: Scope, ids: Sequence[str], now: datetime) -> None:
        await self._write(lambda writing: writing.touch(scope, ids, now))

    async def drop_embeddings(self, scope: Scope) -> int:
        return await self._write(lambda writing: writing.drop_embeddings(scope))

    async def list(self, options: ListOptions) -> builtins.list[MemoryEntry]:
        return await self._read(lambda collection: reading.list_entries(collection, options))

    async def list_each(self, pages: Sequence[ListOptions]) -> builtins.list[builtins.list[MemoryEntry]]:
        return await self._read(lambda collection: [reading.list_entries(collection, options) for options in pages])

    async def count(self, scope: Scope, filter: MemoryFilter) -> int:
        def work(collection: Collection) -> int:
            reach = resolve(collection, scope, filter.layers)
            return reading.count(collection, reach, filter)

        return await self._read(work)

    async def search_by_vector(self, embedding: Vector, options: SearchOptions) -> builtins.list[SearchHit]:
        check_vector(embedding)
        packed = pack(embedding)

        def work(collection: Collection) -> builtins.list[SearchHit]:
            from lamina.adapters.sqlite.both_legs import are_comparable  # here, because numpy takes long to import
            from lamina.adapters.sqlite.nearest import nearest

            reach = resolve(collection, options.scope, options.filter.layers)
            if not are_comparable(collection, packed, options.scope, reach):
                return []
            return _hits(collection, nearest(collection, packed, reach, options), options)

        return await self._read(work)

    async def search_by_text(self, query: str, options: SearchOptions) -> builtins.list[SearchHit]:
        terms = query_terms(query)
        if not terms:
            return []

        def work(collection: Collection) -> builtins.list[SearchHit]:
            reach = resolve(collection, options.scope, options.filter.layers)
            return _hits(collection, words.matching(collection, terms, reach, options), options)

        return await self._read(work)

    async def search_both(
        self, embedding: Vector | None, query: str | None, options: SearchOptions, *, meta_key: str
    ) -> BothLegs | None:
        if embedding is not None:
            check_vector(embedding)
        packed = None if embedding is None else pack(embedding)
        terms = [] if query is None else query_terms(query)

        def work(collection: Collection) -> BothLegs | None:
            from lamina.adapters.sqlite.both_legs import search_both  # here, because numpy takes long to import

            return search_both(collection, packed, terms, options, meta_key=meta_key)

        return await self._read(work)

    async def find_duplicate(self, scope: Scope, layer: Layer, digest: str, now: datetime) -> MemoryEntry | None:
        check_digest(digest)

        def work(collection: Collection) -> MemoryEntry | None:
            reach = resolve(collection, scope, frozenset({layer}))
            key = reading.find_duplicate(collection, reach, digest, now)
            return None if key is None else reading.entries_by_key(collection, [key], embeddings=True)[key]

        return await self._read(work)

    async def find_twins(self, scope: Scope, entries: Sequence[MemoryEntry]) -> builtins.list[MemoryEntry | None]:
        kind = (self, scope)
        return await self._opened().read(Joint(kind, entries, self._together(twins.find_twins_together, scope=scope)))

    async def term_statistics(self, scope: Scope, terms: Sequence[str], now: datetime) -> TermStatistics:
        def work(collection: Collection) -> TermStatistics:
            reach = resolve(collection, scope, None)
            return words.statistics(collection, reach, terms, now)

        return await self._read(work)

    async def history(self, scope: Scope, id: str) -> builtins.list[MemoryEntry]:
        return await self._read(lambda collection: reading.history(collection, scope, id))

    async def load_meta(self, scope: Scope, key: str) -> str | None:
        return await self._read(lambda collection: reading.meta_value(collection, scope, key))

    async def save_meta(
        self, scope: Scope, key: str, value: str, now: datetime, *, expected: str | Unset | None = UNSET
    ) -> None:
        check_meta(key, value)
        wanted = {} if isinstance(expected, Unset) else {key: expected}

        def change(writing: Writing) -> None:
            writing.expect_meta(scope, wanted)
            writing.save_meta(scope, key, value, now)

        await self._write(change)

    async def save_meta_many(self, scope: Scope, keys: Sequence[str], value: str, now: datetime) -> None:
        for key in keys:
            check_meta(key, value)
        await self._write(lambda writing: writing.save_meta_many(scope, keys, value, now))

    async def check(self) -> builtins.list[str]:
        """Look the whole file over; what is wrong, in plain words. Empty if it is sound.

        Reads everything, so it takes about a second for 10,000 memories; others may read and write meanwhile.
        """
        try:
            return await self._change(checking.find_text_damage) + await self._read(checking.find_contradictions)
        except StoreDamaged as error:
            return [error.problem]

    async def repair(self) -> builtins.list[str]:
        """Make anew what can be made of the rows: text index, blocks and counts of vectors, digests; what was done.

        Content that can be read is never dropped; what it cannot mend, `check` still finds. In one transaction.

        Raises:
            StoreDamaged: pages of the file contradict each other: restore a backup.
        """
        return await self._change(repairing.repair)

    async def scrub(self) -> None:
        """See to it that nothing that was deleted is left in the file or its log.

        Rows, vectors and free pages are overwritten at once. What may be left are words in the text
        index, until its parts are merged (before SQLite 3.42), and the log, until it is emptied.
        Copies that were made of the file, the one before a migration among them, are not touched.

        Raises:
            AdapterUnavailable: another process reads on, so that the log could not be emptied; try again.
        """
        await self._change(lambda collection: collection.execute("INSERT INTO {text} ({text}) VALUES ('optimize')"))
        await self._opened().empty_log()

    async def vacuum(self) -> Compaction:
        """Give back the room that deleted memories have left in the file, and merge the parts of its text indexes.

        It is the whole file that is written anew, with what others keep in it: threads, packs, documents and all
        tenants. Other calls wait meanwhile, about a second for 100 MB. It takes twice as much disk as the file for
        that long: once beside the file, and once in the folder for temporary files.

        Raises:
            AdapterUnavailable: another process writes, or reads on, for longer than `busy_timeout`, or there is no
                room for the copy; what is in the file is as it was.
        """
        return await self._opened().compact()

    def _opened(self) -> Handle:
        handle = self._handle
        if handle is None or not handle.is_open:
            raise AdapterError(self.name, f"{self._database} is not open", "Call `await adapter.initialize()` first.")
        return handle

    async def _read(self, work: Callable[[Collection], T]) -> T:
        return await self._opened().read(self._on_collection(work))

    async def _change(self, work: Callable[[Collection], T]) -> T:
        return await self._opened().write(self._on_collection(work))

    def _on_collection(self, work: Callable[[Collection], T]) -> Callable[[sqlite3.Connection], T]:
        return lambda connection: work(Collection(connection, self._tables, self._kept))

    def _together(
        self, work: Callable[..., builtins.list[T]], **bound: Any
    ) -> Callable[[sqlite3.Connection, Sequence[Any]], builtins.list[T]]:
        """The work, on this collection, for what several callers have given."""
        return lambda connection, given: work(Collection(connection, self._tables, self._kept), given, **bound)

    async def _write(self, change: Callable[[Writing], T]) -> T:
        def work(collection: Collection) -> T:
            writing = Writing(collection)
            outcome = change(writing)
            writing.flush()
            return outcome

        return await self._change(work)


def _hits(collection: Collection, ranked: Sequence[tuple[int, float]], options: SearchOptions) -> list[SearchHit]:
    keys = [key for key, _ in ranked]
    entries = reading.entries_by_key(collection, keys, embeddings=options.include_embeddings)
    return [SearchHit(entries[key], similarity) for key, similarity in ranked]


def _was_updated(writing: Writing, scope: Scope, update: Update) -> bool:
    try:
        return writing.update(scope, update.id, update.changes, update.expected_revision)
    except Conflict:
        return False
