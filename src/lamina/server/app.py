"""The server put together."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Protocol

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from lamina._version import __version__
from lamina.errors import LaminaError, ScopeError
from lamina.kernel import Kernel
from lamina.server.authentication import one_of
from lamina.server.principal import Authenticate
from lamina.server.problems import Problem, problem_of, problem_response
from lamina.server.routes import context, documents, health, intents, maintenance, memories, sessions, threads, transfer
from lamina.settings import ServerConfig

__all__ = ["Kernels", "create_app"]

log = logging.getLogger(__name__)


class Kernels(Protocol):
    """Where the kernels of the tenants come from."""

    async def of(self, tenant: str) -> Kernel:
        """The started kernel of the tenant."""


class _OneKernel:
    """The kernel of one tenant; nobody else's tokens reach it."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    async def of(self, tenant: str) -> Kernel:
        if tenant != self._kernel.config.memory.tenant:
            raise ScopeError("This server does not serve the tenant of the token.")
        return self._kernel


def create_app(
    kernel: Kernel | Kernels,
    *,
    auth: Authenticate | Collection[str] | None = None,
    settings: ServerConfig | None = None,
) -> FastAPI:
    """The server as an ASGI app over a kernel, or over the kernels of many tenants.

    `auth` is a set of tokens for the tenant `default`, or a function that tells whom a token stands for. Without
    it everybody who reaches the app may do everything: bind it to this machine only.
    """
    kernels = _OneKernel(kernel) if isinstance(kernel, Kernel) else kernel

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if isinstance(kernel, Kernel) and not kernel.is_started:
            async with kernel:
                yield
        else:
            yield  # whoever started it stops it

    app = FastAPI(title="Lamina", version=__version__, lifespan=lifespan)
    app.state.kernels = kernels
    app.state.settings = settings or ServerConfig()
    app.state.authenticate = auth if auth is None or callable(auth) else one_of(auth)
    _answer_errors(app)
    for part in (health, memories, context, intents, threads, sessions, documents, maintenance, transfer):
        app.include_router(part.router)
    return app


def _answer_errors(app: FastAPI) -> None:
    @app.exception_handler(Problem)
    async def problem(request: Request, error: Problem) -> JSONResponse:
        return problem_response(request, error)

    @app.exception_handler(LaminaError)
    async def lamina_error(request: Request, error: LaminaError) -> JSONResponse:
        told = problem_of(error)
        if told.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            log.error("A request failed", exc_info=error)
        return problem_response(request, told)

    @app.exception_handler(RequestValidationError)
    async def wrong_request(request: Request, error: RequestValidationError) -> JSONResponse:
        fields = tuple(
            {"field": ".".join(str(part) for part in each["loc"]), "problem": each["msg"]} for each in error.errors()
        )
        detail = f"{fields[0]['field']}: {fields[0]['problem']}."
        return problem_response(request, Problem(422, "invalid_request", "The request cannot be taken", detail, fields))

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> JSONResponse:
        told = Problem(error.status_code, "http_error", error.detail, error.detail, headers=dict(error.headers or {}))
        return problem_response(request, told)
