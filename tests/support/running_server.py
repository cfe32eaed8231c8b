"""A server of its own: a kernel behind uvicorn on a port of this machine, in a thread."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import Future
from contextlib import contextmanager

import uvicorn
from served import TOKEN

from lamina.server import create_app

__all__ = ["TOKEN", "served"]


@contextmanager
def served(kernel, *, auth=None):
    """The address of a server over this kernel, which is started and stopped with it."""
    started = Future()
    config = []

    async def serve():
        async with kernel:
            app = create_app(kernel, auth={TOKEN} if auth is None else auth)
            server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
            config.append(server)
            with socket.create_server(("127.0.0.1", 0)) as listening:
                started.set_result(f"http://127.0.0.1:{listening.getsockname()[1]}")  # who comes early waits in line
                await server.serve([listening])

    def run():
        try:
            asyncio.run(serve())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield started.result(timeout=60)
    finally:
        for server in config:
            server.should_exit = True
        thread.join()
