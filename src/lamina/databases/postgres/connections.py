"""The threads that talk to the server, and the connections that they share.

A caller on any event loop hands over one job per call and awaits its outcome; nothing here is bound
to a loop, nor to what kind of loop it is. There are as many threads as connections may be open, so a job
that runs always finds one, and jobs beyond that wait for a thread. Jobs of one lane are done one after
the other, in the order in which they came: what would wait for the same row on the server waits here,
where it holds no connection. A job whose caller is gone happens whole or, if it had not begun, not at all.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from lamina.databases.postgres.sessions import Connection, finish

__all__ = ["Connections"]

T = TypeVar("T")

MAX_IDLE: Final = 600.0
"""Seconds after which a connection that nobody needed is closed, when the next one is given back."""


class _Job:
    """A piece of work, and what becomes of it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self.future: Future[Any] = Future()

    def do(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            outcome = self._work()
        except BaseException as error:  # noqa: BLE001 - the edge of a thread: whatever it is goes to the caller
            self.future.set_exception(error)
        else:
            self.future.set_result(outcome)


class Connections:
    """At most `size` connections, made by `connect` when they are needed and kept for the next job."""

    def __init__(self, connect: Callable[[], Connection], size: int) -> None:
        self._connect = connect
        self._executor = ThreadPoolExecutor(size, thread_name_prefix="lamina-postgres")
        self._idle: list[tuple[float, Connection]] = []
        """With the instant from which each is idle; the last one is taken first."""
        self._lanes: dict[Hashable, deque[_Job]] = {}
        """What waits in each lane in which a job is being done."""
        self._lock = threading.Lock()
        self._is_open = True
        self._process = os.getpid()

    @property
    def are_of_this_process(self) -> bool:
        """False in a forked child, where the threads do not exist and the sockets are the parent's."""
        return self._process == os.getpid()

    def submit(
        self, work: Callable[[Connection], T], begin: Callable[[Connection], None], lane: Hashable | None = None
    ) -> Future[T]:
        """Have it run in a thread, in a transaction of its own, which `begin` begins.

        Raises:
            RuntimeError: they are closed.
        """
        if lane is None:
            return self._executor.submit(self._lend, work, begin)
        job = _Job(partial(self._lend, work, begin))
        with self._lock:
            if lane in self._lanes:
                self._lanes[lane].append(job)
                return job.future
            self._executor.submit(self._serve, lane)
            self._lanes[lane] = deque([job])
        return job.future

    async def close(self) -> None:
        """Let the jobs that were submitted finish, and end all sessions."""
        await asyncio.to_thread(self._shut_down)

    def abandon(self) -> None:
        """End the sessions without waiting for running jobs, which end theirs themselves."""
        if self.are_of_this_process:
            self._executor.shutdown(wait=False)
            self._end_idle()

    def _shut_down(self) -> None:
        self._executor.shutdown()
        self._end_idle()

    def _end_idle(self) -> None:
        with self._lock:
            self._is_open = False
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _serve(self, lane: Hashable) -> None:
        """Do what is in the lane, until there is nothing more."""
        while True:
            with self._lock:
                if not self._lanes[lane]:
                    del self._lanes[lane]
                    return
                job = self._lanes[lane].popleft()
            job.do()

    def _lend(self, work: Callable[[Connection], T], begin: Callable[[Connection], None]) -> T:
        connection = self._take(begin)
        try:
            return finish(connection, work)
        finally:
            self._give_back(connection)

    def _take(self, begin: Callable[[Connection], None]) -> Connection:
        """One that answers: the server may have been restarted, or the network cut, since it was last used."""
        while True:
            with self._lock:
                if not self._idle:
                    break
                _, connection = self._idle.pop()
            with suppress(psycopg.OperationalError):
                begin(connection)
                return connection
            connection.close()
        connection = self._connect()
        try:
            begin(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _give_back(self, connection: Connection) -> None:
        now = time.monotonic()
        is_sound = not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE
        with self._lock:
            surplus = [each for since, each in self._idle if now - since > MAX_IDLE]
            self._idle = [(since, each) for since, each in self._idle if now - since <= MAX_IDLE]
            if is_sound and self._is_open:
                self._idle.append((now, connection))
            else:
                surplus.append(connection)
        for each in surplus:
            each.close()
