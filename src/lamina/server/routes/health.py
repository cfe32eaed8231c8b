"""Whether the server lives, whether it can serve, and what it has done."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import Response
from pydantic import BaseModel

from lamina.domain.memory import DEFAULT_NAME
from lamina.errors import LaminaError, ScopeError
from lamina.server.authentication import principal_of
from lamina.server.metrics import CONTENT_TYPE
from lamina.server.principal import Access
from lamina.server.problems import Problem
from lamina.telemetry import place_of

__all__ = ["router"]

router = APIRouter(tags=["health"])
log = logging.getLogger(__name__)

_SECONDS: Final = 5.0
_NO_DIGEST: Final = "0" * 64


class Health(BaseModel):
    """How it is."""

    status: str = "ok"


@router.get("/healthz", summary="Whether the process lives")
async def healthz() -> Health:
    """Needs no token, and touches no storage."""
    return Health()


@router.get("/readyz", summary="Whether the storage can be reached", responses={503: {"description": "It cannot."}})
async def readyz(request: Request) -> Health:
    """Needs no token. Reads from every store that the server needs; 503 if one does not answer in 5 seconds."""
    try:
        async with asyncio.timeout(_SECONDS):
            await _read_something(request.app)
    except (LaminaError, TimeoutError) as error:
        log.warning("The server is not ready: %s", place_of(error))
        detail = "The storage cannot be reached now."
        raise Problem(503, "not_ready", "The server is not ready", detail, headers={"Retry-After": "5"}) from error
    return Health(status="ready")


def _reader_of_metrics(request: Request) -> None:
    how = request.app.state.settings.metrics
    if how == "off":
        raise Problem(404, "not_found", "There is no such thing here", "The server shows no metrics.")
    if how == "admin" and Access.ADMIN not in principal_of(request.scope).access:
        raise ScopeError("The token does not have the scope 'admin'.")


@router.get(
    "/metrics",
    summary="What the process has done and what is stored, for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}, "description": "Counts in the text format of Prometheus."}},
    dependencies=[Depends(_reader_of_metrics)],
)
async def metrics(request: Request) -> Response:
    """What this process has done, and what is stored, counted at most every five minutes.

    Unless the settings say otherwise, needs a token with the scope `admin`.
    """
    await request.app.state.inventory.refresh()
    return Response(request.app.state.metrics.exposition(), headers={"Content-Type": CONTENT_TYPE})


async def _read_something(app: FastAPI) -> None:
    if app.state.store is not None:
        await app.state.store.find_token(_NO_DIGEST)
    config: Any = getattr(app.state.kernels, "config", None)
    kernel = await app.state.kernels.of(DEFAULT_NAME if config is None else config.memory.tenant)
    await kernel.memory_engine.get("readyz")
