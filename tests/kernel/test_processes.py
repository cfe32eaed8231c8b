"""Kernels of several processes on one place, and processes that are killed in the middle of it."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from pathlib import Path

import pytest

from lamina import Kernel, ModelRouter
from lamina.state.sqlite import SqliteStateStore
from lamina.testing import EchoModel

PROGRAM = Path(__file__).with_name("two_minds.py")
QUIET = {"memory": {"embedding": "none"}, "conversation": {"window": 6}}


async def start(folder, name, turns, what="submit"):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(PROGRAM), str(folder), name, str(turns), what),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert await process.stdout.readline() == b"ready\n"
    return process


def go(process):
    process.stdin.write(b"go\n")


async def told(process):
    """What the process said, to its end."""
    lines = (await process.stdout.read()).decode().splitlines()
    await process.wait()
    return lines


def exchange(goal):
    return [
        ("user", goal),
        ("assistant", ""),
        ("tool", f"result of {goal}"),
        ("assistant", f"answer to {goal}"),
    ]


async def history(kernel):
    return [(each.role.value, each.text) for each in await kernel.conversation.history("shared", limit=10_000)]


def check_exchanges(said):
    """The goals, in order; every exchange is whole, and nothing stands between its parts."""
    goals = [text for role, text in said if role == "user"]
    assert said == [each for goal in goals for each in exchange(goal)]
    return goals


async def check_sound(kernel, folder):
    async with SqliteStateStore(folder / "lamina.db") as store:
        assert await store.check() == []
    thread = await kernel.conversation.retrieve("shared")
    if thread is not None and thread.folded_through:
        assert [each.index for each in thread.messages] == list(range(thread.folded_through + 1, thread.last_index + 1))


async def test_two_processes_that_submit_to_one_thread_keep_every_exchange_whole(tmp_path):
    processes = [await start(tmp_path, name, 25) for name in ("anna", "ben")]
    for each in processes:
        go(each)
    lines = await asyncio.gather(*map(told, processes))
    assert [len(each) for each in lines] == [25, 25]
    async with Kernel(QUIET, data_dir=tmp_path) as kernel:
        goals = check_exchanges(await history(kernel))
        for name in ("anna", "ben"):
            assert [goal for goal in goals if goal.startswith(name)] == [f"{name} {turn}" for turn in range(25)]
        await check_sound(kernel, tmp_path)


async def test_two_kernels_of_one_process_share_a_place(tmp_path):
    router = ModelRouter(EchoModel())
    async with (
        Kernel(QUIET, data_dir=tmp_path, model_router=router) as one,
        Kernel(QUIET, data_dir=tmp_path, model_router=router) as other,
    ):
        goals = [f"goal {number}" for number in range(40)]
        results = await asyncio.gather(
            *(
                kernel.submit(goal=goal, thread_id="shared")
                for goal, kernel in zip(goals, [one, other] * 20, strict=True)
            )
        )
        assert [result.error for result in results] == [None] * 40
        said = await history(one)
        assert said == await history(other)
        assert sorted(text for role, text in said if role == "user") == sorted(goals)
        assert [text for _, text in said[::2]] == [text for _, text in said[1::2]]
        await one.memory_engine.store("The harbour lamp is green")
        assert (await other.memory_engine.recall("lamp"))[0].entry.content == "The harbour lamp is green"


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
async def test_whoever_is_killed_while_it_submits_and_folds_leaves_whole_exchanges_and_loses_nothing_told(tmp_path):
    chance = random.Random(7)
    told_goals = []
    for attempt in range(8):
        process = await start(tmp_path, f"try{attempt}", 10_000)
        go(process)
        first = (await process.stdout.readline()).decode().strip()
        await asyncio.sleep(chance.uniform(0, 0.2))
        process.kill()
        told_goals += [first, *await told(process)]
        assert process.returncode == -signal.SIGKILL
    async with Kernel(QUIET, data_dir=tmp_path) as kernel:
        goals = check_exchanges(await history(kernel))
        assert set(told_goals) <= set(goals)
        assert len(goals) <= len(told_goals) + 8
        assert [goal for goal in goals if goal in set(told_goals)] == told_goals
        await check_sound(kernel, tmp_path)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
async def test_whoever_is_killed_while_it_ingests_leaves_one_whole_document(tmp_path):
    chance = random.Random(11)
    async with Kernel(QUIET, data_dir=tmp_path) as kernel:
        for attempt in range(8):
            process = await start(tmp_path, f"try{attempt}", 10_000, "ingest")
            go(process)
            assert await process.stdout.readline()
            await asyncio.sleep(chance.uniform(0, 0.3))
            process.kill()
            await told(process)
            [document] = await kernel.rag.list_documents()
            chunks = await kernel.rag.chunks(document.id)
            assert [each.chunk_index for each in chunks] == list(range(document.chunks))
            assert chunks[-1].content.endswith("The end.")
            assert await kernel.rag.retrieve("harbour lamp dusk", top_k=3)
        await kernel.rag.purge_orphans()
        assert (await kernel.rag.stats()).chunks == len(await kernel.rag.chunks(document.id))
        assert await kernel.rag.purge_orphans() == 0
        assert await kernel.rag.ingest("# Lamp\n\nGreen.", "lamp.md") == document.id
        await check_sound(kernel, tmp_path)
