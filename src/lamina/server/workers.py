"""Several processes that serve on one socket, and one that watches over them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

from lamina.errors import LaminaError
from lamina.server.sharing import ConnectionCounts

__all__ = ["WorkersFailed", "run_workers"]

_PROGRAM: Final = "from lamina.cli import main; main()"
_LIVES_LONG: Final = 5.0
"""Seconds that a worker must have lived to be replaced when it ends by itself: before that, it could not start."""
_LOOKED_AFTER: Final = 0.1
_GRACE: Final = 10.0


class WorkersFailed(LaminaError):
    """A worker could not start; its own message says why."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code

    def __str__(self) -> str:
        return f"A worker ended with {self.code} as soon as it began, so the server was stopped. Its message is above."


class _Watch:
    """The workers that there are, and how they are started."""

    def __init__(self, arguments: Sequence[str], listener: socket.socket, count: int) -> None:
        self._arguments = arguments
        self._counts = ConnectionCounts.of(count)
        self._listener = listener.fileno()
        self._lifeline, self._held = os.pipe()  # closes with this process, however that ends
        self.alive: dict[subprocess.Popen[bytes], tuple[int, float]] = {}
        """The place of each, and since when it lives."""
        self.stops = False

    def start(self, place: int) -> None:
        inherited = (self._listener, self._lifeline, self._counts.descriptor)
        told = ["--inherited", ",".join(map(str, (*inherited, place)))]
        # The arguments are those that this process was started with.
        worker = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", _PROGRAM, *self._arguments, *told], pass_fds=inherited, start_new_session=True
        )
        self.alive[worker] = place, time.monotonic()

    def look(self) -> None:
        """Replace those that died.

        Raises:
            WorkersFailed: one died at once.
        """
        for worker, (place, since) in list(self.alive.items()):
            code = worker.poll()
            if code is None:
                continue
            del self.alive[worker]
            self._counts.leave(place)
            if self.stops:
                continue
            if code > 0 and time.monotonic() - since < _LIVES_LONG:
                raise WorkersFailed(code)
            self.start(place)

    def stop(self, *_: object) -> None:
        self.stops = True
        for worker in self.alive:
            worker.send_signal(signal.SIGTERM)

    def end(self, within: float) -> None:
        """Wait for all; those that do not end in time are killed."""
        self.stop()
        deadline = time.monotonic() + within
        for worker in self.alive:
            try:
                worker.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
        os.close(self._lifeline)
        os.close(self._held)
        self._counts.close()


def run_workers(
    arguments: Sequence[str], listener: socket.socket, *, count: int, graceful: float, ready: Callable[[], None]
) -> None:
    """Run this command so many times on the socket until SIGINT or SIGTERM; whoever dies is replaced.

    Raises:
        WorkersFailed: one cannot start.
    """
    watch = _Watch(arguments, listener, count)
    before = {each: signal.signal(each, watch.stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        for place in range(count):
            watch.start(place)
        ready()
        while not watch.stops:
            time.sleep(_LOOKED_AFTER)
            watch.look()
    finally:
        watch.end(graceful + _GRACE)
        for each, handler in before.items():
            signal.signal(each, handler)
