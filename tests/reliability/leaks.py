"""Whether what is done leaves something behind: memory, open files, threads."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kill_places import options

from lamina import Kernel
from lamina.testing import FrozenClock

ALLOWED, ALLOWED_OF_OPENING = 64.0, 2_000.0
"""Bytes that Python may hold more of after each operation, and after each kernel that was opened and closed. What comes
and goes is up to 30,000 bytes, however many there are."""
FLAT = 0.05
"""The part by which the memory of the process may have grown."""
WORDS = "tea milk lamp harbour winter letter garden stone river bread".split()
OF_ONE = 10
FIRST_OPENS = 3

Work = Callable[[Kernel, int], Awaitable[None]]


@dataclass(frozen=True)
class Held:
    """What the process holds at one moment."""

    traced: int
    resident: int
    files: int
    threads: int


@dataclass(frozen=True)
class Growth:
    """By how much there was more at the end of so many, and of how many bytes each may have left some."""

    done: str
    times: int
    allowed: float
    start: Held
    end: Held

    @property
    def bytes_each(self) -> float:
        return (self.end.traced - self.start.traced) / self.times

    @property
    def resident(self) -> float:
        return self.end.resident / self.start.resident - 1

    @property
    def files(self) -> int:
        return self.end.files - self.start.files

    @property
    def threads(self) -> int:
        return self.end.threads - self.start.threads

    @property
    def findings(self) -> list[str]:
        found = []
        if self.bytes_each > self.allowed:
            found.append(f"{self.done}: Python holds {self.bytes_each:.0f} bytes more after each")
        if self.resident > FLAT:
            found.append(f"{self.done}: the process holds {self.resident:.1%} more memory")
        if self.files > 0:
            found.append(f"{self.done}: {self.files} more files are open")
        if self.threads > 0:
            found.append(f"{self.done}: {self.threads} more threads run")
        return found

    def __str__(self) -> str:
        parts = f"{self.bytes_each:+.1f} bytes each, {self.resident:+.1%} of the process's memory"
        return f"{self.done}: {parts}, {self.files:+} files, {self.threads:+} threads"


async def one(kernel: Kernel, number: int) -> None:
    """Ten operations of an owner of whom nothing is there, with texts of its own; nothing is there at the end."""
    owner, text = f"owner-{number}", f"{WORDS[number % 10]} {WORDS[number // 10 % 10]} number {number}"
    memory, thread = kernel.memory_engine, f"thread-{number}"
    id = await memory.store(text, owner=owner)
    await memory.update(id, content=f"{text} again", owner=owner)
    await memory.recall(text, owner=owner)
    await memory.query(owner=owner)
    await memory.forget(id, owner=owner)
    await kernel.conversation.add_message_to_thread(thread, "user", text, owner=owner)
    await kernel.conversation.get_thread_context(thread, owner=owner)
    await kernel.conversation.delete(thread, owner=owner)
    document = await kernel.rag.ingest(text, f"{owner}.md", owner=owner)
    await kernel.rag.remove(document, owner=owner)


async def grown(folder: Path, operations: int, *, owners: int, work: Work = one) -> Growth:
    """What so many operations on one kernel leave, once each of the owners has had a turn.

    What is kept of texts, such as their vectors, is then kept of all that are to come.
    """
    turns = operations // OF_ONE
    keep_to_one_thread()
    async with Kernel(data_dir=folder, **options(FrozenClock())) as kernel:
        with traced():
            for number in range(owners):
                await work(kernel, number)
            start = held()
            for number in range(turns):
                await work(kernel, number % owners)
            end = held()
    return Growth(f"{turns * OF_ONE:,} operations of {owners:,} owners", turns * OF_ONE, ALLOWED, start, end)


async def opened_and_closed(folder: Path, times: int, *, work: Work = one) -> Growth:
    """What kernels leave that were opened, used for the same and closed; what is loaded once stays."""

    async def open_and_close() -> None:
        async with Kernel(data_dir=folder, **options(FrozenClock())) as kernel:
            await work(kernel, 0)

    keep_to_one_thread()
    with traced():
        for _ in range(FIRST_OPENS):
            await open_and_close()
        start = held()
        for _ in range(times):
            await open_and_close()
        end = held()
    return Growth(f"{times:,} opens and closes", times, ALLOWED_OF_OPENING, start, end)


def keep_to_one_thread() -> None:
    """Else the loop's own pool starts another whenever none is idle, up to some number."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))


@contextmanager
def traced() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


def held() -> Held:
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text().split()[1])
    files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count
    return Held(tracemalloc.get_traced_memory()[0], resident, files, threading.active_count())
