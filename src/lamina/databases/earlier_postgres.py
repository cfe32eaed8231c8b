"""Memories of an earlier version in a PostgreSQL database of another program, which is never changed.

The tables have no documented layout, so a row is handed on with whatever columns it has, as JSON writes them:
that is text, numbers and the like for any type of the server. Bytes are left out.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, TypeVar

import psycopg
from psycopg import sql

from lamina.databases.earlier_sqlite import EARLIER_TABLES
from lamina.databases.postgres.address import parse_url
from lamina.databases.postgres.failures import translated
from lamina.databases.postgres.sessions import Connection
from lamina.errors import AdapterError
from lamina.ports.earlier_store import Row

__all__ = ["EarlierPostgres"]

T = TypeVar("T")

_NAME: Final = "version 1"
_FETCH: Final = b"FETCH 500 FROM lamina_rows"
_WAIT: Final = 10
"""Seconds to wait for the server."""
_BEGIN: Final = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_TABLES: Final = """
SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND pg_table_is_visible(oid) AND relname = ANY(%s::text[])
"""
_COLUMNS: Final = """
SELECT attname FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped AND atttypid <> 'bytea'::regtype ORDER BY attnum
"""


class EarlierPostgres:
    """A database that may hold memories of an earlier version, in a schema of the user's search path.

    Raises:
        ConfigError: the url is none.
    """

    def __init__(self, url: str) -> None:
        self._address = parse_url(url)

    @property
    def place(self) -> str:
        """`host:port/database`."""
        return str(self._address)

    async def tables(self) -> Sequence[str]:
        """Those of the known tables that can be seen, in the order of `EARLIER_TABLES`."""
        return await self._read(_tables)

    async def stamp(self) -> str:
        """Numbers of rows, and of the transactions that wrote them."""
        return await self._read(_stamp)

    async def rows(self, table: str) -> AsyncIterator[Sequence[Row]]:
        """All rows, in pages, as they were when the first was read."""
        if table not in EARLIER_TABLES:
            raise AdapterError(_NAME, f"{table!r} is no table of memories", f"Use: {', '.join(EARLIER_TABLES)}.")
        connection = await self._do(self._connect)
        try:
            await self._do(lambda: _begin_to_read(connection, table))
            while page := await self._do(lambda: connection.execute(_FETCH).fetchall()):
                yield [_row(text) for (text,) in page]
        finally:
            await asyncio.to_thread(connection.close)

    async def _read(self, read: Callable[[Connection], T]) -> T:
        def work() -> T:
            with self._connect() as connection:
                connection.execute(_BEGIN)
                return read(connection)

        return await self._do(work)

    async def _do(self, work: Callable[[], T]) -> T:
        with translated(self.place):
            return await asyncio.to_thread(work)

    def _connect(self) -> Connection:
        parameters: dict[str, Any] = {"connect_timeout": _WAIT, **self._address.parameters}
        return psycopg.connect(**parameters, autocommit=True, prepare_threshold=None)


def _tables(connection: Connection) -> list[str]:
    found = {name for (name,) in connection.execute(_TABLES, (list(EARLIER_TABLES),))}
    return [table for table in EARLIER_TABLES if table in found]


def _stamp(connection: Connection) -> str:
    stamps = []
    for table in _tables(connection):
        query = sql.SQL("SELECT count(*), coalesce(sum(xmin::text::bigint), 0) FROM {}").format(sql.Identifier(table))
        stamps.append(":".join(map(str, connection.execute(query).fetchone() or ())))
    return " ".join(stamps)


def _begin_to_read(connection: Connection, table: str) -> None:
    connection.execute(_BEGIN)
    names = [sql.Identifier(name) for (name,) in connection.execute(_COLUMNS, (table,))]
    query = sql.SQL("DECLARE lamina_rows CURSOR FOR SELECT to_json(found)::text FROM (SELECT {} FROM {}) AS found")
    connection.execute(query.format(sql.SQL(", ").join(names), sql.Identifier(table)))


def _row(text: str) -> Row:
    """The row, with lists and objects as JSON text, which is what other stores hold of them."""
    row: dict[str, Any] = json.loads(text)
    return {
        name: json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
        for name, value in row.items()
    }
