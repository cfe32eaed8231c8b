"""The table of cases: which tests hold against each kind of fault that users of such systems have met.

Its rows are in `tests/cases/rows.toml`. A test there carries the rows that it holds for as a mark,
`@pytest.mark.case("B61")`; tests elsewhere are named in the row.
"""

import ast
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

CONTRACTS = "T/"  # how rows.toml writes the folder of the contracts that every backend runs
FOLDER = "src/lamina/testing/"


def rows(root: Path) -> dict[str, dict[str, Any]]:
    """Each row by its id, in order, with `tests` that name files and functions, those of `tests/cases` first."""
    with (root / "tests/cases/rows.toml").open("rb") as file:
        read = tomllib.load(file)
    own = marked(root)
    return {
        id: {**row, "tests": own.get(id, []) + [test.replace(CONTRACTS, FOLDER, 1) for test in row["tests"]]}
        for id, row in read.items()
    }


def marked(root: Path) -> dict[str, list[str]]:
    """The tests of `tests/cases` by the row that they carry."""
    found = defaultdict(list)
    for path in sorted((root / "tests/cases").glob("test_*.py")):
        for test in functions(path):
            for id in ids(test):
                found[id].append(f"tests/cases/{path.name}::{test.name}")
    return dict(found)


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every test of the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    every = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [each for each in every if each.name.startswith("test_")]


def ids(test: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The rows that the test carries."""
    calls = [each for each in test.decorator_list if isinstance(each, ast.Call)]
    marks = [each for each in calls if isinstance(each.func, ast.Attribute) and each.func.attr == "case"]
    return [argument.value for mark in marks for argument in mark.args if isinstance(argument, ast.Constant)]


def page(root: Path) -> str:
    """The table as Markdown."""
    lines = ["| case | gravity | the fault | what holds | tests |", "| --- | --- | --- | --- | --- |"]
    for id, row in rows(root).items():
        tests = "<br>".join(f"`{shown(test)}`" for test in row["tests"])
        lines.append(f"| {id} | {row['severity']} | {row['kind']} | {row['holds']} | {tests} |")
    return "\n".join(lines)


def shown(test: str) -> str:
    """A test's name as the table has it: its folder and file without what all have, and its sentence."""
    path, _, name = test.partition("::")
    place = path.removeprefix("tests/").replace(FOLDER, "every backend: ").removesuffix(".py")
    return f"{place}: {name.removeprefix('test_').replace('_', ' ')}"
