"""Errors of routes as answers."""

from __future__ import annotations

import logging
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from lamina.errors import LaminaError
from lamina.server.middleware.bodies import problem_of_http
from lamina.server.problems import Problem, problem_of, problem_response
from lamina.server.route_listing import methods_at
from lamina.telemetry import place_of

__all__ = ["answer_errors"]

log = logging.getLogger(__name__)


def answer_errors(app: FastAPI) -> None:
    """Make a problem of everything that a route raises on purpose; the rest is for the outermost middleware."""

    @app.exception_handler(Problem)
    async def problem(request: Request, error: Problem) -> JSONResponse:
        return problem_response(request.scope["path"], error)

    @app.exception_handler(LaminaError)
    async def lamina_error(request: Request, error: LaminaError) -> JSONResponse:
        told = problem_of(error)
        if told.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            log.error("A request failed: %s", place_of(error))
        return problem_response(request.scope["path"], told)

    @app.exception_handler(RequestValidationError)
    async def wrong_request(request: Request, error: RequestValidationError) -> JSONResponse:
        fields = tuple(
            {"field": _shown(".".join(str(part) for part in each["loc"])), "problem": each["msg"]}
            for each in error.errors()
        )
        detail = f"{fields[0]['field']}: {fields[0]['problem']}."
        told = Problem(422, "invalid_request", "The request cannot be taken", detail, fields)
        return problem_response(request.scope["path"], told)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> JSONResponse:
        told = problem_of_http(error)
        if told.status == HTTPStatus.METHOD_NOT_ALLOWED:
            told.headers = {**told.headers, "Allow": ", ".join(methods_at(app.routes, request.scope["path"]))}
        return problem_response(request.scope["path"], told)


def _shown(field: str) -> str:
    """The client's own name for the field, so far as it can be written down."""
    return field.encode("utf-8", "replace").decode()[:200]
