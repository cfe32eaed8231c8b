"""The long form of the ladder: `make soak`, or `python tests/reliability/soak.py --help`.

It kills programs while they write, in six ways, on SQLite and on a real PostgreSQL; it kills that server, too, and
takes the room on the disk away; then it looks for what grows and for what is lost between threads, processes and tasks.
It ends with 1 if anything was found, and prints a report in Markdown, after each step, into the file that `--report`
names.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from kill_harness import Forge, Report, Rounds
from kill_outages import DiskFull, FilesMayNotGrow, Outage, ServerKilled, small_disk
from kill_places import Place, PostgresPlace, SqlitePlace
from kill_writers import WAYS
from leaks import Growth, grown, opened_and_closed
from races import Race, raced

OWNERS = 2_000
STORES = ("sqlite", "postgres")
FIGURES = ("kills", "acknowledged", "unknown", "refused", "looked_up", "lost", "invented")
HEAD = (
    "| store | while | kills | acknowledged writes | in flight | refused | asked for | lost | invented | findings |\n"
    "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: |"
)
WAYS_THAT_PERSIST = ("storing", "editing", "compacting")
"""The others read between their writes, and would end with the first refusal."""


class Soak:
    """What was asked for, and what came of it so far."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.began = time.monotonic()
        self.killed: list[tuple[str, Report]] = []
        self.growth: list[Growth] = []
        self.races: list[Race] = []
        self.left_out: list[str] = []

    def findings(self) -> list[str]:
        found = [f"{store}, {report.way}: {each}" for store, report in self.killed for each in report.findings]
        return [*found, *[each for item in (*self.growth, *self.races) for each in item.findings]]

    def write(self) -> None:
        self.options.report.write_text(self.report(), encoding="utf-8")

    def report(self) -> str:
        lines = [
            f"Seed {self.options.seed}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}",
            f"{(time.monotonic() - self.began) / 60:.0f} minutes",
            "",
            HEAD,
            *[row(store, report) for store, report in self.killed],
            row("both", total([report for _, report in self.killed])),
            "",
            *[f"- {each}" for each in (*self.races, *self.growth, *self.left_out)],
            "",
            *[f"- **{each}**" for each in self.findings()],
        ]
        return "\n".join(lines).rstrip() + "\n"


def row(store: str, report: Report) -> str:
    cells = [store, report.way, *(f"{getattr(report, each):,}" for each in FIGURES), str(len(report.findings))]
    return f"| {' | '.join(cells)} |"


def total(reports: list[Report]) -> Report:
    sums = {name: sum(getattr(each, name) for each in reports) for name in FIGURES}
    return Report("all", findings=[finding for each in reports for finding in each.findings], **sums)


async def kill_on(soak: Soak, store: str, server: Any, *, ways: Sequence[str], outage: Outage | None = None) -> None:
    """Each way on a place of its own."""
    for way in ways:
        folder = Path(tempfile.mkdtemp(prefix="lamina-soak-", dir=soak.options.folder))
        with ExitStack() as stack:
            if isinstance(outage, DiskFull):
                stack.enter_context(small_disk(folder))
            place: Place = SqlitePlace(folder)
            if server is not None:
                place = PostgresPlace(folder, server.make_database(f"soak_{way}"))
            forge = Forge(Path(stack.enter_context(tempfile.TemporaryDirectory())))
            async with forge:
                rounds = Rounds(
                    forge, place, way, seed=soak.options.seed, longest_wait=soak.options.wait, outage=outage
                )
                soak.killed.append((store, rounds.report))
                for _ in range(soak.options.kills):
                    await rounds.kill(1, is_last=rounds.report.kills == soak.options.kills - 1)
                    soak.write()
            if server is not None:
                server.drop_database(f"soak_{way}")
        if not rounds.report.findings:  # what was found is to be looked at
            shutil.rmtree(folder)


@contextmanager
def server_of(store: str) -> Iterator[Any]:
    """Of PostgreSQL, which keeps what it acknowledges as it does where it matters; None of SQLite."""
    if store != "postgres":
        yield None
        return
    from real_postgres import PostgresServer

    server = PostgresServer()
    try:
        server.keep_what_is_acknowledged()
        yield server
    finally:
        server.stop()


def kill_programs(soak: Soak) -> None:
    for store in soak.options.stores:
        with server_of(store) as server:
            asyncio.run(kill_on(soak, store, server, ways=soak.options.ways))


def break_places(soak: Soak) -> None:
    ways = [way for way in soak.options.ways if way in WAYS_THAT_PERSIST]
    for store in soak.options.stores:
        with server_of(store) as server:
            outages = [FilesMayNotGrow(), DiskFull()] if server is None else [ServerKilled(server)]
            for outage in outages:
                try:
                    asyncio.run(kill_on(soak, store, server, ways=ways, outage=outage))
                except PermissionError as error:
                    soak.left_out.append(f"{store}, {outage.name}: left out, for {error}")


def race(soak: Soak) -> None:
    with tempfile.TemporaryDirectory(prefix="lamina-soak-") as folder:
        soak.races += raced(Path(folder), seconds=soak.options.seconds)


def grow(soak: Soak) -> None:
    with tempfile.TemporaryDirectory(prefix="lamina-soak-") as folder:
        soak.growth.append(asyncio.run(grown(Path(folder) / "one", soak.options.operations, owners=OWNERS)))
        soak.growth.append(asyncio.run(opened_and_closed(Path(folder) / "two", soak.options.opens)))


STEPS: dict[str, Callable[[Soak], None]] = {"kill": kill_programs, "outage": break_places, "race": race, "grow": grow}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=25, help="of each way on each store")
    parser.add_argument("--wait", type=float, default=0.4, help="at most so many seconds of writing before a kill")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--stores", nargs="+", choices=STORES, default=list(STORES))
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--seconds", type=float, default=60, help="of each race")
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--opens", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="on the disk that is to be tried")
    parser.add_argument("--report", type=Path, default=Path("soak.md"))
    soak = Soak(parser.parse_args(arguments))
    for name in soak.options.steps:
        STEPS[name](soak)
        soak.write()
    with suppress(BrokenPipeError):
        print(soak.report())  # noqa: T201 - it is a program
    return 1 if soak.findings() else 0


if __name__ == "__main__":
    sys.exit(main())
