"""A database in a file of this machine, through the library `libsql`.

The library holds Python's global lock while it works and while it waits. So it is never let wait for another
writer: that is done here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, TypeVar

from lamina.adapters._shared.patience import attempts
from lamina.adapters._shared.records import Stale
from lamina.adapters._shared.where_sql import Sql
from lamina.adapters.turso.failures import BUSY, Failed
from lamina.adapters.turso.runner import STALE, Row
from lamina.errors import MissingExtra

try:
    import libsql
except ImportError as error:
    if error.name is not None and error.name.partition(".")[0] != "libsql":
        raise
    raise MissingExtra("A local libSQL file", "turso") from error

__all__ = ["Local"]

T = TypeVar("T")

_LARGEST: Final = 2**31
_PRAGMAS: Final = ("journal_mode = WAL", "synchronous = NORMAL", "secure_delete = ON", "foreign_keys = ON")


class Local:
    """A `Runner` over connections to a file, of which one writes at a time.

    Args:
        path: The file; made if there is none and it may be written.
        busy_timeout: Seconds to wait for another process that is writing.
        writable: False for the replica of a remote database, which only the one that keeps it in step may write.
    """

    def __init__(self, path: Path, *, busy_timeout: float, writable: bool = True) -> None:
        self.place = str(path)
        self._path = path
        self._busy_timeout = busy_timeout
        self._writable = writable
        self._idle: list[Any] = []
        self._taking = threading.Lock()
        self._writing = threading.Lock()
        self._is_open = False

    def open(self) -> None:
        if self._writable:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        self._is_open = True

    def close(self) -> None:
        with self._taking:
            self._is_open = False
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def fresh(self) -> AbstractContextManager[None]:
        return nullcontext()

    def read(self, sql: Sql) -> list[Row]:
        with self._connection() as connection:
            return self._patiently(lambda: _run(connection, sql))

    def write(self, changes: Sequence[Sql], guard: Sql | None = None) -> list[list[Row]]:
        with self._writing, self._connection() as connection:
            self._patiently(lambda: _run(connection, Sql("BEGIN IMMEDIATE")))
            try:
                if guard is not None:
                    _check(connection, guard)
                found = [_run(connection, sql) for sql in changes]
                self._patiently(lambda: _run(connection, Sql("COMMIT")))
            except BaseException:
                if connection.in_transaction:
                    _run(connection, Sql("ROLLBACK"))
                raise
            return found

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """One that nobody else uses meanwhile; it is used again, unless something failed."""
        with self._taking:
            if not self._is_open:
                raise Failed("it is closed")
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = self._patiently(self._connect)
        try:
            yield connection
        except Stale:
            self._put_back(connection)
            raise
        except BaseException:
            connection.close()
            raise
        self._put_back(connection)

    def _put_back(self, connection: Any) -> None:
        with self._taking:
            if self._is_open:
                self._idle.append(connection)
                return
        connection.close()

    def _connect(self) -> Any:
        if not self._writable:
            # Such a connection cannot move the log into the file, which would lose the replica's place in it.
            return _asked(libsql.connect, f"{self._path.absolute().as_uri()}?mode=ro", 0.0, None)
        connection = _asked(libsql.connect, str(self._path), 0.0, None)
        try:
            for pragma in _PRAGMAS:
                _run(connection, Sql(f"PRAGMA {pragma}"))
        except BaseException:
            connection.close()
            raise
        return connection

    def _patiently(self, work: Callable[[], T]) -> T:
        """The work's result, tried again while another process is writing."""
        for _ in attempts(self._busy_timeout, first=0.001, longest=0.05):
            try:
                return work()
            except Failed as error:
                if not error.is_busy:
                    raise
        raise Failed("", BUSY)


def _check(connection: Any, guard: Sql) -> None:
    try:
        _run(connection, guard)
    except Failed as error:
        if STALE in error.said:
            raise Stale from None
        raise


def _run(connection: Any, sql: Sql) -> list[Row]:
    text, values = _bound(sql)
    return _asked(lambda: connection.execute(text, values).fetchall()) or []


def _bound(sql: Sql) -> tuple[str, tuple[Any, ...]]:
    """The statement as the library takes it, which binds whole numbers above 32 bits as fractions."""
    if not any(isinstance(value, int) and not -_LARGEST <= value < _LARGEST for value in sql.parameters):
        return sql.text, sql.parameters
    first, *others = sql.text.split("?")  # statements hold no other question marks: all words of users are bound
    pieces, values = [first], []
    for value, text in zip(sql.parameters, others, strict=True):
        is_large = isinstance(value, int) and not -_LARGEST <= value < _LARGEST
        pieces += ["CAST(? AS INTEGER)" if is_large else "?", text]
        values.append(str(int(value)) if is_large else value)
    return "".join(pieces), tuple(values)


def _asked(ask: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return ask(*arguments)
    except ValueError as error:  # the library knows no other error
        raise Failed(str(error)) from error
