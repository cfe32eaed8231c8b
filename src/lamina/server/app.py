"""The server put together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any, Final, Protocol

from fastapi import Depends, FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware

from lamina._version import __version__
from lamina.errors import ScopeError
from lamina.kernel import Kernel
from lamina.memory.counting import MemoryCounts
from lamina.ports.clock import Clock, utc_now
from lamina.ports.server_store import ServerStore
from lamina.server.answering import answer_errors
from lamina.server.authentication import one_of
from lamina.server.description import describe
from lamina.server.inventory import Inventory
from lamina.server.metrics import Metrics
from lamina.server.middleware.authenticating import Authenticating
from lamina.server.middleware.bodies import Bodies
from lamina.server.middleware.headers import SecurityHeaders
from lamina.server.middleware.hosts import LOOPBACK_NAMES, Hosts
from lamina.server.middleware.idempotency import Idempotency
from lamina.server.middleware.lingering import Lingering
from lamina.server.middleware.observing import Observing
from lamina.server.middleware.rate_limits import RateLimits
from lamina.server.middleware.time_limits import TimeLimits
from lamina.server.principal import Authenticate
from lamina.server.requests import RequestsInProcess
from lamina.server.routes import (
    context,
    documents,
    health,
    intents,
    maintenance,
    memories,
    pack_memories,
    packs,
    sessions,
    threads,
    transfer,
)
from lamina.server.strict_requests import check_request
from lamina.settings import RateLimit, ServerConfig

__all__ = ["Kernels", "ask_for_tokens", "create_app"]

_PARTS: Final = (
    health,
    memories,
    context,
    intents,
    threads,
    sessions,
    documents,
    packs,
    pack_memories,
    maintenance,
    transfer,
)
_LEASE_BEYOND_THE_TIME_LIMIT: Final = timedelta(seconds=30)
_LEASE_WITHOUT_TIME_LIMIT: Final = timedelta(minutes=10)
_TAKEN: Final = ["Authorization", "Content-Type", "Idempotency-Key", "If-Match", "X-Project-ID", "X-Request-ID"]
_EXPOSED: Final = ["ETag", "Idempotency-Replayed", "Location", "Retry-After", "X-Request-ID"]


class Kernels(Protocol):
    """Where the kernels of the tenants come from."""

    async def of(self, tenant: str) -> Kernel:
        """The started kernel of the tenant."""


class _OneKernel:
    """The kernel of one tenant; nobody else's tokens reach it."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.config = kernel.config

    async def of(self, tenant: str) -> Kernel:
        if tenant != self.config.memory.tenant:
            raise ScopeError("This server does not serve the tenant of the token.")
        return self._kernel

    async def count_memories(self) -> MemoryCounts:
        stats = await self._kernel.memory_engine.stats()
        return MemoryCounts(stats.by_layer, stats.expired)


def create_app(
    kernel: Kernel | Kernels,
    *,
    auth: Authenticate | Collection[str] | None = None,
    settings: ServerConfig | None = None,
    store: ServerStore | None = None,
    clock: Clock = utc_now,
) -> FastAPI:
    """The server as an ASGI app over a kernel, or over the kernels of many tenants.

    `auth` is a set of tokens for the tenant `default`, or a function that tells whom a token stands for. Without
    it everybody who reaches the app may do everything: bind it to this machine only. It then answers to the names
    of this machine alone, unless `settings.allowed_hosts` says others, and to no web page. `store`, open, keeps the
    answers to requests with an `Idempotency-Key`; without one they are kept in this process.

    Raises:
        MissingExtra: the settings ask for MCP, and its library is not installed.
    """
    settings = settings or ServerConfig()
    app = FastAPI(
        title="Lamina",
        version=__version__,
        lifespan=_lifespan,
        docs_url=None,  # it would load its scripts from elsewhere
        redoc_url=None,
        dependencies=[Depends(check_request)],
        redirect_slashes=False,
    )
    app.state.started_here = kernel if isinstance(kernel, Kernel) else None
    app.state.kernels = _OneKernel(kernel) if isinstance(kernel, Kernel) else kernel
    app.state.settings = settings
    app.state.store = store
    app.state.metrics = Metrics()
    app.state.inventory = Inventory(app.state.kernels, store, app.state.metrics)
    authenticate = auth if auth is None or callable(auth) else one_of(auth)
    app.state.authenticate = authenticate
    app.state.rate_limit = settings.rate_limit if settings.rate_limited else None
    answer_errors(app)
    for part in _PARTS:
        app.include_router(part.router)
    app.state.mcp = _mcp(app) if settings.mcp else None
    _surround(app, settings, authenticate, clock)
    describe(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    kernel: Kernel | None = app.state.started_here
    async with AsyncExitStack() as open_parts:
        open_parts.push_async_callback(app.state.inventory.close)
        if kernel is not None and not kernel.is_started:  # whoever started it stops it
            await open_parts.enter_async_context(kernel)
        if app.state.mcp is not None:
            await open_parts.enter_async_context(app.state.mcp.lifespan())
        yield


def _mcp(app: FastAPI) -> Any:
    from lamina.server.mcp_mount import mount_mcp  # it needs an extra of its own

    return mount_mcp(app)


def ask_for_tokens(app: FastAPI, authenticate: Authenticate, *, limit: RateLimit | None = None) -> None:
    """From now on let in nobody without a token; for an app that was made without `auth`.

    `limit` holds from now on where the settings say none, unless they say that there is to be none.
    """
    settings: ServerConfig = app.state.settings
    if settings.rate_limited and settings.rate_limit is None:
        app.state.rate_limit = limit
    app.state.authenticate = authenticate


def _surround(app: FastAPI, settings: ServerConfig, authenticate: Authenticate | None, clock: Clock) -> None:
    """Put the middlewares around the routes: the last that is added is the outermost."""
    seconds = settings.request_timeout
    if seconds is not None:
        app.add_middleware(TimeLimits, seconds=seconds)
    lease = _LEASE_WITHOUT_TIME_LIMIT if seconds is None else timedelta(seconds=seconds) + _LEASE_BEYOND_THE_TIME_LIMIT
    app.add_middleware(Idempotency, requests=app.state.store or RequestsInProcess(), clock=clock, lease=lease)
    app.add_middleware(Bodies, limit=settings.max_body_bytes, stream_limit=settings.max_import_bytes)
    app.add_middleware(RateLimits, limit=lambda: app.state.rate_limit)
    app.add_middleware(Authenticating, authenticate=lambda: app.state.authenticate)
    if settings.gzip_minimum is not None:
        app.add_middleware(GZipMiddleware, minimum_size=settings.gzip_minimum, compresslevel=5)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=[
                "Authorization",
                "Content-Type",
                "Idempotency-Key",
                "If-Match",
                "X-Project-ID",
                "X-Request-ID",
            ],
            expose_headers=_EXPOSED,
        )
    allowed = settings.allowed_hosts
    if allowed is None and authenticate is None:
        allowed = (*LOOPBACK_NAMES, settings.host)
    app.add_middleware(Hosts, allowed=allowed, origins=settings.cors_origins, checks_origin=authenticate is None)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(Lingering)
    app.add_middleware(Observing, metrics=app.state.metrics)
