import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
)
from lamina.domain.memory import Layer, MemoryEntry
from lamina.domain.scope import Scope
from lamina.errors import InvalidInput, InvalidType
from lamina.testing.memory_contract.filters import filters, metadata

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HELD = {"n": 10, "f": 1.0, "s": "fact", "b": True, "z": None, "l": ["a", 1, None], "o": {"x": 1}, "o.x": 2}


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (Where("n").eq(10), True),
        (Where("n").eq(10.0), True),
        (Where("n").eq("10"), False),
        (Where("f").eq(1), True),
        (Where("f").eq(True), False),
        (Where("b").eq(True), True),
        (Where("b").eq(1), False),
        (Where("b").gt(0), False),
        (Where("z").eq(None), True),
        (Where("z").exists(), True),
        (Where("z").ne(None), False),
        (Where("missing").ne(1), False),
        (Where("missing").not_in([1]), False),
        (Where("missing").eq(None), False),
        (Where("missing").exists(False), True),
        (Not(Where("missing").eq(1)), True),
        (Where("n").gt(9), True),
        (Where("n").gt("9"), False),
        (Where("s").gt("a"), True),
        (Where("s").lte(1), False),
        (Where("l").contains("a"), True),
        (Where("l").contains(True), False),
        (Where("l").contains(None), True),
        (Where("l").eq("a"), False),
        (Where("l").ne("a"), True),
        (Where("s").contains("ac"), True),
        (Where("s").contains("AC"), False),
        (Where("s").contains(1), False),
        (Where("o").contains("x"), False),
        (Where("o.x").eq(1), True),
        (Where(("o.x",)).eq(2), True),
        (Where(("o", "x")).eq(1), True),
        (Where(("l", "0")).exists(), False),
        (Where("n.x").exists(), False),
        (Where("n").is_in([]), False),
        (Where("n").not_in([]), True),
        (Where("n").is_in([None, 10.0]), True),
        (And(()), True),
        (Or(()), False),
        (And((Where("n").eq(10), Where("s").eq("x"))), False),
        (Or((Where("n").eq(1), Where("s").eq("fact"))), True),
    ],
)
def test_the_reference_keeps_the_rules(filter, expected):
    assert filter.matches(HELD) is expected


@pytest.mark.parametrize(
    ("source", "filter"),
    [
        ({"s": "fact"}, Where("s").eq("fact")),
        ({"s": None}, Where("s").eq(None)),
        ({"n": [1, 2]}, Where("n").is_in([1, 2])),
        ({"n": {"in": [1, 2]}}, Where("n").is_in([1, 2])),
        ({"n": {"gt": 1, "lte": 5}}, And((Where("n").gt(1), Where("n").lte(5)))),
        ({"s": "x", "o.x": {"exists": True}}, And((Where("s").eq("x"), Where(("o", "x")).exists()))),
        ({"or": [{"s": "x"}, {"n": 1}]}, Or((Where("s").eq("x"), Where("n").eq(1)))),
        ({"not": {"s": "x"}}, Not(Where("s").eq("x"))),
        ({"and": []}, And(())),
        ({}, And(())),
        (Where("s").eq("x"), Where("s").eq("x")),
    ],
)
def test_a_mapping_is_read_as_the_filter_it_says(source, filter):
    assert Where.parse(source) == filter


@pytest.mark.parametrize(
    "source",
    [
        {"n": {"greater": 1}},
        {"n": {"$gt": 1}},
        {"n": {1: 1}},
        {"n": {}},
        {"": 1},
        {"a..b": 1},
        {1: 1},
        {"a\x00": 1},
        {"a": "\ud83d"},
        {"a": math.nan},
        {"a": 2**63},
        {"a": {"eq": [1]}},
        {"a": {"in": 1}},
        {"a": {"in": [[1]]}},
        {"a": {"gt": None}},
        {"a": {"gt": True}},
        {"a": {"exists": 1}},
        {"a": {1, 2}},
        {"a": NOW},
        {"or": {"a": 1}},
        {"not": [{"a": 1}]},
        [("a", 1)],
        "a = 1",
        None,
    ],
)
def test_what_says_no_filter_is_refused(source):
    with pytest.raises((InvalidInput, InvalidType)) as refusal:
        Where.parse(source)
    assert refusal.value.field == "where"


def nested(depth: int) -> dict[str, Any]:
    source: dict[str, Any] = {"a": 1}
    for _ in range(depth - 1):
        source = {"not": source}
    return source


def test_the_greatest_filters_are_taken():
    wide = {"or": [{"a": n} for n in range(MAX_COMPARISONS)]}
    values = {"a": list(range(MAX_VALUES)), "b": {"not_in": list(range(MAX_VALUES))}}
    for source in (nested(MAX_NESTING), wide, values, {".".join("x" * MAX_PATH): 1}):
        assert MemoryFilter(now=NOW, where=Where.parse(source)).where is not None


