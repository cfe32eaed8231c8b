"""One database, shared by the stores that keep their tables in it."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Hashable, Mapping
from contextlib import closing
from functools import partial
from typing import Final, Self, TypeVar

from psycopg.sql import SQL, Identifier

from lamina.databases.postgres.address import parse_url
from lamina.databases.postgres.connections import Connections
from lamina.databases.postgres.failures import BACKEND, translated
from lamina.databases.postgres.migrations import Component, check_version, migrate
from lamina.databases.postgres.schema import Session
from lamina.databases.postgres.sessions import Connection, Limits, begin, connect
from lamina.errors import AdapterError, ConfigError

__all__ = ["CONNECTIONS", "CONNECT_TIMEOUT", "STATEMENT_TIMEOUT", "Handle", "PostgresDatabase", "database_of"]

T = TypeVar("T")

CONNECTIONS: Final = 8
CONNECT_TIMEOUT: Final = 10.0
STATEMENT_TIMEOUT: Final = 30.0

_inherited: Final[list[Connections]] = []
"""What a forked child got from its parent: kept for ever, since closing it would end the parent's sessions."""


class PostgresDatabase:
    """Connections to one database of PostgreSQL 14 or newer, for any number of users.

    The first user opens it and the last one closes it; a host that called `open` is a user too, until
    `close`. Connections are made when they are needed, and again after the server was restarted.

    Args:
        url: `postgresql://user:password@host:port/database`, with any of libpq's parameters after a `?`. What it
            does not say comes from libpq's environment variables.
        connections: How many may be open at the same time; calls beyond that wait.
        connect_timeout: How long, in seconds, to wait for the server when one is made.
        statement_timeout: How long, in seconds, a statement may take, waiting for locks included.

    Any number of tasks, event loops, threads and processes may use it at the same time. In a process
    that was forked off, all users open it anew. A pooler in front of the server may give each transaction
    to another connection ("transaction mode").

    Raises:
        ConfigError: the url or a limit is wrong.
    """

    def __init__(
        self,
        url: str,
        *,
        connections: int = CONNECTIONS,
        connect_timeout: float = CONNECT_TIMEOUT,
        statement_timeout: float = STATEMENT_TIMEOUT,
    ) -> None:
        self._address = parse_url(url)
        self._limits = Limits(connections, connect_timeout, statement_timeout)
        self._connections: Connections | None = None
        self._ending: weakref.finalize[[], PostgresDatabase] | None = None
        self._users: weakref.WeakSet[Handle] = weakref.WeakSet()
        self._own: Handle | None = None
        self._changing = threading.Lock()

    def __str__(self) -> str:
        """Where it is, as `host:port/database`: without the user and the password."""
        return str(self._address)

    def __repr__(self) -> str:
        return f"<PostgresDatabase {self}>"

    async def open(self) -> None:
        """Reach the server, and keep connections until `close`. Idempotent.

        Raises:
            AdapterUnavailable: it cannot be reached now; trying again may help.
            AdapterError: it refuses the login, is older than version 14, or the database's encoding is not UTF-8.
        """
        if self._own is None or not self._own.is_open:
            self._own = self.join(None)
        await self._own.prepare()

    async def close(self) -> None:
        """Stop being a user of it; ends the connections if there is no other. Idempotent."""
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

    @property
    def limits(self) -> Limits:
        """What it was given."""
        return self._limits

    def connect(self) -> Connection:
        """A session of its own, without a transaction, for its maker to close."""
        return connect(self._address, self._limits)

    def join(self, component: Component | None) -> Handle:
        """Become a user with these tables, or with none. Call `prepare` of what is returned, and `leave` at the end."""
        with self._changing:
            if self._connections is None or not self._connections.are_of_this_process:
                self._connections = self._replace(self._connections)
            handle = Handle(self, self._connections, component)
            self._users.add(handle)
        return handle

    async def let_go(self, handle: Handle) -> None:
        """Forget this user; the last one ends the connections."""
        with self._changing:
            self._users.discard(handle)
            connections = self._connections
            if connections is None or self._users or not connections.are_of_this_process:
                return
            self._connections = None
            self._forget_ending()
        await connections.close()

    def _replace(self, former: Connections | None) -> Connections:
        if former is not None:
            _inherited.append(former)
            self._forget_ending()
        self._users = weakref.WeakSet()
        connections = Connections(partial(connect, self._address, self._limits), self._limits.connections)
        self._ending = weakref.finalize(self, connections.abandon)
        return connections

    def _forget_ending(self) -> None:
        if self._ending is not None:
            self._ending.detach()


