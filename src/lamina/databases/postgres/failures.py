"""PostgreSQL's failures as ours: the one place where they are translated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from lamina.errors import AdapterError, AdapterUnavailable, LaminaError, StoreDamaged

__all__ = ["BACKEND", "damaged", "translated"]

BACKEND: Final = "postgres"

_QUOTING: Final = ("22", "23")
"""Classes of errors, data and integrity, whose text quotes values of rows."""
_DAMAGED: Final = {"XX001", "XX002"}
_MISSING: Final = {"3F000", "42P01", "42703"}
_AGAIN: Final = ("08", "40", "53", "55", "57", "58")
"""Connection, rollback, resources, lock, intervention, system: nothing of the call's own is at fault."""
_REFUSED_LOGIN: Final = re.compile(
    "authentication failed|no password supplied|pg_hba.conf|role .* does not exist|database .* does not exist"
)
"""libpq gives no code for what happens before a session exists, and only the server's words."""
_UNKNOWN: Final = (
    "Try again. Whether a change was kept is not known; an append that is repeated with the same message ids adds "
    "nothing twice, nor does a store with the same memory id."
)


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Turn what psycopg raises inside into an error of ours, with its cause.

    The cause is left out where its text would quote stored values.

    Raises:
        AdapterUnavailable: the server cannot be reached, has no resources left, ended the session or a statement.
        StoreDamaged: its tables or pages are not there or not readable.
        AdapterError: the login, or what the user may do, is refused, or anything else.
    """
    try:
        yield
    except LaminaError:
        raise
    except psycopg.Error as error:
        if _quotes_values(error):
            problem = f"{place} refused a value: {type(error).__name__}"
            raise AdapterError(BACKEND, problem, "If it happens again, run `lamina doctor`.") from None
        raise _translate(error, place) from error


def damaged(what: str) -> StoreDamaged:
    """The error for rows that cannot be read as ours."""
    return StoreDamaged(BACKEND, what, "Restore the database from a backup, or give another schema.")


def _quotes_values(error: psycopg.Error) -> bool:
    if error.sqlstate is None:
        return isinstance(error, psycopg.DataError | psycopg.IntegrityError)
    return error.sqlstate.startswith(_QUOTING)


def _translate(error: psycopg.Error, place: str) -> AdapterError:
    state = error.sqlstate
    said = _first_line(error)
    if state is None:
        return _translate_unnumbered(error, said, place)
    if state == psycopg.errors.QueryCanceled.sqlstate:
        remedy = "Nothing of this call was written. Try again, or raise statement_timeout."
        return AdapterUnavailable(BACKEND, f"a statement on {place} took too long or was cancelled", remedy)
    if state == psycopg.errors.DiskFull.sqlstate:
        remedy = "Nothing of this call was written. Free some space on the server and try again."
        return AdapterUnavailable(BACKEND, f"there is no space left on {place}", remedy)
    if state.startswith(_AGAIN):
        return AdapterUnavailable(BACKEND, f"{place} failed for now: {said}", _UNKNOWN)
    if state in _DAMAGED:
        return damaged(f"{place} cannot be read: {said}")
    if state in _MISSING:
        return damaged(f"{place} lacks what Lamina made there: {said}")
    if state == psycopg.errors.InsufficientPrivilege.sqlstate:
        remedy = "Grant it to the user of the URL, or make the schema beforehand and let that user own it."
        return AdapterError(BACKEND, f"{place} does not allow it: {said}", remedy)
    if state == psycopg.errors.ReadOnlySqlTransaction.sqlstate:
        remedy = "Give the address of the primary, or add target_session_attrs=read-write to the URL."
        return AdapterError(BACKEND, f"{place} takes no writes", remedy)
    return AdapterError(BACKEND, f"{place}: {said} ({state})", "If it happens again, run `lamina doctor`.")


def _translate_unnumbered(error: psycopg.Error, said: str, place: str) -> AdapterError:
    if _REFUSED_LOGIN.search(str(error)):
        remedy = "Check the user, the password and the database of the URL."
        return AdapterError(BACKEND, f"{place} refused the login: {said}", remedy)
    if isinstance(error, psycopg.OperationalError):
        return AdapterUnavailable(BACKEND, f"{place} cannot be reached: {said}", _UNKNOWN)
    return AdapterError(BACKEND, f"{place}: {said}", "If it happens again, run `lamina doctor`.")


def _first_line(error: psycopg.Error) -> str:
    """What happened, without the lines on details and hints, which may quote values."""
    said = error.diag.message_primary or str(error)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__
