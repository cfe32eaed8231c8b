"""What shows that a contract of stores can fail: broken stores fail it, and so does a contract with a hole in it.

class TestTheContractOfThreads(ContractProofs):
    contract = StateStoreContract
    right = SqliteStateStore
    mutants = MUTANTS
    hole = "test_pages_of_threads_tile"
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from _pytest.outcomes import OutcomeException, Skipped
from contract_driver import FAILED, PASSED, SKIPPED, Case, cases, contract_tests

SUITE = """
    import pytest
    from lamina.state.sqlite import {right}
    from lamina.testing import {contract}

    class TestStore({contract}):
        is_persistent = False

        @pytest.fixture
        async def store(self):
            async with {right}(":memory:") as store:
                yield store

        {hole}
"""
OPTIONS = (
    *("-q", "-p", "no:cacheprovider", "--disable-plugin-autoload", "-p", "asyncio", "--strict-markers"),
    *("-o", "asyncio_default_fixture_loop_scope=function"),
)


class ContractProofs:
    contract: ClassVar[type]
    right: ClassVar[type]
    """The store of SQLite that keeps the contract, and that the mutants are made of."""

    mutants: ClassVar[Sequence[type]]
    """Each has `caught_by`: tests of the contract that fail on it, one a word."""

    hole: ClassVar[str]
    """A test of the contract that takes a store and no parameters, and may be left out to see what is said."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "mutant" in metafunc.fixturenames:
            metafunc.parametrize("mutant", self.mutants, ids=lambda mutant: mutant.__name__)

    @pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")  # a mutant may leave some behind where it fails
    def test_every_mutant_is_caught_by_the_tests_it_names(self, mutant, tmp_path):
        def is_caught(name: str) -> bool:
            return any(self.outcome(case, mutant, tmp_path) == FAILED for case in cases(name, self.contract))

        assert [name for name in mutant.caught_by.split() if not is_caught(name)] == []

    def test_the_right_store_passes_where_mutants_fail(self, tmp_path):
        named = sorted({name for mutant in self.mutants for name in mutant.caught_by.split()})
        assert set(named) <= set(contract_tests(self.contract))
        all_cases = [case for name in named for case in cases(name, self.contract)]
        assert [str(case) for case in all_cases if self.outcome(case, self.right, tmp_path) != PASSED] == []

    def test_no_part_of_the_contract_hides_a_test_of_another(self):
        parts = [part for part in self.contract.__mro__ if part.__module__.startswith("lamina.")]
        counted = Counter(name for part in parts for name in vars(part) if name.startswith("test_"))
        assert [name for name, times in counted.items() if times > 1] == []

    def test_all_tests_of_the_contract_are_coroutines(self):
        def test_itself(name: str) -> Any:
            test = getattr(self.contract, name)
            drawing = getattr(test, "hypothesis", None)
            return test if drawing is None else drawing.inner_test

        names = contract_tests(self.contract)
        assert [name for name in names if not inspect.iscoroutinefunction(test_itself(name))] == []

    @pytest.mark.parametrize("hole", ["{name} = None", "async def {name}(self): pass"])
    def test_a_hole_in_the_contract_is_caught(self, pytester, hole):
        names = {"right": self.right.__name__, "contract": self.contract.__name__}
        pytester.makepyfile(SUITE.format(hole=hole.format(name=self.hole), **names))
        outcomes = pytester.runpytest_inprocess(*OPTIONS, "-k", "test_the_contract_is_whole").parseoutcomes()
        assert outcomes == {"failed": 1, "deselected": outcomes["deselected"]}

    def test_a_suite_without_a_store_says_what_it_lacks(self, pytester):
        name = self.contract.__name__
        pytester.makepyfile(f"from lamina.testing import {name}\nclass TestNothing({name}): pass")
        result = pytester.runpytest_inprocess(*OPTIONS, "-k", self.hole, "-o", "asyncio_mode=auto")
        result.stdout.fnmatch_lines(["*NotImplementedError: Give the contract a fixture `store`*"])

    def outcome(self, case: Case, make: type, folder: Path) -> str:
        """The outcome of the case on new stores."""
        try:
            asyncio.run(self._attempt(case, make, folder / f"{len(list(folder.iterdir()))}.db"))
        except Skipped:
            return SKIPPED
        except (Exception, OutcomeException):  # noqa: BLE001 - whatever a mutant raises, the test failed
            return FAILED
        return PASSED

    async def _attempt(self, case: Case, make: type, file: Path) -> None:
        test = getattr(self.contract, case.name)
        suite = type("TestMutant", (self.contract,), {})()
        stores = {"store": make(file), "second_store": make(file)}
        wanted = {name: each for name, each in stores.items() if name in inspect.signature(test).parameters}
        for each in wanted.values():
            await each.initialize()
        try:
            await test(suite, **case.parameters, **wanted)
        finally:
            for each in wanted.values():
                await self.right.close(each)
