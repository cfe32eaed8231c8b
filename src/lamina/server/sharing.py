"""Several processes that accept from one socket, so that each has about as many connections as the others.

Left alone, whichever process the system wakes first takes all that wait, and with connections that are kept, one
process does all the work.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import mmap
import os
import select
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self

__all__ = ["Accepting", "ConnectionCounts", "Place"]

_ABSENT: Final = -1
_BYTES: Final = 8
_AT_ONCE: Final = 64
"""Most connections that are accepted before requests get their turn again."""
_LOOKS_AGAIN: Final = 0.001
_PATIENCE: Final = 0.01
"""Seconds that a connection waits at most for a process that has fewer, which may be busy or stuck."""
_TOLERATED: Final = 8
"""A process may have one in so many more than the one that has fewest: where many come, nobody waits for anybody."""
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_EXHAUSTED_SECONDS: Final = 1.0

log = logging.getLogger(__name__)


class ConnectionCounts:
    """How many connections each of so many processes has, in memory that they share. Each writes its own place."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, 0)
        self._counts = memoryview(self._memory).cast("q")

    @classmethod
    def of(cls, processes: int) -> Self:
        """New ones, of processes that are not there yet; the descriptor is for them to inherit."""
        with tempfile.TemporaryFile() as file:
            file.write(_ABSENT.to_bytes(_BYTES, "little", signed=True) * processes)
            file.flush()
            return cls(os.dup(file.fileno()))

    def note(self, place: int, count: int) -> None:
        """The process at the place has so many."""
        self._counts[place] = count

    def leave(self, place: int) -> None:
        """The process at the place accepts no more."""
        self._counts[place] = _ABSENT

    def is_turn_of(self, place: int) -> bool:
        """Whether none of the others has clearly fewer."""
        others = [each for other, each in enumerate(self._counts) if other != place and each != _ABSENT]
        least = min(others, default=self._counts[place])
        return self._counts[place] <= least + least // _TOLERATED

    def close(self) -> None:
        """Let go of the memory."""
        self._counts.release()
        self._memory.close()
        os.close(self.descriptor)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of this process among those that share a socket."""

    counts: ConnectionCounts
    number: int


class _CountedSet(set[Any]):
    """A set that tells its size whenever that may have changed by `add` or `discard`."""

    def __init__(self, tell: Callable[[], None]) -> None:
        super().__init__()
        self._tell = tell

    def add(self, element: Any) -> None:
        """As of any set."""
        super().add(element)
        self._tell()

    def discard(self, element: Any) -> None:
        """As of any set."""
        super().discard(element)
        self._tell()


class Accepting:
    """Accepts from a socket that other processes accept from too, for as long as it is this one's turn.

    A connection that waits longer than `_PATIENCE` is taken by whoever sees it.
    """

    def __init__(self, listener: socket.socket, protocol: Callable[[], asyncio.Protocol], place: Place) -> None:
        self.connections = _CountedSet(self._note)
        self._listener = listener
        self._protocol = protocol
        self._counts = place.counts
        self._place = place.number
        self._loop = asyncio.get_running_loop()
        self._beginning: set[asyncio.Task[None]] = set()
        self._waits_since: float | None = None
        self._has_stopped = False
        self._later: asyncio.TimerHandle | None = None
        self._waiting = select.poll()
        self._waiting.register(listener.fileno(), select.POLLIN)

    def start(self) -> None:
        """Accept from now on."""
        self._listener.settimeout(0.0)
        self._note()
        self._listen()

    async def stop(self) -> None:
        """Accept no more; returns when what was accepted has begun."""
        self._loop.remove_reader(self._listener)
        if self._later is not None:
            self._later.cancel()
        if self._beginning:
            await asyncio.wait(self._beginning)
        self._has_stopped = True  # from now on the place may be another's
        self._counts.leave(self._place)

    def _note(self) -> None:
        if not self._has_stopped:
            self._counts.note(self._place, len(self.connections) + len(self._beginning))

    def _listen(self) -> None:
        self._later, self._waits_since = None, None
        self._loop.add_reader(self._listener, self._look)

    def _look(self) -> None:
        """Somebody wants to connect, and this process or another is to take it."""
        for _ in range(_AT_ONCE):
            if not self._counts.is_turn_of(self._place) and not self._is_patient_no_more():
                self._look_later(_LOOKS_AGAIN)
                return
            if not self._accept():
                return

    def _is_patient_no_more(self) -> bool:
        now = time.monotonic()
        if self._waits_since is None:
            self._waits_since = now
        return now - self._waits_since > _PATIENCE

    def _look_later(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._later = self._loop.call_later(seconds, self._look_again)

    def _look_again(self) -> None:
        """After a while: what waited may have been taken by another."""
        since = self._waits_since
        self._listen()
        if self._waiting.poll(0):
            self._waits_since = since
            self._look()

    def _accept(self) -> bool:
        """Take one connection; whether there may be more."""
        self._waits_since = None
        try:
            accepted, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        except OSError as error:
            if error.errno not in _EXHAUSTED:
                raise
            log.error("No connection can be accepted for now: %s", errno.errorcode[error.errno])  # noqa: TRY400 - no news
            self._look_later(_EXHAUSTED_SECONDS)
            return False
        accepted.settimeout(0.0)
        begun = self._loop.create_task(self._begin(accepted))
        self._beginning.add(begun)
        begun.add_done_callback(self._has_begun)
        self._note()
        return True

    def _has_begun(self, task: asyncio.Task[None]) -> None:
        self._beginning.discard(task)
        self._note()

    async def _begin(self, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, accepted)
        except OSError:  # it is gone already
            accepted.close()
