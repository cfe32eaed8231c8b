"""The services that tests run against: started on free ports, stopped at the end, and missed aloud."""

from __future__ import annotations

import fcntl
import importlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

ROOT: Final = Path(__file__).parents[2]
CACHE: Final = Path(os.environ.get("LAMINA_SERVICES", ROOT / ".services"))
"""What is fetched once for all runs, such as an emulator that no Python package holds."""

IN_CI: Final = os.environ.get("CI", "").lower() not in {"", "0", "false"}


class Missing(Exception):
    """A service did not come, though its means are at hand; the message says why."""


class NoMeans(Missing):
    """A service cannot be had here, because what brings it is lacking; the message says what."""


def described() -> Mapping[str, Mapping[str, Any]]:
    """`tests/services.toml`: each service by name."""
    return tomllib.loads((ROOT / "tests" / "services.toml").read_text(encoding="utf-8"))


def started(name: str) -> Iterator[Any]:
    """The server of this name, for a session fixture: `yield from started("redis")`.

    Where it is missing, what needs it is skipped with the reason; in continuous integration that is a
    failure, unless the machine lacks what brings it.
    """
    try:
        server = start(name)
    except (Missing, ImportError, OSError, RuntimeError, subprocess.SubprocessError) as error:
        missing(name, error)
    yield server
    server.stop()


def start(name: str) -> Any:
    """Start the server of this name."""
    module, _, server = described()[name]["server"].partition(":")
    return getattr(importlib.import_module(module), server)()


def missing(name: str, error: Exception) -> NoReturn:
    """Skip what needs the service, or fail where it must not be missing."""
    service = described()[name]
    reason = f"{name} ({service['what']}) cannot be started here: {type(error).__name__}: {error}"
    if IN_CI and not isinstance(error, NoMeans):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def installed_by_apt(package: str) -> None:
    """Install a package of the system, where that is allowed: in continuous integration, as root.

    Raises:
        NoMeans: it is not allowed here, or there is no apt.
    """
    apt = shutil.which("apt-get")
    if apt is None or not IN_CI or os.geteuid() != 0:
        raise NoMeans(f"it is not installed, and nothing is installed unasked: apt-get install {package}")
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for command in ([apt, "update", "-qq"], [apt, "install", "-y", "-qq", "--no-install-recommends", package]):
            done = subprocess.run(
                command,
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise Missing(f"{' '.join(command)} failed: {done.stderr[-500:]}")


def free_port() -> int:
    """A port of the loopback address that nobody listens on just now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


class Process:
    """A server process, with a folder of its own that goes with it."""

    def __init__(self, name: str) -> None:
        self._made = tempfile.TemporaryDirectory(prefix=f"lamina-{name}-")
        self.folder = Path(self._made.name)
        self.name = name
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, command: Sequence[str | Path], is_ready: Callable[[], bool], *, within: float = 60, **options: Any):
        """Start it and wait until it answers.

        Raises:
            Missing: it ended, or did not answer in time; the message ends with what it printed last.
        """
        log = self.folder / "output.log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [str(each) for each in command], stdout=output, stderr=output, cwd=self.folder, **options
            )
        until = time.monotonic() + within
        while not is_ready():
            if self._process.poll() is not None or time.monotonic() > until:
                self.kill()
                raise Missing(f"{self.name} did not start: {log.read_text(errors='replace')[-1_000:]}")
            time.sleep(0.02)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End it at once, as a crash would; its folder stays."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End it, and remove what it left."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None
        self._made.cleanup()


def listens(port: int) -> Callable[[], bool]:
    """Whether somebody answers on this port of the loopback address."""

    def answers() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return False
        return True

    return answers
