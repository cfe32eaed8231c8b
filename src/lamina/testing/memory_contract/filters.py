"""Filters agree with the reference in `lamina.domain.filters`, in every read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.domain.filters import And, Compare, Expiry, Filter, MemoryFilter, Not, Operator, Or, Where
from lamina.domain.memory import Layer, MemoryEntry
from lamina.domain.scope import Scope
from lamina.errors import Unsupported
from lamina.ports.memory_adapter import Capability, MemoryAdapter, Order
from lamina.testing.memory_contract.material import (
    MINE,
    NOW,
    by_text,
    by_vector,
    ids,
    listed,
    memory,
    needs,
    second,
    where,
)

__all__ = ["CONDITIONS", "WHERES", "FilterContract", "filters", "metadata"]

METADATA: Final[dict[str, dict[str, Any]]] = {
    "m1": {"n": 9, "kind": "fact", "tags": ["red", "blue"], "geo": {"city": "Izmir"}, "done": True, "big": 2**53 + 1},
    "m2": {"n": 10, "kind": "event", "tags": ["red"], "geo.city": "Bursa", "done": False, "big": 2**53},
    "m3": {"n": 10.0, "kind": "Fact", "tags": [], "geo": {"city": None}, "done": 1, "big": 2**63 - 1},
    "m4": {"n": "10", "kind": "fact ", "tags": [1, True, None], "geo": "Izmir", "done": 0, "big": -(2**63)},
    "m5": {"n": -1e3, "kind": "", "tags": "red, blue", "geo": [{"city": "Izmir"}], "done": None, "big": 1e300},
    "m6": {"n": None, "kind": "50% off_now", "tags": {"red": 1}, "note": "caf\u00e9", "a'b": {'c"d': 1}},
    "m7": {"n": [10], "kind": "500 off now", "tags": [["red"]], "note": "cafe\u0301", "items": ["x", "y"]},
    "m8": {"n": True, "kind": "\U0001f600", "tags": [1.5, "a%b"], "note": "CAF\u00c9", "$": {"[0]": 1}, "and": 1},
    "m9": {"kind": "\uffff", "n": 0.1, "note": "null", "items": {"0": "x"}, "a b-c": 2, "": 1},
    "m10": {},
}

WHERES: Final[dict[str, Filter]] = {
    "a whole number equals a float": Where("n").eq(10),
    "a float equals a whole number": Where("n").eq(10.0),
    "a fraction": Where("n").eq(0.1),
    "a negative number": Where("n").eq(-1000),
    "numbers compare as numbers": Where("n").gt(9),
    "at least": Where("n").gte(10),
    "less, negative too": Where("n").lt(9),
    "at most": Where("n").lte(9),
    "a number is not its text": Where("n").eq("10"),
    "not equal, and present": Where("n").ne(10),
    "not equal to a text": Where("n").ne("10"),
    "not equal to null": Where("n").ne(None),
    "null": Where("n").eq(None),
    "true is not one": Where("n").eq(True),
    "one is not true": Where("done").eq(1),
    "false is not zero": Where("done").eq(False),
    "zero is not false": Where("done").eq(0),
    "zero or more holds for no bool": Where("done").gte(0),
    "whole numbers beyond 53 bits": Where("big").eq(2**53 + 1),
    "whole numbers beyond 53 bits, ordered": Where("big").gt(2**53),
    "beyond 53 bits against a float": Where("big").gt(float(2**53)),
    "the greatest whole number": Where("big").gte(2**63 - 1),
    "the least whole number": Where("big").lte(-(2**63)),
    "text is exact": Where("kind").eq("fact"),
    "text not equal": Where("kind").ne("fact"),
    "empty text": Where("kind").eq(""),
    "text after": Where("kind").gt("fact"),
    "text before, by code point": Where("kind").lt("\uffff"),
    "text after, by code point": Where("kind").gte("\U0001f600"),
    "upper before lower case": Where("kind").lt("a"),
    "composed is not decomposed": Where("note").eq("caf\u00e9"),
    "decomposed is not composed": Where("note").eq("cafe\u0301"),
    "text that spells null": Where("note").eq("null"),
    "in": Where("n").is_in([9, "10", None]),
    "in, kinds apart": Where("done").is_in([1, False]),
    "in nothing": Or((Where("n").is_in([]), Where("n").eq(9))),
    "in many": Where("n").is_in([*range(1_000)]),
    "not in": Where("n").not_in([9, 10, None]),
    "not in nothing": Where("n").not_in([]),
    "contains an element": Where("tags").contains("red"),
    "contains a number": Where("tags").contains(1),
    "contains a bool": Where("tags").contains(True),
    "contains null": Where("tags").contains(None),
    "contains a fraction": Where("tags").contains(1.5),
    "contains text with a wildcard": Where("tags").contains("a%b"),
    "contains a part": Where("kind").contains("off"),
    "contains a part, case counts": Where("kind").contains("Fa"),
    "contains a percent sign": Where("kind").contains("50%"),
    "contains an underscore": Where("kind").contains("off_"),
    "contains the empty text": Where("kind").contains(""),
    "contains in a composed text": Where("note").contains("\u00e9"),
    "exists": Where("n").exists(),
    "exists as a list or object": Where("tags").exists(),
    "does not exist": Where("note").exists(False),
    "a path": Where("geo.city").eq("Izmir"),
    "a path to null": Where("geo.city").eq(None),
    "a path to null exists": Where("geo.city").exists(),
    "a path that is not there": Where("geo.city").exists(False),
    "a key with a dot": Where(("geo.city",)).eq("Bursa"),
    "lists are not entered": Where(("items", "0")).eq("x"),
    "an object's key that is a number": Where(("items", "0")).exists(),
    "keys with quotes": Where(("a'b", 'c"d')).eq(1),
    "keys that look like paths": Where(("$", "[0]")).eq(1),
    "a key with a space and a hyphen": Where("a b-c").gt(1),
    "a key that is a word of the parser": Where("and").eq(1),
    "an object equals nothing": Where("geo").ne("Izmir"),
    "a list is in nothing": Where("tags").not_in(["red"]),
    "not": Not(Where("n").eq(10)),
    "not, of an order": Not(Where("n").gt(9)),
    "not, of contains": Not(Where("tags").contains("red")),
    "not, twice": Not(Not(Where("n").gt(9))),
    "and": And((Where("n").gte(9), Where("done").eq(True))),
    "or": Or((Where("n").eq(9), Where("note").exists())),
    "and of nothing": And((And(()), Where("n").eq(9))),
    "or of nothing": Or((Or(()), Where("n").eq(9))),
    "not of or of nothing": And((Not(Or(())), Where("n").eq(9))),
    "nested": And((Or((Where("n").gt(5), Where("n").eq(None))), Not(And((Where("done").eq(True), Where("n").eq(9)))))),
    "many parts": Or(tuple(Where("n").eq(number) for number in range(10, 74))),
    "de Morgan": Not(Or((Where("n").eq(9), Where("geo.city").eq(None), Where("note").contains("caf")))),
}

CONDITIONS: Final[dict[str, dict[str, Any]]] = {
    "one layer": {"layers": frozenset({Layer.SESSION})},
    "several layers": {"layers": frozenset({Layer.SESSION, Layer.GLOBAL})},
    "a tag": {"tags": ("red",)},
    "all tags": {"tags": ("red", "blue")},
    "any tag": {"tags_any": ("blue", "green")},
    "tags of both kinds": {"tags": ("red",), "tags_any": ("blue", "green")},
    "a tag, case counts": {"tags": ("Red",)},
    "a tag with wildcards": {"tags": ("re%",)},
    "a tag with a separator": {"tags": ("a,b",)},
    "a tag with a quote": {"tags_any": ('"q"', "none")},
    "relevance, inclusive": {"min_relevance": 0.3},
    "confidence, inclusive": {"min_confidence": 0.7},
    "created, strictly before": {"created_before": second(3)},
    "updated, strictly before": {"updated_before": second(0.000002)},
    "with a vector": {"has_embedding": True},
    "without a vector": {"has_embedding": False},
    "expired": {"expiry": Expiry.EXPIRED},
    "live": {"expiry": Expiry.LIVE},
    "live at another instant": {"now": second(100), "expiry": Expiry.LIVE},
    "expired at another instant": {"now": second(100), "expiry": Expiry.EXPIRED},
    "current": {"current": True},
    "current at another instant": {"now": second(100), "current": True},
    "live and current": {"expiry": Expiry.LIVE, "current": True},
    "current, and another condition": {"current": True, "tags_any": ("red", "blue", "green", "q")},
    "several conditions": {"tags": ("red",), "min_relevance": 0.1, "created_before": second(8)},
    "several more": {"layers": frozenset({Layer.LONGTERM, Layer.SESSION}), "has_embedding": True, "tags_any": ("red",)},
}

TAGS: Final[tuple[list[str], ...]] = (
    ["red"],
    ["red", "blue"],
    ["Red"],
    ["re%"],
    ["a,b"],
    ['"q"'],
    ["a", "b"],
    ["green", "reds"],
    [],
    ["q"],
)


VALID_UNTIL: Final = {3: second(-1), 5: NOW, 6: second(500), 7: second(0.000001), 9: second(200)}


def _memories() -> list[MemoryEntry]:
    """Ten entries that differ in everything a filter looks at; a search finds all, or all with a vector."""
    layers = [Layer.LONGTERM, Layer.SESSION, Layer.GLOBAL, Layer.WORKING, Layer.ORGANIZATIONAL]
    return [
        memory(
            id,
            f"the harbour lamp number {number}",
            metadata=METADATA[id],
            tags=TAGS[number],
            layer=layers[number % 5],
            relevance=number / 10,
            confidence=1 - number / 10,
            created_at=second(number),
            updated_at=second(number / 1_000_000),
            embedding=[1.0, float(number)] if number % 3 else None,
            expires_at=second(number * 50 - 200) if number % 4 == 0 else None,
            valid_until=VALID_UNTIL.get(number),
            superseded_by="m9" if number in {1, 6} else None,
        )
        for number, id in enumerate(METADATA)
    ]


class FilterContract:
    """Every filter means what the reference says, wherever it is used."""

    @pytest.mark.parametrize("filter", WHERES.values(), ids=WHERES)
    async def test_a_metadata_filter_agrees_with_the_reference(self, adapter: MemoryAdapter, filter: Filter) -> None:
        needs(adapter, Capability.FILTER)
        await _check(adapter, where(filter, expiry=Expiry.ANY))

    @pytest.mark.parametrize("conditions", CONDITIONS.values(), ids=CONDITIONS)
    async def test_a_condition_agrees_with_the_reference(
        self, adapter: MemoryAdapter, conditions: dict[str, Any]
    ) -> None:
        await _check(adapter, MemoryFilter(**{"now": NOW, "expiry": Expiry.ANY, **conditions}))

    async def test_a_metadata_filter_and_conditions_hold_together(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.FILTER)
        await _check(adapter, where(Where("kind").contains("a"), tags_any=("red", "Red", "re%"), min_relevance=0.1))

    @settings(
        max_examples=60,
        deadline=None,
        suppress_health_check=[
            HealthCheck.differing_executors,  # one contract, many adapters: that is the point
            HealthCheck.function_scoped_fixture,
            HealthCheck.too_slow,
        ],
    )
    @given(data=st.data())
    async def test_random_filters_agree_with_the_reference(self, adapter: MemoryAdapter, data: st.DataObject) -> None:
        needs(adapter, Capability.FILTER)
        scope = Scope(f"example {next(_EXAMPLES)}")
        objects = data.draw(st.lists(metadata(), min_size=1, max_size=5))
        entries = [memory(f"m{number}", tenant=scope.tenant, metadata=each) for number, each in enumerate(objects)]
        await adapter.store_many(scope, entries)
        for filter in data.draw(st.lists(filters(), min_size=1, max_size=6)):
            gap = adapter.filter_gap(filter)
            if gap is not None:
                await _check_refused(adapter, where(filter), gap)
                continue
            expected = [entry.id for entry in entries if filter.matches(entry.metadata)]
            assert ids(await listed(adapter, scope, where(filter))) == expected, filter
            assert await adapter.count(scope, where(filter)) == len(expected), filter


_EXAMPLES: Final = count()


async def _check(adapter: MemoryAdapter, filter: MemoryFilter) -> None:
    """Every read finds what the reference admits, which is some of the memories and not all of them."""
    memories = _memories()
    expected = [entry for entry in memories if filter.matches(entry)]
    assert 0 < len(expected) < len(memories), "this filter cannot tell a right store from a wrong one"
    await adapter.store_many(MINE, memories)
    gap = None if filter.where is None else adapter.filter_gap(filter.where)
    if gap is not None:
        await _check_refused(adapter, filter, gap)
        pytest.xfail(gap)
    assert ids(await listed(adapter, MINE, filter)) == ids(expected)
    assert sorted(ids(await listed(adapter, MINE, filter, order=Order.RELEVANCE))) == sorted(ids(expected))
    assert await adapter.count(MINE, filter) == len(expected)
    if Capability.TEXT in adapter.capabilities:
        assert sorted(ids(await by_text(adapter, "harbour", MINE, filter))) == sorted(ids(expected))
    if Capability.VECTOR in adapter.capabilities:
        with_vector = sorted(entry.id for entry in expected if entry.embedding is not None)
        assert sorted(ids(await by_vector(adapter, [1.0, 0.5], MINE, filter))) == with_vector


async def _check_refused(adapter: MemoryAdapter, filter: MemoryFilter, gap: str) -> None:
    """Every read refuses the condition and says why; none drops it."""
    reads: list[Callable[[], Awaitable[object]]] = [
        lambda: listed(adapter, MINE, filter),
        lambda: listed(adapter, MINE, filter, order=Order.RELEVANCE),
        lambda: adapter.count(MINE, filter),
    ]
    if Capability.TEXT in adapter.capabilities:
        reads.append(lambda: by_text(adapter, "harbour", MINE, filter))
    if Capability.VECTOR in adapter.capabilities:
        reads.append(lambda: by_vector(adapter, [1.0, 0.5], MINE, filter))
    for read in reads:
        with pytest.raises(Unsupported) as refusal:
            await read()
        assert refusal.value.remedy == gap


_KEYS: Final = st.sampled_from(["a", "b", "a.b", "é", "'", '"', "$", "0", "_", "A"])
_TEXTS: Final = st.one_of(
    st.sampled_from(
        ["", "a", "A", "aa", "a%", "_", "1", "1.0", "true", "null", "é", "e\u0301", "\uffff", "\U0001f600"]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=3),
)
_NUMBERS: Final = st.one_of(
    st.integers(-2, 2),
    st.sampled_from([2**53, 2**53 + 1, 2**63 - 1, -(2**63), 0.0, -0.0, 1.0, 0.1, 0.5, 1e15, float(2**53), 1e300]),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
)
_SCALARS: Final = st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXTS)


def metadata() -> st.SearchStrategy[dict[str, Any]]:
    """Small objects over few keys, so that random filters often meet something."""
    values = st.recursive(
        _SCALARS,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=3)),
        max_leaves=5,
    )
    return st.dictionaries(_KEYS, values, max_size=4)


def filters() -> st.SearchStrategy[Filter]:
    """Trees of comparisons over the same keys and values."""
    paths = st.lists(_KEYS, min_size=1, max_size=2).map(tuple)
    ordered = st.sampled_from([Operator.GT, Operator.GTE, Operator.LT, Operator.LTE])
    listed_operators = st.sampled_from([Operator.IN, Operator.NOT_IN])
    compares: st.SearchStrategy[Filter] = st.one_of(
        st.builds(Compare, paths, st.sampled_from([Operator.EQ, Operator.NE, Operator.CONTAINS]), _SCALARS),
        st.builds(Compare, paths, ordered, st.one_of(_NUMBERS, _TEXTS)),
        st.builds(Compare, paths, listed_operators, st.lists(_SCALARS, max_size=3).map(tuple)),
        st.builds(Compare, paths, st.just(Operator.EXISTS), st.booleans()),
    )
    return st.recursive(
        compares,
        lambda inner: st.one_of(
            st.builds(Not, inner),
            st.builds(And, st.lists(inner, max_size=3).map(tuple)),
            st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
        ),
        max_leaves=4,
    )
