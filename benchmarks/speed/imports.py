"""How long it takes to import a system, numpy and the standard library's usual parts apart."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from speed.records import Record, median_ms, tell
from speed.systems import FTS5, LAMINA

ROUNDS: Final = 7
FOLDER: Final = str(Path(__file__).parents[1])
TIMED: Final = (
    "import sys, time, numpy; sys.path.insert(0, {folder!r}); {before}; began = time.perf_counter(); {work}; "
    "print(time.perf_counter() - began)"
)
BEFORE: Final = {
    "import beyond numpy": ("pass", "import lamina"),
    "import of what an engine needs": (
        "pass",
        "from lamina import create_memory_engine; import lamina.adapters.sqlite, lamina.memory.engine",
    ),
}


def imports(name: str) -> None:
    """In fresh interpreters, in turn; the median of them."""
    if name == FTS5:
        return
    ways = BEFORE if name == LAMINA else {"import beyond numpy": ("from peers import peer_class", _peer(name))}
    times: dict[str, list[float]] = {measure: [] for measure in ways}
    for _ in range(ROUNDS if name == LAMINA else 3):
        for measure, (before, work) in ways.items():
            code = TIMED.format(folder=FOLDER, before=before, work=work)
            out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
            times[measure].append(float(out.split()[-1]))
    for measure, each in times.items():
        tell(Record(measure, name, 0, median_ms(each), "ms"))
    if name == LAMINA:
        _starts()


def _starts() -> None:
    """The command line's help, from the start of the process to its end, over a bare interpreter."""
    commands = {"pass": [], "help": []}
    for _ in range(ROUNDS):
        for name, times in commands.items():
            code = "pass" if name == "pass" else "from lamina.cli import main; main()"
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", code, "--help"], check=True, stdout=subprocess.DEVNULL)
            times.append(time.perf_counter() - began)
    bare, told = (median_ms(each) for each in commands.values())
    tell(Record("lamina --help, whole process", LAMINA, 0, told, "ms", bare, "over a bare interpreter"))


def _peer(name: str) -> str:
    return f"peer_class({name!r})"