class Handle:
    """One user's way to the database, from `PostgresDatabase.join` to `leave`."""

    def __init__(self, database: PostgresDatabase, connections: Connections, component: Component | None) -> None:
        self._database = database
        self._connections = connections
        self._component = component
        self._has_left = False

    @property
    def is_open(self) -> bool:
        """False once it was left, and in a forked child."""
        return not self._has_left and self._connections.are_of_this_process

    async def prepare(self) -> None:
        """Reach the server, and bring this user's tables up to date; leave if that fails.

        Raises:
            StoreDamaged: the tables were written by a newer Lamina; nothing was changed.
        """
        component = self._component

        def work(connection: Connection) -> None:
            if component is not None:
                migrate(Session(connection, component.schema), component)

        try:
            await self._run(work)
        except Exception:  # whatever it was, it is not open
            await self.leave()
            raise

    async def leave(self) -> None:
        """Stop being a user. Idempotent; what was asked for before is still done."""
        if self.is_open:
            self._has_left = True
            await self._database.let_go(self)

    async def read(self, work: Callable[[Session], T], *, settings: Mapping[str, str] | None = None) -> T:
        """Run it in a transaction that cannot write; all its statements see one state of the database.

        `settings` are the server's, for this transaction.
        """
        component = self._tables()
        return await self._run(
            lambda connection: work(Session(connection, component.schema)), reads=True, settings=settings
        )

    async def write(
        self,
        work: Callable[[Session], T],
        lane: Hashable | None = None,
        *,
        settings: Mapping[str, str] | None = None,
    ) -> T:
        """Run it in a transaction, and come back when that is on disk.

        Each statement sees what was committed before it began; what must not change meanwhile, the work locks.
        Works of one lane, other than None, are done in the order in which they were asked for.

        Raises:
            StoreDamaged: a newer Lamina has migrated the tables meanwhile; nothing was written.
        """
        component = self._tables()

        def change(connection: Connection) -> T:
            session = Session(connection, component.schema)
            check_version(session, component)
            return work(session)

        place = None if lane is None else (component.name, component.schema.name, lane)
        return await self._run(change, place, settings=settings)

    async def vacuum(self) -> None:
        """Let the server take what was deleted out of all tables of this user's schema, on a connection of its own.

        Raises:
            AdapterError: the role may not; it has to own the tables.
        """
        schema = self._tables().schema.name

        def work() -> None:
            with translated(str(self._database)), closing(self._database.connect()) as connection:
                query = "SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY tablename"
                for (table,) in connection.execute(query, (schema,)).fetchall():
                    connection.execute(SQL("VACUUM (ANALYZE) {}").format(Identifier(schema, table)))

        await asyncio.to_thread(work)

    def _tables(self) -> Component:
        if self._component is None:
            raise AdapterError(BACKEND, f"this user of {self._database} has no tables", "Join with a component.")
        return self._component

    async def _run(
        self,
        work: Callable[[Connection], T],
        lane: Hashable | None = None,
        *,
        reads: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> T:
        if not self.is_open:
            raise self._closed()
        start = partial(begin, limits=self._database.limits, reads=reads, settings=settings or {})
        try:
            job = self._connections.submit(work, start, lane)
        except RuntimeError:  # the interpreter is ending
            raise self._closed() from None
        with translated(str(self._database)):
            return await asyncio.wrap_future(job)

    def _closed(self) -> AdapterError:
        return AdapterError(BACKEND, f"{self._database} is not open", "Open it first, in this process.")


def database_of(
    url: str | None,
    database: PostgresDatabase | None,
    *,
    connections: int,
    connect_timeout: float,
    statement_timeout: float,
) -> PostgresDatabase:
    """The database that a store is to use: the given one, or one of its own at the url.

    Raises:
        ConfigError: not just one of the two is given, or limits that the given database has already.
    """
    limits = (connections, connect_timeout, statement_timeout)
    if database is None and url is not None:
        return PostgresDatabase(
            url, connections=connections, connect_timeout=connect_timeout, statement_timeout=statement_timeout
        )
    if database is None:
        raise ConfigError("url", "is missing", "Give the URL of a database, or a PostgresDatabase.")
    if url is not None:
        raise ConfigError("url", "is given beside a database, which has one", "Give one of the two.")
    if limits != (CONNECTIONS, CONNECT_TIMEOUT, STATEMENT_TIMEOUT):
        remedy = "Give connections, connect_timeout and statement_timeout to the PostgresDatabase."
        raise ConfigError("database", "has limits of its own", remedy)
    return database
