"""Many at once on one file: threads, processes and tasks, none of which may be refused or lose anything."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kill_ledger import Ledger
from kill_oracle import look
from kill_places import SqlitePlace, options

import lamina
from lamina import Kernel
from lamina.sync import create_memory_engine
from lamina.testing import FrozenClock, HashingEmbedder

THREADS, PROCESSES, TASKS = 8, 4, 100
SLOWEST = 0.99


@dataclass
class Race:
    """What came of it. A call that raised is a finding, whatever it raised."""

    done: str
    calls: int = 0
    slow: float = 0.0
    """Seconds that one in a hundred calls took longer than."""
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.done}: {self.calls:,} calls, 99 % within {1_000 * self.slow:.0f} ms"


@dataclass
class Runner:
    """One of those that write: what it wrote, how long each call took, and what was raised."""

    name: str
    written: dict[str, str] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def run(self, store: Callable[[str, str], object], until: float) -> None:
        """Write one memory after the other, at least one, until it is this time."""
        while not self.written or time.monotonic() < until:
            began = time.monotonic()
            id, text = self.next()
            try:
                store(id, text)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told
                self.errors.append(repr(error))
                return
            self.took(id, text, began)

    async def run_async(self, store: Callable[[str, str], Awaitable[object]], until: float) -> None:
        while not self.written or time.monotonic() < until:
            began = time.monotonic()
            id, text = self.next()
            try:
                await store(id, text)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told
                self.errors.append(repr(error))
                return
            self.took(id, text, began)

    def next(self) -> tuple[str, str]:
        id = f"{self.name}w{len(self.written)}w"
        return id, f"{id} is written beside others"

    def took(self, id: str, text: str, began: float) -> None:
        self.times.append(time.monotonic() - began)
        self.written[id] = text


def raced(folder: Path, *, seconds: float) -> list[Race]:
    """Threads that share an engine or have each its own, processes, and tasks of one loop: each way on its own file."""
    ways = {
        f"{THREADS} threads with one engine": in_threads,
        f"{THREADS} threads with an engine each": in_threads_apart,
        f"{PROCESSES} processes": in_processes,
        f"{TASKS} tasks": in_tasks,
    }
    races = []
    for number, (done, run) in enumerate(ways.items()):
        place = SqlitePlace(folder / str(number))
        place.folder.mkdir()
        races.append(judged(done, place, run(place, seconds)))
    return races


def in_threads(place: SqlitePlace, seconds: float) -> list[Runner]:
    with create_memory_engine(path=place.file, embed=HashingEmbedder(32)) as engine:
        return threads_with([engine] * THREADS, seconds)


def in_threads_apart(place: SqlitePlace, seconds: float) -> list[Runner]:
    with ExitStack() as closing:
        opened = [create_memory_engine(path=place.file, embed=HashingEmbedder(32)) for _ in range(THREADS)]
        return threads_with([closing.enter_context(engine) for engine in opened], seconds)


def threads_with(engines: list[object], seconds: float) -> list[Runner]:
    runners = [Runner(f"t{number}") for number in range(len(engines))]
    until = time.monotonic() + seconds
    threads = [
        threading.Thread(target=runner.run, args=(storing(engine), until))
        for runner, engine in zip(runners, engines, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return runners


def storing(engine: Any) -> Callable[[str, str], Any]:
    """Storing under an id, with an engine of either kind."""
    return lambda key, text: engine.store(text, id=key)


def in_processes(place: SqlitePlace, seconds: float) -> list[Runner]:
    """Each says at its end what it has done."""
    environment = {**os.environ, "PYTHONPATH": str(Path(lamina.__file__).parents[1])}
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, str(place.folder), f"p{number}", str(seconds)],
            stdout=subprocess.PIPE,
            env=environment,
        )
        for number in range(PROCESSES)
    ]
    return [Runner(**json.loads(process.communicate()[0])) for process in processes]


def in_tasks(place: SqlitePlace, seconds: float) -> list[Runner]:
    async def run() -> list[Runner]:
        runners = [Runner(f"a{number}") for number in range(TASKS)]
        until = time.monotonic() + seconds
        async with Kernel(place.settings(), **options(FrozenClock())) as kernel:
            store = storing(kernel.memory_engine)
            await asyncio.gather(*(each.run_async(store, until) for each in runners))
        return runners

    return asyncio.run(run())


def judged(done: str, place: SqlitePlace, runners: list[Runner]) -> Race:
    ledger = Ledger()
    for number, runner in enumerate(runners):
        ledger.tried(number, {f"memory:{id}": text for id, text in runner.written.items()}, is_whole=False)
        ledger.done(number)

    async def read() -> list[str]:
        async with look(place, "storing", FrozenClock()()) as sight:
            return [*ledger.settle(sight.found).findings(), *sight.findings]

    times = sorted(each for runner in runners for each in runner.times)
    race = Race(done, len(times), times[int(SLOWEST * (len(times) - 1))] if times else 0.0)
    race.findings += [f"{done}: {error}" for runner in runners for error in runner.errors]
    race.findings += [f"{done}: {finding}" for finding in asyncio.run(read())]
    return race


def main(folder: str, name: str, seconds: str) -> None:
    runner = Runner(name)
    with create_memory_engine(path=SqlitePlace(Path(folder)).file, embed=HashingEmbedder(32)) as engine:
        runner.run(storing(engine), time.monotonic() + float(seconds))
    print(json.dumps(vars(runner)))  # noqa: T201 - it says it to the one that started it


if __name__ == "__main__":
    main(*sys.argv[1:])
