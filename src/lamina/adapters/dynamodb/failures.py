"""DynamoDB's failures as ours: the one place where they are translated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
)
from botocore.exceptions import ConnectionError as BotoConnectionError

from lamina.adapters._shared.code_word import code_word
from lamina.errors import AdapterError, AdapterUnavailable, ConfigError, StoreDamaged

__all__ = ["NAME", "code_of", "damaged", "is_for_now", "translated"]

NAME: Final = "dynamodb"

_FOR_NOW: Final = {
    "InternalServerError",
    "InternalFailure",
    "LimitExceededException",
    "ProvisionedThroughputExceeded",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "Throttling",
    "ThrottlingError",
    "ThrottlingException",
    "TransactionInProgressException",
}
_LOGIN: Final = {
    "AccessDeniedException",
    "ExpiredTokenException",
    "IncompleteSignature",
    "IncompleteSignatureException",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "OptInRequired",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
_SERVER: Final = 500
_AGAIN: Final = (
    "Try again. Whether a change was kept is not known; to store with the same ids again adds nothing twice."
)


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Turn what the client raises inside into an error of ours.

    What the server says of a request may quote keys and values, so that of it only the code is shown.

    Raises:
        AdapterUnavailable: the server cannot be reached, was too slow, or takes no more for now.
        StoreDamaged: the table is gone.
        AdapterError: the login, or what the user may do, is refused, an answer is not DynamoDB's, or anything else.
        ConfigError: no region is known.
    """
    try:
        yield
    except NoRegionError as error:
        raise ConfigError("region", "is not known", "Give one, such as eu-central-1, or set AWS_REGION.") from error
    except (NoCredentialsError, PartialCredentialsError, ProfileNotFound) as error:
        remedy = "Give access_key_id and secret_access_key, or set up what botocore looks for by itself."
        raise AdapterError(NAME, f"there are no credentials for {place}", remedy) from error
    except ClientError as error:
        raise _translate(error, place) from None
    except (KeyError, AttributeError) as error:  # what stands in every answer was looked for
        raise AdapterError(NAME, f"{place} gave an answer that is not DynamoDB's", "Check url and its port.") from error
    except (BotoConnectionError, HTTPClientError) as error:
        raise AdapterUnavailable(NAME, f"{place} cannot be reached: {type(error).__name__}", _AGAIN) from error
    except BotoCoreError as error:
        raise AdapterError(NAME, f"{place}: {type(error).__name__}", "If it happens again, run `lamina doctor`.") from (
            error
        )


def code_of(error: ClientError) -> str:
    """The server's name for what went wrong."""
    return code_word(error.response.get("Error", {}).get("Code"))


def is_for_now(code: str) -> bool:
    """Whether the same request may be taken later."""
    return code in _FOR_NOW


def damaged(problem: str) -> StoreDamaged:
    """The error for a table that is not ours or cannot be read."""
    return StoreDamaged(NAME, problem, "Restore the table from a backup, or give another one.")


def _translate(error: ClientError, place: str) -> AdapterError:
    code = code_of(error)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if is_for_now(code) or status >= _SERVER:
        return AdapterUnavailable(NAME, f"{place} takes no more for now ({code})", _AGAIN)
    if code in _LOGIN:
        remedy = "Check the credentials, the region, and that they allow the actions that the documentation lists."
        return AdapterError(NAME, f"{place} refused the login or the action ({code})", remedy)
    if code == "ResourceNotFoundException":
        return damaged(f"{place} is gone")
    return AdapterError(NAME, f"{place} refused a request ({code})", "If it happens again, run `lamina doctor`.")
