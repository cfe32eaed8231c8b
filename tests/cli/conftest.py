from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scripted_server import ScriptedServer

from lamina.cli import main


@dataclass
class Run:
    """What a run of the command left."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


class Stdin(io.TextIOWrapper):
    """A standard input that holds this text, and may pretend to be a terminal."""

    def __init__(self, text: str | bytes, *, terminal: bool) -> None:
        super().__init__(io.BytesIO(text.encode() if isinstance(text, str) else text), encoding="utf-8")
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.fixture
def executable() -> Path:
    """The command as it was installed."""
    return Path(sysconfig.get_path("scripts")) / ("lamina.exe" if os.name == "nt" else "lamina")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A user of whom nothing is known, in an empty folder, who embeds nothing."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH") if name in os.environ}
    home = str(tmp_path / "home")
    return kept | {
        "HOME": home,
        "XDG_CONFIG_HOME": home,
        "XDG_DATA_HOME": home,
        "LAMINA_DATA_DIR": str(tmp_path / "data"),
        "LAMINA_EMBEDDER": "none",
        "COLUMNS": "120",
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def lamina(
    environment: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Run]:
    """Runs the command in this process, through its own entry point."""
    monkeypatch.chdir(folder)

    def run(
        *arguments: str, stdin: str | bytes = "", terminal: bool = False, env: Mapping[str, str] | None = None
    ) -> Run:
        with monkeypatch.context() as patch:
            for name in [*os.environ]:
                patch.delenv(name)
            for name, value in {**environment, **(env or {})}.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["lamina", *arguments])
            patch.setattr(sys, "stdin", Stdin(stdin, terminal=terminal))
            capsys.readouterr()
            with pytest.raises(SystemExit) as ended:
                main()
        out, err = capsys.readouterr()
        return Run(int(ended.value.code or 0), out, err)

    return run


@pytest.fixture
def speaks(server: ScriptedServer) -> Callable[..., list[str]]:
    """Sets what the scripted server answers, and gives the options that lead to it."""

    def script(*replies: Any) -> list[str]:
        server.plays(*(server.pieces(each) if isinstance(each, str) else each for each in replies))
        return ["--model", "http:scripted", "--base-url", server.url]

    return script


@pytest.fixture
def process(executable: Path, environment: dict[str, str], folder: Path) -> Callable[..., Run]:
    """Runs the installed command as a process of its own."""

    def run(*arguments: str, stdin: str = "", env: Mapping[str, str] | None = None) -> Run:
        done = subprocess.run(
            [executable, *arguments],
            cwd=folder,
            env={**environment, **(env or {})},
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        return Run(done.returncode, done.stdout, done.stderr)

    return run
