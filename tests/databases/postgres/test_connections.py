from __future__ import annotations

import asyncio
import threading

import pytest

from lamina.databases.postgres import connections as module
from lamina.errors import AdapterUnavailable


def sleeping(seconds):
    return lambda session: session.execute("SELECT pg_sleep(%s)", (seconds,)).rowcount


def backend(session):
    return session.connection.info.backend_pid


def sessions_of(postgres):
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'lamina'"
    return postgres.run(query)[0][0]


async def test_one_connection_serves_calls_that_follow_each_other(handle):
    assert len({await handle.read(backend) for _ in range(5)}) == 1


async def test_calls_beyond_the_connections_wait_and_all_are_answered(joined, postgres):
    handle = await joined(connections=3)
    calls = [asyncio.create_task(handle.read(sleeping(0.05))) for _ in range(12)]
    busiest = 0
    while not all(call.done() for call in calls):
        busiest = max(busiest, await asyncio.to_thread(sessions_of, postgres))
    assert [await call for call in calls] == [1] * 12
    assert busiest == 3


async def test_after_a_restart_of_the_server_the_next_calls_work_on_new_connections(joined, postgres, add, count):
    handle = await joined(connections=4)
    await handle.write(add(1))
    former = set(await asyncio.gather(*(handle.read(lambda s: (sleeping(0.05)(s), backend(s))[1]) for _ in range(4))))
    assert len(former) == 4
    postgres.halt()
    try:
        with pytest.raises(AdapterUnavailable, match="cannot be reached"):
            await handle.read(count)
    finally:
        postgres.start()
    assert await asyncio.gather(*(handle.read(count) for _ in range(8))) == [1] * 8
    await handle.write(add(2))
    assert await handle.read(count) == 2


async def test_a_restart_between_two_calls_is_not_noticed(handle, postgres, add, count):
    await handle.write(add(1))
    postgres.halt()
    postgres.start()
    await handle.write(add(2))
    assert await handle.read(count) == 2


async def test_a_connection_that_was_idle_for_long_is_closed(joined, postgres, monkeypatch):
    handle = await joined(connections=4)
    before = sessions_of(postgres)
    await asyncio.gather(*(handle.read(sleeping(0.05)) for _ in range(4)))
    assert sessions_of(postgres) == before + 3
    monkeypatch.setattr(module, "MAX_IDLE", 0.0)
    await handle.read(sleeping(0))
    await _until(lambda: sessions_of(postgres) == before)


async def test_work_that_fails_gives_its_connection_back_with_no_transaction_open(handle, add, count):
    def broken(session):
        add(1)(session)
        raise KeyError("of the work's own")

    pid = await handle.read(backend)
    with pytest.raises(KeyError):
        await handle.write(broken)
    assert await handle.read(count) == 0
    assert await handle.read(backend) == pid


async def test_a_caller_that_is_cancelled_leaves_no_half_transaction(handle, add, count):
    begun, go_on = threading.Event(), threading.Event()

    def work(session):
        add(1)(session)
        begun.set()
        go_on.wait(10)
        add(2)(session)

    task = asyncio.create_task(handle.write(work))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await handle.read(count) == 0
    go_on.set()
    await handle.leave()  # which waits for what has begun
    await handle._database.open()
    again = handle._database.join(handle._component)
    assert await again.read(count) == 2
    await again.leave()
    await handle._database.close()


async def test_a_caller_that_is_cancelled_before_its_turn_writes_nothing(joined, add, count):
    handle = await joined(connections=1)
    go_on = threading.Event()
    first = asyncio.create_task(handle.read(lambda _: go_on.wait(10)))
    second = asyncio.create_task(handle.write(add(1)))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    go_on.set()
    assert await first
    assert await handle.read(count) == 0


async def test_works_of_one_lane_are_done_in_order_and_hold_one_connection(joined, postgres):
    handle = await joined(connections=4)
    before = sessions_of(postgres)
    done = []

    def noting(number):
        return lambda session: (session.execute("SELECT pg_sleep(0.001)"), done.append(number))

    await asyncio.gather(*(handle.write(noting(number), "lane") for number in range(50)))
    assert done == list(range(50))
    assert sessions_of(postgres) == before


async def test_a_lane_does_not_hold_up_another_and_goes_on_after_a_failure(joined, add, count):
    handle = await joined(connections=2)
    go_on = threading.Event()
    first = asyncio.create_task(handle.write(lambda _: go_on.wait(10), "one"))
    broken = asyncio.create_task(handle.write(lambda session: 1 / 0, "one"))
    cancelled = asyncio.create_task(handle.write(add(1), "one"))
    last = asyncio.create_task(handle.write(add(2), "one"))
    await handle.write(add(3), "two")
    assert not first.done()
    cancelled.cancel()
    await asyncio.sleep(0.05)  # until the job knows of it
    go_on.set()
    assert await first
    with pytest.raises(ZeroDivisionError):
        await broken
    await last
    assert await handle.read(count) == 2
    with pytest.raises(asyncio.CancelledError):
        await cancelled


async def _until(holds):
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0.005)
    pytest.fail("it did not come about")
