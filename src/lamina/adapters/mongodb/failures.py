"""MongoDB's failures as ours: the one place where they are translated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from bson.errors import BSONError
from pymongo.errors import (
    BulkWriteError,
    ConfigurationError,
    ConnectionFailure,
    DocumentTooLarge,
    ExecutionTimeout,
    InvalidOperation,
    OperationFailure,
    PyMongoError,
    WriteError,
)

from lamina.adapters._shared.threads import not_open
from lamina.errors import AdapterError, AdapterUnavailable, ConfigError, InvalidInput, LaminaError, StoreDamaged

__all__ = ["BACKEND", "damaged", "translated"]

BACKEND: Final = "mongodb"

_AGAIN: Final = frozenset(
    {6, 7, 24, 50, 64, 89, 91, 112, 133, 134, 189, 202, 246, 251, 262, 317, 384, 462, 489, 9001}
    | {10107, 11600, 11601, 11602, 13435, 13436, 14031}
)
"""Hosts, time-outs, elections, snapshots, conflicts, load, disk: https://www.mongodb.com/docs/manual/reference/error-codes/"""
_REFUSED_LOGIN: Final = frozenset({11, 18, 8000})
_FORBIDDEN: Final = 13
_DISK_FULL: Final = 14031
_TOO_LARGE: Final = frozenset({10334, 17280, 17419, 17420})
_UNKNOWN: Final = (
    "Try again. Whether a change was kept is not known; a store that is repeated with the same ids adds nothing twice."
)
_DOCTOR: Final = "If it happens again, run `lamina doctor`."


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Turn what pymongo raises inside into an error of ours.

    Its cause is kept, but where that would quote stored values or the operation with its documents.

    Raises:
        AdapterUnavailable: no server can be reached or written to now, or it took too long.
        AdapterError: the login, or what the user may do, is refused, or anything else.
        InvalidInput: a memory is larger than a document may be.
        StoreDamaged: what came back is no BSON.
    """
    try:
        yield
    except LaminaError:
        raise
    except (DocumentTooLarge, BulkWriteError, WriteError) as error:
        raise _translate_write(error, place) from None
    except (PyMongoError, BSONError) as error:
        raise _translate(error, place) from error


def damaged(what: str) -> StoreDamaged:
    """The error for documents that cannot be read as ours."""
    return StoreDamaged(BACKEND, what, "Restore the database from a backup, or give another collection.")


def _translate_write(error: DocumentTooLarge | OperationFailure, place: str) -> LaminaError:
    """Of errors that carry what was to be written: their code is told, their text is not."""
    code = _code(error)
    if isinstance(error, DocumentTooLarge) or code in _TOO_LARGE:
        return too_large()
    if code in _AGAIN:
        return _unavailable(code, place, type(error).__name__)
    return AdapterError(BACKEND, f"{place} refused a write: {type(error).__name__} ({code})", _DOCTOR)


def too_large() -> InvalidInput:
    """The error for a memory that MongoDB's documents have no room for."""
    problem = (
        "has so many distinct words, with all else of the memory, that they exceed the 16 MiB of a document of MongoDB"
    )
    return InvalidInput("content", problem, "Split the memory, or ingest it as a document.")


def _translate(error: PyMongoError | BSONError, place: str) -> LaminaError:
    if isinstance(error, BSONError):
        return damaged(f"{place} holds what is no BSON")
    if isinstance(error, ConfigurationError):
        return ConfigError("url", "has options that the client refuses", "See the cause of this error.")
    if isinstance(error, InvalidOperation):
        return not_open(BACKEND)
    if isinstance(error, OperationFailure) and not isinstance(error, ExecutionTimeout):
        return _translate_refusal(error, place)
    if isinstance(error, ConnectionFailure | ExecutionTimeout) or error.timeout:
        what = "took too long" if error.timeout else "cannot be reached"
        return AdapterUnavailable(BACKEND, f"{place} {what}: {type(error).__name__}", _UNKNOWN)
    return AdapterError(BACKEND, f"{place}: {type(error).__name__}", _DOCTOR)


def _translate_refusal(error: OperationFailure, place: str) -> LaminaError:
    code = error.code
    name = (error.details or {}).get("codeName") or type(error).__name__
    if code in _REFUSED_LOGIN:
        remedy = "Check the user, the password and the authSource of the URL."
        return AdapterError(BACKEND, f"{place} refused the login: {name}", remedy)
    if code == _FORBIDDEN:
        remedy = "Grant the user readWrite on the database, or log in as one that has it."
        return AdapterError(BACKEND, f"{place} does not allow it: {name}", remedy)
    if code in _TOO_LARGE:
        return too_large()
    if code in _AGAIN:
        return _unavailable(code, place, name)
    return AdapterError(BACKEND, f"{place}: {name} ({code})", _DOCTOR)


def _unavailable(code: int | None, place: str, name: str) -> AdapterUnavailable:
    if code == _DISK_FULL:
        remedy = "Nothing of this call was written. Free some space on the server and try again."
        return AdapterUnavailable(BACKEND, f"there is no space left on {place}", remedy)
    return AdapterUnavailable(BACKEND, f"{place} failed for now: {name} ({code})", _UNKNOWN)


def _code(error: DocumentTooLarge | OperationFailure) -> int | None:
    if not isinstance(error, OperationFailure):
        return None
    details = error.details or {}
    failed = [*(details.get("writeErrors") or ()), *(details.get("writeConcernErrors") or ())]
    return failed[0].get("code") if failed else error.code
