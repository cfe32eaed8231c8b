"""Small modules, small functions, few positional parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

MODULE_LINES = 400
FUNCTION_LINES = 40
POSITIONAL_PARAMETERS = 4

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.Module) -> Iterator[tuple[Function, bool]]:
    """Every function, and whether its first parameter is `self` or `cls`."""
    methods = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for child in node.body
        if isinstance(child, Function) and not is_static(child)
    }
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node, id(node) in methods


def is_static(function: Function) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in function.decorator_list)


def length(function: Function) -> int:
    """Lines from `def` to the end, without the docstring's."""
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None and first.end_lineno is not None:
        lines -= first.end_lineno - first.lineno + 1
    return lines


def too_long(tree: ast.Module) -> list[str]:
    return [f"{node.name}: {length(node)} lines" for node, _ in functions(tree) if length(node) > FUNCTION_LINES]


def too_many_positional(tree: ast.Module) -> list[str]:
    found = []
    for node, is_method in functions(tree):
        count = len(node.args.posonlyargs) + len(node.args.args) - is_method
        if count > POSITIONAL_PARAMETERS:
            found.append(f"{node.name}: {count} positional parameters")
    return found


def too_many_lines(text: str) -> list[str]:
    lines = len(text.splitlines())
    return [f"{lines} lines"] if lines > MODULE_LINES else []


def test_no_module_function_or_list_of_parameters_is_above_its_ceiling(modules):
    found = {
        module.name: [*too_many_lines(module.text), *too_long(module.tree), *too_many_positional(module.tree)]
        for module in modules
    }
    assert {name: each for name, each in found.items() if each} == {}


@pytest.mark.parametrize(("count", "expected"), [(400, []), (401, ["401 lines"])])
def test_the_ceiling_of_modules_counts_lines(count, expected):
    assert too_many_lines("x = 1\n" * count) == expected


@pytest.mark.parametrize(("extra", "expected"), [(38, []), (39, ["f: 41 lines"])])
def test_the_ceiling_of_functions_counts_code_and_not_the_docstring(extra, expected):
    body = "    x = 1\n" * extra
    assert too_long(ast.parse(f'def f():\n    """One\n    two."""\n{body}    return x\n')) == expected


def test_the_ceiling_of_parameters_leaves_out_self_and_keyword_only_ones():
    code = "class A:\n    def m(self, a, b, c, d, *, e): ...\n    @staticmethod\n    def s(a, b, c, d, e): ...\n"
    assert too_many_positional(ast.parse(code)) == ["s: 5 positional parameters"]
