"""Serving over standard input and output, as desktop clients start it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from mcp.server import Server
from mcp.server.stdio import stdio_server

__all__ = ["serve_stdio"]

_AT_ONCE: Final = 65_536
_WAITING: Final = 16
"""Lines that are read ahead of what the server has taken."""


async def serve_stdio(server: Server[Any]) -> None:
    """Serve until the input ends, the reader of the output is gone, or the process is told to stop.

    Nothing but the protocol is written to the standard output: what else is printed goes to the standard error.
    """
    async with _stopped_by_signals():
        try:
            async with stdio_server(stdin=_Lines(sys.stdin.fileno())) as (incoming, outgoing):  # type: ignore[arg-type]
                await server.run(incoming, outgoing, server.create_initialization_options())
        except* (BrokenPipeError, ConnectionResetError):
            pass  # the client is gone, and that is how it says goodbye


@asynccontextmanager
async def _stopped_by_signals() -> AsyncIterator[None]:
    """Let SIGTERM and Ctrl-C end the block, so that everything is closed as it should be."""
    task = asyncio.current_task()
    if task is None or threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what a signal does
        return
    loop = asyncio.get_running_loop()
    told: list[int] = []

    def stop(number: int, _: object) -> None:
        told.append(number)
        loop.call_soon_threadsafe(task.cancel)

    before = {each: signal.signal(each, stop) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    except asyncio.CancelledError:
        if not told:
            raise  # it was somebody else
        task.uncancel()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class _Lines:
    """The lines of a file descriptor, read by a thread that nobody has to wait for.

    A thread that is blocked in a read can be neither interrupted nor joined: this one is a daemon, holds no lock of
    the interpreter's streams, and so keeps nothing from ending.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._room = threading.Semaphore(_WAITING)
        threading.Thread(target=self._read, name="lamina-mcp-stdin", daemon=True).start()

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self._lines.get()) is not None:
            self._room.release()
            yield line

    def _read(self) -> None:
        begun: list[bytes] = []
        with suppress(OSError):
            while piece := os.read(self._descriptor, _AT_ONCE):
                *ended, rest = piece.split(b"\n")
                for line in ended:
                    self._hand_over(b"".join([*begun, line]))
                    begun = []
                begun.append(rest)
            if any(begun):
                self._hand_over(b"".join(begun))
        self._say(None)

    def _hand_over(self, line: bytes) -> None:
        self._room.acquire()
        self._say(line.decode("utf-8", errors="replace"))

    def _say(self, line: str | None) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
