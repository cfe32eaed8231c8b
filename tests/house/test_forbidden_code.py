"""What no module may contain."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

UNSAFE_MODULES = {"pickle", "marshal", "shelve", "dill", "joblib", "cloudpickle"}
UNSAFE_CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "yaml.load",
    "yaml.unsafe_load",
    "os.system",
    "os.popen",
    "tempfile.mktemp",
    "mktemp",
}
SHELLS = {"getoutput", "getstatusoutput", "create_subprocess_shell"}
CLOCK_CALLS = {
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "date.today",
    "datetime.date.today",
    "time.time",
    "time.time_ns",
}
LONGEST_TEXT = 400


def imported(tree: ast.Module) -> Iterator[str]:
    """Dotted names of everything imported: `a`, `a.b` and, for `from a import b`, `a` and `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)


def dotted(node: ast.expr) -> str:
    """`a.b.c` as it stands; what hangs on something else than a name begins with a dot."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    names.append(node.id if isinstance(node, ast.Name) else "")
    return ".".join(reversed(names))


def calls(tree: ast.Module) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def is_unsafe(call: ast.Call) -> bool:
    """An unsafe name, any `shell=`, and what starts a shell without saying so."""
    name = dotted(call.func)
    return (
        name in UNSAFE_CALLS or name.rpartition(".")[2] in SHELLS or any(each.arg == "shell" for each in call.keywords)
    )


def unsafe(tree: ast.Module) -> list[str]:
    modules = [name for name in imported(tree) if name.partition(".")[0] in UNSAFE_MODULES]
    return modules + [dotted(call.func) for call in calls(tree) if is_unsafe(call)]


def clock_reads(tree: ast.Module) -> list[str]:
    names = [name for name in imported(tree) if name in {"time.time", "time.time_ns"}]
    mentioned = [dotted(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return names + [name for name in mentioned if name in CLOCK_CALLS]


def long_texts(tree: ast.Module) -> list[str]:
    """Text literals that belong into a file. Docstrings and word lists (`"...".split()`) do not count."""
    passed = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            passed.add(id(node.value))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
            passed.add(id(node.func.value))
    return [
        f"line {node.lineno}: {len(node.value)} characters"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and len(node.value) > LONGEST_TEXT
        and id(node) not in passed
    ]


def test_no_module_unpickles_runs_text_as_code_reads_the_time_or_holds_long_texts(modules):
    """Only the clock reads the time, and long texts are files."""
    found = {
        module.name: [
            *unsafe(module.tree),
            *(clock_reads(module.tree) if module.name != "lamina/ports/clock.py" else []),
            *long_texts(module.tree),
        ]
        for module in modules
    }
    assert {name: each for name, each in found.items() if each} == {}


def test_there_are_no_catch_all_module_names(modules):
    forbidden = {"utils", "util", "helpers", "common", "misc", "base", "types"}
    assert [module.name for module in modules if module.path.stem in forbidden] == []


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from pickle import loads",
        "x = eval('1')",
        "exec(text)",
        "import yaml\nyaml.load(f)",
        "subprocess.run(command, shell=True)",
        "asyncio.create_subprocess_shell(command)",
        "tempfile.mktemp()",
    ],
)
def test_the_rule_on_unsafe_code_sees(code):
    assert len(unsafe(ast.parse(code))) >= 1


@pytest.mark.parametrize(
    "code", ["datetime.now(UTC)", "time.time()", "from time import time", "field(default_factory=datetime.now)"]
)
def test_the_rule_on_clocks_sees(code):
    assert len(clock_reads(ast.parse(code))) == 1


def test_the_rule_on_clocks_lets_monotonic_clocks_pass():
    assert clock_reads(ast.parse("time.monotonic() + time.perf_counter()")) == []


def test_the_rule_on_long_texts_sees_prompts_and_passes_docstrings_and_word_lists():
    long = "a " * 201
    assert len(long_texts(ast.parse(f"PROMPT = '{long}'"))) == 1
    assert long_texts(ast.parse(f"'{long}'\nWORDS = '{long}'.split()")) == []
