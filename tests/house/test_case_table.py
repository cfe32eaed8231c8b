"""Every kind of fault in the table of cases has tests, and they are there."""

from __future__ import annotations

import importlib.util

import pytest

CASES = 95


@pytest.fixture(scope="module")
def table(root):
    spec = importlib.util.spec_from_file_location("case_table", root / "scripts/case_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def missing(table, root, rows):
    """The tests that rows name and that are not there."""
    names = {}
    found = []
    for id, row in rows.items():
        for test in row["tests"]:
            path, _, name = test.partition("::")
            if path not in names:
                file = root / path
                names[path] = {each.name for each in table.functions(file)} if file.is_file() else set()
            if name not in names[path]:
                found.append((id, test))
    return found


def test_every_case_has_tests_and_they_are_there(table, root):
    rows = table.rows(root)
    assert len(rows) == CASES
    assert [id for id, row in rows.items() if not row["tests"]] == []
    assert missing(table, root, rows) == []


def test_a_test_that_is_gone_is_missed(table, root):
    gone = {"B01": {"tests": ["tests/cases/test_gone.py::test_x", "tests/house/test_case_table.py::test_gone"]}}
    assert len(missing(table, root, gone)) == 2


def test_every_test_of_a_case_carries_a_row_that_there_is(table, root):
    carried = {
        f"{path.name}::{test.name}": table.ids(test)
        for path in sorted((root / "tests/cases").glob("test_*.py"))
        for test in table.functions(path)
    }
    assert [test for test, ids in carried.items() if not ids] == []
    assert {id for ids in carried.values() for id in ids} - set(table.rows(root)) == set()
