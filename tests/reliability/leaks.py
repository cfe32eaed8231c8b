"""Whether what is done leaves something behind: memory, open files, threads."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import tracemalloc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from kill_places import options

from lamina import Kernel
from lamina.testing import FrozenClock

SLICES = 10
ALLOWED = 64.0
"""Bytes that the last half may have grown by, for each operation."""
WORDS = "tea milk lamp harbour winter letter garden stone river bread".split()
OF_ONE = 10

Work = Callable[[Kernel, int], Awaitable[None]]


@dataclass(frozen=True)
class Growth:
    """By how much there was more at the end."""

    done: str
    bytes_each: float = 0.0
    files: int = 0
    threads: int = 0

    @property
    def findings(self) -> list[str]:
        found = []
        if self.bytes_each > ALLOWED:
            found.append(f"{self.done}: Python holds {self.bytes_each:.0f} bytes more after each")
        if self.files > 0:
            found.append(f"{self.done}: {self.files} more files are open")
        if self.threads > 0:
            found.append(f"{self.done}: {self.threads} more threads run")
        return found

    def __str__(self) -> str:
        return f"{self.done}: {self.bytes_each:+.1f} bytes each, {self.files:+} files, {self.threads:+} threads"


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
    """What so many operations on one kernel leave, looked at in the last half.

    The owners take turns, so that the first half has to have seen them all for the caches to be as full as they get.
    """
    turns = max(1, operations // OF_ONE // SLICES)
    held = []
    async with Kernel(data_dir=folder, **options(FrozenClock())) as kernel:
        await work(kernel, 0)
        before = handles()
        tracemalloc.start()
        try:
            for slice in range(SLICES):
                for number in range(slice * turns, (slice + 1) * turns):
                    await work(kernel, number % owners)
                gc.collect()
                held.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
        after = handles()
    half = SLICES // 2
    each = (held[-1] - held[half - 1]) / (turns * OF_ONE * (SLICES - half))
    return Growth(
        f"{turns * OF_ONE * SLICES:,} operations of {owners:,} owners", each, after[0] - before[0], after[1] - before[1]
    )


async def opened_and_closed(folder: Path, times: int, *, work: Work = one) -> Growth:
    """What kernels leave that were opened, used and closed."""
    before = (0, 0)
    for number in range(times + 1):
        async with Kernel(data_dir=folder, **options(FrozenClock())) as kernel:
            await work(kernel, number)
        if number == 0:
            before = handles()  # what is loaded once stays
    await asyncio.sleep(0)
    after = handles()
    return Growth(f"{times:,} opens and closes", 0.0, after[0] - before[0], after[1] - before[1])


def handles() -> tuple[int, int]:
    """Open files, and threads that run."""
    gc.collect()
    return len(os.listdir("/proc/self/fd")), threading.active_count()  # noqa: PTH208 - a count
