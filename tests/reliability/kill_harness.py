"""Starts programs that write, kills them, and looks at what they left: again and again, by a seed.

async with Forge(folder) as forge:
    report = await Rounds(forge, place, "editing", seed=7).kill(25)
assert report.findings == []
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from kill_ledger import Ledger
from kill_oracle import look
from kill_outages import Outage
from kill_places import Place

import lamina

PROGRAM = Path(__file__).with_name("kill_program.py")
LONGEST_LINE = 2**22
BEGUN = datetime(2026, 3, 1, 9, tzinfo=UTC)
PATIENCE = 120.0
AFTERWARDS = 5
"""So many changes have to be acknowledged once a trouble is over."""
AT_RANDOM = 50
"""Of the items that earlier looks have seen, so many are asked for at each look that is not thorough."""


@dataclass
class Report:
    """The figures of one way of writing on one place."""

    way: str
    kills: int = 0
    acknowledged: int = 0
    unknown: int = 0
    looked_up: int = 0
    """Items that were asked for by their own words."""
    refused: int = 0
    """Calls that were refused in outages."""
    findings: list[str] = field(default_factory=list)

    lost: int = 0
    invented: int = 0


Blow = Callable[[int, Counter[str]], Coroutine[Any, Any, None]]
"""What befalls a process before it is killed, by its id and by how often it said which words."""


class Forge:
    """The program from which those are forked that are to be killed."""

    def __init__(self, folder: Path) -> None:
        self._errors = folder / "forge.err"
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        environment = {**os.environ, "PYTHONPATH": str(Path(lamina.__file__).parents[1])}
        with self._errors.open("w") as errors:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, str(PROGRAM)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env=environment,
                limit=LONGEST_LINE,
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        self._process.stdin.close()
        await asyncio.wait_for(self._process.wait(), PATIENCE)

    def errors(self) -> str:
        """What the programs last wrote of their faults."""
        return self._errors.read_text()[-2_000:]

    async def strike(
        self, job: dict[str, Any], tell: Callable[[dict[str, Any]], None], *, after: int, blow: Blow
    ) -> int:
        """Have the job done, and from when it has acknowledged so many changes strike the blow, then kill it.

        Returns:
            Its status.
        """
        self._process.stdin.write(json.dumps(job).encode() + b"\n")
        victim, heard = 0, Counter[str]()
        striking: asyncio.Task[None] | None = None
        while True:
            line = await asyncio.wait_for(self._process.stdout.readline(), PATIENCE)
            if not line:
                raise RuntimeError(self.errors())
            try:
                said = json.loads(line)
            except ValueError:
                continue  # it was cut off, and so never said; what follows is that it ended
            if "ended" in said:
                if striking is not None:
                    striking.cancel()  # which is nothing to one that is over, as it is unless this has ended by itself
                    with suppress(asyncio.CancelledError):
                        await striking
                return said["ended"]
            victim = said.get("pid", victim)
            heard.update(word for word, value in said.items() if value is not False)
            if "done" in said and heard["done"] == after:
                striking = asyncio.create_task(deadly(victim, blow(victim, heard)))
            tell(said)


async def deadly(victim: int, blow: Coroutine[Any, Any, None]) -> None:
    """Kill it after the blow, and if that fails as well."""
    try:
        async with asyncio.timeout(PATIENCE):
            await blow
    finally:
        with suppress(ProcessLookupError):  # it has ended by itself
            os.kill(victim, signal.SIGKILL)


class Rounds:
    """Kills of one way of writing on one place. Whatever is found is in the report, with the round it was found in.

    Args:
        outage: What befalls the place before each kill, and is over before it.
    """

    def __init__(
        self,
        forge: Forge,
        place: Place,
        way: str,
        *,
        seed: int,
        longest_wait: float = 0.25,
        outage: Outage | None = None,
    ) -> None:
        self.place = place
        self.report = Report(way if outage is None else f"{way}, {outage.name}")
        self._outage = outage
        self._way = way
        self._seed = seed
        self._longest_wait = longest_wait
        self._chance = random.Random(f"{way} {seed}")
        self._ledger = Ledger()
        self._now = BEGUN
        self._forge = forge

    async def kill(
        self,
        times: int = 1,
        *,
        after: int = 1,
        lies: bool = False,
        damage: Callable[[], object] | None = None,
        is_last: bool = True,
    ) -> Report:
        """Kill so many programs, each some time after it has acknowledged `after` changes.

        `damage` is done to the place after each, and a program that lies acknowledges too early.
        After each kill everything is read, and what is new is asked for by its own words; after the last, all is.
        """
        for left in reversed(range(times)):
            number = self.report.kills
            job = {
                "place": self.place.described(),
                "way": self._way,
                "name": f"{self._way[0]}{self._seed}r{number}",
                "now": self._now.isoformat(),
                "lies": lies,
                "persists": self._outage is not None,
            }
            status = await self._forge.strike(job, self._hear, after=after, blow=self._blow)
            if status != -signal.SIGKILL:
                raise RuntimeError(f"it was not killed, but ended with {status}: {self._forge.errors()}")
            self.report.kills += 1
            self.place.come_to_rest()
            if damage is not None:
                damage()
            await self._check(number, thorough=is_last and left == 0)
        return self.report

    async def _blow(self, victim: int, heard: Counter[str]) -> None:
        await asyncio.sleep(self._chance.uniform(0, self._longest_wait))
        if self._outage is None:
            return
        await self._outage.begin(self.place, victim, self._chance)
        try:
            await becomes(lambda: heard["refused"])
            await asyncio.sleep(self._chance.uniform(0, self._longest_wait))
        finally:
            await self._outage.end(self.place, victim)
        if self._outage.can_be_read and heard["reads"] != heard["refused"]:
            self.report.findings.append("what is there could not be read in an outage")
        done = heard["done"]
        await becomes(lambda: heard["done"] >= done + AFTERWARDS)
        self.report.refused += heard["refused"]

    async def _check(self, number: int, *, thorough: bool) -> None:
        before = dict(self._ledger.known)
        async with look(self.place, self._way, self._now) as sight:
            verdict = self._ledger.settle(sight.found)
            fresh = [key for key, value in sight.found.items() if before.get(key) != value]
            kept = sorted(key for key, value in sight.found.items() if before.get(key) == value)
            asked = fresh + (kept if thorough else self._chance.sample(kept, min(len(kept), AT_RANDOM)))
            missed = await sight.not_found(asked)
        report = self.report
        report.looked_up += sum(not key.startswith("message:") for key in asked)  # threads are read, not searched
        report.lost += len(verdict.lost) + len(verdict.torn)
        report.invented += len(verdict.invented)
        report.acknowledged, report.unknown = self._ledger.acknowledged, self._ledger.unknown
        report.findings += [f"kill {number}: {each}" for each in (*verdict.findings(), *sight.findings, *missed)]

    def _hear(self, said: dict[str, Any]) -> None:
        if "try" in said:
            self._ledger.tried(said["try"], said["values"], is_whole=said["whole"])
        elif "done" in said:
            self._ledger.done(said["done"])
        elif "now" in said:
            self._now = datetime.fromisoformat(said["now"])


async def becomes(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110 - another process makes it so
        await asyncio.sleep(0.005)
