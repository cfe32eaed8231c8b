"""Serving over HTTP on this machine, from the command line."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from mcp.server import Server
from starlette.applications import Starlette
from starlette.routing import Route

from lamina.errors import MissingExtra
from lamina.mcp.http import BindingOf, mcp_app

__all__ = ["PATH", "serve_http"]

PATH: Final = "/mcp"
_PATIENCE: Final = 5
"""Seconds that running requests get at the end."""


async def serve_http(
    server: Server[Any], host: str, port: int, *, binding_of: BindingOf | None, tell: Callable[[str], None]
) -> None:
    """Serve at `/mcp` of an address of this machine until the process is told to stop.

    `tell` is given the address as soon as it is served; port 0 takes one that is free.

    Raises:
        MissingExtra: there is no HTTP server installed.
        OSError: the address cannot be had.
    """
    try:
        import uvicorn
    except ImportError as error:
        raise MissingExtra("Serving MCP over HTTP", "mcp") from error
    app = mcp_app(server, binding_of=binding_of)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with app.lifespan():
            yield

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listening:
        name = f"[{host}]" if ":" in host else host
        tell(f"http://{name}:{listening.getsockname()[1]}{PATH}")
        config = uvicorn.Config(
            Starlette(routes=[Route(PATH, endpoint=app)], lifespan=lifespan),
            log_config=None,  # its own would write to the standard output
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_PATIENCE,
        )
        await uvicorn.Server(config).serve(sockets=[listening])
