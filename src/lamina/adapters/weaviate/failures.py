"""What the client raises, as errors of ours. Nothing that the service says is quoted: it may hold stored values.

So those have no cause either, of which a traceback would show the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import grpc
import httpx
from weaviate import exceptions

from lamina.errors import AdapterError, AdapterUnavailable

__all__ = ["NAME", "is_too_large", "translated"]

NAME: Final = "weaviate"

_AGAIN: Final = "Try again; a write that failed so may have happened, and storing it again under its id settles it."
_PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})
"""Of HTTP: what may be otherwise a moment later."""

_DOWN: Final = (
    exceptions.WeaviateConnectionError,
    exceptions.WeaviateStartUpError,
    exceptions.WeaviateGRPCUnavailableError,
    httpx.TransportError,
)


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Raises an `AdapterUnavailable` or an `AdapterError` for what the client raises inside."""
    try:
        yield
    except (exceptions.WeaviateTimeoutError, httpx.TimeoutException) as error:
        raise AdapterUnavailable(NAME, f"{place} did not answer in time", _AGAIN) from error
    except _DOWN as error:
        raise AdapterUnavailable(NAME, f"{place} cannot be reached", _AGAIN) from error
    except exceptions.UnexpectedStatusCodeError as error:
        call = _call(error)
        raise (_of_status(error.status_code, place) if call is None else _of_call(call, place)) from None
    except exceptions.WeaviateInsertManyAllFailedError:
        raise AdapterError(NAME, f"{place} did not take the memories", _AGAIN) from None
    except exceptions.WeaviateBaseError as error:
        call = _call(error)
        if call is not None:
            raise _of_call(call, place) from None
        problem = f"the exchange with {place} failed ({type(error).__name__})"
        raise AdapterError(NAME, problem, "Check that the client and the service are of one age.") from None
    except grpc.RpcError as error:
        raise _of_call(error, place) from None


def is_too_large(error: exceptions.WeaviateQueryError) -> bool:
    """Whether the answer would be larger than a message may be."""
    call = _call(error)
    return call is not None and "larger than max" in str(call.details())


def _call(error: BaseException) -> grpc.Call | None:
    """The failed call behind the client's error, which does not tell its status."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, grpc.RpcError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None


def _of_call(call: grpc.Call, place: str) -> AdapterError:
    code = call.code()
    match code:
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return AdapterUnavailable(NAME, f"{place} did not answer in time", _AGAIN)
        case grpc.StatusCode.UNAVAILABLE:
            return AdapterUnavailable(NAME, f"{place} cannot be reached (gRPC)", _AGAIN)
        case grpc.StatusCode.RESOURCE_EXHAUSTED | grpc.StatusCode.ABORTED | grpc.StatusCode.CANCELLED:
            return AdapterUnavailable(NAME, f"{place} is overloaded, full or shutting down ({code.name})", _AGAIN)
        case grpc.StatusCode.UNAUTHENTICATED:
            return AdapterError(NAME, f"{place} refused the API key", "Check api_key.")
        case grpc.StatusCode.PERMISSION_DENIED:
            return AdapterError(NAME, f"{place} forbade it", "Give the key's user a role for this collection.")
        case _:
            return AdapterError(NAME, f"{place} did not take the request ({code.name})")


def _of_status(status: int, place: str) -> AdapterError:
    if status in _PASSING:
        return AdapterUnavailable(NAME, f"{place} is overloaded or failed on the other side ({status})", _AGAIN)
    match status:
        case 401:
            return AdapterError(NAME, f"{place} refused the API key (401)", "Check api_key.")
        case 403:
            return AdapterError(NAME, f"{place} forbade it (403)", "Give the key's user a role for this collection.")
        case 404:
            return AdapterError(NAME, f"{place} has no such thing (404)", "Check url and table.")
        case _:
            return AdapterError(NAME, f"{place} did not take the request ({status})")
