"""The MCP app behind a real HTTP server on the loopback address."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route


@asynccontextmanager
async def served(app):
    """The address of the app at /mcp, for as long as the block lasts."""

    @asynccontextmanager
    async def lifespan(_):
        async with app.lifespan():
            yield

    outer = Starlette(routes=[Route("/mcp", endpoint=app)], lifespan=lifespan)
    server = uvicorn.Server(uvicorn.Config(outer, port=0, log_config=None, timeout_graceful_shutdown=1))
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - the server has no event to wait for
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.should_exit = True
        await task
