"""Errors on the wire: problem details (RFC 9457) from the one error tree, and the envelope of `/utils`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from fastapi.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from lamina.errors import (
    AdapterUnavailable,
    ConfigError,
    Conflict,
    ContextOverflowError,
    InvalidInput,
    InvalidType,
    LaminaError,
    NoModelConfiguredError,
    NotFound,
    PackExists,
    ProviderError,
    ProviderUnavailable,
    ScopeError,
    ThreadArchivedError,
    Unsupported,
)

__all__ = ["ENVELOPE_ROOT", "PROBLEM", "Problem", "problem_of", "problem_response", "send_problem"]

PROBLEM: Final = "application/problem+json"
ENVELOPE_ROOT: Final = "/utils/"

_RETRY_AFTER: Final = {"Retry-After": "1"}


@dataclass(eq=False)  # not frozen: a context manager sets the traceback of what passes through it
class Problem(Exception):
    """An answer that is an error. `code` is for programs, `detail` for people; `errors` name the fields."""

    status: int
    code: str
    title: str
    detail: str
    errors: tuple[Mapping[str, Any], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


_KINDS: Final[tuple[tuple[type[LaminaError], int, str, str], ...]] = (
    (InvalidInput, 422, "invalid_input", "A value cannot be taken"),
    (InvalidType, 422, "invalid_type", "A value has the wrong type"),
    (NotFound, 404, "not_found", "There is no such thing here"),
    (PackExists, 409, "already_exists", "It is there already"),
    (Conflict, 409, "conflict", "Somebody else changed or took it first"),
    (ScopeError, 403, "forbidden", "The request reaches outside what its token may do"),
    (ThreadArchivedError, 409, "thread_archived", "The thread is archived"),
    (ContextOverflowError, 422, "context_overflow", "The context is above the hard limit"),
    (NoModelConfiguredError, 409, "no_model", "The server has no language model"),
    (Unsupported, 422, "unsupported", "The storage cannot do that"),
    (ConfigError, 422, "invalid_setting", "A setting cannot be used"),
    (AdapterUnavailable, 503, "storage_unavailable", "The storage cannot be reached now"),
    (ProviderUnavailable, 503, "provider_unavailable", "A model cannot be reached now"),
    (ProviderError, 502, "provider_failed", "A model failed"),
)
"""The first that fits says what the client sees."""


def problem_of(error: LaminaError) -> Problem:
    """What the client is told. What went wrong inside the server is not in it: that stands in its log."""
    for kind, status, code, title in _KINDS:
        if isinstance(error, kind):
            headers = _RETRY_AFTER if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
            inside = status >= HTTPStatus.INTERNAL_SERVER_ERROR
            return Problem(status, code, title, title if inside else str(error), _fields_of(error), headers)
    return Problem(500, "internal", "The server failed", "The server failed; its log says more.")


async def send_problem(problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the problem, from a middleware."""
    await problem_response(scope["path"], problem)(scope, receive, send)


def problem_response(path: str, problem: Problem) -> JSONResponse:
    """The answer, in the form that the path has promised."""
    errors = [dict(each) for each in problem.errors]
    if path.startswith(ENVELOPE_ROOT):
        body: dict[str, Any] = {"error": {"code": problem.code, "message": problem.detail, "details": errors}}
        return JSONResponse(body, problem.status, headers=dict(problem.headers))
    body = {
        "type": "about:blank",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        "code": problem.code,
    }
    if errors:
        body["errors"] = errors
    return JSONResponse(body, problem.status, headers=dict(problem.headers), media_type=PROBLEM)


def _fields_of(error: LaminaError) -> tuple[Mapping[str, Any], ...]:
    """What the error is about, in pieces that a client can make the same error of."""
    match error:
        case InvalidInput() | InvalidType() | ConfigError():
            return ({"field": error.field, "problem": error.problem, "remedy": error.remedy},)
        case NotFound():
            return ({"field": error.kind, "problem": "is not here", "id": error.id},)
        case ThreadArchivedError():
            return ({"field": "thread", "problem": "is archived", "id": error.id},)
        case PackExists():
            return ({"field": "pack", "problem": error.problem, "remedy": error.remedy, "id": error.name},)
        case Conflict():
            return ({"field": error.subject, "problem": error.problem, "remedy": error.remedy},)
        case ContextOverflowError():
            return ({"field": "context", "problem": "is too large", "tokens": error.tokens, "limit": error.limit},)
        case NoModelConfiguredError():
            return ({"field": error.feature, "problem": "needs a language model"},)
    return ()
