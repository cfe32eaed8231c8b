"""Firestore's failures as ours: the one place where they are translated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from google.api_core import exceptions
from google.auth.exceptions import GoogleAuthError

from lamina.errors import AdapterError, AdapterUnavailable, StoreDamaged

__all__ = ["NAME", "damaged", "translated"]

NAME: Final = "firestore"

_FOR_NOW: Final = (
    exceptions.Aborted,
    exceptions.Cancelled,
    exceptions.DeadlineExceeded,
    exceptions.InternalServerError,
    exceptions.ResourceExhausted,
    exceptions.RetryError,
    exceptions.ServiceUnavailable,
)
_AGAIN: Final = (
    "Try again. Whether a change was kept is not known; to store with the same ids again adds nothing twice."
)


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Turn what the client raises inside into an error of ours.

    What the server says of a request may quote names and values, so that of it only the kind is shown; but
    for an index that lacks, of which it says nothing but how to make it.

    Raises:
        AdapterUnavailable: the server cannot be reached, was too slow, or takes no more for now.
        AdapterError: an index is missing, the login, or what the user may do, is refused, or anything else.
    """
    try:
        yield
    except _FOR_NOW as error:
        problem = f"{place} cannot be reached, or takes no more for now ({type(error).__name__})"
        raise AdapterUnavailable(NAME, problem, _AGAIN) from error
    except exceptions.FailedPrecondition as error:
        raise _translate_precondition(error, place) from None
    except (exceptions.Forbidden, exceptions.Unauthorized, GoogleAuthError) as error:
        remedy = "Check the credentials, the project, and that they may read and write its Firestore."
        raise AdapterError(NAME, f"{place} refused the login ({type(error).__name__})", remedy) from None
    except exceptions.NotFound:
        remedy = "Check project_id and database; a database is made in Google's console or with gcloud."
        raise AdapterError(NAME, f"{place}: there is no such database", remedy) from None
    except exceptions.GoogleAPICallError as error:
        problem = f"{place} refused a request ({type(error).__name__})"
        raise AdapterError(NAME, problem, "If it happens again, run `lamina doctor`.") from None


def damaged(problem: str) -> StoreDamaged:
    """The error for documents that are not ours or cannot be read."""
    return StoreDamaged(NAME, problem, "Restore the collection from a backup, or give another one.")


def _translate_precondition(error: exceptions.FailedPrecondition, place: str) -> AdapterError:
    said = str(error.message)
    if "index" not in said:
        return AdapterError(NAME, f"{place} refused a request (FailedPrecondition)", "See the log of the project.")
    remedy = "Make it, and those that `firestore_indexes()` gives; until it is built, such reads are refused."
    return AdapterError(NAME, f"{place} lacks an index. Firestore says: {said.rstrip('.')}", remedy)
