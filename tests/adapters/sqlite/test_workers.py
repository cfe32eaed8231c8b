import asyncio
import gc
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path

import pytest

from lamina.adapters.sqlite import SqliteAdapter
from lamina.errors import AdapterError, EmbeddingDimensionError, InvalidInput
from lamina.testing.memory_contract.material import LIVE, MINE, NOW, by_text, ids, listed, memory, put


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("lamina-sqlite")}


def test_two_event_loops_one_after_the_other_share_an_adapter(file: Path) -> None:
    before = threads()
    adapter = SqliteAdapter(file)

    async def first() -> None:
        await adapter.initialize()
        await put(adapter, memory("m1"))

    async def second() -> list[str]:
        await put(adapter, memory("m2"))
        return ids(await listed(adapter))

    asyncio.run(first())
    assert asyncio.run(second()) == ["m1", "m2"]
    asyncio.run(adapter.close())
    assert threads() == before


def test_loops_in_many_threads_share_an_adapter(file: Path) -> None:
    adapter = SqliteAdapter(file)
    asyncio.run(adapter.initialize())
    failures: list[Exception] = []

    async def work(worker: int) -> None:
        for number in range(25):
            await put(adapter, memory(f"m{worker}-{number}", f"note {number} of {worker}"))
            assert await adapter.get(MINE, f"m{worker}-{number}") is not None
            await by_text(adapter, "note")

    def run(worker: int) -> None:
        try:
            asyncio.run(work(worker))
        except Exception as error:  # noqa: BLE001 - any at all
            failures.append(error)

    workers = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []
    assert asyncio.run(adapter.count(MINE, LIVE)) == 200
    assert asyncio.run(adapter.check()) == []
    asyncio.run(adapter.close())


@pytest.mark.parametrize("readers", [0, 1, 4])
async def test_any_number_of_readers_gives_the_same_answers(opened, readers: int) -> None:
    adapter = await opened(readers=readers)
    await asyncio.gather(*(put(adapter, memory(f"m{n}")) for n in range(50)))
    pages = await asyncio.gather(*(listed(adapter) for _ in range(20)))
    assert [len(page) for page in pages] == [50] * 20


async def test_what_was_written_is_read_by_whoever_asks_next(opened) -> None:
    adapter = await opened(readers=4)
    for number in range(100):
        await put(adapter, memory("m1", f"version {number}"))
        entry = await adapter.get(MINE, "m1")
        assert entry is not None
        assert entry.content == f"version {number}"


async def test_it_opens_again_after_closing(file: Path) -> None:
    adapter = SqliteAdapter(file)
    with pytest.raises(AdapterError, match="initialize"):
        await listed(adapter)
    for number in range(3):
        await adapter.initialize()
        await adapter.initialize()
        await put(adapter, memory(f"m{number}"))
        await adapter.close()
        await adapter.close()
    with pytest.raises(AdapterError, match="initialize"):
        await put(adapter, memory())
    await adapter.initialize()
    assert ids(await listed(adapter)) == ["m0", "m1", "m2"]
    await adapter.close()


async def test_memory_only_forgets_when_closed_and_does_not_claim_to_persist() -> None:
    adapter = SqliteAdapter(":memory:")
    await adapter.initialize()
    await put(adapter, memory())
    assert ids(await listed(adapter)) == ["m1"]
    assert await adapter.check() == []
    await adapter.scrub()
    assert SqliteAdapter.capabilities - adapter.capabilities == {"persistence"}
    await adapter.close()
    await adapter.initialize()
    assert await listed(adapter) == []
    await adapter.close()


async def test_a_cancelled_caller_leaves_all_of_its_batch_or_nothing(adapter: SqliteAdapter) -> None:
    outcomes = set()
    for attempt in range(30):
        batch = [memory(f"m{attempt}-{n}", f"note {n}") for n in range(40)]
        task = asyncio.create_task(adapter.store_many(MINE, batch))
        await asyncio.sleep(0.0005 * (attempt % 12))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        outcomes.add(sum(id.startswith(f"m{attempt}-") for id in ids(await listed(adapter, limit=5000))))
    await adapter.scrub()  # behind all that was asked for
    assert outcomes <= {0, 40}
    assert len(await listed(adapter, limit=5000)) % 40 == 0
    assert await adapter.check() == []


