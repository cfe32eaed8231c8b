"""The OpenAPI description: what FastAPI finds out by itself, and what holds for every route beside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi

from lamina.server.authentication import authenticated
from lamina.server.problems import ENVELOPE_ROOT, PROBLEM
from lamina.server.route_listing import routes_of

__all__ = ["describe"]

_BEARER: Final = "bearer"
_WRITES: Final = frozenset({"post", "put", "patch", "delete"})
_METHODS: Final = _WRITES | {"get"}
_FIELD: Final = {
    "type": "object",
    "properties": {
        "field": {"type": "string", "description": "Which one, as a path: `body.tags.0`, `query.limit`."},
        "problem": {"type": "string"},
        "remedy": {"type": "string"},
    },
    "required": ["field", "problem"],
}
_PROBLEM_SCHEMA: Final = {
    "type": "object",
    "description": "Problem details, as RFC 9457 has them.",
    "properties": {
        "type": {"type": "string", "const": "about:blank"},
        "title": {"type": "string", "description": "The kind of problem, for people."},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong, and what to do about it."},
        "code": {"type": "string", "description": "The kind of problem, for programs."},
        "errors": {"type": "array", "items": _FIELD, "description": "Which fields are wrong."},
    },
    "required": ["type", "title", "status", "detail", "code"],
}
_ENVELOPE_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "details": {"type": "array", "items": _FIELD},
            },
            "required": ["code", "message", "details"],
        }
    },
    "required": ["error"],
}
_ERRORS: Final[dict[int, tuple[str, str]]] = {
    400: ("malformed_json", "The request cannot be read"),
    401: ("unauthenticated", "The request has no valid token"),
    403: ("forbidden", "The request reaches outside what its token may do"),
    404: ("not_found", "There is no such thing here"),
    409: ("conflict", "Somebody else changed or took it first, or its state does not allow it"),
    412: ("precondition_failed", "It is not what it was"),
    413: ("too_large", "The body is too long"),
    415: ("unsupported_media_type", "The body is of the wrong kind"),
    422: ("invalid_request", "The request cannot be taken"),
    428: ("precondition_required", "The request must say what it changes"),
    429: ("rate_limited", "Too many requests"),
    500: ("internal", "The server failed"),
    502: ("provider_failed", "A model failed"),
    503: ("storage_unavailable", "The storage or a model cannot be reached now"),
}
_IDEMPOTENCY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Makes repeating harmless: under one key the request is done once, and answered alike for a day.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}
_SECURITY: Final = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token made by `lamina token create`, or a JSON Web Token where the server is set up for them. "
    "Where it may choose its project, the header `X-Project-ID` does. A server without tokens needs none.",
}


def describe(app: FastAPI) -> None:
    """Let the app describe itself in full, with the routes that it has when it is first asked."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(title=app.title, version=app.version, routes=app.routes, summary=_SUMMARY)
            _complete(made, set(_secured(app)))
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


_SUMMARY: Final = "Memory and computed context for agents."


def _complete(made: dict[str, Any], secured: set[tuple[str, str]]) -> None:
    parts = made.setdefault("components", {})
    schemas = parts.setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Problem"], schemas["ErrorEnvelope"] = _PROBLEM_SCHEMA, _ENVELOPE_SCHEMA
    parts["securitySchemes"] = {_BEARER: _SECURITY}
    for path, methods in made.get("paths", {}).items():
        for method, operation in methods.items():
            if method in _METHODS:
                _complete_operation(path, method, operation, is_secured=(path, method) in secured)


def _complete_operation(path: str, method: str, operation: dict[str, Any], *, is_secured: bool) -> None:
    operation["security"] = [{_BEARER: []}] if is_secured else []
    for parameter in operation.get("parameters", ()):
        _without_null(parameter.get("schema", {}))
    if method in _WRITES:
        operation.setdefault("parameters", []).append(_IDEMPOTENCY)
    for status in _statuses(path, method, operation, is_secured=is_secured):
        told = operation["responses"].get(str(status), {}).get("description") or _ERRORS[status][1]
        operation["responses"][str(status)] = _response(path, status, told)
    operation["responses"] = dict(sorted(operation["responses"].items()))


def _without_null(schema: dict[str, Any]) -> None:
    """A parameter of a URL or a header is left out, and never null."""
    kinds = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if len(kinds) == 1:
        del schema["anyOf"]
        schema |= kinds[0]
    elif kinds:
        schema["anyOf"] = kinds


def _statuses(path: str, method: str, operation: dict[str, Any], *, is_secured: bool) -> set[int]:
    """Which errors there can be. Any operation may name more among its own responses."""
    own = {int(each) for each in operation["responses"] if each.isdigit() and int(each) in _ERRORS}
    found = own | {400, 413, 422, 429, 500, 503}
    found |= {401, 403} if is_secured else set()
    found |= {404} if "{" in path or is_secured else set()
    found |= {409, 502} if method in _WRITES else set()
    found |= {415} if "requestBody" in operation else set()
    names = {each.get("name", "").lower() for each in operation.get("parameters", ())}
    return found | ({412, 428} if "if-match" in names else set())


def _response(path: str, status: int, description: str) -> dict[str, Any]:
    code, title = _ERRORS[status]
    if path.startswith(ENVELOPE_ROOT):
        content = {
            "application/json": _shaped("ErrorEnvelope", {"error": {"code": code, "message": title, "details": []}})
        }
    else:
        example = {"type": "about:blank", "title": title, "status": status, "detail": title, "code": code}
        content = {PROBLEM: _shaped("Problem", example)}
    return {"description": f"{description.rstrip('.')}.", "content": content}


def _shaped(schema: str, example: dict[str, Any]) -> dict[str, Any]:
    return {"schema": {"$ref": f"#/components/schemas/{schema}"}, "example": example}


def _secured(app: FastAPI) -> Iterator[tuple[str, str]]:
    """Paths and methods of the routes that need a token."""
    for route in routes_of(app.routes):
        if _depends_on(route.dependant, authenticated):
            for method in route.methods or ():
                yield route.path, method.lower()


def _depends_on(dependant: Dependant, dependency: object) -> bool:
    return any(each.call is dependency or _depends_on(each, dependency) for each in dependant.dependencies)
