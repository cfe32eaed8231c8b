import subprocess
import sys

import pytest

import lamina.testing

pytest_plugins = "pytester"


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_the_stand_ins_need_no_pytest():
    code = """
import sys
from lamina.testing import EchoModel, FrozenClock, HashingEmbedder, counting_ids
print({"pytest", "_pytest", "hypothesis", "pytest_asyncio", "numpy"} & set(sys.modules))
"""
    assert run(code) == "set()\n"


@pytest.mark.parametrize("absent", ["pytest", "pytest_asyncio", "hypothesis"])
def test_what_the_contract_lacks_is_named(absent):
    code = f"""
import importlib.util as util
found = util.find_spec
util.find_spec = lambda name, *rest: None if name == {absent!r} else found(name, *rest)
import lamina.testing

pytest_plugins = "pytester"
from lamina.errors import MissingExtra
try:
    lamina.testing.MemoryAdapterContract
except MissingExtra as error:
    print(error)
"""
    assert run(code) == "lamina.testing.MemoryAdapterContract needs an extra: pip install 'lamina[testing]'\n"


def test_every_public_name_is_there_and_no_other():
    assert lamina.testing.__all__ == sorted(lamina.testing.__all__)
    for name in lamina.testing.__all__:
        assert getattr(lamina.testing, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Contract'"):
        lamina.testing.Contract  # noqa: B018 - the access is what is tested


def test_a_failure_of_the_contract_shows_both_sides(pytester):
    pytester.makepyfile("""
        import pytest
        from lamina.adapters.in_memory import InMemoryAdapter
        from lamina.testing import MemoryAdapterContract

        class ReturnsNoneForNothing(InMemoryAdapter):
            async def list(self, options):
                return await super().list(options) or None

        class TestIt(MemoryAdapterContract):
            @pytest.fixture
            async def adapter(self):
                yield ReturnsNoneForNothing()
    """)
    options = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function", "-k", "nothing_is_an")
    result = pytester.runpytest_subprocess("--disable-plugin-autoload", "-p", "asyncio", *options)
    result.stdout.fnmatch_lines(["E*assert None == []"])
