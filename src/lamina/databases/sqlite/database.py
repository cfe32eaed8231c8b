"""One SQLite file, opened once and shared by all that keep something in it."""

from __future__ import annotations

import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Final, Self, TypeVar

from lamina.databases.sqlite.components import Component
from lamina.databases.sqlite.connection import Location, connect, create_private, inspect, locate
from lamina.databases.sqlite.failures import BACKEND
from lamina.databases.sqlite.opened_file import OpenedFile
from lamina.databases.sqlite.size import Compaction, compact, size_bytes
from lamina.databases.sqlite.workers import Joint, Work, Workers
from lamina.errors import AdapterUnavailable, ConfigError

__all__ = ["BUSY_TIMEOUT", "READERS", "Handle", "SqliteDatabase", "database_of"]

G = TypeVar("G")
T = TypeVar("T")

BUSY_TIMEOUT: Final = 30.0
"""Seconds."""

READERS: Final = 2
MAX_READERS: Final = 64
MAX_TIMEOUT: Final = 86400


class SqliteDatabase:
    """One file with one writing thread and several reading ones, for any number of users.

    Memories, conversations and documents that share it are written in the same order, by one
    connection. It is opened with its first user and closed with its last; a host that called `open`
    is a user too, until `close`.

    Args:
        path: The file, made with its folders if there is none; a relative one is taken from where
            the process is now. `:memory:` keeps all in this process's memory, until it is closed.
        busy_timeout: How long, in seconds, a call waits for another process that is writing.
        readers: How many threads read beside the one that writes; with 0 that one does both.
        backup: Whether the file is copied beside itself before a newer Lamina changes its layout.

    Any number of tasks, event loops, threads and processes may use one file at the same time. In a
    process that was forked off, all users open it anew.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        busy_timeout: float = BUSY_TIMEOUT,
        readers: int = READERS,
        backup: bool = True,
    ) -> None:
        _check_number("busy_timeout", busy_timeout, MAX_TIMEOUT)
        _check_number("readers", readers, MAX_READERS)
        self._location = locate(path, float(busy_timeout))
        self._readers = 0 if self.is_in_memory else int(readers)
        self._backup = backup
        self._workers: Workers | None = None
        self._users: weakref.WeakSet[Handle] = weakref.WeakSet()
        self._own: Handle | None = None
        self._changing = threading.Lock()

    def __str__(self) -> str:
        """Where it is."""
        return str(self._location)

    @property
    def is_in_memory(self) -> bool:
        """Whether it forgets all when it is closed."""
        return self._location.path is None

    async def open(self) -> None:
        """Open the file, and keep it open until `close`. Idempotent.

        Raises:
            AdapterUnavailable: it is locked, or there is no space left; trying again may help.
            StoreDamaged: it is foreign or damaged.
            AdapterError: it may not be written, or anything else.
        """
        if self._own is None or not self._own.is_open:
            self._own = self.join(None)
        await self._own.prepare()

    async def close(self) -> None:
        """Stop being a user of it; closes the file if there is no other. Idempotent."""
        own, self._own = self._own, None
        if own is not None:
            await own.leave()

    async def __aenter__(self) -> Self:
        """Open it."""
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop being a user of it."""
        await self.close()

    def join(self, component: Component | None) -> Handle:
        """Become a user with these tables, or with none. Call `prepare` of what is returned, and `leave` at the end."""
        with self._changing:
            if self._workers is None or not self._workers.are_of_this_process:
                self._workers = self._start(component)
                self._users = weakref.WeakSet()
            handle = Handle(self, self._workers, component)
            self._users.add(handle)
        return handle

    async def let_go(self, handle: Handle) -> None:
        """Forget this user; the last one closes the file."""
        with self._changing:
            self._users.discard(handle)
            workers = self._workers
            if workers is None or self._users or not workers.are_of_this_process:
                return
            self._workers = None
        self._ending.detach()
        await workers.stop()

    def prepare(self, component: Component, connection: sqlite3.Connection) -> None:
        """Bring the component's tables up to date; run by the thread that writes, in no transaction."""
        component.migrate(connection, self._location, backup=self._backup)

    def empty_log(self, connection: sqlite3.Connection) -> None:
        """Write the log into the file and cut it to nothing; run by the thread that writes, in no transaction.

        Raises:
            AdapterUnavailable: another process reads on.
        """
        deadline = time.monotonic() + self._location.busy_timeout
        while True:
            (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not is_busy:
                return
            if time.monotonic() >= deadline:
                remedy = "Try again when no other process reads for a moment."
                raise AdapterUnavailable(BACKEND, f"the log of {self} is still read by another process", remedy)
            time.sleep(0.01)

    def compact(self, connection: sqlite3.Connection) -> Compaction:
        """Give back what is free in the file; run by the thread that writes, in no transaction.

        Raises:
            AdapterUnavailable: another process writes, or reads on.
        """
        before = size_bytes(connection)
        if self.is_in_memory:
            compact(connection)
        else:
            self.empty_log(connection)  # first, so that one who reads on is found before the work is done
            compact(connection)
            self.empty_log(connection)
        return Compaction(before, size_bytes(connection))

    def _start(self, component: Component | None) -> Workers:
        file = OpenedFile(self._location)
        opened = partial(_open, self._location, component, file)
        workers = Workers(opened, file.check, place=str(self), readers=self._readers)
        self._ending = weakref.finalize(self, workers.abandon)
        return workers


class Handle:
    """One user's way to the database, from `SqliteDatabase.join` to `leave`."""

    def __init__(self, database: SqliteDatabase, workers: Workers, component: Component | None) -> None:
        self._database = database
        self._workers = workers
        self._component = component
        self._has_left = False

    @property
    def is_open(self) -> bool:
        """False once it was left, and in a forked child."""
        return not self._has_left and self._workers.are_of_this_process

    async def prepare(self) -> None:
        """Open the file if it is not open, and bring this user's tables up to date; leave if that fails.

        Raises:
            StoreDamaged: the file or the tables cannot be read by this code; nothing was changed.
        """
        database, component = self._database, self._component

        def work(connection: sqlite3.Connection) -> None:
            if component is not None:
                database.prepare(component, connection)

        try:
            await self._workers.alone(work)
        except Exception:
            await self.leave()
            raise

    async def leave(self) -> None:
        """Stop being a user. Idempotent; what was asked for before is still done."""
        if self.is_open:
            self._has_left = True
            await self._database.let_go(self)

    async def read(self, work: Work[T]) -> T:
        """Run it in a transaction that sees one state of the file and changes nothing."""
        return await self._workers.read(work)

    async def write(self, work: Work[T]) -> T:
        """Run it in a transaction, and come back when that is on disk.

        Raises:
            StoreDamaged: a newer Lamina has migrated the tables meanwhile; nothing was written.
        """
        if isinstance(work, Joint):
            return await self._workers.write(replace(work, together=partial(self._together, work.together)))
        return await self._workers.write(partial(self._checked, work))

    def _checked(self, work: Work[T], connection: sqlite3.Connection) -> T:
        if self._component is not None:
            self._component.check_current(connection)
        return work(connection)

    def _together(
        self,
        work: Callable[[sqlite3.Connection, Sequence[G]], Sequence[T]],
        connection: sqlite3.Connection,
        given: Sequence[G],
    ) -> Sequence[T]:
        return self._checked(lambda connection: work(connection, given), connection)

    async def alone(self, work: Work[T]) -> T:
        """Run it on the writing connection, outside any transaction."""
        return await self._workers.alone(work)

    async def compact(self) -> Compaction:
        """Give back the room that is free in the file, whoever's tables it was in; all others wait meanwhile.

        Raises:
            AdapterUnavailable: another process writes, or reads on, for longer than `busy_timeout`, or there is no
                room for the copy; what is in the file is as it was.
        """
        return await self._workers.alone(self._database.compact)

    async def empty_log(self) -> None:
        """Leave nothing in the log beside the file.

        Raises:
            AdapterUnavailable: another process reads on.
        """
        await self._workers.alone(self._database.empty_log)


def database_of(
    path: str | PathLike[str] | None,
    database: SqliteDatabase | None,
    *,
    busy_timeout: float,
    readers: int,
    backup: bool,
) -> SqliteDatabase:
    """The database that a store is to use: the given one, or one of its own at the path.

    Raises:
        ConfigError: not just one of the two is given, or settings that the given database has already.
    """
    if database is None and path is not None:
        return SqliteDatabase(path, busy_timeout=busy_timeout, readers=readers, backup=backup)
    if database is None:
        raise ConfigError("path", "is missing", "Give the path of a file, ':memory:', or a database.")
    if path is not None:
        raise ConfigError("path", "is given beside a database, which has one", "Give one of the two.")
    if (busy_timeout, readers, backup) != (BUSY_TIMEOUT, READERS, True):
        remedy = "Give busy_timeout, readers and backup to the SqliteDatabase."
        raise ConfigError("database", "has settings of its own", remedy)
    return database


def _open(location: Location, component: Component | None, file: OpenedFile, writes: bool) -> sqlite3.Connection:
    """What a thread does before its first job; the writing one's comes first.

    The tables of the first user are looked at before the file is opened for writing, so that a file
    that is too new stays as it was, byte for byte.
    """
    if writes:
        if location.path is not None:
            create_private(location.path)
        file.note()
        inspect(location, _nothing if component is None else component.check_readable)
    connection = connect(location, writes=writes)
    try:
        file.check()
    except BaseException:
        connection.close()
        raise
    return connection


def _nothing(_: sqlite3.Connection) -> None:
    pass


def _check_number(setting: str, value: object, greatest: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= greatest:
        raise ConfigError(setting, f"must be a number, not {value!r}", f"Give one from 0 to {greatest}.")
