"""Lamina and its peers side by side, as ratios: `python benchmarks/bench.py [--quick] [--only MEASURE ...]`.

Everything runs on the same texts with given vectors, each part in a process of its own, in which a yardstick is timed
in turn with what is measured: numpy's exact search for reading, plain SQLite for writing. Writes `bench.csv`,
`bench.md` and `bench.png` to the folder `--out`. See docs/performance.md, whose tables
`python benchmarks/bench.py page` writes from them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from speed import report
from speed.plan import MEASURES, MINUTES, SIZES, Part, Run, planned
from speed.processes import run_child
from speed.records import Record, merged

ROOT = Path(__file__).parents[1]
OUT = ROOT / "dist" / "bench"
OWN_PYTHON = ROOT / ".venv-bench" / "bin" / "python"


def child(arguments: Sequence[str]) -> None:
    """A part, in its own process."""
    from speed import http_jobs, imports, lamina_jobs, profiling, store_jobs
    from speed.dataset import Dataset

    name, given, *more = arguments
    options = json.loads(given)
    folder = Path(options["folder"])
    if name == "import":
        imports.imports(options["system"])
        return
    data = Dataset(Path(options["data"]), options["memories"])
    seconds = options.get("seconds", 0.0)
    if name in {"write", "read", "cold", "memory"}:
        asyncio.run(getattr(store_jobs, name)(options["system"], data, folder, seconds))
    elif name == "growth":
        base = Dataset(data.folder, options["base"])
        folders = (folder, Path(options["base_folder"]))
        asyncio.run(lamina_jobs.growth(data, base, folders, seconds))
    elif name == "serve":
        asyncio.run(http_jobs.serve(data, folder, more))
    elif name == "profile":
        text = asyncio.run(profiling.profiled(data, folder))
        (Path(options["out"]) / "profile.txt").write_text(text, encoding="utf-8")
    elif name == "http":
        asyncio.run(http_jobs.http(data, folder, seconds))
    else:
        asyncio.run(getattr(lamina_jobs, name)(data, folder, seconds))


def page(folder: Path) -> None:
    """Write the figures of a run into the page of the documentation."""
    from speed.chart import draw

    records = report.read_csv(folder / "bench.csv")
    where = ROOT / "docs" / "performance.md"
    first, _, _ = (folder / "bench.md").read_text(encoding="utf-8").partition("\n")
    text = report.with_figures(where.read_text(encoding="utf-8"), report.figures(records, told_first=first))
    where.write_text(text, encoding="utf-8")
    draw(where.with_suffix(".png"), records)


class Bench:
    """A run: its parts one after the other, and what they told."""

    def __init__(self, run: Run, work: Path, out: Path) -> None:
        self._run = run
        self._work = work
        self._out = out
        self._smaller: set[str] = set()
        self._unfilled: set[str] = set()
        self.records: list[Record] = []
        self.failures: list[str] = []

    def prepare(self) -> None:
        from speed.dataset import make_dataset

        make_dataset(self._work / "data", self._run.sizes, per_owner=self._run.per_owner)

    def go(self, parts: Sequence[Part]) -> None:
        began = time.monotonic()
        for number, part in enumerate(parts, start=1):
            print(
                f"[{time.monotonic() - began:5.0f} s] {number}/{len(parts)} {part.title}", file=sys.stderr, flush=True
            )
            if time.monotonic() - began < 1.5 * 60 * MINUTES[self._run.quick]:
                self._one(part)
            else:
                self._failed(part, "no time was left")

    def _one(self, part: Part) -> None:
        """Run it. A peer that cannot be filled is tried with fewer memories; what is not filled is not read from."""
        if part.system in self._unfilled and part.name != "import":
            return
        records, failed = self._started(part)
        if part.name == "write" and not _is_filled(records):
            if part.system in self._run.peers and part.memories > self._run.small:
                self._failed(part, failed)
                self._smaller.add(part.system)
                records, failed = self._started(part)
            if not _is_filled(records):
                self._unfilled.add(part.system)
        if failed:
            self._failed(part, failed)
        self.records += records

    def _failed(self, part: Part, why: str) -> None:
        message = f"{part.title}: {why or 'it told nothing'}"
        print(f"          {message}", file=sys.stderr, flush=True)
        self.failures.append(message)

    def _started(self, part: Part) -> tuple[list[Record], str]:
        memories = min(part.memories, self._run.small) if part.system in self._smaller else part.memories
        options = {
            "system": part.system,
            "memories": memories,
            "seconds": part.seconds,
            "data": str(self._work / "data"),
            "folder": str(self._folder(part, memories)),
            "out": str(self._out),
            "base": self._run.base,
            "base_folder": str(self._store("lamina", self._run.base)),
        }
        is_peer = part.system in self._run.peers
        python = self._run.peers_python if is_peer and self._run.peers_python else sys.executable
        return run_child([part.name, json.dumps(options)], limit=part.limit, python=python)

    def _store(self, system: str, memories: int) -> Path:
        return self._work / "stores" / f"{system.replace(' ', '-')}-{memories}"

    def _folder(self, part: Part, memories: int) -> Path:
        if part.name in {"context", "threads", "chunking", "packs"}:
            return self._work / "stores" / part.name
        return self._store(part.system, memories)


def _is_filled(records: Sequence[Record]) -> bool:
    """Whether the store was filled and closed: it may be that only the adding one by one was not finished."""
    return any(record.measure == "disk over raw" for record in records)


def peers_here(wanted: Sequence[str] | None, python: Path) -> tuple[str, ...]:
    """The peers that can run: by name in the order given, or all that are installed."""
    if wanted == ["none"] or not python.exists():
        return ()
    code = "import json, peers; print(json.dumps([[*peers.PEERS], peers.unavailable()]))"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    told = subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True, env=environment)
    names, unavailable = json.loads(told.stdout.strip().splitlines()[-1])
    for name, why in unavailable.items():
        print(f"{name} is left out: {why}", file=sys.stderr)
    return tuple(name for name in wanted or names if name not in unavailable)


def described(run: Run, seconds: float) -> str:
    import numpy as np

    import lamina

    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    size = f"{run.base:,} memories, {run.per_owner:,} of each owner"
    return f"Lamina {lamina.__version__}, numpy {np.__version__}, {machine}. {size}; {seconds / 60:.0f} minutes."


def write_results(out: Path, run: Run, bench: Bench, seconds: float) -> list[Record]:
    from speed.chart import draw

    records = merged(bench.records)
    report.write_csv(out / "bench.csv", records)
    text = report.markdown(records, told_first=described(run, seconds), failures=bench.failures)
    (out / "bench.md").write_text(text, encoding="utf-8")
    if not draw(out / "bench.png", records):
        print("no chart: matplotlib is not installed", file=sys.stderr)
    return records


def workplace(given: Path | None) -> AbstractContextManager[Any]:
    return tempfile.TemporaryDirectory(prefix="lamina-bench-") if given is None else nullcontext(given)


def main(options: argparse.Namespace) -> None:
    sizes = tuple(options.sizes or SIZES[options.quick])
    base = sizes[max(0, len(sizes) - 2)]
    names = peers_here(options.peers, options.peers_python)
    run = Run(options.quick, sizes, base, names, options.peers_python)
    parts = planned(run, tuple(options.only or ()))
    expected = sum(part.expected for part in parts) + max(sizes) / 50_000
    print(f"{len(parts)} parts, about {expected / 60:.0f} minutes", file=sys.stderr)
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with workplace(options.work) as work:
        bench = Bench(run, Path(work), options.out)
        bench.prepare()
        bench.go(parts)
        if options.work is None:
            shutil.rmtree(Path(work) / "stores", ignore_errors=True)
    records = write_results(options.out, run, bench, time.monotonic() - began)
    print(report.targets_table(records))
    print(f"\n{report.compared(records)}")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--quick", action="store_true", help="10,000 memories, one round")
    made.add_argument("--only", nargs="+", choices=MEASURES, metavar="MEASURE", help=", ".join(MEASURES))
    made.add_argument(
        "--peers", nargs="+", metavar="PEER", help="some of them, or `none`; by default all that run here"
    )
    made.add_argument("--peers-python", type=Path, default=OWN_PYTHON, help="the interpreter that has the peers")
    made.add_argument("--sizes", type=int, nargs="+", help="how many memories, ascending; compared at the last but one")
    made.add_argument("--work", type=Path, help="where the data and the stores go, and stay; by default they do not")
    made.add_argument("--out", type=Path, default=OUT, help="where the results go")
    return made


def started(arguments: Iterable[str]) -> None:
    given = list(arguments)
    if given[:1] == ["child"]:
        child(given[1:])
    elif given[:1] == ["page"]:
        page(Path(given[1]) if len(given) > 1 else OUT)
    else:
        main(parser().parse_args(given))


if __name__ == "__main__":
    started(sys.argv[1:])
