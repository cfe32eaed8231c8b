"""One process that serves until it is told to stop, and then loses nothing that it has acknowledged."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from typing import Any, Final

import uvicorn
from fastapi import FastAPI

from lamina.errors import LaminaError
from lamina.kernel.tenants import TenantKernels
from lamina.ports.server_store import ServerStore
from lamina.server.app import ask_for_tokens, create_app
from lamina.server.listening import check_place
from lamina.server.logs import configure_logs
from lamina.server.principal import Authenticate, Principal
from lamina.server.sharing import Accepting, Place
from lamina.server.stored_tokens import REMEMBERED_SECONDS, StoredTokens
from lamina.server.upkeep import Upkeep
from lamina.settings import LaminaConfig, RateLimit, ServerConfig

__all__ = ["authenticator", "needs_token", "serve"]

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM)

log = logging.getLogger(__name__)


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
    place: Place | None = None,
) -> None:
    """Serve on the socket until SIGINT or SIGTERM; returns when all is finished and closed.

    `ready` is called when requests are taken, and told whether tokens are needed. When the other end of the
    pipe `lifeline` closes, that is as SIGTERM. `place` is this process's among those that serve on the socket.

    Raises:
        ConfigError: no token is asked for, and the host is not of this machine alone; or a setting is wrong.
        AdapterError: a store cannot be opened.
    """
    configure_logs(config.server.log_format)
    async with TenantKernels(config) as kernels:
        asks = await needs_token(config.server, kernels.server)
        check_place(config.server, needs_token=asks)
        auth = authenticator(config.server, kernels.server)
        limited = _limited(config.server, asks=asks)
        app = create_app(kernels, auth=auth if asks else None, settings=limited, store=kernels.server)
        server = _Server(_configured(app, config.server), lambda: ready(asks), place)
        async with AsyncExitStack() as beside:
            if config.server.maintenance_interval:
                interval = timedelta(seconds=config.server.maintenance_interval)
                server.on_stop = (await beside.enter_async_context(Upkeep(kernels, interval=interval))).stop
            if not asks:
                await beside.enter_async_context(_shutting_the_door(app, kernels.server, auth))
            with _hanging_on(lifeline, server):
                await server.serve(sockets=[listener])


@contextlib.asynccontextmanager
async def _shutting_the_door(app: FastAPI, store: ServerStore, authenticate: Authenticate) -> AsyncIterator[None]:
    """Within: once somebody makes the first token, in whatever process, this server asks for tokens too."""

    async def watch() -> None:
        while True:
            await asyncio.sleep(REMEMBERED_SECONDS)
            try:
                if await store.list_tokens(limit=1):
                    break
            except LaminaError as error:
                log.warning("whether there are tokens could not be looked up: %s", type(error).__name__)
        ask_for_tokens(app, authenticate, limit=RateLimit())
        log.warning("a token was made: from now on every request needs one")

    watching = asyncio.get_running_loop().create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait([watching])


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


def _nothing() -> None:
    """Nothing else is to be stopped."""


class _Server(uvicorn.Server):
    """Ends on a signal as on a request: what was begun is finished, and then whoever waits for it goes on."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], place: Place | None) -> None:
        super().__init__(config)
        self._ready = ready
        self._place = place
        self._accepting: Accepting | None = None
        self.on_stop: Callable[[], None] = _nothing

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._place is None or not sockets:
            await super().startup(sockets)
        else:
            await super().startup([])
            self._share(sockets[0], self._place)
        if self.started:
            self._ready()

    def _share(self, listener: socket.socket, place: Place) -> None:
        protocol: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        make = partial(protocol, config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
        self._accepting = Accepting(listener, make, place)
        self.server_state.connections = self._accepting.connections
        self._accepting.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._accepting is not None:
            await self._accepting.stop()
        await super().shutdown(sockets)

    def stop(self, signalled: int | None = None, _: Any = None) -> None:
        """Take no more, and finish what there is; on a second Ctrl-C without waiting."""
        if self.should_exit and signalled == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True
        self.on_stop()

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
