"""Redis's failures as ours: the one place where they are translated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import redis.exceptions as foreign

from lamina.adapters.redis.layout import BACKEND, damaged
from lamina.errors import AdapterError, AdapterUnavailable, LaminaError

__all__ = ["index_is_missing", "took_too_long", "translated"]

_AGAIN: Final = re.compile(
    "^(BUSY|CLUSTERDOWN|LOADING|MASTERDOWN|MISCONF|NOREPLICAS|TRYAGAIN|UNBLOCKED|NOGOODSLAVE)|max number of clients"
)
"""What the server says when nothing of the call's own is at fault."""
_NO_INDEX: Final = re.compile("no such index|unknown index", re.IGNORECASE)
_TIMED_OUT: Final = re.compile("timeout limit was reached", re.IGNORECASE)
_UNKNOWN: Final = (
    "Try again. Whether a change was kept is not known; what is stored again under the same id is there once."
)


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Turn what the client raises inside into an error of ours.

    The cause is left out where the server's words may quote what it was sent.

    Raises:
        AdapterUnavailable: the server cannot be reached, is loading, busy or full, or did not answer in time.
        StoreDamaged: keys of the table are not what Lamina made.
        AdapterError: the login, or what the user may do, is refused, or anything else.
    """
    try:
        yield
    except LaminaError:
        raise  # some of them are errors of the system too
    except (foreign.AuthenticationError, foreign.AuthenticationWrongNumberOfArgsError) as error:
        remedy = "Check the user and the password of the URL."
        raise AdapterError(BACKEND, f"{place} refused the login", remedy) from error
    except foreign.NoPermissionError:
        raise _not_allowed(place) from None
    except foreign.TimeoutError as error:
        raise AdapterUnavailable(BACKEND, f"{place} did not answer in time", _UNKNOWN) from error
    except (foreign.ConnectionError, OSError) as error:
        raise _unreachable(error, place) from error
    except foreign.ResponseError as error:
        raise _refused(str(error), place) from None


def index_is_missing(error: foreign.ResponseError) -> bool:
    """Whether the query engine does not know the index."""
    return _NO_INDEX.search(str(error)) is not None


def took_too_long(place: str) -> AdapterUnavailable:
    """The error for a search that was ended before it had found everything."""
    remedy = "Nothing is returned, since it would be a part. Try again, or raise timeout."
    return AdapterUnavailable(BACKEND, f"a search on {place} took too long", remedy)


def _not_allowed(place: str) -> AdapterError:
    remedy = (
        "Allow it the table's keys and the commands of hashes, sets, sorted sets, lists and scripts, PEXPIREAT, INFO "
        "and FT.*; or give query_engine=False if FT.* is what it lacks."
    )
    return AdapterError(BACKEND, f"{place} does not allow the user to do that", remedy)


def _unreachable(error: Exception, place: str) -> AdapterError:
    said = str(error)
    if said.startswith("WRONGPASS") or "NOAUTH" in said:
        return AdapterError(BACKEND, f"{place} refused the login", "Check the user and the password of the URL.")
    if isinstance(error, foreign.MaxConnectionsError) or "No connection available" in said:
        remedy = "Try again, or raise threads."
        return AdapterUnavailable(BACKEND, f"all connections to {place} were in use for too long", remedy)
    if _AGAIN.search(said):
        return AdapterUnavailable(BACKEND, f"{place} cannot serve now: {_first_words(said)}", "Try again.")
    return AdapterUnavailable(BACKEND, f"{place} cannot be reached: {type(error).__name__}", _UNKNOWN)


def _refused(said: str, place: str) -> AdapterError:
    if _is_full(said):
        remedy = "Nothing of this call was written. Raise maxmemory, or delete something, and try again."
        return AdapterUnavailable(BACKEND, f"the memory of {place} is full (maxmemory)", remedy)
    if _TIMED_OUT.search(said):
        return took_too_long(place)
    if "LIMIT exceeds" in said:
        remedy = "Ask for fewer, or raise MAXSEARCHRESULTS of the query engine."
        return AdapterError(BACKEND, f"{place} does not return so many results", remedy)
    if _AGAIN.search(said):
        return AdapterUnavailable(BACKEND, f"{place} cannot serve now: {_first_words(said)}", "Try again.")
    if said.startswith("READONLY") or "read only replica" in said:
        return AdapterError(BACKEND, f"{place} takes no writes", "Give the address of the primary.")
    if said.startswith("NOPERM") or "ACL failure" in said or "No permissions" in said:
        return _not_allowed(place)
    if "WRONGTYPE" in said:
        return damaged(f"a key of the table on {place} is of another kind than Lamina's")
    if said.startswith(("MOVED", "ASK", "CROSSSLOT")):
        remedy = "Give a server that is not a node of a cluster."
        return AdapterError(BACKEND, f"{place} is a part of a Redis Cluster", remedy)
    return AdapterError(BACKEND, f"{place} refused a command: {_first_words(said)}", "See the server's log.")


def _is_full(said: str) -> bool:
    """Whether the server says that it has no memory left."""
    return "OOM" in said.partition("script:")[0] or "used memory > 'maxmemory'" in said


def _first_words(said: str) -> str:
    """What the server says before it quotes anything."""
    return re.split(r"""['"`:,]""", said, maxsplit=1)[0].strip()[:100] or "it does not say why"
