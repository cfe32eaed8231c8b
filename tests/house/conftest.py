"""The house rules read the source tree, all of it in one test for each kind of rule."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"


@dataclass(frozen=True)
class SourceModule:
    """One module of the package."""

    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def name(self) -> str:
        return self.path.relative_to(SOURCE).as_posix()


@pytest.fixture(scope="module")
def modules() -> Iterator[list[SourceModule]]:
    """New for each file of tests, so that their trees, some millions of nodes, do not stay to the end of the run.

    Meanwhile no garbage is looked for: looking through those nodes again and again is most of what parsing them takes.
    """
    found = [SourceModule(path) for path in sorted(SOURCE.rglob("*.py"))]
    assert found, "the source tree was not found"
    gc.disable()
    yield found
    gc.enable()


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT
