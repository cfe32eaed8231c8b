"""The event loop of the blocking façade: in one background thread, which all twins of the process share."""

from __future__ import annotations

import asyncio
import atexit
import functools
import itertools
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Final, Protocol, TypeVar
from weakref import WeakValueDictionary, finalize

from lamina.errors import LaminaError, Unsupported

__all__ = ["Background", "background"]

T = TypeVar("T")

_EXIT_SECONDS: Final = 3.0
"""How long one object may take to close at exit."""
_CANCEL_SECONDS: Final = 5.0
"""How long an interrupted caller waits for what it cancelled to have ended; a second interrupt ends that too."""


class _Resource(Protocol):
    """What is closed at exit."""

    async def close_at_exit(self) -> None:
        """Let go of everything. Idempotent."""
        ...


class _Exit(Exception):
    """A callback raised SystemExit or KeyboardInterrupt: the caller gets it, and the loop goes on."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(cause)
        self.cause = cause


class Background:
    """The loop in its thread, started by the first call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = asyncio.Event()
        self._thread: threading.Thread | None = None
        self._numbers = itertools.count()
        self._open: WeakValueDictionary[int, _Resource] = WeakValueDictionary()

    @property
    def is_here(self) -> bool:
        """Whether the caller is the loop's own thread, which must not wait for itself."""
        return threading.current_thread() is self._thread

    @property
    def is_alive(self) -> bool:
        """Whether the loop runs."""
        return self._thread is not None and self._thread.is_alive()

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What the coroutine returns or raises.

        An interrupt of the waiting caller cancels the coroutine, and is raised once that has ended.

        Raises:
            Unsupported: the caller is a callback, which the loop itself runs.
        """
        ended = threading.Event()

        async def followed() -> T:
            try:
                return await work()
            except (SystemExit, KeyboardInterrupt) as error:
                raise _Exit(error) from error
            finally:
                ended.set()

        future = self.start(followed)
        try:
            return future.result()
        except _Exit as error:
            raise error.cause from None
        except BaseException:
            if future.cancel():  # False if it was the coroutine that raised
                ended.wait(_CANCEL_SECONDS)
            raise

    def call(self, function: Callable[[], T]) -> T:
        """What a plain function returns, run between the steps of everything else that the loop does."""
        if self.is_here:
            return function()

        async def called() -> T:
            return function()

        return self.run(called)

    def start(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Begin to run the coroutine, in a task of its own; cancelling the future cancels that.

        Raises:
            Unsupported: the caller is a callback, which the loop itself runs.
        """
        if self.is_here:
            raise Unsupported(
                "The blocking façade",
                "calls from inside its own hooks and other callbacks",
                "Make the callback async, and await the async object there.",
            )
        return asyncio.run_coroutine_threadsafe(work(), self._started())

    @contextmanager
    def hold(self, manager: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """The same context manager, blocking."""
        value = self.run(_coroutine(manager.__aenter__))
        try:
            yield value
        except BaseException as error:
            leave = functools.partial(manager.__aexit__, type(error), error, error.__traceback__)
            if not self.run(_coroutine(leave)):
                raise
        else:
            self.run(_coroutine(functools.partial(manager.__aexit__, None, None, None)))

    def adopt(self, resource: _Resource) -> None:
        """Close it at exit: the last adopted first, and before its backend ends its own threads."""
        self._open[next(self._numbers)] = resource
        finalize(resource, _nothing)  # so that all finalizers, which backends use, are run after what is registered now
        atexit.unregister(_close_at_exit)
        atexit.register(_close_at_exit)

    def close_all(self) -> None:
        """Close what was adopted and is still alive, as far as that can be done this late; then end the loop."""
        for _, resource in sorted(self._open.items(), reverse=True):
            closing = self.start(resource.close_at_exit)
            try:
                closing.result(_EXIT_SECONDS)
            except (LaminaError, RuntimeError, CancelledError, FutureTimeoutError):
                # This late, threads cannot be started, and a backend's own may have ended. What was stored is
                # safe; only the last second of access counts may be lost, as after a crash.
                closing.cancel()
        if self._loop is not None and self._thread is not None and self.is_alive:
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join(_EXIT_SECONDS)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or not self.is_alive:
                ready: Future[asyncio.AbstractEventLoop] = Future()
                self._stopped = asyncio.Event()
                self._thread = threading.Thread(
                    target=asyncio.run, args=(_serve(ready, self._stopped),), name="lamina-sync", daemon=True
                )
                self._thread.start()
                self._loop = ready.result()
            return self._loop


async def _serve(ready: Future[asyncio.AbstractEventLoop], stopped: asyncio.Event) -> None:
    ready.set_result(asyncio.get_running_loop())
    await stopped.wait()


def _nothing() -> None:
    """It is not about this one."""


def _coroutine(call: Callable[[], Awaitable[T]]) -> Callable[[], Coroutine[Any, Any, T]]:
    async def awaited() -> T:
        return await call()

    return awaited


_background = Background()


def background() -> Background:
    """That of this process."""
    return _background


def _forget_parent() -> None:
    """In a forked child: the thread and the loop have stayed with the parent."""
    global _background  # noqa: PLW0603 - there is one for each process
    _background = Background()


def _close_at_exit() -> None:
    _background.close_all()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)
