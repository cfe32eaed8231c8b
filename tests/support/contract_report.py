"""Writes what a run of the memory contract showed into the documents: `--write-contract-table`.

Each contract class says by `service` what it runs against: a name in `tests/services.toml`, or words for what is
no service; without one it runs against the backend itself, which is in this process. A class may be made of parts of
the contract only, and is then listed apart, with their names.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import services

from lamina.testing import MemoryAdapterContract

PAGE: Final = Path(__file__).parents[2] / "docs" / "adapter-results.md"
ADAPTERS: Final = Path(__file__).parents[1] / "adapters"
NO_CONTRACT: Final = frozenset({"test_against_the_reference.py"})
"""Files beside those of the contract: it asks the adapters at random, and stands in no row."""
BEGIN: Final = "<!-- results: begin -->\n"
END: Final = "<!-- results: end -->\n"
PROPERTY: Final = "contract"
"""Of a test: what is known of its class, which reaches the process that writes with each report."""

NAMES: Final = {"InMemory": "In memory", "Postgres": "PostgreSQL", "Sqlite": "SQLite", "pg bouncer": "PgBouncer"}
"""What is written otherwise than it comes of the names of classes."""

OF_PARTS: Final = (
    "Where another row has the whole contract, and a version of the server or a way of connecting is all that differs, "
    "those parts ran that such a difference can touch."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-contract-table", action="store_true", help="write docs/adapter-results.md anew")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--write-contract-table"):
        config.pluginmanager.register(Results(), "contract-results")


class Tested(NamedTuple):
    """A class that has the contract, or parts of it."""

    file: str
    name: str
    service: str | None
    parts: tuple[str, ...]
    """Their names; none if it is the whole contract."""

    @property
    def shown(self) -> str:
        """`TestRedisAdapterWithoutTheQueryEngine` in words; against what it runs is told beside."""
        found = re.fullmatch("Test(.+?)([0-9]*)Adapters?(.*?)(Against.*)?", self.name)
        if found is None:
            return self.name
        backend = " ".join(filter(None, [NAMES.get(found[1], found[1]), found[2]]))
        variant = _words(found[3])
        for made, written in NAMES.items():
            variant = variant.replace(made, written)
        return ", ".join(filter(None, [backend, variant]))


class Results:
    """What became of each contract test, by class."""

    def __init__(self) -> None:
        self._counts: defaultdict[Tested, Counter[str]] = defaultdict(Counter)
        self._gaps: defaultdict[Tested, Counter[str]] = defaultdict(Counter)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            tested = getattr(item, "cls", None)
            if tested is not None and item.path.parent == ADAPTERS and (parts := _parts(tested)) is not None:
                described = Tested(item.path.name, tested.__name__, getattr(tested, "service", None), parts)
                item.user_properties.append((PROPERTY, tuple(described)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        described = dict(report.user_properties).get(PROPERTY)
        if described is None or (report.when != "call" and report.passed):
            return
        file, name, service, parts = described
        tested = Tested(file, name, service, tuple(parts))
        if hasattr(report, "wasxfail"):
            self._counts[tested]["gap"] += 1
            self._gaps[tested][str(report.wasxfail).removeprefix("reason: ")] += 1
        elif report.skipped and "cannot be started here" in str(report.longrepr):  # as `services.missing` says
            self._counts[tested]["not run"] += 1
        else:
            self._counts[tested][report.outcome] += 1

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Writes the page, once, in the process that has all reports; half a run would tell less than there is."""
        lacking = (
            {each.name for each in ADAPTERS.glob("test_*.py")} - NO_CONTRACT - {each.file for each in self._counts}
        )
        if lacking:
            terminalreporter.write_line(
                f"{PAGE.name} stays: the run was without {', '.join(sorted(lacking))}", red=True
            )
            return
        text = PAGE.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{self._tables()}\n{END}{rest.partition(END)[2]}", encoding="utf-8")

    def _tables(self) -> str:
        ordered = sorted(self._counts, key=lambda each: each.shown.lower())
        whole = [each for each in ordered if not each.parts]
        in_part = [each for each in ordered if each.parts]
        reasons = [
            f"- {each.shown}: {reason} ({number} {'test' if number == 1 else 'tests'})"
            for each in ordered
            for reason, number in sorted(self._gaps[each].items())
        ]
        sections = ["### The whole contract", self._table(whole)]
        if in_part:
            sections += ["### Parts of it", OF_PARTS, self._table(in_part)]
        return "\n\n".join([*sections, "### Known gaps", "\n".join(reasons) or "None."]) + "\n"

    def _table(self, classes: Sequence[Tested]) -> str:
        known = services.described()
        rows = []
        for each in classes:
            counts = self._counts[each]
            figures = [str(counts[name]) for name in ("passed", "failed", "gap", "skipped", "not run")]
            parts = [", ".join(each.parts)] if each.parts else []
            rows.append([each.shown, _against(each.service, known), *parts, *figures])
        columns = ["passed", "failed", "gaps", "undeclared", "not run"]
        head = ["adapter", "against", *(["parts"] if any(each.parts for each in classes) else []), *columns]
        return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def _parts(tested: type) -> tuple[str, ...] | None:
    """Which parts of the contract the class has, none if it has them all; None if it has nothing of it."""
    if issubclass(tested, MemoryAdapterContract):
        return ()
    names = [each.__name__ for each in MemoryAdapterContract.__bases__ if issubclass(tested, each)]
    return tuple(_words(each.removesuffix("Contract")) for each in names) or None


def _against(service: str | None, known: Mapping[str, Mapping[str, str]]) -> str:
    if service in known:
        return f"{known[service]['against']}: {known[service]['what']}"
    return service or "itself"


def _words(name: str) -> str:
    """`WithoutTheQueryEngine` in words."""
    return re.sub("(?<=.)(?=[A-Z])", " ", name).lower()
