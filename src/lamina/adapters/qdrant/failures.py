"""Qdrant's failures as ours: the one place where they are translated."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import httpx
from pydantic import ValidationError
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from lamina.errors import AdapterError, AdapterUnavailable, LaminaError, StoreDamaged

__all__ = ["BACKEND", "damaged", "translated", "was_refused_as"]

BACKEND: Final = "qdrant"

_AGAIN: Final = (
    "Try again. Whether a change was kept is not known; a memory that is stored again by its id is there once."
)
_REFUSED_LOGIN: Final = {401, 403}
_TOO_LARGE: Final = 413
_NOT_FOUND: Final = 404
_BUSY: Final = {408, 425, 429}
_OWN_FAULT: Final = 500


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Turn what the client raises inside into an error of ours, with its cause if that quotes no answer.

    Raises:
        AdapterUnavailable: the server cannot be reached, is overloaded or full, or failed at its task; or another
            process has the folder open.
        AdapterError: the key is refused, the collection is gone, or the request is refused as it is.
    """
    try:
        yield
    except LaminaError:
        raise
    except (ApiException, QdrantException, sqlite3.Error, OSError, RuntimeError, ValueError, LookupError) as error:
        cause = error.source if isinstance(error, ResponseHandlingException) else error
        quotes = isinstance(cause, UnexpectedResponse | ValidationError | json.JSONDecodeError)
        raise _translate(error, place) from (None if quotes else cause)


def damaged(what: str) -> StoreDamaged:
    """The error for what cannot be read as ours."""
    return StoreDamaged(BACKEND, what, "Give another table, or restore the collection from a snapshot.")


def was_refused_as(error: BaseException, *statuses: int) -> bool:
    """Whether the server answered with one of these statuses; an error of the local engine has none."""
    return isinstance(error, UnexpectedResponse) and error.status_code in statuses


def _translate(error: Exception, place: str) -> AdapterError:
    if isinstance(error, UnexpectedResponse):
        return _of_status(error.status_code or 0, place)
    if isinstance(error, ResponseHandlingException):
        return _of_transport(error.source, place)
    if isinstance(error, ApiException | QdrantException):  # it asks for a pause (429 with Retry-After)
        return AdapterUnavailable(BACKEND, f"{place} is asked too much", "Try again later.")
    if isinstance(error, ValidationError | json.JSONDecodeError):
        return _of_transport(error, place)
    if isinstance(error, sqlite3.Error | OSError):
        return AdapterUnavailable(BACKEND, f"{place} cannot be used now: {type(error).__name__}", _AGAIN)
    if "already accessed" in str(error):  # the local engine has no errors of its own
        remedy = "Close it there, or run a Qdrant server, which many processes may use."
        return AdapterUnavailable(BACKEND, f"another process has {place} open", remedy)
    return AdapterError(BACKEND, f"{place} refused a request: {type(error).__name__}", "See the cause of this error.")


def _of_status(status: int, place: str) -> AdapterError:
    if status in _REFUSED_LOGIN:
        remedy = "Check api_key, and that it may write to this collection."
        return AdapterError(BACKEND, f"{place} refused the key (HTTP {status})", remedy)
    if status == _TOO_LARGE:
        remedy = "Nothing of this request was written. Store shorter texts, or raise service.max_request_size_mb there."
        return AdapterError(BACKEND, f"a request is larger than {place} takes", remedy)
    if status == _NOT_FOUND:
        remedy = "If the collection was dropped, close the adapter and call initialize again."
        return AdapterError(BACKEND, f"{place} does not have what was asked for (HTTP 404)", remedy)
    if status in _BUSY:
        return AdapterUnavailable(BACKEND, f"{place} is asked too much (HTTP {status})", "Try again later.")
    if status >= _OWN_FAULT:
        return AdapterUnavailable(BACKEND, f"{place} failed (HTTP {status}); its log says why", _AGAIN)
    remedy = "Its log says why; a strict mode of the collection may forbid it."
    return AdapterError(BACKEND, f"{place} refused a request (HTTP {status})", remedy)


def _of_transport(source: Exception, place: str) -> AdapterError:
    if isinstance(source, httpx.TimeoutException):
        return AdapterUnavailable(BACKEND, f"{place} did not answer in time", _AGAIN)
    if isinstance(source, httpx.TransportError):
        return AdapterUnavailable(BACKEND, f"{place} cannot be reached: {type(source).__name__}", _AGAIN)
    if isinstance(source, ValueError):
        return AdapterError(BACKEND, f"{place} gave an answer that is not Qdrant's", "Check url and its port.")
    return AdapterError(BACKEND, f"{place} cannot be talked to: {type(source).__name__}", "Check url.")
