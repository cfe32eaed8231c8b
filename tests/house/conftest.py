"""The house rules read the source tree: every test that asks for `module` gets each module in turn."""

from __future__ import annotations

import ast
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


MODULES = [SourceModule(path) for path in sorted(SOURCE.rglob("*.py"))]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "module" in metafunc.fixturenames:
        metafunc.parametrize("module", MODULES, ids=lambda module: module.name)


@pytest.fixture(scope="session")
def modules() -> list[SourceModule]:
    assert MODULES, "the source tree was not found"
    return MODULES


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT
