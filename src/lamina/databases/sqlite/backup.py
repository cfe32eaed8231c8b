"""Backups: a copy of the file as it is at one moment, while others write, and the way back.

A copy counts only when it was restored: it is put into a temporary folder, opened as a database that is used,
looked over by SQLite, and compared with what was copied, table by table.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lamina.databases.sqlite.connection import APPLICATION_ID, Location, connect, create_private, inspect
from lamina.databases.sqlite.contents import TableContents, check_sound, contents_of
from lamina.databases.sqlite.failures import BACKEND, damaged, translated
from lamina.errors import AdapterError, AdapterUnavailable, ConfigError, StoreDamaged

__all__ = ["Backup", "Restoration", "back_up", "restore"]

PAGES: Final = 512
"""Pages that are copied at a time: 4 MB. Between two steps others get the file."""
BUSY_TIMEOUT: Final = 30.0
_SIDES: Final = ("", "-wal", "-shm")

_Check = Callable[[sqlite3.Connection], None]


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was restored once, to see that it can be."""

    path: Path
    bytes: int
    rows: Mapping[str, int]
    """By table."""

    @property
    def total(self) -> int:
        """Rows of all tables."""
        return sum(self.rows.values())


@dataclass(frozen=True, slots=True)
class Restoration:
    """What was put in place. `former` is where the file that was there is now; None if there was none."""

    path: Path
    rows: Mapping[str, int]
    former: Path | None

    @property
    def total(self) -> int:
        """Rows of all tables."""
        return sum(self.rows.values())


def back_up(source: Path, target: Path, *, force: bool = False, check: _Check) -> Backup:
    """Copy the file, as it is when this begins, with what its log holds; others may read and write meanwhile.

    The target is written whole or not at all, and only its owner may read it. `check` raises if the copy cannot be
    used by this code.

    Raises:
        ConfigError: there is no such file, or the target is there and `force` is not set, or is the source.
        StoreDamaged: the file is damaged or foreign, or the copy differs from it; there is no backup then.
        AdapterUnavailable: no space is left.
    """
    source, target = source.absolute(), target.absolute()
    _check_places(source, target, force=force)
    inspect(Location(source, BUSY_TIMEOUT), check)
    with _unfinished(target) as part, translated(str(source)):
        with closing(connect(Location(source, BUSY_TIMEOUT), writes=False)) as connection:
            connection.execute("BEGIN")  # all that follows sees this moment, however long it takes
            found = _copied(connection, part)
        _rehearse(part, found, check)
        part.replace(target)
        _make_lasting(target)
    return Backup(target, target.stat().st_size, _rows(found))


def restore(backup: Path, target: Path, *, force: bool = False, check: _Check) -> Restoration:
    """Put a copy of the backup where the database is to be; the backup stays as it is.

    A file that is there is kept beside it, under the name that is returned. It must not be open anywhere. Until the
    copy was looked over and compared, nothing is changed.

    Raises:
        ConfigError: there is no such backup, or the target is there and `force` is not set, or is the backup.
        StoreDamaged: the backup is damaged, foreign, or written by a newer Lamina.
        AdapterUnavailable: the target is open in this process or another, or no space is left.
    """
    backup, target = backup.absolute(), target.absolute()
    _check_places(backup, target, force=force)
    with _unfinished(target) as part, translated(str(backup)):
        with closing(_reading(backup)) as connection:
            _check_ours(connection, backup)
            connection.execute("BEGIN")
            found = _copied(connection, part)
        _rehearse(part, found, check)
        former = _set_aside(target)
        part.replace(target)
        _make_lasting(target)
    return Restoration(target, _rows(found), former)


def _rows(found: Mapping[str, TableContents]) -> dict[str, int]:
    return {name: each.rows for name, each in found.items()}


