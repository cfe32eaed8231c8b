"""One process that serves until it is told to stop, and then loses nothing that it has acknowledged."""

from __future__ import annotations

import asyncio
import contextlib
import math
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from fastapi import FastAPI

from lamina.kernel.tenants import TenantKernels
from lamina.ports.server_store import ServerStore
from lamina.server.app import create_app
from lamina.server.listening import check_place
from lamina.server.logs import configure_logs
from lamina.server.principal import Authenticate, Principal
from lamina.server.stored_tokens import StoredTokens
from lamina.settings import LaminaConfig, RateLimit, ServerConfig

__all__ = ["authenticator", "needs_token", "serve"]

_STOPPING = (signal.SIGINT, signal.SIGTERM)


async def needs_token(settings: ServerConfig, store: ServerStore) -> bool:
    """Whether a token was ever made, or signed ones are taken: a revoked or expired one does not open the door."""
    return settings.jwt is not None or bool(await store.list_tokens(limit=1))


def authenticator(settings: ServerConfig, store: ServerStore) -> Authenticate:
    """Takes the tokens of the store, and signed ones where the settings say whose."""
    stored = StoredTokens(store)
    if settings.jwt is None:
        return stored
    from lamina.server.jwt_tokens import JwtTokens, looks_like_jwt

    signed = JwtTokens(settings.jwt)

    async def authenticate(token: str) -> Principal | None:
        return await (signed(token) if looks_like_jwt(token) else stored(token))

    return authenticate


async def serve(
    config: LaminaConfig,
    listener: socket.socket,
    *,
    ready: Callable[[bool], None],
    lifeline: int | None = None,
) -> None:
    """Serve on the socket until SIGINT or SIGTERM; returns when all is finished and closed.

    `ready` is called when requests are taken, and told whether tokens are needed. When the other end of the
    pipe `lifeline` closes, that is as SIGTERM.

    Raises:
        ConfigError: no token is asked for, and the host is not of this machine alone; or a setting is wrong.
        AdapterError: a store cannot be opened.
    """
    configure_logs(config.server.log_format)
    async with TenantKernels(config) as kernels:
        asks = await needs_token(config.server, kernels.server)
        check_place(config.server, needs_token=asks)
        auth = authenticator(config.server, kernels.server) if asks else None
        app = create_app(kernels, auth=auth, settings=_limited(config.server, asks=asks), store=kernels.server)
        server = _Server(_configured(app, config.server), lambda: ready(asks))
        with _hanging_on(lifeline, server):
            await server.serve(sockets=[listener])


def _limited(settings: ServerConfig, *, asks: bool) -> ServerConfig:
    """With the default rate limit where tokens are needed and none is said."""
    return settings.model_copy(update={"rate_limit": RateLimit()}) if asks and settings.rate_limit is None else settings


@contextlib.contextmanager
def _hanging_on(lifeline: int | None, server: _Server) -> Iterator[None]:
    """Within: the server stops when the other end of the pipe is closed."""
    if lifeline is None:
        yield
        return
    loop = asyncio.get_running_loop()

    def cut() -> None:
        loop.remove_reader(lifeline)  # it stays readable for good
        server.stop()

    loop.add_reader(lifeline, cut)
    try:
        yield
    finally:
        loop.remove_reader(lifeline)


def _configured(app: FastAPI, settings: ServerConfig) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,  # ours has no paths and no queries
        server_header=False,
        timeout_graceful_shutdown=math.ceil(settings.graceful_timeout),
        lifespan="on",
        ws="none",
    )


class _Server(uvicorn.Server):
    """Ends on a signal as on a request: what was begun is finished, and then whoever waits for it goes on."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    def stop(self, signalled: int | None = None, _: Any = None) -> None:
        """Take no more, and finish what there is; on a second Ctrl-C without waiting."""
        if self.should_exit and signalled == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As the base class, but the signal is not raised again at the end: the kernels are closed after that."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self.stop) for each in _STOPPING}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)
