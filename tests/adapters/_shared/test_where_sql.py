import json
import math
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lamina.adapters._shared.where_sql import filter_sql, is_plain, scope_sql, where_sql
from lamina.domain.filters import (
    MAX_COMPARISONS,
    MAX_NESTING,
    MAX_PATH,
    MAX_VALUES,
    And,
    Compare,
    Expiry,
    Filter,
    MemoryFilter,
    Not,
    Operator,
    Or,
    Where,
    check_where,
)
from lamina.domain.memory import Layer
from lamina.domain.scope import Scope

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOSTILE = [
    "a",
    "b",
    "a.b",
    "A",
    "$",
    "$.a",
    "[0]",
    "0",
    'a"b',
    "a'b",
    "a\\b",
    "a b",
    "é",
    "e\u0301",
    "灯台",
    "🚢",
    "\n",
    "\x1f",
]

keys = st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4)
numbers = (
    st.sampled_from(
        [0, 1, -1, 1.0, -0.0, 0.0, 0.1, 0.30000000000000004, 0.3, 1e16, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
    )
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
texts = st.sampled_from(["", "1", "1.0", "true", "null", "a", "A", "aa", "ä", "灯", "🚢", '"', "%", "_"]) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5
)
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)
metadata = st.dictionaries(keys, values, max_size=4)
paths = st.lists(keys.filter(bool), min_size=1, max_size=3).map(tuple)


@st.composite
def comparisons(draw: st.DrawFn) -> Compare:
    operator = draw(st.sampled_from(Operator))
    if operator is Operator.EXISTS:
        operand: Any = draw(st.booleans())
    elif operator in {Operator.IN, Operator.NOT_IN}:
        operand = tuple(draw(st.lists(scalars, max_size=4)))
    elif operator in {Operator.GT, Operator.GTE, Operator.LT, Operator.LTE}:
        operand = draw(numbers | texts)
    else:
        operand = draw(scalars)
    return Compare(draw(paths), operator, operand)


