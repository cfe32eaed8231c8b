"""A server in this process, reached as over the network."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager

import httpx2
import uvicorn

from lamina.server import create_app

TOKEN = "the-token"


class NoKernels:
    """For routes that need none."""

    async def of(self, tenant):
        raise AssertionError(f"nobody asked for a kernel of {tenant}")


def app_of(router, **options):
    """A server with these routes of a test, and no kernel."""
    app = create_app(NoKernels(), **{"auth": {TOKEN}, **options})
    app.include_router(router)
    return app


@asynccontextmanager
async def client_of(app, *, token=TOKEN):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
        yield client


@asynccontextmanager
async def listening(app):
    """The app on a real socket; gives its host, its port, and the server."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=20))
        running = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started:  # noqa: ASYNC110 - it tells in no other way
            await asyncio.sleep(0.01)
        host, port = listener.getsockname()
        try:
            yield host, port, server
        finally:
            server.should_exit = True
            await running


OWNERS = ["a", "a_", "a%", "A", "a:1", "a:10", "ａ", "é", "e\u0301"]
"""Names that careless code takes for one another."""
