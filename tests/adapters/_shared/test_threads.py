"""The threads in which an adapter talks to its backend."""

import asyncio
import threading

import pytest

from lamina.adapters._shared.threads import Threads


async def test_what_comes_after_a_cancelled_job_finds_it_settled():
    threads = Threads("mine", 4)
    has_begun, may_end, done = threading.Event(), threading.Event(), []

    def slow():
        has_begun.set()
        may_end.wait(20)
        done.append("slow")

    cancelled = asyncio.ensure_future(threads.run(slow))
    await asyncio.to_thread(has_begun.wait, 20)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    after = asyncio.ensure_future(threads.run(lambda: done.append("after")))
    await asyncio.sleep(0.05)
    assert done == []
    may_end.set()
    await after
    assert done == ["slow", "after"]
    await threads.close()


async def test_a_cancelled_job_that_had_not_begun_never_happens():
    threads = Threads("mine", 1)
    may_end, done = threading.Event(), []
    first = asyncio.ensure_future(threads.run(lambda: may_end.wait(20)))
    second = asyncio.ensure_future(threads.run(lambda: done.append("second")))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    may_end.set()
    await first
    await threads.run(lambda: done.append("third"))
    assert done == ["third"]
    await threads.close()
