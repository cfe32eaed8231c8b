"""The threads that own the connections: one that writes, some that read.

A caller on any event loop hands over one job per call and awaits its outcome; nothing here is bound
to a loop. A job that writes is one transaction that happens whole or not at all, also if its caller
is gone. Writing jobs that wait together share one transaction, and so one sync to disk; all are
answered after the commit. They are done one behind the other; if one fails, all of it is undone and
done again with a savepoint each, so that one's failure undoes only its own. (A savepoint is dear: for
each, SQLite copies every page that changes, and writes out what a text index has gathered.)

What is alike in jobs that wait together is done in one go (`Joint`): so sixteen callers who add a memory
each take about as many statements as one who adds sixteen.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

from lamina.databases.sqlite.failures import translated

__all__ = ["Joint", "Work", "Workers"]

G = TypeVar("G")
T = TypeVar("T")

_Outcome: TypeAlias = tuple[Any, BaseException | None]

Work = Callable[[sqlite3.Connection], T]
"""What a job does with the connection of the thread that runs it, inside a transaction.

One that writes may be done again after it was undone: all that it changes is in the file.
"""

GROUP: Final = 64
"""Most jobs in one transaction: bounds what the first of them waits for the others."""


@dataclass(frozen=True, slots=True)
class Joint(Generic[G, T]):
    """A `Work` that is done in one go for all that wait with the same `kind`.

    `together` gets what each of them has `given`, in the order of their calls, and gives the outcome of each. Where it
    raises, whatever it did is undone, and each is done by itself.
    """

    kind: Hashable
    given: G
    together: Callable[[sqlite3.Connection, Sequence[G]], Sequence[T]]

    def __call__(self, connection: sqlite3.Connection) -> T:
        """Do this one alone."""
        return self.together(connection, [self.given])[0]


class _Kind(Enum):
    READ = auto()
    WRITE = auto()
    ALONE = auto()
    """In no transaction."""
    STOP = auto()


@dataclass(slots=True)
class _Job:
    work: Work[Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    kind: _Kind


def _nothing(_: sqlite3.Connection) -> None:
    pass


def _kind_of(job: _Job) -> Hashable:
    """What jobs have in common that can be done in one go; the job itself if it is done alone."""
    return job.work.kind if isinstance(job.work, Joint) else id(job)


def _may_follow(first: _Job, job: _Job) -> bool:
    return first.kind is _Kind.WRITE or _kind_of(first) == _kind_of(job)


def _done(connection: sqlite3.Connection, group: Sequence[_Job]) -> list[_Outcome]:
    """Do the jobs in order, those of one kind that stand together in one go; a cancelled one is left out."""
    outcomes: dict[int, Any] = {}
    wanted = [job for job in group if not job.future.cancelled()]
    for _, each in groupby(wanted, key=_kind_of):
        run = list(each)
        work = run[0].work
        if isinstance(work, Joint):
            answers = work.together(connection, [cast("Joint[Any, Any]", job.work).given for job in run])
        else:
            answers = [work(connection)]
        outcomes.update((id(job), answer) for job, answer in zip(run, answers, strict=True))
    return [(outcomes.get(id(job)), None) for job in group]


def _answer(group: Sequence[_Job], outcomes: Sequence[_Outcome]) -> None:
    """Tell the callers, waking each loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], _Outcome]]] = {}
    for job, outcome in zip(group, outcomes, strict=True):
        by_loop.setdefault(job.loop, []).append((job.future, outcome))
    for loop, answers in by_loop.items():
        with suppress(RuntimeError):  # the callers' loop is closed, so nobody waits
            loop.call_soon_threadsafe(_settle, answers)


def _settle(answers: Sequence[tuple[asyncio.Future[Any], _Outcome]]) -> None:
    for future, (outcome, error) in answers:
        if future.done():  # cancelled
            continue
        if error is None:
            future.set_result(outcome)
        else:
            future.set_exception(error)


class Workers:
    """The writing thread and `readers` reading ones; without any, the writing thread does both.

    `connect` is called in a thread before its first job, and again before the next if it raised.
    `check` is called before a transaction that writes is committed; if it raises, nothing is.
    """

    def __init__(
        self,
        connect: Callable[[bool], sqlite3.Connection],
        check: Callable[[], None],
        *,
        place: str,
        readers: int,
    ) -> None:
        self._connect = connect
        self._check = check
        self._place = place
        self._writing: SimpleQueue[_Job | None] = SimpleQueue()
        self._reading: SimpleQueue[_Job | None] = SimpleQueue() if readers else self._writing
        self._process = os.getpid()
        self._writer = self._start("writer", self._writing, writes=True)
        self._readers = [self._start(f"reader-{n}", self._reading, writes=False) for n in range(readers)]

    @property
    def are_of_this_process(self) -> bool:
        """False in a forked child, where the threads do not exist."""
        return self._process == os.getpid()

    async def read(self, work: Work[T]) -> T:
        """Run it in a transaction that sees one state of the file and changes nothing."""
        return await self._submit(self._reading, work, _Kind.READ)

    async def write(self, work: Work[T]) -> T:
        """Run it in a transaction, and come back when that is on disk."""
        return await self._submit(self._writing, work, _Kind.WRITE)

    async def alone(self, work: Work[T]) -> T:
        """Run it on the writing connection, outside any transaction."""
        return await self._submit(self._writing, work, _Kind.ALONE)

    async def stop(self) -> None:
        """Let the threads finish what they were given and close their connections, the writing one last.

        Where it is cancelled they end all the same, and are not waited for.
        """
        try:
            await asyncio.gather(*(self._submit(self._reading, _nothing, _Kind.STOP) for _ in self._readers))
            await self._submit(self._writing, _nothing, _Kind.STOP)
        except BaseException:
            self.abandon()
            raise
        for thread in (*self._readers, self._writer):
            thread.join()  # it has answered, and is about to end

    def abandon(self) -> None:
        """Tell the threads to end, without waiting for them."""
        for _ in self._readers:
            self._reading.put(None)
        self._writing.put(None)

    async def _submit(self, queue: SimpleQueue[_Job | None], work: Work[T], kind: _Kind) -> T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        queue.put(_Job(work, loop, future, kind))
        return await future

    def _start(self, name: str, queue: SimpleQueue[_Job | None], *, writes: bool) -> threading.Thread:
        thread = _Worker(self._connect, self._check, queue, self._place, writes=writes)
        started = threading.Thread(target=thread.run, name=f"lamina-sqlite-{name}", daemon=True)
        started.start()
        return started