def _check_places(source: Path, target: Path, *, force: bool) -> None:
    if not source.is_file():
        raise ConfigError("path", f"there is no file {source}", "Give the path of a database of Lamina's.")
    if target.is_dir():
        raise ConfigError("path", f"{target} is a folder", "Give the path of a file in it.")
    if not target.exists():
        return
    if source.samefile(target):
        raise ConfigError("path", f"{target} is the same file", "Give two paths.")
    if not force:
        raise ConfigError("path", f"{target} is there already", "Give another path, or --force (force=True).")


@contextmanager
def _unfinished(target: Path) -> Iterator[Path]:
    """A new private file beside the target, gone in the end unless it took the target's place."""
    part = target.with_name(f"{target.name}.part")
    with translated(str(part)):
        for side in _SIDES:
            Path(f"{part}{side}").unlink(missing_ok=True)
    create_private(part)
    try:
        yield part
    finally:
        for side in _SIDES:
            Path(f"{part}{side}").unlink(missing_ok=True)


def _reading(path: Path) -> sqlite3.Connection:
    """A connection to a backup that changes nothing; without a log it makes none, so that a medium may be read-only."""
    log = Path(f"{path}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    mode = "mode=ro" if has_log or Path(f"{path}-shm").exists() else "mode=ro&immutable=1"
    uri = f"{path.as_uri()}?{mode}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT, isolation_level=None)


def _check_ours(connection: sqlite3.Connection, path: Path) -> None:
    (mark,) = connection.execute("PRAGMA application_id").fetchone()
    if mark != APPLICATION_ID:
        raise StoreDamaged(BACKEND, f"{path} is no database of Lamina's", "Give the path of one.")


def _copied(connection: sqlite3.Connection, part: Path) -> dict[str, TableContents]:
    """Copy what the connection's transaction sees; its contents, for comparison."""
    found = contents_of(connection)
    with closing(sqlite3.connect(part, isolation_level=None)) as copy:
        connection.backup(copy, pages=PAGES)
    return found


def _rehearse(part: Path, expected: Mapping[str, TableContents], check: _Check) -> None:
    """Restore the copy into a folder of its own, open it there as in use, and compare."""
    with tempfile.TemporaryDirectory(prefix=".lamina-restoring-", dir=part.parent) as folder:
        place = Location(Path(folder) / "lamina.db", BUSY_TIMEOUT)
        assert place.path is not None  # noqa: S101 - it is made just above
        create_private(place.path)
        with closing(_reading(part)) as source, closing(sqlite3.connect(place.path)) as target:
            source.backup(target)
        inspect(place, check)
        with closing(connect(place, writes=True)) as connection:
            check(connection)
            check_sound(connection, "the copy")
            found = contents_of(connection)
    if found != expected:
        names = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
        raise damaged(f"the copy differs from what was copied in {', '.join(names)}")


def _set_aside(target: Path) -> Path | None:
    """Give the file that is there another name, with all that its log holds; None if there is none."""
    if not target.exists():
        return None
    _check_unused(target)
    number = 1
    while (former := target.with_name(f"{target.name}.before-restore-{number}")).exists():
        number += 1
    for side in _SIDES:
        with suppress(FileNotFoundError):
            Path(f"{target}{side}").replace(f"{former}{side}")
    return former


def _check_unused(target: Path) -> None:
    """Raise if anybody has the file open, and write its log into it; one that cannot be opened is not in use."""
    uri = f"{target.as_uri()}?mode=rw"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)) as connection:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            remedy = "Stop what uses it, such as `lamina serve`, and try again."
            raise AdapterUnavailable(BACKEND, f"{target} is in use", remedy) from error
        if code not in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
            raise


def _make_lasting(path: Path) -> None:
    """See to it that the new name survives a power cut, where a folder can be asked to."""
    try:
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError:  # Windows has no such thing
        return
    try:
        os.fsync(folder)
    except OSError as error:
        raise AdapterError(BACKEND, f"{path} is written, but not surely on the disk: {error.strerror}", "") from error
    finally:
        os.close(folder)
