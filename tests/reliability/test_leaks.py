"""Nothing is left of what was done and taken back: the short form of `make soak`."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest
from kill_places import options
from leaks import grown, one, opened_and_closed

from lamina import Kernel
from lamina.testing import FrozenClock

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system does not say what is open")


async def test_operations_leave_no_memory_and_no_files_or_threads_behind(tmp_path):
    growth = await grown(tmp_path, 800, owners=10)
    assert growth.findings == [], str(growth)


async def test_kernels_that_were_opened_and_closed_leave_nothing_open(tmp_path):
    growth = await opened_and_closed(tmp_path, 10)
    assert growth.findings == [], str(growth)


@pytest.mark.parametrize(("what", "told"), [("memory", "bytes more"), ("file", "files are"), ("thread", "threads run")])
async def test_a_leak_of_each_kind_is_found(tmp_path, what, told):
    kept, stop = [], threading.Event()

    async def leak(kernel, number):
        if what == "memory":
            kept.append(bytearray(1_000))
        elif what == "file":
            kept.append(os.dup(0))
        else:
            kept.append(threading.Thread(target=stop.wait))
            kept[-1].start()

    try:
        growths = [await grown(tmp_path / "one", 600, owners=5, work=leak)]
        if what != "memory":
            growths.append(await opened_and_closed(tmp_path / "two", 2, work=leak))
        assert all(any(told in each for each in growth.findings) for growth in growths), growths
    finally:
        stop.set()
        for each in kept:
            if what == "file":
                os.close(each)
            elif what == "thread":
                await asyncio.to_thread(each.join)


async def test_one_round_of_operations_takes_back_all_that_it_stored(tmp_path):
    async with Kernel(data_dir=tmp_path, **options(FrozenClock())) as kernel:
        await one(kernel, 1)
        assert await kernel.memory_engine.count() == 0
        assert await kernel.rag.list_documents() == []
        assert await kernel.conversation.list_threads() == []
