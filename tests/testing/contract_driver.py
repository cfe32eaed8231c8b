"""Runs tests of the contract on an adapter without a session of pytest for each: a hundred mutants take their time."""

import asyncio
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from _pytest.outcomes import OutcomeException, Skipped

from lamina.ports.memory_adapter import MemoryAdapter
from lamina.testing import MemoryAdapterContract

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass(frozen=True)
class Case:
    """A contract test with one set of its parameters."""

    name: str
    parameters: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(repr(value)[:40] for value in self.parameters.values())}]"


def contract_tests(contract: type = MemoryAdapterContract) -> list[str]:
    return sorted(name for name in dir(contract) if name.startswith("test_"))


def cases(name: str, contract: type = MemoryAdapterContract) -> Iterator[Case]:
    """The cases that pytest would make of the test's `parametrize` marks."""
    marks = getattr(getattr(contract, name), "pytestmark", [])
    choices = [list(_choices(mark)) for mark in marks if mark.name == "parametrize"]
    for chosen in product(*choices):
        yield Case(name, {key: value for each in chosen for key, value in each.items()})


def run(case: Case, make: type[MemoryAdapter]) -> str:
    """The outcome of the case on a new adapter."""
    with asyncio.Runner() as runner:
        try:
            adapter = make()
            runner.run(adapter.initialize())
            _call(runner, getattr(MemoryAdapterContract, case.name), adapter, case.parameters)
        except Skipped:
            return SKIPPED
        except (Exception, OutcomeException):  # noqa: BLE001 - whatever a mutant raises, the test failed
            return FAILED
    return PASSED


def _choices(mark) -> Iterator[dict[str, Any]]:
    names, values = mark.args
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",")]
        for value in values:
            yield dict(zip(names, value if len(names) > 1 else [value], strict=True))
        return
    for value in values:
        yield dict(zip(names, value, strict=True))


def _call(runner, test, adapter, parameters) -> None:
    arguments = {**parameters, "adapter": adapter}
    arguments = {name: value for name, value in arguments.items() if name in inspect.signature(test).parameters}
    suite = type("TestMutant", (MemoryAdapterContract,), {})()
    hypothesis = getattr(test, "hypothesis", None)
    if hypothesis is None:
        runner.run(test(suite, **arguments))
        return
    inner = hypothesis.inner_test
    failed = False

    def example(*args, **drawn) -> None:
        nonlocal failed
        if not failed:  # that it fails is enough; a smaller example is not looked for
            failed = True
            runner.run(inner(*args, **drawn))
            failed = False

    hypothesis.inner_test = example
    try:
        test(suite, **arguments)
    finally:
        hypothesis.inner_test = inner
