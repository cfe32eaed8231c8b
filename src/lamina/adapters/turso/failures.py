"""libSQL's failures as ours: the one place where they are translated. Stored values and tokens are never quoted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

import httpx2

from lamina.errors import AdapterError, AdapterUnavailable, InvalidInput, LaminaError, StoreDamaged

__all__ = ["BACKEND", "BUSY", "Failed", "damaged", "translated"]

BACKEND: Final = "turso"

_SAID: Final = 150
_REPORT: Final = "If it happens again, run `lamina doctor`."
_UNKNOWN: Final = (
    "Try again. Whether a change was kept is not known; storing again under the same id adds nothing twice."
)
_AGAIN: Final = "Nothing of this call was written. Try again."
BUSY: Final = "TRANSACTION_BUSY"
_BUSY: Final = ("database is locked", "database table is locked", "TRANSACTION_TIMEOUT", BUSY)
_BACKUP: Final = "Restore the database from a backup, or give another `table`."
_RIGHTS: Final = "Check the path, and the rights to it."

_Known: TypeAlias = tuple[tuple[str, ...], type[AdapterError], str, str]
_KNOWN: Final[tuple[_Known, ...]] = (
    (_BUSY, AdapterUnavailable, "is busy with another writer", _AGAIN),
    (("STREAM_EXPIRED", "CONNECTION_POISONED"), AdapterUnavailable, "ended the call", _AGAIN),
    (("disk is full", "disk I/O error"), AdapterUnavailable, "has a disk that is full or fails", _AGAIN),
    (
        ("BLOCKED", "are blocked"),
        AdapterUnavailable,
        "takes no such calls now",
        f"Look at your plan's limits. {_AGAIN}",
    ),
    (("RESPONSE_TOO_LARGE",), AdapterError, "gives no answer so large as one memory", "Raise the server's limit."),
    (("file is not a database", "image is malformed"), StoreDamaged, "cannot be read", _BACKUP),
    (("no such table", "no such column"), StoreDamaged, "lacks what Lamina made there", _BACKUP),
    (("unable to open", "readonly database", "not authorized"), AdapterError, "cannot be opened for writing", _RIGHTS),
)
"""What stands in the code or the words of an answer, and what it means."""

_OF_REPLICA: Final[dict[str, tuple[type[AdapterError], str, str]]] = {
    "REPLICA_BEHIND": (AdapterUnavailable, "what was written has not come to the replica yet", "Try again."),
    "REPLICA_DOWN": (AdapterUnavailable, "the replica cannot be brought up to date now", "Try again."),
    "REPLICA_ENDED": (AdapterError, "the process that keeps the replica in step ended", _REPORT),
    "REPLICA_AUTH": (AdapterError, "the login for the replica was refused", "Check auth_token."),
    "REPLICA_PROTOCOL": (
        AdapterError,
        "the server does not replicate in the way that the installed libsql asks for",
        "Use a database on Turso; or, for a server of your own, `pip install libsql==0.1.8`.",
    ),
    "REPLICA_BROKEN": (
        StoreDamaged,
        "the replica does not go with the database",
        "Delete the file at replica_path and those beside it whose names begin as its name does; it is made anew.",
    ),
}


class Failed(Exception):
    """What the database answered instead of a result.

    Attributes:
        code: The server's word for it, or "".
        status: The HTTP status if that is all there is, or 0.
    """

    def __init__(self, said: str, code: str = "", status: int = 0) -> None:
        super().__init__(code or str(status or ""))  # not what it said, which might quote a value
        self.said = said
        self.code = code
        self.status = status

    @property
    def is_busy(self) -> bool:
        """Whether somebody else is writing."""
        return any(each in self.said or each in self.code for each in _BUSY)

    @property
    def is_too_large(self) -> bool:
        """Whether the answer would have been larger than the server gives."""
        return "RESPONSE_TOO_LARGE" in self.code


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Turn what a client raises inside into an error of ours, with its cause.

    Raises:
        AdapterUnavailable: the database cannot be reached, is busy, full or throttles.
        StoreDamaged: it, or what Lamina made in it, cannot be read.
        InvalidInput: an entry is larger than the server takes.
        AdapterError: the login is refused, the address is wrong, or anything else.
    """
    try:
        yield
    except LaminaError:
        raise
    except Failed as error:
        raise _translate(error, place) from error
    except OSError as error:
        raise AdapterError(BACKEND, f"{place} cannot be opened: {type(error).__name__}", _RIGHTS) from error
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
        raise AdapterUnavailable(BACKEND, f"{place} cannot be reached: {type(error).__name__}", _AGAIN) from error
    except httpx2.TimeoutException as error:
        problem = f"{place} did not answer in time: {type(error).__name__}"
        raise AdapterUnavailable(BACKEND, problem, f"{_UNKNOWN} Or raise `timeout`.") from error
    except httpx2.HTTPError as error:
        problem = f"the connection to {place} broke: {type(error).__name__}"
        raise AdapterUnavailable(BACKEND, problem, _UNKNOWN) from error


def damaged(what: str) -> StoreDamaged:
    """The error for rows that cannot be read as ours."""
    return StoreDamaged(BACKEND, what, _BACKUP)


def _translate(error: Failed, place: str) -> LaminaError:
    if error.status:
        return _of_status(error.status, place)
    if error.code in _OF_REPLICA:
        kind, problem, remedy = _OF_REPLICA[error.code]
        said = f" ({error.said[:_SAID]})" if error.said else ""  # about connections and files, never about rows
        return kind(BACKEND, f"{place}: {problem}{said}", remedy)
    if "too big" in error.said:
        return InvalidInput("content", f"with all else of the entry is larger than {place} takes", "Store less text.")
    for words, kind, problem, remedy in _KNOWN:
        if any(word in error.said or word in error.code for word in words):
            return kind(BACKEND, f"{place} {problem}", remedy)
    return AdapterError(BACKEND, f"{place} refused a statement ({error.code or 'no code'})", _REPORT)


def _of_status(status: int, place: str) -> AdapterError:
    if status in {401, 403}:
        return AdapterError(BACKEND, f"{place} refused the login ({status})", "Check auth_token.")
    if status == 404:  # noqa: PLR2004
        return AdapterError(BACKEND, f"{place} has no database there (404)", "Check the url.")
    if status == 413:  # noqa: PLR2004
        return AdapterError(BACKEND, f"{place} does not take a call so large (413)", "Store fewer entries at once.")
    if status == 429 or status >= 500:  # noqa: PLR2004
        return AdapterUnavailable(BACKEND, f"{place} fails or throttles ({status})", _UNKNOWN)
    return AdapterError(BACKEND, f"{place} answered {status}", "Check the url; it must speak Hrana over HTTP (/v2).")
