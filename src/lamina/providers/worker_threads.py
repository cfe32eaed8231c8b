"""Worker threads for computing, few at a time.

The library's other blocking calls use anyio's common pool; computing that waits for its turn in there would keep
the threads from them. Here it waits in the event loop, in order of arrival.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

__all__ = ["WorkerThreads"]

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


class WorkerThreads:
    """Runs at most `threads` calls at a time in each event loop."""

    def __init__(self, name: str, threads: int) -> None:
        self._threads = threads
        self._limiter: RunVar[CapacityLimiter] = RunVar(name)

    async def run(self, function: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
        """What the function returns. When the caller is cancelled, the thread is left to end by itself."""
        try:
            limiter = self._limiter.get()
        except LookupError:
            limiter = CapacityLimiter(self._threads)
            self._limiter.set(limiter)
        return await to_thread.run_sync(function, *arguments, abandon_on_cancel=True, limiter=limiter)
