"""What a server says went wrong becomes the error that the library would have raised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from lamina.errors import (
    AdapterError,
    AdapterUnavailable,
    ConfigError,
    Conflict,
    ContextOverflowError,
    DocumentNotFound,
    InvalidInput,
    InvalidType,
    LaminaError,
    MemoryNotFound,
    MessageNotFound,
    NoModelConfiguredError,
    NotFound,
    PackExists,
    PackNotFound,
    ProviderError,
    ProviderUnavailable,
    ScopeError,
    ThreadArchivedError,
    ThreadNotFound,
    Unsupported,
)

__all__ = ["SERVER", "error_of", "readable"]

SERVER: Final = "Lamina server"
_KINDS: Final[dict[str, type[NotFound]]] = {
    each.kind: each for each in (MemoryNotFound, MessageNotFound, DocumentNotFound, PackNotFound, ThreadNotFound)
}
_FIELD_ERRORS: Final[dict[str, type[InvalidInput | InvalidType | ConfigError]]] = {
    "invalid_input": InvalidInput,
    "invalid_type": InvalidType,
    "invalid_setting": ConfigError,
}
_ID_ERRORS: Final[dict[str, type[PackExists | ThreadArchivedError]]] = {
    "already_exists": PackExists,
    "thread_archived": ThreadArchivedError,
}
_REMEDY: Final = "Correct it and call again."
_TRY_AGAIN: Final = "Try again a little later."


def error_of(status: int, problem: Mapping[str, Any]) -> LaminaError:
    """The error of a status and a problem (RFC 9457); of one that is unknown, the kind that its status says."""
    code = str(problem.get("code", ""))
    detail = str(problem.get("detail") or problem.get("title") or f"it answered {status}")
    errors = problem.get("errors")
    facts = next((each for each in errors if isinstance(each, Mapping)), {}) if isinstance(errors, list) else {}
    return _by_code(code, detail, facts) or _by_status(status, detail, facts)


@contextmanager
def readable() -> Iterator[None]:
    """Within, an answer is read: one that is not as it must be is an `AdapterError`."""
    try:
        yield
    except LaminaError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        problem = f"its answer cannot be read ({type(error).__name__})"
        raise AdapterError(SERVER, problem, "Check that the address is that of a Lamina server of this version.") from (
            error
        )


def _by_code(code: str, detail: str, facts: Mapping[str, Any]) -> LaminaError | None:
    field, problem = str(facts.get("field", "")), str(facts.get("problem", detail))
    remedy = str(facts.get("remedy", _REMEDY))
    if code in _FIELD_ERRORS and facts:
        return _FIELD_ERRORS[code](field, problem, remedy)
    if code in _ID_ERRORS and "id" in facts:
        return _ID_ERRORS[code](str(facts["id"]))
    match code:
        case "not_found" if "id" in facts:
            return _KINDS.get(field, NotFound)(str(facts["id"]))
        case "conflict" if facts:
            return Conflict(field, problem, remedy)
        case "context_overflow" if isinstance(facts.get("tokens"), int) and isinstance(facts.get("limit"), int):
            return ContextOverflowError(facts["tokens"], facts["limit"])
        case "no_model":
            return NoModelConfiguredError(field or "This")
        case "unsupported":
            return Unsupported("The server's storage", "this", detail)
        case "provider_unavailable":
            return ProviderUnavailable(SERVER, detail, _TRY_AGAIN)
        case "provider_failed":
            return ProviderError(SERVER, detail)
    return None


def _by_status(status: int, detail: str, facts: Mapping[str, Any]) -> LaminaError:
    match status:
        case 401 | 403:
            return ScopeError(detail)
        case 404:
            return NotFound(str(facts.get("id", "")))
        case 409 | 412:
            return Conflict("What was to be changed", detail.rstrip("."))
        case 400 | 413 | 415 | 422:
            field = str(facts.get("field") or "request")
            return InvalidInput(
                field.removeprefix("body.").removeprefix("query."),
                str(facts.get("problem", detail)).rstrip("."),
                _REMEDY,
            )
        case 429 | 503 | 504:
            return AdapterUnavailable(SERVER, detail.rstrip("."), _TRY_AGAIN)
    return AdapterError(SERVER, f"it answered {status}: {detail}".rstrip("."))
