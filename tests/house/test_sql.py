"""SQL is made of constants: what a text of SQL is put together from is followed back to where it comes from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

SQL = re.compile(
    r"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH|CREATE|DROP|ALTER|PRAGMA|ATTACH|VACUUM|REINDEX|REPLACE INTO)\s"
)
HOLDS_SQL = re.compile(f"[\"']{SQL.pattern}", re.MULTILINE)
SETTLED = {
    "conditions that the same module makes of literal texts": [
        ("state/postgres/pack_heads.py", "count_packs", "conditions"),
        ("state/postgres/pack_reading.py", "count_memories", "conditions"),
        ("state/postgres/pack_reading.py", "find_memories", "conditions"),
        ("state/sqlite/pack_heads.py", "count_packs", "conditions"),
        ("state/sqlite/pack_heads.py", "list_packs", "conditions"),
        ("state/sqlite/pack_heads.py", "pack_faces", "conditions"),
        ("state/sqlite/pack_reading.py", "count_memories", "conditions"),
        ("state/sqlite/pack_reading.py", "find_memories", "conditions"),
        ("state/sqlite/threads.py", "list_threads", "' AND '.join(conditions)"),
        ("state/sqlite/tokens.py", "list_tokens", "where"),
        ("adapters/turso/adapter.py", "_frequencies", "', '.join((each.text for each in counts))"),
    ],
    "names of our own tables and columns, from a constant or a literal of the caller": [
        ("adapters/turso/commits.py", "_removals", "start"),
        ("adapters/turso/tables.py", "create_vectors", "self.vector_index(length)"),
        ("adapters/turso/tables.py", "create_vectors", "table"),
        ("state/postgres/pack_reading.py", "_counted", "column"),
        ("state/sqlite/checking.py", "find_contradictions", "columns"),
        ("state/sqlite/checking.py", "find_contradictions", "table"),
        ("state/sqlite/pack_changes.py", "_remove", "column"),
        ("state/sqlite/pack_changes.py", "_remove", "table"),
        ("state/sqlite/repairing.py", "_indexes", "table"),
    ],
    "names of the file's schema, as identifiers whose quotes are doubled": [
        ("databases/sqlite/contents.py", "_contents", "_quoted(name)"),
        ("databases/sqlite/contents.py", "check_sound", "index"),
        ("databases/sqlite/contents.py", "standing_in_rows", "_quoted(name)"),
        ("databases/sqlite/size.py", "compact", "quoted"),
    ],
    "a name of a table that was looked up among the known ones": [
        ("databases/earlier_sqlite.py", "_has_row_ids", "table"),
        ("databases/earlier_sqlite.py", "_page", "table"),
    ],
    "a number": [
        ("adapters/turso/tables.py", "create_vectors", "length"),
        ("databases/sqlite/size.py", "compact", "kept"),
    ],
}
NUMBERS = {"int", "len", "id"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def first_text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=[first, *_]):
            return first_text(first)
        case ast.BinOp(op=ast.Add() | ast.Mod(), left=left):
            return first_text(left)
        case ast.Call(func=ast.Attribute(value=text, attr="format")):
            return first_text(text)
    return ""


def parts(node: ast.expr) -> Iterator[ast.expr]:
    """What the text is put together from, but its literal pieces."""
    match node:
        case ast.Constant():
            return
        case ast.JoinedStr(values=values):
            for each in values:
                yield from parts(each.value if isinstance(each, ast.FormattedValue) else each)
        case ast.BinOp(left=left, right=right):
            yield from parts(left)
            yield from parts(right)
        case ast.Call(func=ast.Attribute(value=text, attr="format"), args=args, keywords=keywords):
            yield from parts(text)
            yield from (*args, *(each.value for each in keywords))
        case _:
            yield node


class Scope:
    """What the names of one function, or of a module, are made of."""

    def __init__(self, node: ast.AST, outer: Scope | None = None) -> None:
        self.outer = outer
        self.made: dict[str, list[ast.expr]] = {}
        for each in ast.walk(node):
            match each:
                case ast.Assign(targets=[ast.Name(name)], value=value):
                    self._add(name, value)
                case (
                    ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value)
                    | ast.AugAssign(target=ast.Name(name), value=value)
                ):
                    self._add(name, value)
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(name), attr="append" | "extend" | "insert"), args=[*_, value]
                ):
                    self._add(name, value)
                case ast.For(target=ast.Name(name), iter=value) | ast.comprehension(target=ast.Name(name), iter=value):
                    self._add(name, value)

    def _add(self, name: str, value: ast.expr) -> None:
        self.made.setdefault(name, []).append(value)

    def is_constant(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
        if isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            if name.strip("_").isupper() or name in seen:
                return True
            made = self.made.get(name) if isinstance(node, ast.Name) else None
            return made is not None and all(self.is_constant(each, seen | {name}) for each in made)
        sources = made_of(node)
        return sources is not None and all(self.is_constant(each, seen) for each in sources)


def made_of(node: ast.expr) -> list[ast.expr] | None:
    """What the value of an expression, which is no name, comes from; None if that cannot be told."""
    match node:
        case ast.Constant() | ast.JoinedStr() | ast.BinOp():
            return list(parts(node))
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return elements
        case ast.Starred(value=value) | ast.Subscript(value=value):
            return [value]
        case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
            return [element]
        case ast.Call(func=ast.Attribute(value=value, attr="join" | "split" | "replace" | "count"), args=args):
            return [value, *args]
        case ast.Call(func=ast.Name(id=name)) if name in NUMBERS:
            return []
    return None


def doubtful(tree: ast.Module) -> list[tuple[str, str]]:
    """The function and the piece of its SQL that comes from elsewhere."""
    found = []

    def visit(node: ast.AST, name: str, scope: Scope) -> None:
        if isinstance(node, FUNCTIONS):
            name, scope = getattr(node, "name", name), Scope(node)
        if isinstance(node, ast.expr) and SQL.match(first_text(node)):
            found.extend((name, ast.unparse(each)) for each in parts(node) if not scope.is_constant(each))
            return
        for each in ast.iter_child_nodes(node):
            visit(each, name, scope)

    visit(tree, "", Scope(tree))
    return found


def test_sql_is_made_of_constants_or_settled_by_name(modules):
    asking = [module for module in modules if HOLDS_SQL.search(module.text)]
    assert len(asking) > 50
    found = {(module.name.removeprefix("lamina/"), *each) for module in asking for each in doubtful(module.tree)}
    assert found == {(file, function, piece) for pairs in SETTLED.values() for file, function, piece in pairs}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("run('SELECT ' + COLUMNS + ' FROM a')", []),
        ("def f(t):\n run(f'SELECT 1 FROM {t}')", [("f", "t")]),
        ("def f(t):\n run('SELECT 1 FROM %s' % t)", [("f", "t")]),
        ("def f(t):\n run('DELETE FROM {}'.format(t))", [("f", "t")]),
        ("def f(t):\n run(f'SELECT 1 FROM {TABLES[t]}')", []),
        ("def f(n):\n c = ['a = ?']\n c.append('b = ?')\n run(f'SELECT 1 WHERE {\" AND \".join(c)}')", []),
        (
            "def f(n):\n c = ['a = ?']\n c.append(n)\n run('SELECT 1 WHERE ' + ' AND '.join(c))",
            [("f", "' AND '.join(c)")],
        ),
        ("def f(n):\n w = ' WHERE a' if n else ''\n run(f'SELECT 1{w}')", []),
        ("def f(n):\n w = n\n w += 'x'\n run(f'UPDATE a SET {w}')", [("f", "w")]),
    ],
)
def test_the_rule_on_sql_sees(code, found):
    assert doubtful(ast.parse(code)) == found
