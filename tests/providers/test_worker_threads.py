from __future__ import annotations

import asyncio
import threading

from lamina.providers.worker_threads import WorkerThreads


async def test_at_most_so_many_calls_run_at_a_time_and_all_get_their_turn() -> None:
    workers = WorkerThreads("test", 2)
    running, most, lock = 0, 0, threading.Lock()
    both = threading.Barrier(2, timeout=10)

    def work(number: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        both.wait()
        with lock:
            running -= 1
        return number

    assert await asyncio.gather(*(workers.run(work, number) for number in range(8))) == list(range(8))
    assert most == 2


def test_they_serve_one_event_loop_after_the_other() -> None:
    workers = WorkerThreads("test", 1)
    for _ in range(2):
        assert asyncio.run(workers.run(str, 7)) == "7"


async def test_what_waits_does_not_take_a_thread_from_others() -> None:
    before = threading.active_count()  # servers of other tests may have some
    workers, release = WorkerThreads("test", 1), threading.Event()
    waiting = [asyncio.create_task(workers.run(release.wait, 10)) for _ in range(100)]
    await asyncio.sleep(0)
    try:
        assert await asyncio.to_thread(str, 7) == "7"
        assert threading.active_count() < before + 20
    finally:
        release.set()
    assert all(await asyncio.gather(*waiting))
