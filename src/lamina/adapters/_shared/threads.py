"""The threads in which an adapter talks to its backend, so that any event loop may call it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Final, TypeVar

from lamina.errors import AdapterError

__all__ = ["Lanes", "Threads", "not_open"]

T = TypeVar("T")

LANES: Final = 64


def not_open(adapter: str) -> AdapterError:
    """The error for a call before `initialize`, or after `close`."""
    return AdapterError(adapter, "it is not open", "Call `await adapter.initialize()` first.")


class Threads:
    """A pool of threads of this process. A job whose caller is cancelled happens whole or, if it had not begun, never.

    The cancelled caller waits for one that had begun, so that nothing happens behind its back; cancelled
    once more, it waits no longer.
    """

    def __init__(self, adapter: str, size: int) -> None:
        self._adapter = adapter
        self._executor = ThreadPoolExecutor(size, thread_name_prefix=f"lamina-{adapter}")
        self._process = os.getpid()

    @property
    def are_of_this_process(self) -> bool:
        """False in a forked child, where they do not exist."""
        return self._process == os.getpid()

    async def run(self, work: Callable[[], T]) -> T:
        """Have it done in a thread.

        Raises:
            AdapterError: they have ended, or are the parent process's.
        """
        if not self.are_of_this_process:
            raise AdapterError(self._adapter, "it was opened by another process", "Call `await adapter.initialize()`.")
        try:
            job = self._executor.submit(work)
        except RuntimeError:
            raise not_open(self._adapter) from None
        answer = asyncio.wrap_future(job)
        try:
            return await answer
        except asyncio.CancelledError:
            if not job.cancel():
                ended = asyncio.wrap_future(job)
                await asyncio.wait([ended])
                ended.exception()  # which nobody is left to hear of
            raise

    async def close(self, last: Callable[[], object] = lambda: None) -> None:
        """Let the jobs that were submitted finish, and then have this done; both even if the caller is cancelled."""

        def end() -> None:
            self._executor.shutdown()
            last()

        if self.are_of_this_process:
            await asyncio.to_thread(end)


class Lanes:
    """Locks by name: writers of this process that change the same wait here, and not by failing at the backend."""

    def __init__(self) -> None:
        self._locks = [threading.Lock() for _ in range(LANES)]

    @contextmanager
    def held(self, names: Iterable[object]) -> Iterator[None]:
        """Hold the lanes of these names, taken in one order by everybody."""
        with ExitStack() as stack:
            for number in sorted({hash(name) % LANES for name in names}):
                stack.enter_context(self._locks[number])
            yield