filters = st.recursive(
    comparisons(),
    lambda inner: (
        inner.map(Not)
        | st.lists(inner, max_size=3).map(lambda parts: And(tuple(parts)))
        | st.lists(inner, max_size=3).map(lambda parts: Or(tuple(parts)))
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    yield connection
    connection.close()


def said(connection: sqlite3.Connection, condition: str, column: str, parameters: tuple[Any, ...]) -> Any:
    row = connection.execute(f"SELECT {condition} FROM (SELECT ? AS {column}) AS m", parameters).fetchone()  # noqa: S608
    return row[0]


def holds(connection: sqlite3.Connection, where: Filter, stored: dict[str, Any]) -> Any:
    sql = where_sql(where)
    text = json.dumps(stored, ensure_ascii=False)
    return said(connection, sql.text, "metadata", (*sql.parameters, text))


@settings(max_examples=600, deadline=None)
@given(where=filters, stored=metadata)
@example(where=Where("a").contains(""), stored={"a": ""})
@example(where=Where("a").is_in([]), stored={"a": None})
@example(where=Not(Where("a").is_in([])), stored={"a": None})
@example(where=Where("a").not_in([]), stored={})
def test_sql_says_what_the_reference_says(
    connection: sqlite3.Connection, where: Filter, stored: dict[str, Any]
) -> None:
    assert holds(connection, where, stored) == int(where.matches(stored))


@settings(max_examples=600, deadline=None)
@given(data=st.data(), stored=metadata.filter(bool))
def test_sql_agrees_on_paths_and_values_that_are_there(
    connection: sqlite3.Connection, data: st.DataObject, stored: dict[str, Any]
) -> None:
    path, value = [], stored
    while isinstance(value, dict) and value:
        key = data.draw(st.sampled_from(sorted(value)))
        if not key:
            break
        path.append(key)
        value = value[key]
    if not path:
        return
    scalar = value if not isinstance(value, dict | list) else data.draw(scalars)
    for operator in (Operator.EQ, Operator.NE, Operator.CONTAINS):
        where = Compare(tuple(path), operator, scalar)
        assert holds(connection, where, stored) == int(where.matches(stored)), operator
    for operator in (Operator.IN, Operator.NOT_IN):
        where = Compare(tuple(path), operator, (scalar, "other", 7))
        assert holds(connection, where, stored) == int(where.matches(stored)), operator
    if isinstance(scalar, str | int | float) and not isinstance(scalar, bool):
        for operator in (Operator.GT, Operator.GTE, Operator.LT, Operator.LTE):
            where = Compare(tuple(path), operator, scalar)
            assert holds(connection, where, stored) == int(where.matches(stored)), operator


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([-math.inf, math.inf]))
def test_a_fraction_equals_itself_and_neighbours_never_swap(
    connection: sqlite3.Connection, number: float, direction: float
) -> None:
    assert holds(connection, Where("a").eq(number), {"a": number}) == 1
    neighbour = math.nextafter(number, direction)
    if math.isfinite(neighbour):
        less, greater = sorted((number, neighbour))
        assert holds(connection, Where("a").gt(greater), {"a": less}) == 0
        assert holds(connection, Where("a").lte(greater), {"a": less}) == 1


@pytest.mark.parametrize("operand", [1, 1.0, True, "1", None, 0, False, "", "true"])
@pytest.mark.parametrize("stored", [1, 1.0, True, "1", None, 0, -0.0, False, "", "true", [], {}, [1]])
def test_kinds_never_mix(connection: sqlite3.Connection, stored: Any, operand: Any) -> None:
    for where in (
        Where("a").eq(operand),
        Where("a").ne(operand),
        Where("a").is_in([operand]),
        Not(Where("a").eq(operand)),
    ):
        assert holds(connection, where, {"a": stored}) == int(where.matches({"a": stored}))


def test_a_key_is_a_value_and_no_grammar(connection: sqlite3.Connection) -> None:
    for key in [*HOSTILE, "a') = 1 OR ('1", "a') -- ", "$[*]", "#-1", "x" * 500]:
        where = Where((key,)).eq("here")
        assert holds(connection, where, {key: "here", "other": "there"}) == 1, key
        assert holds(connection, where, {"other": "here"}) == 0, key


def test_the_longest_path_is_followed_to_its_end(connection: sqlite3.Connection) -> None:
    stored: Any = "leaf"
    for _ in range(MAX_PATH):
        stored = {"a": stored}
    assert holds(connection, Where(("a",) * MAX_PATH).eq("leaf"), stored) == 1
    assert holds(connection, Where(("a",) * MAX_PATH).exists(False), stored) == 0
    assert holds(connection, Where(("a",) * (MAX_PATH - 1)).eq("leaf"), stored) == 0


def test_what_is_as_deep_and_as_wide_as_allowed_runs(connection: sqlite3.Connection) -> None:
    for first in range(3):
        deep: Filter = Where("a.b.c").contains("x")
        for level in range(first, first + MAX_NESTING - 1):
            other = Where("b").exists()
            deep = (And((deep, Where("a").exists())), Or((deep, other)), Not(deep))[level % 3]
        check_where(deep)
        assert holds(connection, deep, {"a": 1}) == int(deep.matches({"a": 1}))
    path = ("a",) * (MAX_PATH - 1)
    wide = Or(tuple(Where((*path, str(number))).is_in([*range(MAX_VALUES)]) for number in range(MAX_COMPARISONS)))
    check_where(wide)
    for leaf, expected in ((MAX_VALUES - 1, 1), (MAX_VALUES, 0)):
        stored: Any = {"63": leaf}
        for _ in path:
            stored = {"a": stored}
        assert holds(connection, wide, stored) == expected


TAGS = st.lists(st.sampled_from(["a", "A", "a ", "ä", "a\u0308", '"', "%", "灯台", "1"]), max_size=3)


@settings(max_examples=200, deadline=None)
@given(stored=TAGS, every=TAGS, some=TAGS)
def test_tags_compare_exactly(
    connection: sqlite3.Connection, stored: list[str], every: list[str], some: list[str]
) -> None:
    sql = filter_sql(MemoryFilter(now=NOW, expiry=Expiry.ANY, tags=tuple(every), tags_any=tuple(some)), has_vector="0")
    found = said(connection, sql.text, "tags", (*sql.parameters, json.dumps(stored, ensure_ascii=False)))
    expected = all(tag in stored for tag in every) and (not some or any(tag in stored for tag in some))
    assert found == int(expected)


def test_only_a_filter_for_live_entries_is_plain() -> None:
    assert is_plain(MemoryFilter(now=NOW))
    assert is_plain(MemoryFilter(now=NOW, layers=frozenset({Layer.SESSION})))
    others: list[dict[str, Any]] = [
        {"expiry": Expiry.ANY},
        {"tags": ("a",)},
        {"tags_any": ("a",)},
        {"where": Where("a").exists()},
        {"min_relevance": 0.0},
        {"min_confidence": 0.0},
        {"created_before": NOW},
        {"updated_before": NOW},
        {"has_embedding": False},
    ]
    assert not any(is_plain(MemoryFilter(now=NOW, **other)) for other in others)


def test_no_name_stands_in_the_text_of_a_scope() -> None:
    scope = Scope("ten'ant", owner="own%er", namespace="name_space", include_shared=True)
    sql = scope_sql(scope, frozenset(Layer))
    assert not any(name in sql.text for name in ("ten'ant", "own%er", "name_space"))
    assert sql.text.count("?") == len(sql.parameters)