@pytest.mark.parametrize(
    ("source", "limit"),
    [
        (nested(MAX_NESTING + 1), "16 levels"),
        (nested(5_000), "16 levels"),
        ({"or": [{"a": n} for n in range(MAX_COMPARISONS + 1)]}, "64 comparisons"),
        ({f"k{n}": {"gt": 1, "lt": 5} for n in range(MAX_COMPARISONS // 2 + 1)}, "64 comparisons"),
        ({"and": [{"or": []}] * (MAX_COMPARISONS + 1)}, "64 comparisons"),
        ({"a": list(range(MAX_VALUES + 1))}, "at most 1000"),
        ({"a": {"not_in": list(range(MAX_VALUES + 1))}}, "at most 1000"),
        ({".".join("x" * (MAX_PATH + 1)): 1}, "at most 8"),
    ],
    ids=["deep", "deeper", "wide", "operators", "empty parts", "in", "not in", "path"],
)
def test_a_filter_beyond_a_limit_is_refused_and_the_limit_named(source, limit):
    with pytest.raises(InvalidInput, match=limit) as refusal:
        Where.parse(source)
    assert refusal.value.field == "where"


def test_a_filter_is_measured_wherever_it_comes_from():
    deep: Filter = Where("a").eq(1)
    for _ in range(5_000):
        deep = Not(deep)
    shared: Filter = Or(tuple(Where("a").eq(n) for n in range(10)))
    for _ in range(MAX_NESTING - 2):
        shared = And((shared,) * 10)  # ten parts, each the same: walked one by one it would never end
    wide = Or((Where("a").eq(1),) * (MAX_COMPARISONS + 1))
    for filter in (deep, shared, wide):
        for take in (
            Where.parse,
            lambda part: MemoryFilter(now=NOW, where=part),
            lambda part: Where.parse({"not": part}),
        ):
            with pytest.raises(InvalidInput, match="where"):
                take(filter)
    with pytest.raises(InvalidType, match="where"):
        MemoryFilter(now=NOW, where=And(("a = 1",)))


@given(metadata(), filters())
def test_not_turns_every_truth_around(held, filter):
    assert Not(filter).matches(held) is not filter.matches(held)


@given(metadata(), filters(), filters())
def test_and_or_and_not_keep_de_morgans_law(held, one, other):
    assert Not(And((one, other))).matches(held) == Or((Not(one), Not(other))).matches(held)


@given(metadata(), st.sampled_from(["a", "b"]), st.integers(-2, 2))
def test_a_present_number_is_less_equal_or_greater(held, key, number):
    holds = [Compare((key,), operator, number).matches(held) for operator in (Operator.LT, Operator.EQ, Operator.GT)]
    is_number = isinstance(held.get(key), int | float) and not isinstance(held.get(key), bool)
    assert sum(holds) == is_number


def entry(**fields) -> MemoryEntry:
    return MemoryEntry(id="m1", content="x", created_at=NOW, updated_at=NOW, **fields)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, True),
        ({"expiry": Expiry.EXPIRED}, False),
        ({"now": NOW + timedelta(seconds=1)}, False),
        ({"now": NOW + timedelta(seconds=1), "expiry": Expiry.EXPIRED}, True),
        ({"now": NOW + timedelta(seconds=1), "expiry": Expiry.ANY}, True),
        ({"layers": frozenset({Layer.LONGTERM})}, True),
        ({"layers": frozenset({Layer.GLOBAL})}, False),
        ({"layers": frozenset()}, False),
        ({"tags": ("a", "b")}, True),
        ({"tags": ("a", "c")}, False),
        ({"tags_any": ("c", "b")}, True),
        ({"tags_any": ("c",)}, False),
        ({"min_relevance": 0.5}, True),
        ({"min_relevance": 0.50001}, False),
        ({"created_before": NOW}, False),
        ({"created_before": NOW + timedelta(microseconds=1)}, True),
        ({"updated_before": NOW}, False),
        ({"has_embedding": False}, True),
        ({"has_embedding": True}, False),
        ({"where": Where("n").eq(1)}, True),
        ({"where": Where("n").eq(2)}, False),
    ],
)
def test_all_conditions_must_hold(conditions, expected):
    held = entry(tags=["a", "b"], relevance=0.5, expires_at=NOW + timedelta(seconds=1), metadata={"n": 1})
    filter = replace(MemoryFilter(now=NOW), **conditions)
    assert filter.matches(held) is expected
    assert filter.admits(Scope("default"), held) is expected
    assert filter.admits(Scope("other"), held) is False


@pytest.mark.parametrize(
    "conditions",
    [
        {"now": datetime(2026, 3, 1)},  # noqa: DTZ001 - what is refused
        {"created_before": datetime(2026, 3, 1)},  # noqa: DTZ001 - what is refused
        {"tags": ("a\x00",)},
        {"tags_any": ("\ud83d",)},
        {"tags_any": (1,)},
    ],
)
def test_conditions_that_nothing_could_meet_are_refused(conditions):
    with pytest.raises(InvalidInput) as refusal:
        MemoryFilter(**{"now": NOW, **conditions})
    assert refusal.value.field == next(iter(conditions))
