"""The blocking façade: the same objects, called from code that does not await.

    with create_memory_engine(path="notes.db") as engine:
        engine.store("Wants a dark theme")
        engine.recall("which theme?")

Every call is forwarded to the async object, which lives on one event loop in one background thread that all
façades of the process share. So it also works where a loop is running already, such as in a notebook; it then
blocks that loop, as every blocking call does. Hooks and embedders may be plain functions; they run in the
background thread and must not call the façade themselves.

The thread is a daemon: a program that forgets to close ends all the same, and engines that are still open are
closed at exit, as far as that takes no longer than a few seconds. After a fork the child needs engines of its own.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeVar
from weakref import WeakSet

import anyio
from anyio.from_thread import BlockingPortal

from lamina.errors import LaminaError, Unsupported
from lamina.memory.engine import MemoryEngine as AsyncMemoryEngine
from lamina.memory.factory import create_memory_engine as create_async_memory_engine
from lamina.ports.clock import IdFactory, new_memory_id

if TYPE_CHECKING:
    from lamina.memory.working import WorkingMemory
    from lamina.ports.embedder import Embedder
    from lamina.ports.memory_adapter import MemoryAdapter
    from lamina.settings import MemoryConfig

__all__ = ["MemoryEngine", "create_memory_engine"]

P = ParamSpec("P")
T = TypeVar("T")

_PAGE: Final = 200
"""Entries that an iterator fetches in one hop to the background thread."""
_EXIT_SECONDS: Final = 3.0


class _Background:
    """The event loop in its thread, started by the first call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._portal: BlockingPortal | None = None
        self._thread: threading.Thread | None = None

    def run(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What the coroutine returns or raises. An interrupt of the waiting caller cancels it."""
        future = self.start(call)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # has no effect if it was the coroutine that raised
            raise

    def start(self, call: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Begin to run the coroutine."""
        if threading.current_thread() is self._thread:
            raise Unsupported(
                "The blocking façade",
                "calls from inside its own hooks and embedders",
                "Make the callback async, and await the async engine there.",
            )
        return self._started().start_task_soon(call)

    def stop(self) -> None:
        """End the loop, if it runs."""
        if self._portal is not None and self._thread is not None and self._thread.is_alive():
            self._portal.start_task_soon(self._portal.stop, True)  # noqa: FBT003 - cancel what still runs
            self._thread.join(_EXIT_SECONDS)

    def _started(self) -> BlockingPortal:
        with self._lock:
            if self._portal is None:
                ready: Future[BlockingPortal] = Future()
                self._thread = threading.Thread(target=_serve, args=(ready,), name="lamina-sync", daemon=True)
                self._thread.start()
                self._portal = ready.result()
            return self._portal


def _serve(ready: Future[BlockingPortal]) -> None:
    async def serve() -> None:
        async with BlockingPortal() as portal:
            ready.set_result(portal)
            await portal.sleep_until_stopped()

    anyio.run(serve)


_background = _Background()
_open: WeakSet[MemoryEngine] = WeakSet()


def _forget_parent() -> None:
    """In a forked child: the thread and the loop have stayed with the parent."""
    global _background, _open
    _background, _open = _Background(), WeakSet()


def _close_at_exit() -> None:
    for engine in list(_open):
        closing = _background.start(engine.asynchronous.close)
        try:
            closing.result(_EXIT_SECONDS)
        except (LaminaError, RuntimeError, CancelledError, FutureTimeoutError):
            # This late, threads cannot be started, and a backend's own may have ended. What was stored is
            # safe; only the last second of access counts may be lost, as after a crash.
            closing.cancel()
    _background.stop()


def _adopt(engine: MemoryEngine) -> None:
    """Close this engine at exit, before what its backend has registered for that by now is run."""
    _open.add(engine)
    atexit.unregister(_close_at_exit)
    atexit.register(_close_at_exit)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)


