"""The public conformance suite of the Model Context Protocol, fetched from npm once and checked."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
import services

PACKAGE: Final = "@modelcontextprotocol/conformance"
VERSIONS: Final[Mapping[int, tuple[str, str]]] = {
    22: ("0.1.16", "sha512-GI7qiN0r39/MH2srVUR3AXaEN0YLCro20lIBbnvc1frBhszenxvUifBuTzxeVQVagILfBzCIcnungUOma8OrgA=="),
    20: ("0.1.12", "sha512-Zbv8LqZaMbmW/npOXj+xwVqpcEcq7Xr6TT+E0QdhTLwDXF6hDGGw2C3mSjj5RDqbHuOkg7KkBdZlBEamhADLWg=="),
}
"""Least Node.js → the newest version that runs on it, and what the package must be."""

BEFORE: Final = "2026-11-30"
"""Nothing that it needs is taken in a version of a later day."""


class Conformance:
    """The suite, ready to be run against a server."""

    def __init__(self) -> None:
        node = shutil.which("node")
        if node is None:
            raise services.NoMeans("there is no Node.js to run it with")
        told = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
        major = int(told.strip().removeprefix("v").partition(".")[0])
        least = next((each for each in VERSIONS if major >= each), None)
        if least is None:
            raise services.NoMeans(f"it needs Node.js {min(VERSIONS)}, and this is {told.strip()}")
        self._node = node
        self._home = installed(*VERSIONS[least])

    def run(self, url: str, scenario: str) -> tuple[int, str]:
        """The exit code of one scenario against the server at this address, and what was printed."""
        program = self._home / "node_modules" / PACKAGE / "dist" / "index.js"
        with tempfile.TemporaryDirectory() as folder:  # it leaves its results where it is started
            done = subprocess.run(
                [self._node, program, "server", "--url", url, "--scenario", scenario],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
            )
        return done.returncode, done.stdout + done.stderr

    def stop(self) -> None:
        """Nothing is left running."""


def installed(version: str, digest: str) -> Path:
    """The folder that the suite is installed in; fetched with npm if it is not in the cache.

    Raises:
        services.Missing: there is no npm, it cannot fetch the package, or the package is another one.
    """
    home = services.CACHE / f"mcp-conformance-{version}"
    if home.exists():
        return home
    npm = shutil.which("npm")
    if npm is None:
        raise services.NoMeans("there is no npm to fetch it with")
    services.CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=services.CACHE) as folder:
        fetched = Path(folder) / "fetched"
        fetched.mkdir()
        (fetched / "package.json").write_text('{"private": true}', encoding="utf-8")
        options = ["--ignore-scripts", "--no-audit", "--no-fund", f"--before={BEFORE}"]
        command = [npm, "install", *options, f"{PACKAGE}@{version}"]
        done = subprocess.run(command, cwd=fetched, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode != 0:
            raise services.Missing(f"npm cannot fetch {PACKAGE}: {done.stderr[-500:]}")
        lock = json.loads((fetched / "package-lock.json").read_text(encoding="utf-8"))
        if lock["packages"][f"node_modules/{PACKAGE}"]["integrity"] != digest:
            raise services.Missing(f"{PACKAGE} {version} is not the package that was pinned")
        try:
            fetched.rename(home)
        except OSError:  # another run was faster
            if not home.exists():
                raise
    return home


@pytest.fixture(scope="session")
def mcp_conformance() -> Iterator[Conformance]:
    """The suite."""
    yield from services.started("mcp-conformance")
