"""The contract of server stores is tested too: broken stores fail it, and so does a contract with a hole in it."""

import asyncio
import inspect
from collections import Counter
from pathlib import Path

import pytest
from _pytest.outcomes import OutcomeException, Skipped
from contract_driver import FAILED, PASSED, SKIPPED, Case, cases, contract_tests
from server_mutants import MUTANTS

from lamina.state.sqlite import SqliteServerStore
from lamina.testing import ServerStoreContract

pytest_plugins = "pytester"

NAMES = contract_tests(ServerStoreContract)
SUITE = """
    import pytest
    from lamina.state.sqlite import SqliteServerStore
    from lamina.testing import ServerStoreContract

    class TestStore(ServerStoreContract):
        is_persistent = False

        @pytest.fixture
        async def store(self):
            async with SqliteServerStore(":memory:") as store:
                yield store
"""
OPTIONS = ("-q", "-p", "no:cacheprovider", "--strict-markers", "-o", "asyncio_default_fixture_loop_scope=function")


async def attempt(case: Case, make: type[SqliteServerStore], file: Path) -> None:
    test = getattr(ServerStoreContract, case.name)
    suite = type("TestMutant", (ServerStoreContract,), {})()
    stores = {"store": make(file), "second_store": make(file)}
    wanted = {name: each for name, each in stores.items() if name in inspect.signature(test).parameters}
    for each in wanted.values():
        await each.initialize()
    try:
        await test(suite, **case.parameters, **wanted)
    finally:
        for each in wanted.values():
            await SqliteServerStore.close(each)


def run(case: Case, make: type[SqliteServerStore], folder: Path) -> str:
    """The outcome of the case on new stores."""
    try:
        asyncio.run(attempt(case, make, folder / f"{len(list(folder.iterdir()))}.db"))
    except Skipped:
        return SKIPPED
    except (Exception, OutcomeException):  # noqa: BLE001 - whatever a mutant raises, the test failed
        return FAILED
    return PASSED


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")  # a mutant may leave some behind where it fails
def test_every_mutant_is_caught_by_the_tests_it_names(mutant, tmp_path):
    def is_caught(name: str) -> bool:
        return any(run(case, mutant, tmp_path) == FAILED for case in cases(name, ServerStoreContract))

    assert [name for name in mutant.caught_by.split() if not is_caught(name)] == []


def test_the_right_store_passes_where_mutants_fail(tmp_path):
    named = sorted({name for mutant in MUTANTS for name in mutant.caught_by.split()})
    assert set(named) <= set(NAMES)
    all_cases = [case for name in named for case in cases(name, ServerStoreContract)]
    assert [str(case) for case in all_cases if run(case, SqliteServerStore, tmp_path) != PASSED] == []


def test_no_part_of_the_contract_hides_a_test_of_another():
    parts = [part for part in ServerStoreContract.__mro__ if part.__module__.startswith("lamina.")]
    counted = Counter(name for part in parts for name in vars(part) if name.startswith("test_"))
    assert [name for name, times in counted.items() if times > 1] == []


def test_all_tests_of_the_contract_are_coroutines():
    assert [name for name in NAMES if not inspect.iscoroutinefunction(getattr(ServerStoreContract, name))] == []


@pytest.mark.parametrize(
    "hole",
    ["test_an_id_and_a_digest_are_taken_once = None", "async def test_an_id_and_a_digest_are_taken_once(self): pass"],
)
def test_a_hole_in_the_contract_is_caught(pytester, hole):
    pytester.makepyfile(f"{SUITE}\n        {hole}")
    outcomes = pytester.runpytest_inprocess(*OPTIONS, "-k", "test_the_contract_is_whole").parseoutcomes()
    assert outcomes == {"failed": 1, "deselected": outcomes["deselected"]}


def test_a_suite_without_a_store_says_what_it_lacks(pytester):
    pytester.makepyfile("from lamina.testing import ServerStoreContract\nclass TestNothing(ServerStoreContract): pass")
    result = pytester.runpytest_inprocess(*OPTIONS, "-k", "test_the_name_is_declared", "-o", "asyncio_mode=auto")
    result.stdout.fnmatch_lines(["*NotImplementedError: Give the contract a fixture `store`*"])