async def test_writes_that_wait_together_share_one_transaction_without_savepoints(adapter: SqliteAdapter) -> None:
    statements: list[str] = []
    await adapter._opened().alone(lambda connection: connection.set_trace_callback(statements.append))
    gate = threading.Event()
    waiting = asyncio.create_task(adapter._opened().alone(lambda _: gate.wait(10)))
    await asyncio.sleep(0)
    writes = [asyncio.create_task(put(adapter, memory(f"m{n}"))) for n in range(40)]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(waiting, *writes)
    await adapter._opened().alone(lambda connection: connection.set_trace_callback(None))
    assert statements.count("COMMIT") == 1
    assert not any(statement.startswith("SAVEPOINT") for statement in statements)
    assert len(await listed(adapter)) == 40


async def test_callers_who_add_at_once_take_as_few_statements_as_one_who_adds_all(adapter: SqliteAdapter) -> None:
    statements: list[str] = []
    await adapter._opened().alone(lambda connection: connection.set_trace_callback(statements.append))
    counts = []
    for callers in (1, 40):
        statements.clear()
        gate = threading.Event()
        waiting = asyncio.create_task(adapter._opened().alone(lambda _, gate=gate: gate.wait(10)))
        await asyncio.sleep(0)
        batches = [[memory(f"{callers}-{n}", f"note {n % 39} of {callers}")] for n in range(callers)]
        writes = [asyncio.create_task(adapter.store_many(MINE, batch, if_new=True)) for batch in batches]
        await asyncio.sleep(0)
        gate.set()
        await waiting
        found = await asyncio.gather(*writes)
        assert [twin and twin.id for (twin,) in found] == [None, *[None] * 38, "40-0"][:callers]
        counts.append(sum(each.startswith(("SELECT", "UPDATE", "\n    WITH")) for each in statements))
    await adapter._opened().alone(lambda connection: connection.set_trace_callback(None))
    assert counts[0] <= 7
    assert counts[1] <= counts[0] + 6  # to find what the last one repeats
    assert await adapter.check() == []


async def test_one_write_of_a_group_that_fails_takes_back_its_own_and_nothing_else(adapter: SqliteAdapter) -> None:
    await put(adapter, memory("first", embedding=[1.0, 0.0]))
    gate = threading.Event()
    waiting = asyncio.create_task(adapter._opened().alone(lambda _: gate.wait(10)))
    await asyncio.sleep(0)
    wrong = [memory("half", "half written"), memory("long", embedding=[1.0, 0.0, 0.0])]
    writes = [
        asyncio.create_task(put(adapter, memory("a"))),
        asyncio.create_task(adapter.store_many(MINE, wrong)),
        asyncio.create_task(put(adapter, memory("b"))),
        asyncio.create_task(adapter.update(MINE, "first", {"relevance": 7})),
        asyncio.create_task(put(adapter, memory("c"))),
        asyncio.create_task(adapter.store_many(MINE, [memory("d")])),  # in one go with the next two
        asyncio.create_task(adapter.store_many(MINE, [memory("wide", embedding=[1.0])])),
        asyncio.create_task(adapter.store_many(MINE, [memory("e")])),
    ]
    await asyncio.sleep(0)
    gate.set()
    await waiting
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    kinds = [type(outcome) for outcome in outcomes]
    assert kinds[:5] == [type(None), EmbeddingDimensionError, type(None), InvalidInput, type(None)]
    assert kinds[5:] == [list, EmbeddingDimensionError, list]
    assert ids(await listed(adapter)) == ["first", "a", "b", "c", "d", "e"]
    assert await by_text(adapter, "half") == []
    assert await adapter.check() == []


