"""The contract is tested too: broken adapters fail it, and so does a contract with a hole in it."""

import inspect
from collections import Counter

import pytest
from contract_driver import FAILED, cases, contract_tests, run
from mutants import MUTANTS

from lamina.adapters.in_memory import InMemoryAdapter
from lamina.errors import ConfigError, Unsupported
from lamina.ports.memory_adapter import Capability, MemoryAdapter
from lamina.testing import MemoryAdapterContract, known_gap
from lamina.testing.memory_contract.refusals import CALLS

pytest_plugins = "pytester"

NAMES = contract_tests()
GUARD = "test_the_contract_is_whole"
SUITE = """
    import pytest
    from lamina.adapters.in_memory import InMemoryAdapter
    from lamina.testing import MemoryAdapterContract, known_gap
    from mutants.{module} import {adapter} as Adapter

    class TestAdapter(MemoryAdapterContract):
        @pytest.fixture
        async def adapter(self):
            yield Adapter()
"""
AUTO = ("-o", "asyncio_mode=auto")
OPTIONS = (
    *("-q", "-p", "no:cacheprovider", "--disable-plugin-autoload", "-p", "asyncio", "--strict-markers"),
    *("-o", "asyncio_default_fixture_loop_scope=function"),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")  # a mutant may leave some behind where it fails
def test_every_mutant_is_caught_by_the_tests_it_names(mutant):
    missed = [name for name in mutant.caught_by.split() if all(run(case, mutant) != FAILED for case in cases(name))]
    assert missed == []


def test_every_test_of_the_contract_catches_a_mutant():
    caught = {name for mutant in MUTANTS for name in mutant.caught_by.split()}
    assert caught == set(NAMES) - {GUARD}  # which catches holes in the contract, below


def test_the_right_adapter_passes_where_mutants_fail(record_property):
    record_property("contract tests", len(NAMES))
    record_property("mutants", len(MUTANTS))
    named = sorted({mutant.caught_by.split()[0] for mutant in MUTANTS})
    assert [str(case) for name in named for case in cases(name) if run(case, InMemoryAdapter) == FAILED] == []


def test_the_driver_runs_the_cases_that_pytest_collects(pytester):
    pytester.makepyfile(SUITE.format(module="declaring", adapter="InMemoryAdapter"))
    lines = pytester.runpytest_inprocess(*OPTIONS, "--collect-only").outlines
    collected = Counter(line.split("::")[2].partition("[")[0] for line in lines if line.count("::") == 2)
    assert collected == {name: len(list(cases(name))) for name in NAMES}


def test_no_part_of_the_contract_hides_a_test_of_another():
    parts = [part for part in MemoryAdapterContract.__mro__ if part.__module__.startswith("lamina.")]
    counted = Counter(name for part in parts for name in vars(part) if name.startswith("test_"))
    assert [name for name, times in counted.items() if times > 1] == []


def test_all_tests_of_the_contract_are_coroutines():
    for name in NAMES:
        test = getattr(MemoryAdapterContract, name)
        inner = test.hypothesis.inner_test if hasattr(test, "hypothesis") else test
        assert inspect.iscoroutinefunction(inner), name


def test_every_capability_has_calls_that_need_it_or_says_how_well_a_call_is_done():
    qualities = {Capability.COMPARE_AND_SET, Capability.TRANSACTIONS, Capability.EXPIRY, Capability.PERSISTENCE}
    assert set(Capability) == set(CALLS) | qualities


@pytest.mark.parametrize(
    "hole",
    [
        "test_pages_by_offset_tile = None",
        "async def test_pages_by_offset_tile(self): pass",
        "@pytest.mark.skip(reason='later')\n        async def test_pages_by_offset_tile(self): pass",
        "@pytest.mark.xfail\n        async def test_pages_by_offset_tile(self): pass",
        "@pytest.mark.xfail(reason='some day')\n        async def test_pages_by_offset_tile(self): assert False",
    ],
)
def test_a_hole_in_the_contract_is_caught(pytester, hole):
    suite = SUITE.format(module="declaring", adapter="InMemoryAdapter")
    pytester.makepyfile(f"{suite}\n        {hole}")
    outcomes = pytester.runpytest_inprocess(*OPTIONS, "-k", f"{GUARD} or no_such").parseoutcomes()
    assert outcomes == {"failed": 1, "deselected": outcomes["deselected"]}


@pytest.mark.parametrize("hole", [f"{GUARD} = None", f"async def {GUARD}(self): pass"])
def test_the_guard_cannot_be_taken_away(pytester, hole):
    suite = SUITE.format(module="declaring", adapter="InMemoryAdapter")
    pytester.makepyfile(f"{suite}\n        {hole}")
    result = pytester.runpytest_inprocess(*OPTIONS)
    assert result.parseoutcomes() == {"errors": 1}
    result.stdout.fnmatch_lines(["*ConfigError: test_the_contract_is_whole: is replaced in TestAdapter*"])


@pytest.mark.parametrize(
    ("adapter", "raises", "outcomes"),
    [
        ("ListsAThousandAtMost", "AssertionError", {"xfailed": 2, "passed": 1}),  # the gap it says it has
        ("ListsAThousandAtMost", "ValueError", {"failed": 2, "passed": 1}),  # another one
        ("InMemoryAdapter", "AssertionError", {"failed": 2, "passed": 1}),  # none any more
    ],
)
def test_a_known_gap_holds_only_while_it_is_one(pytester, adapter, raises, outcomes):
    module = "declaring" if adapter == "InMemoryAdapter" else "listing"
    gap = f"""
        @pytest.mark.parametrize("order", ["insertion", "relevance"])
        @known_gap("a page has a thousand rows at most", raises={raises})
        async def test_pages_by_offset_tile(self, adapter, order):
            from lamina.ports.memory_adapter import Order
            await super().test_pages_by_offset_tile(adapter, Order(order))
    """
    pytester.makepyfile(SUITE.format(module=module, adapter=adapter) + gap)
    found = pytester.runpytest_inprocess(*OPTIONS, "-k", f"{GUARD} or test_pages_by_offset_tile", *AUTO).parseoutcomes()
    found.pop("deselected")
    assert found == outcomes


def test_a_known_gap_says_why():
    with pytest.raises(ConfigError, match="reason"):
        known_gap(" ", raises=AssertionError)


def test_the_contract_runs_in_pytest_as_the_driver_says_it_does(pytester):
    """The driver is quick; that it tells the truth is shown on one mutant by pytest itself, in strict mode too."""
    suite = SUITE.format(module="filtering", adapter="AnyTagWillDo")
    pytester.makepyfile(suite.replace("import pytest", "import pytest_asyncio as pytest", 1))
    name = "test_a_condition_agrees_with_the_reference"
    outcomes = pytester.runpytest_inprocess(*OPTIONS, "-k", name).parseoutcomes()
    mutant = next(each for each in MUTANTS if each.__name__ == "AnyTagWillDo")
    failed = [str(case) for case in cases(name) if run(case, mutant) == FAILED]
    assert outcomes["failed"] == len(failed) > 0
    assert outcomes["passed"] == len(list(cases(name))) - len(failed)


def test_a_suite_without_an_adapter_says_what_it_lacks(pytester):
    pytester.makepyfile(
        "from lamina.testing import MemoryAdapterContract\nclass TestNothing(MemoryAdapterContract): pass"
    )
    result = pytester.runpytest_inprocess(*OPTIONS, "-k", "test_nothing_is_an_empty_list", *AUTO)
    result.stdout.fnmatch_lines(["*NotImplementedError: Give the contract a fixture `adapter`*"])


async def test_the_ports_searches_refuse():
    class Bare(InMemoryAdapter):
        name = "bare"
        search_by_text = MemoryAdapter.search_by_text

    with pytest.raises(Unsupported, match="The bare adapter does not support text search"):
        await Bare().search_by_text("x", None)
