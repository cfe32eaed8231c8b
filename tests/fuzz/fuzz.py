"""The long form: each target in a process of its own, for some seconds, by atheris where it is, else by Hypothesis.

Inputs that a target got far with are kept in the folder `--corpus` and are where the next run begins. What is found is
printed with its traceback and its bytes, in hexadecimal digits for `--input`; the program then ends with 1.
"""

from __future__ import annotations

import argparse
import importlib
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import FrameType

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
LONGEST_INPUT = 1024
LONGEST_RUN = 20
"""Seconds that one input may take."""


class TookTooLong(Exception):
    """An input that keeps its target busy for longer than any may."""


def too_long(_number: int, _frame: FrameType | None) -> None:
    raise TookTooLong(f"more than {LONGEST_RUN} s")


def all_targets() -> dict:
    return importlib.import_module("targets").TARGETS | importlib.import_module("served_targets").SERVED


def seeded(corpus: Path) -> Path:
    """The folder, with something in it to begin with."""
    corpus.mkdir(parents=True, exist_ok=True)
    chance = random.Random(1)
    for number in range(0 if any(corpus.iterdir()) else 64):
        (corpus / f"seed-{number}").write_bytes(chance.randbytes(4 << number % 8))
    return corpus


def by_atheris(name: str, seconds: int, corpus: Path) -> None:
    import atheris

    with atheris.instrument_imports(include=["lamina"]):
        target = all_targets()[name]
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={LONGEST_INPUT}",
        f"-timeout={LONGEST_RUN}",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={corpus.parent}/{name}-", str(seeded(corpus))], target)
    atheris.Fuzz()


def by_hypothesis(name: str, seconds: int, corpus: Path) -> None:
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st
    from hypothesis.database import DirectoryBasedExampleDatabase

    target, runs, end = all_targets()[name], 0, time.monotonic() + seconds
    signal.signal(signal.SIGALRM, too_long)

    @settings(
        max_examples=500,
        deadline=None,
        database=DirectoryBasedExampleDatabase(corpus),
        suppress_health_check=list(HealthCheck),
    )
    @given(
        st.binary(max_size=LONGEST_INPUT) | st.integers(0, 2**64).map(lambda seed: random.Random(seed).randbytes(256))
    )
    def once(data: bytes) -> None:
        nonlocal runs
        runs += 1
        signal.alarm(LONGEST_RUN)
        try:
            target(data)
        except BaseException as error:
            error.add_note(f"--input {data.hex()}")
            raise
        finally:
            signal.alarm(0)

    while time.monotonic() < end:
        once()
    print(f"stat::number_of_executed_units: {runs}")


def has_atheris() -> bool:
    try:
        importlib.import_module("atheris")
    except ImportError:
        return False
    return True


def told(name: str, arguments: argparse.Namespace) -> bool:
    """Whether nothing was found in this target; says so."""
    command = [
        sys.executable,
        __file__,
        "--only",
        "--seconds",
        str(arguments.seconds),
        "--corpus",
        str(arguments.corpus),
        name,
    ]
    ended = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    lines = (ended.stdout + ended.stderr).splitlines()
    runs = [line.rpartition(" ")[2] for line in lines if "number_of_executed_units" in line]
    print(f"| {name} | {runs[-1] if runs else '?'} | {'0' if ended.returncode == 0 else 'SOMETHING'} |", flush=True)
    if ended.returncode:
        print(*lines[-60:], sep="\n", flush=True)
    return ended.returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", help="all, if none is named")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--corpus", type=Path, default=Path(".fuzz"))
    parser.add_argument("--input", type=bytes.fromhex, help="only this one, in hexadecimal digits")
    parser.add_argument("--only", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.input is not None:
        all_targets()[arguments.targets[0]](arguments.input)
    elif arguments.only:
        (name,) = arguments.targets
        (by_atheris if has_atheris() else by_hypothesis)(name, arguments.seconds, arguments.corpus / name)
    else:
        engine = "atheris" if has_atheris() else "Hypothesis"
        print(
            f"By {engine}, {arguments.seconds} s each:\n\n| target | inputs | found |\n| --- | --: | --: |", flush=True
        )
        found = [name for name in arguments.targets or all_targets() if not told(name, arguments)]
        sys.exit(bool(found))


if __name__ == "__main__":
    main()
