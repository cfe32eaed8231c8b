"""Calls in threads: what becomes of one whose caller is cancelled."""

import asyncio
import threading

import pytest

from lamina.adapters._shared.threads import Threads


async def test_a_cancelled_caller_waits_for_what_had_begun():
    threads = Threads("test", 1)
    begun, may_end, done = threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        may_end.wait(30)
        done.append(True)
        raise RuntimeError  # which nobody hears of

    call = asyncio.ensure_future(threads.run(work))
    await asyncio.to_thread(begun.wait, 30)
    call.cancel()
    await asyncio.sleep(0)
    assert not call.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert done == [True]
    await threads.close()


async def test_what_had_not_begun_never_does():
    threads = Threads("test", 1)
    may_end, done = threading.Event(), []
    first = asyncio.ensure_future(threads.run(lambda: may_end.wait(30)))
    second = asyncio.ensure_future(threads.run(lambda: done.append(True)))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    may_end.set()
    assert await first
    await threads.close()
    assert done == []


async def test_who_is_cancelled_twice_waits_no_longer():
    threads = Threads("test", 1)
    begun, may_end = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait(30)

    call = asyncio.ensure_future(threads.run(work))
    await asyncio.to_thread(begun.wait, 30)
    for _ in range(2):
        call.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await call
    may_end.set()
    await threads.close()
