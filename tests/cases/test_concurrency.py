"""Threads, tasks, processes and event loops over one file: each thing is done once, and nothing is lost."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from lamina.memory.factory import create_memory_engine
from lamina.sync import create_memory_engine as create_blocking_engine
from lamina.testing import HashingEmbedder

EVERYWHERE = pytest.mark.parametrize("place", ["memory", "sqlite", "postgres"], indirect=True)


@pytest.mark.case("B79")
def test_eight_threads_that_write_and_eight_that_read_never_meet_a_lock(tmp_path):
    path = tmp_path / "lamina.db"
    start = threading.Barrier(16)

    def work(number):
        """With connections of its own, as another process would have."""
        with create_blocking_engine(path=path, embedding="none") as engine:
            start.wait(60)
            for turn in range(10):
                if number % 2:
                    engine.store(f"fact {number} {turn}", id=f"{number}-{turn}")
                else:
                    engine.recall("fact", limit=5)
                    engine.query(limit=5)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
    with create_blocking_engine(path=path, embedding="none") as engine:
        ids = {entry.id for entry in engine.query(limit=1000)}
    assert ids == {f"{number}-{turn}" for number in range(1, 16, 2) for turn in range(10)}


@pytest.mark.case("B82")
async def test_two_servers_over_standard_streams_on_one_file_keep_what_either_was_told(tmp_path):
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH") if name in os.environ}
    environment = kept | {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
        "LAMINA_DATA_DIR": str(tmp_path / "data"),
        "LAMINA_EMBEDDER": "none",
    }
    command = ["-c", "from lamina.cli import main; main()", "mcp", "--owner", "ann"]
    parameters = StdioServerParameters(command=sys.executable, args=command, env=environment, cwd=tmp_path)

    async def tell(client, name):
        for number in range(20):
            answer = await client.call_tool("add_memory", {"text": f"server {name} was told {number}"})
            assert not answer.is_error, answer.content

    async with Client(stdio_client(parameters)) as one, Client(stdio_client(parameters)) as two:
        await asyncio.gather(tell(one, "one"), tell(two, "two"))
    [path] = (tmp_path / "data").glob("*.db")
    async with await create_memory_engine(path=path, embedding="none") as engine:
        said = {entry.content async for entry in engine.scan()}
    assert said == {f"server {name} was told {number}" for name in ("one", "two") for number in range(20)}


@pytest.mark.case("B83")
@EVERYWHERE
async def test_of_ten_who_take_ten_things_each_takes_another(engine):
    await engine.store_many([{"content": f"task {number}", "id": f"t{number}"} for number in range(10)])

    async def take():
        while True:
            [*left] = await engine.query(limit=10)
            if not left:
                return None
            for entry in left:
                if await engine.forget(entry.id):
                    return entry.id

    taken = await asyncio.gather(*(take() for _ in range(10)))
    assert sorted(taken) == [f"t{number}" for number in range(10)]
    assert await engine.count() == 0


@pytest.mark.case("B83")
async def test_of_ten_who_delete_the_same_message_one_does(kernel):
    sessions = kernel.sessions("ann")
    await sessions.add_list([{"role": "user", "content": f"m{n}"} for n in range(3)], "s")
    newest = (await sessions.list(session_id="s"))[-1].message
    deleted = await asyncio.gather(*(sessions.delete(newest.id, "s") for _ in range(10)))
    assert sum(deleted) == 1
    assert [event.message.content for event in await sessions.list(session_id="s")] == ["m0", "m1"]


@pytest.mark.case("B85")
def test_what_one_event_loop_opened_the_next_uses_and_closes_twice(tmp_path):
    async def begin():
        engine = await create_memory_engine(path=tmp_path / "lamina.db", embed=HashingEmbedder())
        await engine.store("the lamp is lit")
        return engine

    engine = asyncio.run(begin())

    async def go_on():
        found = await engine.recall("lamp")
        await asyncio.gather(*(engine.store(f"note {number}") for number in range(5)))
        await engine.close()
        await engine.close()
        return [hit.entry.content for hit in found]

    assert asyncio.run(go_on()) == ["the lamp is lit"]


@pytest.mark.case("B85")
async def test_the_blocking_interface_works_inside_a_running_loop(tmp_path):
    with create_blocking_engine(path=tmp_path / "lamina.db", embedding="none") as engine:
        engine.store("the lamp is lit")
        assert [hit.entry.content for hit in engine.recall("lamp")] == ["the lamp is lit"]
    engine.close()


@pytest.mark.case("B86")
async def test_nothing_gathers_behind_writes_that_are_answered(engine):
    for number in range(30):
        await asyncio.gather(*(engine.store(f"note {number} {each}") for each in range(10)))
        assert await engine.count() == 10 * (number + 1)  # each was done when it was answered
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert len(left) <= 1  # at most the one that writes counts of accesses
