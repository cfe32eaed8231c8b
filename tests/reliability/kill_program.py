"""Writes to a place until it is killed: run by `kill_harness`.

It reads jobs from stdin, a line of JSON each, and forks a process for each of them, so that a process to be killed
is there at once. That one says on stdout, by lines of JSON, `{"pid": …}`, `{"now": …}` of its clock, then
`{"try": number, "values": {…}, "whole": …}` before each change and `{"done": number}` after it was acknowledged. One
that persists asks again for what was refused, of the same kernel, until it is done, and says `{"refused": why, "reads":
…}` each time: whether what is there can be read meanwhile. When it is dead, `{"ended": status}` is said in its stead.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a process that forks has one thread

import kill_places
import kill_writers
import numpy as np  # noqa: F401 - so that no process has to
import psycopg  # noqa: F401 - likewise

from lamina import Kernel
from lamina.errors import AdapterError
from lamina.testing import FrozenClock

TURNS_OF_A_KERNEL = 3
"""After so many it is closed and opened again: that is part of what may be interrupted."""
BETWEEN_ATTEMPTS = 0.02


class Teller:
    """Says what is tried and what is done.

    One that lies acknowledges what is not written: if it persists, what was refused, and else all but its first change.
    """

    kernel: Kernel

    def __init__(self, clock: FrozenClock, *, lies: bool, persists: bool) -> None:
        self._clock = clock
        self._lies = lies
        self._persists = persists
        self._numbers = itertools.count()

    async def __call__(
        self, values: Mapping[str, str | None], work: Callable[[], Awaitable[Any]], *, is_whole: bool = True
    ) -> None:
        number = next(self._numbers)
        say({"now": self._clock.now.isoformat()})
        say({"try": number, "values": values, "whole": is_whole})
        if self._persists:
            await self._insist(work)
        elif self._lies and number > 0:
            say({"done": number})
            await asyncio.sleep(3600)
        else:
            await work()
        say({"done": number})

    async def _insist(self, work: Callable[[], Awaitable[Any]]) -> None:
        while True:
            try:
                await work()
            except AdapterError as error:
                say({"refused": str(error), "reads": await self._reads()})
                if self._lies:
                    return
                await asyncio.sleep(BETWEEN_ATTEMPTS)
            else:
                return

    async def _reads(self) -> bool:
        try:
            return await self.kernel.memory_engine.count(owner=kill_writers.OWNER) >= 0
        except AdapterError:
            return False


def say(line: Mapping[str, Any]) -> None:
    os.write(1, json.dumps(line).encode() + b"\n")


async def write(job: Mapping[str, Any]) -> None:
    place = kill_places.place_of(job["place"])
    clock = FrozenClock(datetime.fromisoformat(job["now"]))
    teller = Teller(clock, lies=job["lies"], persists=job["persists"])
    writer = kill_writers.WAYS[job["way"]](place, job["name"], clock, teller)
    is_first = True
    while True:
        if job["way"] == "migrating":
            place.age()
        async with Kernel(place.settings(), **kill_places.options(clock)) as teller.kernel:
            if is_first:
                await writer.prepare(teller.kernel)
                is_first = False
            for _ in itertools.count() if job["persists"] else range(TURNS_OF_A_KERNEL):
                await writer.turn(teller.kernel)


def serve() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                say({"pid": os.getpid()})
                asyncio.run(write(json.loads(line)))
            except BaseException:  # noqa: BLE001 - the end of a process, which must not come back to the loop
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(status)
        _, status = os.waitpid(pid, 0)
        os.write(1, b"\n")  # a line may have been cut off
        say({"ended": os.waitstatus_to_exitcode(status)})


if __name__ == "__main__":
    serve()