def _blocking(
    method: Callable[Concatenate[AsyncMemoryEngine, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[MemoryEngine, P], T]:
    """The same method, blocking: same name, parameters, documentation and errors."""

    def forward(self: MemoryEngine, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._background().run(functools.partial(method, self.asynchronous, *args, **kwargs))

    return _named_like(method, forward)


def _iterating(
    method: Callable[Concatenate[AsyncMemoryEngine, P], AsyncIterator[T]],
) -> Callable[Concatenate[MemoryEngine, P], Iterator[T]]:
    """The same method as a generator, which fetches a page at a time and holds no more than that."""

    def forward(self: MemoryEngine, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        items = method(self.asynchronous, *args, **kwargs)
        try:
            while page := self._background().run(functools.partial(_next_page, items)):
                yield from page
        except GeneratorExit:
            self._background().run(functools.partial(_close, items))
            raise

    return _named_like(method, forward)


def _named_like(method: Callable[..., Any], forward: Callable[P, T]) -> Callable[P, T]:
    functools.update_wrapper(forward, method)
    del forward.__wrapped__  # type: ignore[attr-defined] # or inspect would take it for a coroutine function
    forward.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]
    return forward


async def _next_page(items: AsyncIterator[T]) -> list[T]:
    page: list[T] = []
    async for item in items:
        page.append(item)
        if len(page) == _PAGE:
            break
    return page


async def _close(items: AsyncIterator[Any]) -> None:
    if isinstance(items, AsyncGenerator):
        await items.aclose()


class MemoryEngine:
    """A `lamina.memory.engine.MemoryEngine` that blocks; `asynchronous` is the engine behind it.

    Its methods have the same names, parameters, documentation and errors. Safe to call from several
    threads. Use it as a context manager, or call `close`.
    """

    def __init__(self, asynchronous: AsyncMemoryEngine) -> None:
        self.asynchronous: Final = asynchronous
        self._made_with = _background
        _adopt(self)

    @property
    def tenant(self) -> str:
        """The tenant that every call is bound to."""
        return self.asynchronous.tenant

    @property
    def adapter(self) -> MemoryAdapter:
        """The store behind the engine; its methods are async."""
        return self.asynchronous.adapter

    @property
    def embedder(self) -> Embedder | None:
        """What makes the vectors, if anything does; its methods are async."""
        return self.asynchronous.embedder

    @property
    def working(self) -> WorkingMemory:
        """The key-value store of the process."""
        return self.asynchronous.working

    initialize = _blocking(AsyncMemoryEngine.initialize)
    store = _blocking(AsyncMemoryEngine.store)
    store_many = _blocking(AsyncMemoryEngine.store_many)
    update = _blocking(AsyncMemoryEngine.update)  # type: ignore[arg-type] # a change cannot be named `self`
    restore = _blocking(AsyncMemoryEngine.restore)
    migrate_v1 = _blocking(AsyncMemoryEngine.migrate_v1)
    get = _blocking(AsyncMemoryEngine.get)
    history = _blocking(AsyncMemoryEngine.history)
    recall = _blocking(AsyncMemoryEngine.recall)
    query = _blocking(AsyncMemoryEngine.query)
    scan = _iterating(AsyncMemoryEngine.scan)
    count = _blocking(AsyncMemoryEngine.count)
    stats = _blocking(AsyncMemoryEngine.stats)
    decay = _blocking(AsyncMemoryEngine.decay)
    forget = _blocking(AsyncMemoryEngine.forget)
    forget_where = _blocking(AsyncMemoryEngine.forget_where)
    clear = _blocking(AsyncMemoryEngine.clear)
    purge_expired = _blocking(AsyncMemoryEngine.purge_expired)
    reembed = _blocking(AsyncMemoryEngine.reembed)
    reembed_missing = _blocking(AsyncMemoryEngine.reembed_missing)

    def close(self) -> None:
        """Write pending access counts, and let go of the stores and the embedder. Idempotent."""
        self._background().run(self.asynchronous.close)
        _open.discard(self)

    def __enter__(self) -> Self:
        self.initialize()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _background(self) -> _Background:
        if self._made_with is not _background:
            remedy = "Make an engine in the process that uses it, after the fork."
            raise Unsupported("A blocking engine", "being used in a forked process", remedy)
        return self._made_with


def create_memory_engine(
    config: MemoryConfig | Mapping[str, Any] | None = None,
    *,
    new_id: IdFactory = new_memory_id,
    **settings: Any,
) -> MemoryEngine:
    """An open engine that blocks; arguments and errors as of `lamina.memory.factory.create_memory_engine`."""
    make = functools.partial(create_async_memory_engine, config, new_id=new_id, **settings)
    return MemoryEngine(_background.run(make))
