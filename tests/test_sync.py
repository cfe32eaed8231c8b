from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lamina import sync
from lamina.errors import InvalidInput, MemoryNotFound, Unsupported
from lamina.memory.engine import MemoryEngine
from lamina.memory.factory import create_memory_engine


@pytest.fixture
def engine() -> Iterator[sync.MemoryEngine]:
    with sync.create_memory_engine(provider="memory", embedding="none") as engine:
        yield engine


def public_names(of: type) -> set[str]:
    return {name for name in vars(of) if not name.startswith("_")}


def test_the_facade_offers_what_the_engine_offers() -> None:
    assert public_names(sync.MemoryEngine) | {"working"} == public_names(MemoryEngine) | {"working"}


@pytest.mark.parametrize(
    "name", sorted(name for name in public_names(MemoryEngine) if inspect.isfunction(vars(MemoryEngine)[name]))
)
def test_each_method_has_the_parameters_of_its_async_twin(name: str) -> None:
    def parameters(of: type) -> list[tuple[str, object, object]]:
        found = inspect.signature(getattr(of, name)).parameters.values()
        return [(each.name, each.kind, each.default) for each in found]

    assert parameters(sync.MemoryEngine) == parameters(MemoryEngine)
    assert not inspect.iscoroutinefunction(getattr(sync.MemoryEngine, name))


def test_making_one_takes_the_arguments_of_its_async_twin() -> None:
    theirs = inspect.signature(create_memory_engine).parameters
    assert list(inspect.signature(sync.create_memory_engine).parameters) == list(theirs)


def test_what_is_stored_is_recalled_edited_and_forgotten(engine: sync.MemoryEngine) -> None:
    id = engine.store("The harbour lamp is green", tags=["place"])
    assert engine.recall("harbour lamp")[0].entry.id == id
    assert engine.update(id, content="The harbour lamp is red").revision == 2
    assert engine.get(id).content == "The harbour lamp is red"
    assert engine.count(tags=["place"]) == 1
    assert engine.stats().memories == 1
    assert engine.forget(id) is True
    assert engine.query() == []


def test_errors_come_through_unchanged(engine: sync.MemoryEngine) -> None:
    with pytest.raises(MemoryNotFound) as caught:
        engine.update("mem_none", content="x")
    assert caught.value.id == "mem_none"
    with pytest.raises(InvalidInput):
        engine.recall("  ")


def test_scanning_yields_everything_in_order_across_pages(engine: sync.MemoryEngine) -> None:
    ids = engine.store_many([f"note number {number}" for number in range(450)])
    assert [entry.id for entry in engine.scan()] == ids


def test_a_scan_that_is_left_early_leaves_the_engine_usable(engine: sync.MemoryEngine) -> None:
    engine.store_many([f"note number {number}" for number in range(450)])
    for _ in engine.scan():
        break
    assert engine.count() == 450


def test_it_works_inside_a_running_event_loop(engine: sync.MemoryEngine) -> None:
    async def notebook_cell() -> str | None:
        return engine.store("from a notebook")

    assert asyncio.run(notebook_cell()) is not None


def test_several_threads_may_call_side_by_side(engine: sync.MemoryEngine) -> None:
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda number: engine.store(f"thought number {number}"), range(64)))
    assert len(set(ids)) == 64
    assert engine.count() == 64


def test_all_facades_share_one_background_thread(engine: sync.MemoryEngine) -> None:
    with sync.create_memory_engine(provider="memory", embedding="none") as other:
        other.store("x y z")
        assert [thread.name for thread in threading.enumerate()].count("lamina-sync") == 1


def test_plain_functions_serve_as_hooks() -> None:
    seen = []

    def guard(entry: object) -> None:
        seen.append(entry.content)

    with sync.create_memory_engine(provider="memory", embedding="none", hooks={"on_before_store": guard}) as engine:
        assert engine.store("vetoed by the hook") is None
    assert seen == ["vetoed by the hook"]


def test_plain_functions_serve_as_embedders() -> None:
    def embed(text: str) -> list[float]:
        return [float("lamp" in text), float("train" in text), 0.1]

    with sync.create_memory_engine(provider="memory", embed=embed) as engine:
        engine.store("the lamp in the hall")
        engine.store("the train to the coast")
        assert engine.recall("lamp", mode="vector")[0].entry.content == "the lamp in the hall"


def test_a_hook_that_calls_the_facade_is_refused_and_does_not_hang() -> None:
    def hook(entry: object) -> object:
        engine.count()
        return entry

    engine = sync.create_memory_engine(provider="memory", embedding="none", hooks={"on_before_store": hook})
    with engine, pytest.raises(Unsupported, match="inside its own hooks"):
        engine.store("round and round")


def test_closing_twice_is_closing_once(engine: sync.MemoryEngine) -> None:
    engine.close()
    engine.close()


def test_the_working_store_is_the_engine_s_own(engine: sync.MemoryEngine) -> None:
    engine.working.set("task", 7)
    assert engine.asynchronous.working.get("task") == 7


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_script_that_forgets_to_close_ends_quietly_and_keeps_what_it_stored(tmp_path: Path) -> None:
    opened = "from lamina.sync import create_memory_engine as c\ne = c(path='notes.db', embedding='none')\n"
    first = run(f"{opened}e.store('kept without closing')\ne.recall('kept')\n", tmp_path)
    assert (first.returncode, first.stderr) == (0, "")
    second = run(f"{opened}print(e.query()[0].content)", tmp_path)
    assert (second.returncode, second.stderr, second.stdout) == (0, "", "kept without closing\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_is_told_to_make_an_engine_of_its_own_and_can(tmp_path: Path) -> None:
    script = """
import os, sys
from lamina.errors import Unsupported
from lamina.sync import create_memory_engine
engine = create_memory_engine(provider="memory", embedding="none")
engine.store("of the parent")
child = os.fork()
if child == 0:
    try:
        engine.count()
    except Unsupported:
        with create_memory_engine(provider="memory", embedding="none") as own:
            own.store("of the child")
            print(own.count(), flush=True)
    sys.exit(0)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), engine.count())
"""
    done = run(script, tmp_path)
    assert (done.returncode, done.stdout) == (0, "1\n0 1\n")


def test_an_interrupt_reaches_the_waiting_caller(tmp_path: Path) -> None:
    script = """
import asyncio, os, signal, threading
from lamina.sync import create_memory_engine
async def slow(entry):
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    await asyncio.sleep(60)
with create_memory_engine(provider="memory", embedding="none", hooks={"on_before_store": slow}) as engine:
    try:
        engine.store("never")
    except KeyboardInterrupt:
        print("interrupted", engine.count())
"""
    done = run(script, tmp_path)
    assert (done.returncode, done.stdout) == (0, "interrupted 0\n")
