"""How long it takes to start: `python benchmarks/startup.py [rounds]`.

Each round starts fresh interpreters, in turn, so that a busy moment falls on all of them. Printed are
medians: seconds from the start of the process to its end, and the greatest resident size where the
platform tells it. The bare interpreter is the yardstick; what a row adds to it is what Lamina costs.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import time

PEAK = "import resource, sys; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import lamina": [sys.executable, "-c", "import lamina"],
    "from lamina import create_memory_engine": [sys.executable, "-c", "from lamina import create_memory_engine"],
    "import lamina.sync": [sys.executable, "-c", "import lamina.sync"],
    "import numpy": [sys.executable, "-c", "import numpy"],
    "lamina --help": [shutil.which("lamina", path=sysconfig.get_path("scripts")) or "lamina", "--help"],
}


def seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def megabytes(command: list[str]) -> float | None:
    """The peak of a `python -c` command, which prints it as its last act; None where that is not known."""
    if os.name != "posix" or command[1] != "-c":
        return None
    code = f"{command[2]}\n{PEAK}"
    out = subprocess.run([*command[:2], code], check=True, capture_output=True, text=True).stdout
    unit = 1 if sys.platform == "darwin" else 1024
    return int(out) * unit / 2**20


def main(rounds: int) -> None:
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    sizes: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, command in COMMANDS.items():
            times[name].append(seconds(command))
            size = megabytes(command)
            if size is not None:
                sizes[name].append(size)
    bare = statistics.median(times["python -c pass"])
    print(f"{'':42}{'s':>8}{'+ s':>8}{'MB':>8}    ({rounds} rounds, medians)")
    for name in COMMANDS:
        median = statistics.median(times[name])
        size = f"{statistics.median(sizes[name]):8.1f}" if sizes[name] else f"{'–':>8}"  # noqa: RUF001
        print(f"{name:42}{median:8.3f}{median - bare:8.3f}{size}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
