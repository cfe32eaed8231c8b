"""`lamina.__all__` is a promise."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib import import_module

import pytest

import lamina

HEAVY = ["numpy", "pydantic", "httpx2", "rich", "typer", "sqlite3", "asyncio", "anyio"]

VENDORS = ["botocore", "google", "libsql", "pinecone", "psycopg", "pymongo", "qdrant_client", "redis", "weaviate"]
NEED_AN_EXTRA = {
    name
    for name, home in lamina._HOME_OF.items()
    if home == "lamina.state.postgres"
    or (home.startswith("lamina.adapters.") and name not in {"InMemoryAdapter", "SqliteAdapter"})
}


def names_for_type_checkers(tree):
    """name → module, of the imports under `if TYPE_CHECKING`."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for statement in node.body:
                assert isinstance(statement, ast.ImportFrom)
                found.update({each.name: statement.module for each in statement.names})
    return found


def test_the_public_names_are_sorted_and_each_once():
    assert lamina.__all__ == sorted(set(lamina.__all__))


def test_type_checkers_and_the_interpreter_see_the_same_names(root):
    tree = ast.parse((root / "src/lamina/__init__.py").read_text(encoding="utf-8"))
    assert names_for_type_checkers(tree) == lamina._HOME_OF
    assert set(lamina.__all__) == {*lamina._HOME_OF, "__version__"} - NEED_AN_EXTRA
    assert dir(lamina) == sorted({*lamina._HOME_OF, "__version__"})


def test_a_star_import_loads_nothing_that_needs_an_extra():
    code = f"import sys; from lamina import *; print(*[name for name in {VENDORS} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []


def test_a_public_name_is_there_is_documented_and_is_public_where_it_lives():
    homes = lamina._HOME_OF.items()
    assert [name for name, home in homes if name not in import_module(home).__all__] == []
    assert [name for name, _ in homes if not inspect.getdoc(getattr(lamina, name))] == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Memroy'"):
        _ = lamina.Memroy
    with pytest.raises(ImportError, match="Memroy"):
        exec("from lamina import Memroy", {})  # noqa: S102 - the statement itself is under test


def test_importing_the_package_loads_nothing_heavy():
    code = f"import sys, lamina; print(*[name for name in {HEAVY} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []


def test_the_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert lamina.__version__ == version("lamina")
