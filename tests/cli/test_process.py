from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Process = Callable[..., Any]


def exit_code(command: subprocess.Popen[bytes]) -> int:
    """What it ends with, within half a minute; it does not outlive the test."""
    try:
        return command.wait(30)
    finally:
        command.kill()


def test_a_memory_outlives_the_process(process: Process) -> None:
    stored = process("remember", "Mira prefers the window seat", "-u", "mira")
    assert (stored.code, stored.err) == (0, "")
    found = process("recall", "which seat?", "--json")
    assert found.document["results"][0]["entry"]["id"] == stored.out.strip()


def test_commands_go_into_each_other_by_pipes(process: Process) -> None:
    process("remember", stdin="piped in\n")
    exported = process("export")
    report = process("import", "--json", "--db", "other.db", stdin=exported.out)
    assert report.document["written"] == 1
    assert process("export", "--db", "other.db").out == exported.out


def test_nothing_is_coloured_in_a_pipe_or_under_no_color(process: Process) -> None:
    process("remember", "window seat")
    assert "\x1b[" not in process("recall", "window").out
    assert "\x1b[3" not in process("recall", "window", env={"NO_COLOR": "1", "FORCE_COLOR": "1"}).out
    assert "\x1b[" in process("recall", "window", env={"FORCE_COLOR": "1"}).out


def test_a_failure_is_one_line_and_the_traceback_comes_only_when_asked_for(process: Process) -> None:
    process("remember", "one")
    plain = process("get", "none")
    assert (plain.code, plain.out, plain.err) == (1, "", "Error: No memory here has the id 'none'.\n")
    debug = process("get", "none", env={"LAMINA_DEBUG": "1"})
    assert "Traceback" in debug.err


def test_all_languages_pass_whatever_the_locale(process: Process) -> None:
    env = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    assert process("remember", stdin="路線図は灯台の隣 🗼", env=env).code == 0
    assert "路線図は灯台の隣 🗼" in process("list", env=env).out


def test_a_reader_that_goes_away_is_no_traceback(
    executable: Path, environment: dict[str, str], folder: Path, process: Process
) -> None:
    lines = "".join(f'{{"text": "note number {number} {"x" * 200}"}}\n' for number in range(500))
    process("import", stdin=lines)
    with subprocess.Popen(
        [executable, "export"], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as export:
        assert export.stdout is not None
        assert export.stderr is not None
        export.stdout.readline()
        export.stdout.close()
        assert export.stderr.read() == b""
        assert export.wait(30) == 141


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_loads_nothing_heavy(environment: dict[str, str], flag: str) -> None:
    script = f"""
import sys
sys.argv = ["lamina", "{flag}"]
from lamina.cli import main
try:
    main()
except SystemExit as ended:
    assert ended.code == 0
heavy = {{"pydantic", "numpy", "rich", "httpx2", "sqlite3", "onnxruntime"}}
sys.stderr.write(" ".join(sorted(heavy & set(sys.modules))))
"""
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert "Usage: lamina" in done.stdout
    assert done.stderr == ""


def test_importing_the_package_loads_nothing_heavy(environment: dict[str, str]) -> None:
    script = "import sys, lamina; print(sorted({'pydantic', 'numpy', 'typer', 'anyio'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_shells_get_completion(process: Process) -> None:
    done = process(env={"_LAMINA_COMPLETE": "complete_bash", "COMP_WORDS": "lamina rem", "COMP_CWORD": "1"})
    assert "remember" in done.out


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudo-terminals")
def test_at_a_real_terminal_forgetting_asks(
    executable: Path, environment: dict[str, str], folder: Path, process: Process
) -> None:
    process("remember", "one", "--id", "one")
    master, slave = os.openpty()
    with subprocess.Popen(
        [executable, "forget", "one"],
        cwd=folder,
        env=environment,
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as forget:
        os.write(master, b"n\n")
        _, err = forget.communicate(timeout=30)
    os.close(master)
    os.close(slave)
    assert forget.returncode == 130
    assert b"Delete 1 memory" in err
    assert process("list", "--json").document["total"] == 1


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudo-terminals")
def test_the_first_ctrl_c_ends_the_question(
    executable: Path, environment: dict[str, str], folder: Path, process: Process
) -> None:
    import fcntl
    import termios

    process("remember", "one", "--id", "one")
    master, slave = os.openpty()
    with subprocess.Popen(
        [executable, "forget", "one"],
        cwd=folder,
        env=environment,
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - no threads here
    ) as forget:
        assert forget.stderr is not None
        asked = b""
        while not asked.endswith(b"[y/N]:"):
            asked += os.read(forget.stderr.fileno(), 100)
        os.write(master, b"\x03")  # as the key: the terminal makes the signal of it
        assert exit_code(forget) == 130
    os.close(master)
    os.close(slave)
    assert process("list", "--json").document["total"] == 1


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudo-terminals")
@pytest.mark.parametrize("arguments", [("import", "-"), ("remember", "-"), ("recall", "-")])
def test_the_first_ctrl_c_ends_the_wait_for_a_pipe(
    executable: Path, environment: dict[str, str], folder: Path, process: Process, arguments: tuple[str, ...]
) -> None:
    process("remember", "one")
    waiting = f"""
import os, sys
from lamina.cli import main
class Told:
    def __getattr__(self, name):
        return getattr(sys.__stdin__, name)
    def read(self):
        announce()
        return sys.__stdin__.read()
    def __iter__(self):
        return self
    def __next__(self):
        announce()
        return next(sys.__stdin__)
    def reconfigure(self, **options): pass
def announce():
    os.write(1, b"waiting")
sys.stdin = Told()
sys.argv = ["lamina", *{list(arguments)!r}]
main()
"""
    with subprocess.Popen(
        [sys.executable, "-c", waiting], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as command:
        assert command.stdout is not None
        assert os.read(command.stdout.fileno(), 7) == b"waiting"
        command.send_signal(signal.SIGINT)
        assert exit_code(command) == 130


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudo-terminals")
def test_progress_is_shown_on_a_terminal_s_stderr(executable: Path, environment: dict[str, str], folder: Path) -> None:
    (folder / "notes.ndjson").write_text('{"text": "a note"}\n', encoding="utf-8")
    master, slave = os.openpty()
    done = subprocess.run(
        [executable, "import", "notes.ndjson"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=slave,
        check=True,
    )
    os.close(slave)
    assert b"Importing" in os.read(master, 65536)
    os.close(master)
    assert done.stdout == b"1 memory imported, 0 were there already, 0 embedded.\n"


def test_the_demo_runs(process: Process) -> None:
    done = process("demo", env={"LAMINA_EMBEDDER": ""})
    assert (done.code, done.err) == (0, "")
