"""What a backend gives to `RecordAdapter`, and the threads in which it is asked."""

from __future__ import annotations

import builtins
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import ClassVar, Final, TypeVar

from lamina.adapters._shared.options import check_count
from lamina.adapters._shared.records import Commit, Control, Stored
from lamina.adapters._shared.threads import Lanes, Threads, not_open
from lamina.domain.filters import MemoryFilter
from lamina.domain.memory import Layer, MemoryEntry, Vector
from lamina.domain.scope import Scope
from lamina.ports.memory_adapter import ListOptions, MemoryAdapter, SearchHit, SearchOptions

__all__ = ["RecordBackend"]

T = TypeVar("T")

MOST_THREADS: Final = 1_000


class RecordBackend(MemoryAdapter):
    """Primitives over a backend's records, which run in threads of the adapter's own.

    They are plain functions: vendors' blocking clients are safe to share between threads, and their
    asynchronous ones are bound to one event loop. They run side by side, inside `_translated`, and
    raise whatever the client raises.
    """

    group: ClassVar[int | None] = None
    """How many entries one commit takes; a larger batch becomes several, in order. None: any number."""

    def __init__(self, *, threads: int = 8) -> None:
        check_count("threads", threads, MOST_THREADS)
        self._size = threads
        self._threads: Threads | None = None
        self._lanes = Lanes()
        self._changing = threading.Lock()
        self._is_shut = threading.Event()
        self._is_shut.set()

    @abstractmethod
    def _open(self) -> None:
        """Connect, and create or migrate what the collection needs."""

    @abstractmethod
    def _shut(self) -> None:
        """Let go of the backend; `_open` may have failed half-way."""

    @abstractmethod
    def _translated(self) -> AbstractContextManager[None]:
        """Turns what the client raises inside into errors of ours, in one place."""

    @abstractmethod
    def _load(self, tenant: str, ids: Sequence[str]) -> builtins.list[Stored]:
        """What is stored under these ids, expired or not, with embeddings; all that was acknowledged is in it."""

    @abstractmethod
    def _load_controls(self, tenant: str, keys: Sequence[str]) -> dict[str, Control]:
        """The controls that are there; as fresh as `_load`. Keys are short and ASCII."""

    @abstractmethod
    def _commit(self, commit: Commit) -> None:
        """Write all of it or nothing.

        With `Capability.COMPARE_AND_SET`, only if everything that it names is still what was read, at the
        moment of writing and between processes too.

        Raises:
            Stale: it is not.
            TooLarge: it is more than the backend takes at once, counted before anything was sent. Where no
                `Capability.TRANSACTIONS` is declared, the batch is then written in parts.
        """

    @abstractmethod
    def _reserve(self, number: int) -> int:
        """The first of so many new `seq`s, which nobody else gets and which are greater than all before."""

    @abstractmethod
    def _alike(self, scope: Scope, layer: Layer, digests: Sequence[str]) -> builtins.list[Stored]:
        """What has one of the digests, in `seq` order, expired or not; as fresh as `_load`."""

    @abstractmethod
    def _select(self, options: ListOptions) -> builtins.list[MemoryEntry]:
        """As `list`."""

    @abstractmethod
    def _count(self, scope: Scope, filter: MemoryFilter) -> int:
        """As `count`."""

    def _nearest(self, embedding: Vector, options: SearchOptions) -> builtins.list[SearchHit]:
        """As `search_by_vector`; the vector was checked. Empty if the tenant's vectors have another length."""
        raise NotImplementedError

    def _holding(self, words: Sequence[str], options: SearchOptions) -> builtins.list[MemoryEntry]:
        """Entries in reach that hold some of the words: those that hold most and the rarest, more than the limit."""
        raise NotImplementedError

    def _frequencies(self, scope: Scope, words: Sequence[str], now: datetime) -> dict[str, int]:
        """In how many live entries each word stands."""
        raise NotImplementedError

    def _history(self, tenant: str, id: str) -> builtins.list[MemoryEntry]:
        """The versions that commits added, oldest first: the latest fifty at least."""
        raise NotImplementedError

    async def initialize(self) -> None:
        with self._changing:
            if self._threads is not None and self._threads.are_of_this_process:
                return
            threads = self._threads = Threads(self.name, self._size)
        try:
            await threads.run(self._inside(self._open_again))
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        with self._changing:
            threads, self._threads = self._threads, None
            if threads is None or not threads.are_of_this_process:  # the parent's are the parent's to close
                return
            self._is_shut.clear()
        await threads.close(self._inside(self._shut_after_all))

    async def _run(self, work: Callable[[], T]) -> T:
        threads = self._threads
        if threads is None:
            raise not_open(self.name)
        work = self._inside(work)

        def begun() -> T:
            if self._threads is not threads:  # it was closed while this waited for its turn
                raise not_open(self.name)
            return work()

        return await threads.run(begun)

    def _inside(self, work: Callable[[], T]) -> Callable[[], T]:
        def guarded() -> T:
            with self._translated():
                return work()

        return guarded

    def _open_again(self) -> None:
        self._is_shut.wait()  # or what was opened here would be shut by who closes just now
        self._open()

    def _shut_after_all(self) -> None:
        try:
            self._shut()
        finally:
            self._is_shut.set()
