"""Memories of version 1 in an SQLite file of another program, which is never changed.

The tables have no documented layout, so a row is handed on with whatever columns it has. Where the
file has a write-ahead log that is not in use, it is opened as `immutable`: any other way would
leave files beside it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from lamina.errors import AdapterError, AdapterUnavailable, StoreDamaged
from lamina.ports.earlier_store import Row

__all__ = ["EARLIER_TABLES", "EarlierSqlite"]

T = TypeVar("T")

EARLIER_TABLES: Final = ("agent_memories", "kernova_memories")
"""The tables that are read, by what they were called: of version 1, and of the first layout of version 2."""

_NAME: Final = "version 1"
_REMEDY: Final = "Check the path, or leave it out to go on without those memories."
_PAGE: Final = 500
_WAIT: Final = 5.0
"""Seconds to wait for a lock that the other program holds."""
_FORMAT_AT: Final = 18
"""The place of the header's byte that tells how the file is written."""
_WITH_LOG: Final = b"\x02"
_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class EarlierSqlite:
    """An SQLite file that may hold memories of version 1. Each call opens it, reads, and closes it."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()

    @property
    def place(self) -> str:
        """The file's absolute path."""
        return str(self._path)

    async def tables(self) -> Sequence[str]:
        """Those of `EARLIER_TABLES` that the file has, as ordinary tables."""
        return await self._read(_tables)

    async def stamp(self) -> str:
        """Sizes and times of the file and its log."""
        return await asyncio.to_thread(self._stamp)

    async def rows(self, table: str) -> AsyncIterator[Sequence[Row]]:
        """All rows, in pages by row id; a table without row ids is one page."""
        after: int | None = None
        while True:
            page, after = await self._read(partial(_page, table=table, after=after))
            if page:
                yield page
            if after is None:
                return

    async def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.to_thread(self._opened, read)

    def _opened(self, read: Callable[[sqlite3.Connection], T]) -> T:
        try:
            if not self._path.is_file():
                raise AdapterError(_NAME, f"{self._path} is no file", _REMEDY)
            with closing(self._connect()) as connection:
                return read(connection)
        except sqlite3.Error as error:
            raise self._translated(error) from error
        except OSError as error:
            raise AdapterError(_NAME, f"{self._path} cannot be read: {error.strerror or error}", _REMEDY) from error

    def _connect(self) -> sqlite3.Connection:
        uri = f"{self._path.as_uri()}?mode=ro{'&immutable=1' if self._has_idle_log() else ''}"
        connection = sqlite3.connect(uri, uri=True, timeout=_WAIT, isolation_level=None)
        try:
            # What a hostile file could make a reader run stays off.
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            connection.row_factory = sqlite3.Row
        except BaseException:
            connection.close()
            raise
        return connection

    def _has_idle_log(self) -> bool:
        """Whether the file is written through a log that is empty or gone, so that the file alone is whole.

        Nothing else in this process may have the file open then: reading a header with `open` drops its locks.
        """
        log = self._path.with_name(f"{self._path.name}-wal")
        if log.exists() and log.stat().st_size > 0:
            return False
        with self._path.open("rb") as file:
            file.seek(_FORMAT_AT)
            return file.read(1) == _WITH_LOG

    def _stamp(self) -> str:
        beside = (self._path, self._path.with_name(f"{self._path.name}-wal"))
        stats = [path.stat() for path in beside if path.exists()]
        return " ".join(f"{stat.st_mtime_ns}:{stat.st_size}" for stat in stats)

    def _translated(self, error: sqlite3.Error) -> AdapterError:
        primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if primary in _DAMAGED or "not a database" in str(error):
            return StoreDamaged(_NAME, f"{self._path} is no database, or a damaged one", _REMEDY)
        if primary in _BUSY:
            return AdapterUnavailable(_NAME, f"{self._path} is locked by another program", "Try again.")
        return AdapterError(_NAME, f"{self._path} cannot be read: {error}", _REMEDY)


def _tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
    named = {row["name"].lower(): row["name"] for row in rows}
    return [named[table] for table in EARLIER_TABLES if table in named]


def _page(connection: sqlite3.Connection, table: str, after: int | None) -> tuple[list[dict[str, Any]], int | None]:
    """Rows, and the row id to go on after; None if these are the last."""
    if table.lower() not in EARLIER_TABLES:
        raise AdapterError(_NAME, f"{table!r} is no table of memories", f"Use: {', '.join(EARLIER_TABLES)}.")
    if not _has_row_ids(connection, table):
        return [dict(row) for row in connection.execute(f'SELECT * FROM "{table}"')], None  # noqa: S608 - a known name
    start = -(2**63) if after is None else after
    query = f'SELECT _rowid_ AS lamina_row, * FROM "{table}" WHERE _rowid_ >= ? ORDER BY _rowid_ LIMIT ?'  # noqa: S608
    found = [dict(row) for row in connection.execute(query, (start, _PAGE))]
    last = found[-1]["lamina_row"] if len(found) == _PAGE else None
    for row in found:
        del row["lamina_row"]
    return found, None if last is None or last == 2**63 - 1 else last + 1


def _has_row_ids(connection: sqlite3.Connection, table: str) -> bool:
    try:
        connection.execute(f'SELECT _rowid_ FROM "{table}" LIMIT 0')  # noqa: S608 - a known name
    except sqlite3.OperationalError as error:
        if "no such column" in str(error):
            return False
        raise
    return True
