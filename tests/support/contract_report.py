"""Writes what a run of the memory contract showed into the documents: `--write-contract-table`.

Each contract class says by `service` what it runs against: a name in `tests/services.toml`, or words for what is
no service; without one it runs against the backend itself, which is in this process. A class may be made of parts of
the contract only.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
import services

from lamina.testing import memory_contract

PAGE: Final = Path(__file__).parents[2] / "docs" / "adapter-results.md"
BEGIN: Final = "<!-- results: begin -->\n"
END: Final = "<!-- results: end -->\n"
PROPERTY: Final = "contract"
"""Of a test: its class and what that runs against, which reach the process that writes with each report."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-contract-table", action="store_true", help="write docs/adapter-results.md anew")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--write-contract-table"):
        config.pluginmanager.register(Results(), "contract-results")


class Results:
    """What became of each contract test, by class."""

    def __init__(self) -> None:
        self._services: dict[str, str | None] = {}
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._gaps: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            tested = getattr(item, "cls", None)
            if tested is not None and _has_a_part(tested) and "/adapters/test_" in item.nodeid:
                item.user_properties.append((PROPERTY, (tested.__name__, getattr(tested, "service", None))))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        tested = dict(report.user_properties).get(PROPERTY)
        if tested is None or (report.when != "call" and report.passed):
            return
        name, service = tested
        self._services[name] = service
        if hasattr(report, "wasxfail"):
            self._counts[name]["gap"] += 1
            self._gaps[name][str(report.wasxfail).removeprefix("reason: ")] += 1
        else:
            self._counts[name][report.outcome] += 1

    def pytest_sessionfinish(self) -> None:
        if self._counts and "PYTEST_XDIST_WORKER" not in os.environ:
            text = PAGE.read_text(encoding="utf-8")
            before, _, rest = text.partition(BEGIN)
            PAGE.write_text(f"{before}{BEGIN}\n{self._table()}\n{END}{rest.partition(END)[2]}", encoding="utf-8")

    def _table(self) -> str:
        described = services.described()
        rows = ["| adapter | against | passed | failed | gaps | undeclared |", "| --- | --- | --- | --- | --- | --- |"]
        reasons = []
        for name in sorted(self._counts, key=lambda each: each.lower()):
            counts = self._counts[name]
            against = _against(self._services[name], described)
            shown = _shown(name)
            figures = " | ".join(str(counts[each]) for each in ("passed", "failed", "gap", "skipped"))
            rows.append(f"| {shown} | {against} | {figures} |")
            reasons += [f"- {shown}: {reason} ({number})" for reason, number in sorted(self._gaps[name].items())]
        gaps = "\n".join(reasons) or "None."
        return "\n".join(rows) + f"\n\n### Known gaps\n\n{gaps}\n"


def _has_a_part(tested: type) -> bool:
    """Whether the class has some of the contract, or all of it."""
    return any(each.__module__.startswith(memory_contract.__name__) for each in tested.__mro__)


def _against(service: str | None, described: Mapping[str, Mapping[str, str]]) -> str:
    if service in described:
        return f"{described[service]['against']}: {described[service]['what']}"
    return service or "itself"


def _shown(name: str) -> str:
    """`TestRedisAdapterWithoutTheQueryEngine` in words."""
    words = "".join(f" {each.lower()}" if each.isupper() else each for each in name.removeprefix("Test"))
    return words.strip()
