"""What the client raises, as errors of ours. Nothing that the service says is quoted: it may hold stored values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pinecone import errors

from lamina.adapters._shared.code_word import code_word
from lamina.errors import AdapterError, AdapterUnavailable

__all__ = ["NAME", "translated"]

NAME: Final = "pinecone"

_AGAIN: Final = "Try again; a write that failed so may have happened, and storing it again under its id settles it."


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Raises an `AdapterUnavailable` or an `AdapterError` for what the client raises inside."""
    try:
        yield
    except errors.ApiError as error:
        raise _of_answer(error, place) from None  # which may quote what was sent
    except errors.PineconeTimeoutError as error:
        raise AdapterUnavailable(NAME, f"{place} did not answer in time", _AGAIN) from error
    except errors.PineconeConnectionError as error:
        raise AdapterUnavailable(NAME, f"{place} cannot be reached", _AGAIN) from error
    except (errors.IndexInitFailedError, errors.IndexTerminatedError) as error:
        raise AdapterError(NAME, f"{place} is not being served", "Look at it in Pinecone's console.") from error
    except errors.PineconeError as error:
        problem = f"the exchange with {place} failed ({type(error).__name__})"
        raise AdapterError(NAME, problem, "Check that the client and the service are of one age.") from None


def _of_answer(error: errors.ApiError, place: str) -> AdapterError:
    status = error.status_code
    code = f" {code_word(error.error_code)}".rstrip()
    match error:
        case errors.RateLimitError():
            return AdapterUnavailable(NAME, f"{place} is throttled, or a quota is used up (429)", _AGAIN)
        case errors.ServiceError():
            return AdapterUnavailable(NAME, f"{place} failed on the other side ({status})", _AGAIN)
        case errors.UnauthorizedError():
            return AdapterError(NAME, f"{place} refused the API key (401)", "Check api_key or PINECONE_API_KEY.")
        case errors.ForbiddenError():
            remedy = "The key lacks a role, or a quota of the project is full: see Pinecone's console."
            return AdapterError(NAME, f"{place} forbade it (403{code})", remedy)
        case errors.PaymentRequiredError():
            return AdapterError(NAME, f"{place} asks for a payment (402)", "See Pinecone's console.")
        case errors.NotFoundError():
            return AdapterError(NAME, f"{place} is not there (404)", "Check index_name and url.")
        case _ if status == 408:  # noqa: PLR2004 - Request Timeout
            return AdapterUnavailable(NAME, f"{place} did not answer in time (408)", _AGAIN)
        case _:
            return AdapterError(NAME, f"{place} did not take the request ({status}{code})")
