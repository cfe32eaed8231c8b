"""Processes of their own for what is measured, and what the system tells of them."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from speed.records import Record, heard

ONE_THREAD: Final = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
SCRIPT: Final = Path(__file__).parents[1] / "bench.py"
_SHOWN: Final = 300


def run_child(
    arguments: Sequence[str], *, limit: float, python: str | Path = sys.executable
) -> tuple[list[Record], str]:
    """Run a part of the benchmark in a new process: its records, and what went wrong, if something did.

    After `limit` seconds it is ended; what it told until then counts.
    """
    environment = {**os.environ, **ONE_THREAD}
    with subprocess.Popen(
        [str(python), str(SCRIPT), "child", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            output, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            return heard(output), f"not finished in {limit:.0f} s"
    last = (errors.strip().splitlines() or [""])[-1]
    failed = "" if process.returncode == 0 else f"ended with {process.returncode}: {last:.{_SHOWN}}"
    return heard(output), failed


def resident_mib() -> float:
    """What this process has in memory, of files too; where there is no `/proc`, the peak."""
    gc.collect()
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        import resource

        unit = 1 if sys.platform == "darwin" else 1_024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def emptied(folder: Path) -> Path:
    """The folder, made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def files_of(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def bytes_on_disk(folder: Path) -> int:
    """Blocks that are taken, where the system tells them."""
    return sum(_taken(path.stat()) for path in files_of(folder))


def _taken(status: Any) -> int:
    return getattr(status, "st_blocks", 0) * 512 or status.st_size


def evict(folder: Path) -> bool:
    """Put the folder's pages out of the system's cache; whether that can be done here."""
    if not hasattr(os, "posix_fadvise"):
        return False
    os.sync()
    for path in files_of(folder):
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    return True
