"""Failures of a Supabase project as ours: the one place where they are translated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import httpx2

from lamina.errors import AdapterError, AdapterUnavailable, LaminaError, ScopeError, StoreDamaged

__all__ = ["BACKEND", "MISSING", "Refused", "damaged", "translated"]

BACKEND: Final = "supabase"

MISSING: Final = frozenset({"PGRST202", "42883"})
"""The codes for a function that is not there: the API knows none, or has not noticed yet that it is gone."""

_STALE: Final = {"PT409", "40P01"}
"""Raised by the functions when something has changed; a deadlock, which rolled everything back, is as good as that."""
_FULL: Final = "53100"
_SPACE: Final = "Nothing of this call was written. Free some space, or enlarge the project's disk."
_SAID: Final[dict[str, tuple[type[AdapterError], str, str]]] = {
    "57014": (
        AdapterUnavailable,
        "a statement took too long",
        "Nothing of this call was written. Give fewer at a time, or raise the role's statement_timeout.",
    ),
    _FULL: (AdapterUnavailable, "the disk is full", _SPACE),
    "25006": (AdapterUnavailable, "the database takes no writes", _SPACE),
    "LM002": (
        StoreDamaged,
        "this collection was made by a newer Lamina",
        "Use the newest Lamina with it; it was not changed.",
    ),
    "LM003": (AdapterError, "there is a table of this name that Lamina did not make", "Choose another."),
    "LM004": (AdapterError, "pgvector 0.8 or newer is needed", "Run ALTER EXTENSION vector UPDATE, or upgrade."),
    "PGRST106": (AdapterError, "the API does not expose this schema", "Add it in the project's API settings."),
}
"""By code: the error, what it says, and the remedy."""
_DAMAGED: Final = ("XX001", "XX002", "42P01", "42703")
_QUOTING: Final = ("22", "23")
"""Classes of errors, data and integrity, whose text quotes values of rows."""
_AGAIN: Final = ("08", "53", "55", "57", "58", "40")
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_TOO_LARGE: Final = 413
_TOO_MANY: Final = 429
_SHOWN_CHARS: Final = 200

_UNKNOWN: Final = (
    "Try again. Whether a change was kept is not known; storing again under the same id makes no second memory."
)


class Refused(Exception):
    """An answer that is no success: its status, and what PostgREST or PostgreSQL says of it.

    `code` is empty where something before PostgREST answered, such as a gateway with a page of HTML. `wait` is how
    many seconds it asks to wait.
    """

    def __init__(
        self, status: int, code: str = "", message: str = "", *, details: str = "", wait: float | None = None
    ) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.code = code
        self.message = message
        self.details = details
        self.wait = wait

    @property
    def is_stale(self) -> bool:
        """Whether a commit was refused because something has changed that it was worked out from."""
        return self.code in _STALE

    @property
    def may_pass(self) -> bool:
        """Whether the same request may succeed a moment later."""
        if self.code.startswith("PGRST"):
            return self.code.startswith("PGRST0")
        if self.code:
            return self.code.startswith(("08", "53", "57P", "58")) and self.code != _FULL
        return self.status == _TOO_MANY or self.status in {500, 502, 503, 504, 520, 521, 522, 523, 524}


@contextmanager
def translated(place: str, setup: str) -> Iterator[None]:
    """Turn what an HTTP call raises inside into an error of ours, with its cause.

    Args:
        place: Where the project is, without keys.
        setup: How to make what is missing there.

    Raises:
        AdapterUnavailable: the project cannot be reached, is throttled, paused or full, or took too long.
        ScopeError: the token of a user does not reach this tenant.
        StoreDamaged: tables are gone or were made by a newer Lamina.
        AdapterError: the key is refused, the functions are missing, or anything else.
    """
    try:
        yield
    except LaminaError:
        raise
    except Refused as refusal:
        if refusal.code.startswith(_QUOTING):
            raise AdapterError(BACKEND, f"{place} refused a value ({refusal.code})") from None
        raise _translate(refusal, place, setup) from refusal
    except httpx2.TimeoutException as error:
        raise AdapterUnavailable(BACKEND, f"{place} did not answer in time", _UNKNOWN) from error
    except (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.DecodingError) as error:
        raise AdapterError(BACKEND, f"{place} cannot be talked to: {type(error).__name__}") from error
    except httpx2.TransportError as error:
        raise AdapterUnavailable(BACKEND, f"{place} cannot be reached: {type(error).__name__}", _UNKNOWN) from error


def damaged(what: str) -> StoreDamaged:
    """The error for rows that cannot be read as ours."""
    return StoreDamaged(BACKEND, what, "Restore the database from a backup, or give another table.")


def _translate(refusal: Refused, place: str, setup: str) -> LaminaError:
    code = refusal.code
    if code in MISSING:
        return AdapterError(BACKEND, f"{place} lacks the functions of this collection", setup)
    if refusal.details == "lamina:tenant":
        return ScopeError("The token that the adapter was given does not reach the tenant of this call.")
    if code in _SAID:
        kind, problem, remedy = _SAID[code]
        return kind(BACKEND, f"{place}: {problem}", remedy)
    if code in _DAMAGED:
        return damaged(f"{place} lacks what Lamina made there, or cannot be read ({code})")
    if code.startswith((*_AGAIN, "PGRST0")):
        return AdapterUnavailable(BACKEND, f"{place} failed for now ({code})", _UNKNOWN)
    if refusal.status in {_UNAUTHORIZED, _FORBIDDEN}:
        return _of_login(refusal, place)
    return _of_answer(refusal, place)


def _of_login(refusal: Refused, place: str) -> AdapterError:
    if refusal.code == "42501":
        remedy = (
            "Give service_key, on a server of yours, or the token of a signed-in user as user_token: the anon key "
            "alone reaches no memories."
        )
        return AdapterError(BACKEND, f"the key may not do this in {place}", remedy)
    remedy = "Check the keys, and that a user's token has not expired."
    return AdapterError(BACKEND, f"{place} refuses the key ({refusal.code or refusal.status})", remedy)


def _of_answer(refusal: Refused, place: str) -> AdapterError:
    status = refusal.status
    if 300 <= status < 400:  # noqa: PLR2004 - redirects
        problem = f"{place} redirects elsewhere ({status}), which is not followed because the request carries keys"
        return AdapterError(BACKEND, problem, "Set url to the final address.")
    if status == _TOO_MANY:
        wait = "a while" if refusal.wait is None else f"{refusal.wait:.0f} s"
        return AdapterUnavailable(BACKEND, f"{place} is asked too often ({status})", f"Try again after {wait}.")
    if status == _TOO_LARGE:
        return AdapterError(BACKEND, f"{place} takes no request of this size ({status})", "Give fewer at a time.")
    if status >= 500 and not refusal.code:  # noqa: PLR2004 - a gateway's, or a project that is paused
        return AdapterUnavailable(BACKEND, f"{place} failed ({status})", _UNKNOWN)
    if status == _NOT_FOUND and not refusal.code:
        return AdapterError(BACKEND, f"there is no API of a project at {place}", "Check url.")
    # A gateway, which gives no code, may quote anything.
    said = f": {refusal.message[:_SHOWN_CHARS]}" if refusal.message and refusal.code else ""
    return AdapterError(BACKEND, f"{place} answered {status} {refusal.code}".rstrip() + said)
