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


def test_a_module_has_at_most_400_lines(module):
    assert len(module.text.splitlines()) <= MODULE_LINES


def test_a_function_has_at_most_40_lines_beside_its_docstring(module):
    assert too_long(module.tree) == []


def test_a_function_takes_at_most_4_positional_parameters(module):
    assert too_many_positional(module.tree) == []


@pytest.mark.parametrize(("extra", "expected"), [(38, []), (39, ["f: 41 lines"])])
def test_the_ceiling_of_functions_counts_code_and_not_the_docstring(extra, expected):
    body = "    x = 1\n" * extra
    assert too_long(ast.parse(f'def f():\n    """One\n    two."""\n{body}    return x\n')) == expected


def test_the_ceiling_of_parameters_leaves_out_self_and_keyword_only_ones():
    code = "class A:\n    def m(self, a, b, c, d, *, e): ...\n    @staticmethod\n    def s(a, b, c, d, e): ...\n"
    assert too_many_positional(ast.parse(code)) == ["s: 5 positional parameters"]