class _Worker:
    """What one thread does. It does not know `Workers`, so that an abandoned one can be collected."""

    def __init__(
        self,
        connect: Callable[[bool], sqlite3.Connection],
        check: Callable[[], None],
        queue: SimpleQueue[_Job | None],
        place: str,
        *,
        writes: bool,
    ) -> None:
        self._connect = connect
        self._check = check
        self._queue = queue
        self._place = place
        self._writes = writes
        self._connection: sqlite3.Connection | None = None

    def run(self) -> None:
        ahead: list[_Job | None] = []
        while self._serve(ahead):
            pass

    def _serve(self, ahead: list[_Job | None]) -> bool:
        """Wait for a job and do it, perhaps with others that wait behind it; False if it was the last.

        What is taken from the queue and not done yet stays in `ahead`. All that is known of a job is
        gone on return: a thread that waits must not keep alive what the job's work refers to, the
        store among it, or one that is dropped unclosed would never be collected.
        """
        job = ahead.pop() if ahead else self._queue.get()
        if job is None or job.kind is _Kind.STOP:
            if self._connection is not None:
                self._connection.close()
            if job is not None:
                _answer([job], [(None, None)])
            return False
        group = self._gather(job, ahead)
        try:
            connection = self._opened()
            if job.kind is _Kind.WRITE:
                outcomes = self._write(connection, group)
            elif job.kind is _Kind.READ:
                outcomes = self._read(connection, group)
            else:
                outcomes = [(self._alone(connection, job), None)]
        except Exception as error:  # noqa: BLE001 - the edge of a thread: whatever it is goes to the caller
            outcomes = [(None, error)] * len(group)
        _answer(group, outcomes)
        return True

    def _gather(self, first: _Job, ahead: list[_Job | None]) -> list[_Job]:
        """The job with those that wait behind it and can share its transaction; what ends them is left in `ahead`.

        To a writing one any other, to a reading one those of its kind.
        """
        group = [first]
        is_open = first.kind is _Kind.WRITE or (first.kind is _Kind.READ and isinstance(first.work, Joint))
        with suppress(Empty):
            while is_open and len(group) < GROUP:
                job = self._queue.get_nowait()
                if job is None or job.kind is not first.kind or not _may_follow(first, job):
                    ahead.append(job)
                    break
                group.append(job)
        return group

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect(self._writes)
        return self._connection

    def _alone(self, connection: sqlite3.Connection, job: _Job) -> Any:
        with translated(self._place):
            return job.work(connection)

    def _read(self, connection: sqlite3.Connection, group: list[_Job]) -> list[_Outcome]:
        try:
            with translated(self._place), _ending(connection):
                connection.execute("BEGIN")
                return _done(connection, group)
        except Exception as error:  # noqa: BLE001 - the edge of a thread: it goes to the caller whose job raises it
            if len(group) == 1:
                return [(None, error)]
            return [outcome for job in group for outcome in self._read(connection, [job])]

    def _write(self, connection: sqlite3.Connection, group: list[_Job]) -> list[_Outcome]:
        with translated(self._place), _ending(connection):
            connection.execute("BEGIN IMMEDIATE")
            try:
                outcomes = _done(connection, group)
            except Exception:  # whatever it is: raised again here, or by its own job, behind a savepoint
                if len(group) == 1:  # whose failure ends the transaction
                    raise
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                connection.execute("BEGIN IMMEDIATE")
                outcomes = [self._attempt(connection, job) for job in group]
            self._check()
            connection.execute("COMMIT")
        return outcomes

    def _attempt(self, connection: sqlite3.Connection, job: _Job) -> _Outcome:
        """Do one job of a group; its failure undoes its own changes and leaves the others'."""
        if job.future.cancelled():
            return None, None
        connection.execute("SAVEPOINT job")
        try:
            with translated(self._place):
                outcome = job.work(connection)
        except Exception as error:
            if not connection.in_transaction:  # SQLite itself gave up all of it, as on a full disk
                raise
            connection.execute("ROLLBACK TO job")
            connection.execute("RELEASE job")
            return None, error
        connection.execute("RELEASE job")
        return outcome, None


@contextmanager
def _ending(connection: sqlite3.Connection) -> Iterator[None]:
    """See to it that no transaction stays open, whatever happened inside."""
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