def test_an_adapter_that_is_never_closed_ends_with_its_owner_without_a_sound(file: Path) -> None:
    before = threads()
    adapter = SqliteAdapter(file)
    asyncio.run(adapter.initialize())
    workers = threads() - before
    assert len(workers) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del adapter
        gc.collect()
        for worker in workers:
            worker.join(10)
    assert threads() == before


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts handles in /proc")
def test_adapters_that_are_used_and_dropped_leave_no_thread_and_no_handle(tmp_path: Path) -> None:
    def handles() -> int:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    async def use(adapter: SqliteAdapter) -> None:
        await adapter.initialize()
        await asyncio.gather(*(put(adapter, memory(f"m{number}")) for number in range(5)))
        await adapter.delete(MINE, "m0")
        with pytest.raises(InvalidInput):
            await put(adapter, memory("bad", " "))
        assert await adapter.count(MINE, LIVE) == 4

    threads_before, handles_before = threads(), handles()
    for number in range(20):
        asyncio.run(use(SqliteAdapter(tmp_path / f"{number}.db")))
    for _ in range(100):  # a thread may still hold what it has just answered
        gc.collect()
        for worker in threads() - threads_before:
            worker.join(0.1)
    assert threads() == threads_before
    assert handles() <= handles_before + 2


@pytest.mark.parametrize("closing", ["await adapter.close()", "pass"])
def test_a_process_ends_quietly_whether_it_closes_or_not(file: Path, closing: str) -> None:
    code = f"""
        import asyncio, sys
        from lamina.adapters.sqlite import SqliteAdapter
        from lamina.testing.memory_contract.material import memory, put
        adapter = SqliteAdapter(sys.argv[1])
        async def main():
            await adapter.initialize()
            await put(adapter, memory())
            left = asyncio.create_task(put(adapter, memory("m2")))
            await asyncio.sleep(0)
            {closing}
        asyncio.run(main())
        assert "numpy" not in sys.modules
        print("done")
    """
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(code), str(file)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


async def test_an_answer_for_a_loop_that_is_gone_harms_nobody(adapter: SqliteAdapter) -> None:
    gate = threading.Event()

    def ask_and_leave() -> None:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(start())
        loop.close()

    async def start() -> None:
        asyncio.create_task(adapter._opened().alone(lambda _: gate.wait(10)))  # noqa: RUF006 - it is left behind
        await asyncio.sleep(0.01)

    left = threading.Thread(target=ask_and_leave)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        left.start()
        left.join()
        gate.set()
        await put(adapter, memory("after"))
        gc.collect()
    assert ids(await listed(adapter)) == ["after"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
async def test_a_forked_child_must_open_for_itself_and_then_shares_the_file(file: Path, adapter: SqliteAdapter) -> None:
    await put(adapter, memory("parent"))

    async def in_child() -> None:
        try:
            await put(adapter, memory("refused"))
        except AdapterError:
            await adapter.initialize()
            await put(adapter, memory("child"))
            await adapter.close()

    child = multiprocessing.get_context("fork").Process(target=lambda: asyncio.run(in_child()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking beside threads
        child.start()
    await asyncio.to_thread(child.join, 60)
    assert child.exitcode == 0
    await put(adapter, memory("parent again"))
    assert ids(await listed(adapter)) == ["parent", "child", "parent again"]


async def test_access_is_counted_exactly_by_many_at_once(opened) -> None:
    adapters = [await opened() for _ in range(3)]
    await put(adapters[0], *(memory(f"m{n}") for n in range(5)))
    rounds = [adapter.touch(MINE, ["m0", "m1", "m1", "gone"], NOW) for adapter in adapters for _ in range(30)]
    await asyncio.gather(*rounds)
    counts = [entry.access_count for entry in await listed(adapters[0])]
    assert counts == [90, 180, 0, 0, 0]
    assert [entry.revision for entry in await listed(adapters[0])] == [1] * 5
