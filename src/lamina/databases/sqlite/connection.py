"""Opening the file: found to be ours before anything is written, private from its first byte.

A file is looked at before it is opened for writing. The first look is SQLite's `immutable` mode,
which takes no lock and makes no file beside it, so that a foreign file stays as it was, byte for
byte. (Reading the header with `open` would be simpler, but closing that handle would drop the locks
that other connections of this process hold on the file: POSIX locks belong to the process.)
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Final

from lamina.databases.sqlite.failures import BACKEND, RESTORE, translated
from lamina.domain.text import is_clean
from lamina.errors import AdapterError, ConfigError, StoreDamaged

__all__ = ["APPLICATION_ID", "MEMORY", "Location", "connect", "create_private", "inspect", "locate"]

APPLICATION_ID: Final = 0x4C414D49
"""`LAMI`, in bytes 68 to 71 of the file: what makes it ours."""

MEMORY: Final = ":memory:"
SMALL_FILE: Final = 8 * 1024 * 1024
"""Up to this size every page is checked when the file is opened; of a larger one, header and schema."""

PAGE_SIZE: Final = 8192
"""Bytes of a page: five vectors of 384 numbers fit in one, and a sixteenth of it is left over; in 4,096, a quarter."""

SMALLEST_DATABASE: Final = 512
"""One page of the smallest size, in bytes."""

_OLDEST: Final = (3, 37, 0)
_PRAGMAS: Final = (
    "foreign_keys = ON",
    "secure_delete = ON",  # deleted content is overwritten, not only unlinked
    "temp_store = MEMORY",  # no content in files outside the database
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "synchronous = FULL",  # an acknowledged write survives a power cut
    "journal_size_limit = 67108864",
    "cache_size = -8192",  # 8 MB: what one transaction changes should fit
)
_creating: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class Location:
    """Where the database is, and how long to wait for another process's lock, in seconds."""

    path: Path | None
    """Absolute, or None for a database in memory."""
    busy_timeout: float

    def __str__(self) -> str:
        return MEMORY if self.path is None else str(self.path)


def locate(path: str | PathLike[str], busy_timeout: float) -> Location:
    """Where this path leads from here, whatever the current folder becomes later.

    Raises:
        ConfigError: no file can have the path.
    """
    name: object = fspath(path) if isinstance(path, PathLike) else path
    if not isinstance(name, str) or not name:
        raise ConfigError("path", "is empty or no text", "Give the path of a file, or ':memory:'.")
    if not is_clean(name):
        raise ConfigError("path", "holds a NUL or a lone surrogate", "Give the path of a file as plain text.")
    if name.lower().startswith("file:"):
        raise ConfigError("path", "is a URI", "Give the plain path of a file, or ':memory:'.")
    return Location(None if name == MEMORY else Path(name).absolute(), busy_timeout)


def create_private(path: Path) -> None:
    """Create the file, for its owner's eyes only, unless it is there; its folders likewise."""
    with _creating, translated(str(path)):  # closing a handle drops this process's locks on the file: see above
        for folder in reversed(path.parents):
            if not folder.exists():
                with suppress(FileExistsError):  # another process was faster
                    folder.mkdir(mode=0o700)
        with suppress(FileExistsError):
            created = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                path.chmod(0o600)  # whatever the umask took away
            finally:
                os.close(created)


def inspect(location: Location, check: Callable[[sqlite3.Connection], None]) -> None:
    """Look at the file without changing it; `check` gets a reading connection if it holds a database of ours.

    Raises:
        StoreDamaged: it is foreign, truncated or garbled.
        AdapterError: it may not be read and written.
    """
    path = location.path
    if path is None:
        return
    with translated(str(path)):
        if path.is_dir():
            raise AdapterError(BACKEND, f"{path} is a folder", "Give the path of a file.")
        size = path.stat().st_size if path.exists() else 0
        if not os.access(path.parent, os.W_OK | os.X_OK) or (path.exists() and not os.access(path, os.R_OK | os.W_OK)):
            remedy = "SQLite needs to write the file and, beside it, its log. Change the permissions or the path."
            raise AdapterError(BACKEND, f"{path} or its folder may not be written by this user", remedy)
        if 0 < size < SMALLEST_DATABASE:  # SQLite would take it for an empty one and write over it
            raise StoreDamaged(BACKEND, f"{path} is no database", RESTORE)
        if size == 0 or not _is_ours(location, path):
            return
        with closing(_open(location, "mode=ro")) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if size <= SMALL_FILE:
                (finding,) = connection.execute("PRAGMA quick_check(1)").fetchone()
                if finding != "ok":
                    raise StoreDamaged(BACKEND, f"{path} is damaged: {finding}", RESTORE)
            check(connection)


def connect(location: Location, *, writes: bool) -> sqlite3.Connection:
    """A connection with our settings, to a file that passed `inspect`. One that does not write refuses to."""
    if sqlite3.sqlite_version_info < _OLDEST:
        problem = f"this Python brings SQLite {sqlite3.sqlite_version}"
        raise AdapterError(BACKEND, problem, f"Use one with SQLite {'.'.join(map(str, _OLDEST))} or newer.")
    with translated(str(location)):
        connection = _open(location, "mode=rw")
        try:
            for pragma in _PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
            if writes and location.path is not None:
                _claim(connection, location)
                _switch_to_wal(connection, location)
            elif not writes:
                connection.execute("PRAGMA query_only = ON")
                # What searches come back to is kept above SQLite; and the system has the file's pages, too.
                connection.execute("PRAGMA cache_size = -1024")
        except BaseException:
            connection.close()
            raise
    return connection


def _open(location: Location, mode: str) -> sqlite3.Connection:
    if location.path is None:
        return sqlite3.connect(MEMORY, isolation_level=None)
    uri = f"{location.path.as_uri()}?{mode}"
    return sqlite3.connect(uri, uri=True, timeout=location.busy_timeout, isolation_level=None)


def _is_ours(location: Location, path: Path) -> bool:
    """Whether the file is marked as ours; False if it is an empty database that can still become it.

    Our mark is in the file itself before its log is first used, so the log need not be read for it.
    """
    log = path.with_name(f"{path.name}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    with closing(_open(location, "mode=ro" if has_log else "mode=ro&immutable=1")) as connection:
        (mark,) = connection.execute("PRAGMA application_id").fetchone()
        if mark == APPLICATION_ID:
            return True
        (objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if mark or objects or has_log:
        remedy = "Give a path of its own: Lamina shares no file with another program."
        raise StoreDamaged(BACKEND, f"{path} is another program's database", remedy)
    return False


def _claim(connection: sqlite3.Connection, location: Location) -> None:
    """Mark a new file as ours, in a transaction of its own while it still has a rollback journal."""
    if _mark(connection) == APPLICATION_ID:
        return
    connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")  # of a file that has none yet; it changes no other
    connection.execute("BEGIN IMMEDIATE")
    try:
        (objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if _mark(connection) != APPLICATION_ID and objects:
            raise StoreDamaged(BACKEND, f"{location} is another program's database", "Give a path of its own.")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _mark(connection: sqlite3.Connection) -> int:
    (mark,) = connection.execute("PRAGMA application_id").fetchone()
    return int(mark)


def _switch_to_wal(connection: sqlite3.Connection, location: Location) -> None:
    """Other processes that open the file at the same moment are waited for; SQLite itself does not wait here."""
    deadline = time.monotonic() + location.busy_timeout
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
            continue
        if mode != "wal":
            remedy = "Put the file on a local disk: network file systems cannot carry it."
            raise AdapterError(BACKEND, f"{location} cannot have a write-ahead log here", remedy)
        return
