"""SQLite's failures as ours: the one place where they are translated."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from lamina.errors import AdapterError, AdapterUnavailable, LaminaError, StoreDamaged

__all__ = ["BACKEND", "RESTORE", "damaged", "translated"]

BACKEND = "sqlite"
RESTORE = "Restore the file from a backup, or give another path."

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_REFUSED = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Turn what SQLite or the file system raises inside into an error of ours, with its cause.

    Raises:
        AdapterUnavailable: another process held the lock for too long, the disk is full, or it failed to answer.
        StoreDamaged: the file is no SQLite database or its pages contradict each other.
        AdapterError: the file may not be opened or written, or anything else.
    """
    try:
        yield
    except LaminaError:
        raise
    except UnicodeDecodeError:  # a name or a message of SQLite's own; as below, its bytes are not repeated
        raise _unreadable(place) from None
    except sqlite3.Error as error:
        if "Could not decode to UTF-8" in str(error):  # whose message goes on with the text
            raise _unreadable(place) from None
        raise _translate(error, place) from error
    except OSError as error:
        remedy = "Check that the path exists, is a file and may be written by this user."
        raise AdapterError(BACKEND, f"{place} cannot be opened: {error.strerror or error}", remedy) from error


def damaged(what: str) -> StoreDamaged:
    """The error for rows that contradict each other."""
    return StoreDamaged(BACKEND, what, RESTORE)


def _unreadable(place: str) -> StoreDamaged:
    return StoreDamaged(BACKEND, f"{place} holds text that is no UTF-8", RESTORE)


def _translate(error: sqlite3.Error, place: str) -> AdapterError:
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF  # the rest of the bits name the kind of the kind
    if primary in _BUSY:
        remedy = "Try again, or raise busy_timeout."
        return AdapterUnavailable(BACKEND, f"{place} is locked by another process", remedy)
    if primary in _DAMAGED or (primary is None and "file is not a database" in str(error)):
        return StoreDamaged(BACKEND, f"{place} cannot be read: {error}", RESTORE)
    if primary == sqlite3.SQLITE_FULL:
        remedy = "Nothing of this call was written. Free some space and try again."
        return AdapterUnavailable(BACKEND, f"there is no space left to write {place}", remedy)
    if primary == sqlite3.SQLITE_IOERR:
        remedy = "Nothing of this call was written. Check the disk, its free space and any size limit, and try again."
        return AdapterUnavailable(BACKEND, f"{place} could not be read or written: {error}", remedy)
    if primary in _REFUSED:
        remedy = "Check that the file and its folder may be written by this user."
        return AdapterError(BACKEND, f"{place} may not be opened or written: {error}", remedy)
    return AdapterError(BACKEND, f"{place}: {error}", "If it happens again, run `lamina doctor`.")
