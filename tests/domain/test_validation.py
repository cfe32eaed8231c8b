import math
from array import array
from collections import OrderedDict
from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.domain.memory import MemoryEntry
from lamina.domain.validation import (
    MAX_CONTENT_BYTES,
    MAX_COUNT,
    MAX_METADATA_DEPTH,
    check_entry,
    check_instant,
    check_metadata,
    check_ttl,
    check_unit_interval,
    check_vector,
    clean_metadata,
)
from lamina.errors import InvalidInput, InvalidType

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def entry(**fields) -> MemoryEntry:
    return MemoryEntry(**{"id": "m1", "content": "x", "created_at": NOW, "updated_at": NOW, **fields})


def test_an_ordinary_entry_passes():
    check_entry(entry(metadata={"a": [1, {"b": None}]}, tags=["x"], embedding=[0.5], ttl=1, derived_from=["m0"]))


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("id", "", InvalidInput),
        ("owner", "a\x00", InvalidInput),
        ("content", "  ", InvalidInput),
        ("content", "\u200b\ufeff \u2028", InvalidInput),
        ("owner", "\u200b", InvalidInput),
        ("content", "\ud83d", InvalidInput),
        ("content", "é" * (MAX_CONTENT_BYTES // 2 + 1), InvalidInput),
        ("content", 1, InvalidType),
        ("tags", ("a",), InvalidType),
        ("tags", [""], InvalidInput),
        ("metadata", MappingProxyType({}), InvalidType),
        ("layer", "longterm", InvalidInput),
        ("trust", None, InvalidInput),
        ("confidence", math.nan, InvalidInput),
        ("relevance", False, InvalidType),
        ("created_at", datetime(2026, 3, 1), InvalidInput),  # noqa: DTZ001 - what is refused
        ("expires_at", "soon", InvalidType),
        ("embedding", [math.inf], InvalidInput),
        ("embedding", "1", InvalidType),
        ("access_count", True, InvalidType),
        ("access_count", -1, InvalidInput),
        ("access_count", 2**53 + 1, InvalidInput),
        ("revision", 2**63 - 1, InvalidInput),
        ("revision", 0, InvalidInput),
        ("revision", 1.5, InvalidType),
        ("derived_from", "m1", InvalidType),
        ("derived_from", [None], InvalidType),
        ("source", " ", InvalidInput),
        ("ttl", -1, InvalidInput),
    ],
)
def test_a_field_that_cannot_be_kept_is_refused_and_named(field, value, error):
    with pytest.raises(error) as refusal:
        check_entry(entry(**{field: value}))
    assert refusal.value.field == field
    assert str(refusal.value).startswith(f"{field}: ")


def test_the_greatest_counts_pass():
    check_entry(entry(access_count=MAX_COUNT, revision=MAX_COUNT))


@pytest.mark.parametrize(
    ("value", "expected"), [(None, None), (0.001, 0.001), (1, 1.0), (0.5, 0.5), (timedelta(minutes=1), 60.0)]
)
def test_a_time_to_live_is_none_seconds_or_a_timedelta(value, expected):
    assert check_ttl(value) == expected


@pytest.mark.parametrize("value", [0, -1, 5e-324, 0.0009, math.nan, math.inf, 1e11, timedelta(0), "1", True])
def test_another_time_to_live_is_refused(value):
    with pytest.raises((InvalidInput, InvalidType), match="ttl"):
        check_ttl(value)


def test_a_unit_interval_includes_its_ends():
    assert [check_unit_interval("x", value) for value in (0, 0.5, 1)] == [0.0, 0.5, 1.0]
    for value in (-1e-9, 1.000001, math.nan, None, "1", True):
        with pytest.raises((InvalidInput, InvalidType)):
            check_unit_interval("x", value)


def test_an_instant_comes_back_in_utc():
    there = datetime(2026, 3, 1, 9, tzinfo=timezone(timedelta(hours=2)))
    assert check_instant("x", there).isoformat() == "2026-03-01T07:00:00+00:00"


def test_an_instant_outside_the_years_of_utc_is_refused():
    early = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    with pytest.raises(InvalidInput, match="outside the years"):
        check_instant("x", early)


@pytest.mark.parametrize("vector", [[1.0], [0, -1], (1e38, 1e-38), [(2 - 2**-23) * 2.0**127]])
def test_vectors_of_32_bits_pass(vector):
    check_vector(vector)


@pytest.mark.parametrize(
    "vector",
    [
        *([], [math.nan], [1.0, -math.inf], [3.5e38], [1e300], ["1"], [None], None, 1.0, 1j),
        *(array(kind, [1.0, wrong]) for kind in "fd" for wrong in (math.nan, math.inf, -math.inf)),
        *(array("f"), array("f", [math.inf, -math.inf]), array("d", [1e300])),
    ],
)
def test_other_vectors_are_refused(vector):
    with pytest.raises((InvalidInput, InvalidType), match="embedding"):
        check_vector(vector)


@pytest.mark.parametrize(
    "value", [2**63, -(2**63) - 1, math.nan, (1,), {1}, b"x", NOW, {1: 2}, {"a\x00": 1}, "\ud83d", object()]
)
def test_metadata_that_json_cannot_carry_is_refused_at_its_place(value):
    with pytest.raises(InvalidInput, match=r"metadata\.a\[1\]"):
        check_metadata({"a": [0, value]})


def test_metadata_is_as_deep_as_it_may_be_and_no_deeper():
    deep: dict = {}
    for _ in range(MAX_METADATA_DEPTH):
        check_metadata(deep)
        deep = {"a": deep}
    with pytest.raises(InvalidInput, match="nested deeper"):
        check_metadata({"a": {"a": deep}})


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=5),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=3))
def test_metadata_that_is_cleaned_passes(metadata):
    cleaned = clean_metadata(metadata)
    check_metadata(cleaned)
    assert clean_metadata(cleaned) == cleaned


def test_cleaning_makes_dicts_and_lists_and_leaves_the_rest_to_the_check():
    odd = object()
    source = MappingProxyType({"a\x00": ("x\ud83d", OrderedDict(b=odd))})
    assert clean_metadata(source) == {"a\ufffd": ["x\ufffd", {"b": odd}]}


@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: {"in": [value]}])
def test_keys_that_would_become_one_are_refused_and_none_is_lost(wrap):
    with pytest.raises(InvalidInput, match="metadata: two keys"):
        clean_metadata(wrap({"a\0": 1, "a\ufffd": 2}))
    assert clean_metadata(wrap({"a\0": 1, "b\0": 2})) == wrap({"a\ufffd": 1, "b\ufffd": 2})
