"""What models of requests refuse."""

from __future__ import annotations

from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from lamina.domain.memory import Layer
from lamina.domain.text import check_name
from lamina.errors import InvalidInput
from lamina.server.wire.strict import BY_VALUE, Flag, Integer, JsonObject, Moment, Name, StrictBody, Unit


class Body(StrictBody):
    name: Name = "a"
    count: Integer = 0
    share: Unit = 0
    at: Moment | None = None
    layer: Annotated[Layer, BY_VALUE] = Layer.LONGTERM
    layers: list[Annotated[Layer, BY_VALUE]] | None = None
    metadata: JsonObject | None = None
    on: bool = False


def read(**fields):
    return TypeAdapter(Body).validate_python(fields)


def nested(levels):
    value = {}
    for _ in range(levels - 1):
        value = {"a": [value]} if levels % 2 else {"a": value}
    return value


def test_what_is_right_is_taken():
    body = read(share=1, at="2026-01-31T10:00:00+02:00", layer="working", layers=["global"], metadata={"a": [1, None]})
    assert (body.share, body.layer, body.layers) == (1.0, Layer.WORKING, [Layer.GLOBAL])
    assert body.at.utcoffset().total_seconds() == 7200


@pytest.mark.parametrize(
    "fields",
    [
        {"unknown": 1},
        {"count": "1"},
        {"count": True},
        {"count": 1.5},
        {"count": 2**63},
        {"count": -(2**63) - 1},
        {"share": "0.5"},
        {"share": float("nan")},
        {"share": float("inf")},
        {"share": 1.01},
        {"at": 0},
        {"at": "0"},
        {"at": "1767225600.5"},
        {"at": "2026-01-31T10:00:00"},
        {"layer": "nowhere"},
        {"layers": "global"},
        {"metadata": []},
        {"metadata": nested(33)},
        {"on": "true"},
        {"on": 1},
        {"name": ""},
        {"name": " \u200b"},
        {"name": "a\0b"},
        {"name": "a" * 513},
    ],
    ids=str,
)
def test_what_is_wrong_is_refused_and_its_field_named(fields):
    with pytest.raises(ValidationError) as refused:
        read(**fields)
    assert refused.value.errors()[0]["loc"][0] == next(iter(fields))


def test_a_number_without_a_fraction_is_whole_however_it_is_written():
    body = read(count=3.0, share=1.0, metadata={"a": 1.0})
    assert (body.count, type(body.count), type(body.share), type(body.metadata["a"])) == (3, int, float, float)


def test_metadata_may_be_as_deep_as_is_said():
    assert read(metadata=nested(32)).metadata


@given(st.text(max_size=4))
def test_a_name_is_taken_exactly_where_the_library_takes_it(text):
    try:
        check_name("name", text)
    except InvalidInput:
        with pytest.raises(ValidationError):
            read(name=text)
    else:
        assert read(name=text).name == text


@pytest.mark.parametrize(("text", "value"), [("true", True), ("false", False)])
def test_a_switch_in_a_query_is_true_or_false(text, value):
    assert TypeAdapter(Flag).validate_python(text) is value


@pytest.mark.parametrize("text", ["1", "on", "yes", "True", ""])
def test_other_spellings_of_a_switch_are_refused(text):
    with pytest.raises(ValidationError):
        TypeAdapter(Flag).validate_python(text)
