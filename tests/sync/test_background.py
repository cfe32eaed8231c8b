"""The loop behind all twins: running loops, threads, callbacks, exit, fork, interrupts."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lamina import ModelRouter, define_agent, sync
from lamina.errors import Unsupported
from lamina.sync.background import background


@pytest.fixture
def engine() -> Iterator[sync.MemoryEngine]:
    with sync.create_memory_engine(provider="memory", embedding="none") as engine:
        yield engine


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


def test_a_hook_that_calls_the_facade_is_refused_and_does_not_hang() -> None:
    def hook(entry: object) -> object:
        engine.count()
        return entry

    engine = sync.create_memory_engine(provider="memory", embedding="none", hooks={"on_before_store": hook})
    with engine, pytest.raises(Unsupported, match="inside its own hooks"):
        engine.store("round and round")


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_script_that_forgets_to_close_ends_quietly_and_keeps_what_it_stored(tmp_path: Path) -> None:
    opened = "from lamina.sync import create_memory_engine as c\ne = c(path='notes.db', embedding='none')\n"
    first = run(f"{opened}e.store('kept without closing')\ne.recall('kept')\n", tmp_path)
    assert (first.returncode, first.stderr) == (0, "")
    second = run(f"{opened}print(e.query()[0].content, e.query()[0].access_count)", tmp_path)
    assert (second.returncode, second.stderr, second.stdout) == (0, "", "kept without closing 1\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_is_told_to_make_an_engine_of_its_own_and_can(tmp_path: Path) -> None:
    script = """
import os, sys
from lamina.errors import Unsupported
from lamina.sync.background import background
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


def test_an_interrupt_is_raised_when_what_it_cancelled_has_ended(tmp_path: Path) -> None:
    script = """
import asyncio, os, signal, threading
from lamina.sync import Kernel
from lamina import define_agent
ended = []
async def slow(intent, context, model):
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.2)
        ended.append(True)
with Kernel(memory={"embedding": "none"}) as kernel:
    kernel.agent_registry.register(define_agent("slow", executor=slow))
    try:
        kernel.submit(goal="never", thread_id="t")
    except KeyboardInterrupt:
        print("interrupted", ended, kernel.conversation.retrieve("t"))
    stream = kernel.stream(goal="never", thread_id="t")
    try:
        next(stream)
    except KeyboardInterrupt:
        print("interrupted", ended, kernel.conversation.retrieve("t"))
"""
    done = run(script, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "interrupted [True] None\ninterrupted [True, True] None\n"


def test_a_kernel_that_nobody_stops_is_stopped_at_exit_and_keeps_what_it_has(tmp_path: Path) -> None:
    opened = "from lamina.sync import Kernel\nk = Kernel(data_dir='d', memory={'embedding': 'none'})\nk.start()\n"
    script = f"""{opened}
k.memory_engine.store('kept'); k.memory_engine.recall('kept')
class Engine:
    info = {{'id': 'own', 'name': 'Own'}}
    async def assemble(self, params): ...
    async def compact(self, params): ...
    async def dispose(self): print('disposed')
k.context_engines.register(Engine())
k.conversation.add_message_to_thread('t', 'user', 'hi')
"""
    first = run(script, tmp_path)
    assert (first.returncode, first.stderr, first.stdout) == (0, "", "disposed\n")
    script = f"{opened}print(k.memory_engine.query()[0].access_count, len(k.conversation.history('t')))"
    second = run(script, tmp_path)
    assert (second.returncode, second.stderr, second.stdout) == (0, "", "1 1\n")


def test_a_stream_and_a_memory_that_are_open_at_exit_make_no_noise(tmp_path: Path) -> None:
    script = """
from lamina.sync import InMemoryMemory, Kernel
from lamina import ModelRouter
from lamina.testing import EchoModel
memory = InMemoryMemory()
memory.add({"message": {"role": "user", "content": "hi"}})
kernel = Kernel(model_router=ModelRouter(EchoModel()), memory={"embedding": "none"})
kernel.start()
stream = kernel.stream(goal="one two three")
print(next(stream))
"""
    done = run(script, tmp_path)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "one \n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_is_refused_every_part_of_a_kernel(tmp_path: Path) -> None:
    script = """
import gc, os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks where threads run
from lamina import ModelRouter, Unsupported
from lamina.testing import EchoModel
from lamina.sync import Kernel
kernel = Kernel(model_router=ModelRouter(EchoModel()), memory={"embedding": "none"})
kernel.start()
part = kernel.conversation
stream = kernel.stream(goal="one two three")
next(stream)
child = os.fork()
if child == 0:
    refused = 0
    for use in (lambda: kernel.rag, lambda: kernel.submit(goal="x"), lambda: part.history("t"), lambda: next(stream),
                lambda: kernel.on("intent.completed", print), lambda: kernel.maintenance(1)):
        try:
            use()
        except Unsupported:
            refused += 1
    del stream
    gc.collect()
    print(refused, flush=True)
    sys.exit(0)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), [*stream][:-1])
kernel.stop()
"""
    done = run(script, tmp_path)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "6\n0 ['two ', 'three']\n")


def test_a_callback_that_ends_the_interpreter_s_loop_does_not_take_the_facade_with_it() -> None:
    def leave(intent: object, context: object, model: object) -> str:
        raise SystemExit(3)

    async def leave_in_the_loop(intent: object, context: object, model: object) -> str:
        raise SystemExit(3)

    with sync.Kernel(memory={"embedding": "none"}) as kernel:
        for number, executor in enumerate([leave, leave_in_the_loop]):
            kernel.agent_registry.register(define_agent(f"leaves{number}", executor=executor))
            with pytest.raises(SystemExit):
                kernel.submit(goal="Go", agent=f"leaves{number}", thread_id="t")
        assert kernel.conversation.retrieve("t") is None
        assert kernel.memory_engine.store("x y z") is not None


def test_a_part_is_refused_to_a_callback_and_a_plain_method_serves_it() -> None:
    seen: list[object] = []

    def handler(event: object) -> None:
        seen.append(len(kernel.context_engines.list_engines()))
        with pytest.raises(Unsupported, match="inside its own hooks"):
            kernel.conversation.list_threads()
        with pytest.raises(Unsupported, match="inside its own hooks"), kernel.maintenance(1):
            pass
        seen.append(background().is_here)

    with sync.Kernel(memory={"embedding": "none"}, model_router=ModelRouter(lambda _: "yes")) as kernel:
        kernel.on("intent.completed", handler)
        kernel.submit(goal="hi")
    assert seen == [1, True]
