from datetime import UTC, datetime, timedelta, timezone
from enum import Enum

import pytest

from lamina.domain.document import Document
from lamina.domain.message import ImagePart, Message, OpaquePart, Role, TextPart, ToolCall
from lamina.domain.storable import (
    MAX_DEPTH,
    is_same_event,
    possible_ids,
    storable_document,
    storable_event,
    storable_fold,
    storable_json,
    storable_replacement,
    storable_summary,
    storable_thread,
)
from lamina.domain.thread import Summary, Thread, ThreadEvent
from lamina.errors import InvalidInput, InvalidType

NOW = datetime(2031, 1, 1, tzinfo=UTC)


def event(**fields) -> ThreadEvent:
    return ThreadEvent(Message(**{"role": Role.USER, "content": "x", "id": "m1", "index": 1, **fields}))


def nested(depth: int) -> dict:
    found: dict = {}
    for _ in range(depth):
        found = {"a": found}
    return found


def test_what_is_storable_is_equal_and_shares_nothing():
    given = event(
        content=[TextPart("a", {"k": [1]}), OpaquePart("x", {"k": [1]})],
        tool_calls=[ToolCall("c", "f", extra={"k": [1]})],
        metadata={"k": [1]},
    ).replace(state={"k": [1]})
    kept = storable_event(given)
    assert kept == given
    for each in (
        given.state,
        given.message.metadata,
        given.message.content[0].extra,
        given.message.tool_calls[0].extra,
    ):
        each["k"].append(2)
    assert "[1, 2]" not in repr(kept)


def test_instants_come_back_in_utc():
    there = NOW.astimezone(timezone(timedelta(hours=9)))
    assert storable_event(event(timestamp=there)).message.timestamp.tzinfo is UTC
    assert storable_thread(Thread("t", "acme", there, there)).created_at.tzinfo is UTC
    assert storable_document(Document("d", "acme", "s", there)).ingested_at.tzinfo is UTC


@pytest.mark.parametrize(
    "value",
    [
        {"a": float("inf")},
        {"a": object()},
        {"a": {1}},
        {1: "a"},
        {"a": b"x"},
        {"a\x00": 1, "a\ufffd": 1},
        {"a": 10**5000},
        nested(MAX_DEPTH + 1),
    ],
    ids=["infinite", "object", "set", "key", "bytes", "clash", "digits", "deep"],
)
def test_what_json_cannot_carry_is_refused_and_the_field_is_named(value):
    with pytest.raises(InvalidInput) as refusal:
        storable_json("state", value)
    assert refusal.value.field == "state"


def test_a_value_that_contains_itself_is_refused():
    value: dict = {}
    value["self"] = value
    with pytest.raises(InvalidInput, match="nested deeper"):
        storable_json("state", value)


def test_tuples_become_lists_and_kinds_of_text_become_text():
    kept = storable_json("state", {"a": (1, (Role.USER,)), Role.USER: True})
    assert kept == {"a": [1, ["user"]], "user": True}
    assert {type(each) for each in kept} == {str}
    assert type(kept["a"][1][0]) is str


@pytest.mark.parametrize("value", [None, [], "x", 1], ids=repr)
def test_what_is_no_dict_is_refused(value):
    with pytest.raises(InvalidType):
        storable_json("metadata", value)


@pytest.mark.parametrize(
    "bad",
    [
        event(tool_calls=[{"id": "c"}]),
        event(content=[{"type": "text"}]),
        event(content={"a": 1}),
        event(metadata=[1]),
        event(name=7, content=[TextPart("a", {"k": object()})]),
    ],
    ids=["call", "part", "content", "metadata", "extra"],
)
def test_what_is_no_message_is_refused(bad):
    with pytest.raises((InvalidType, InvalidInput)):
        storable_event(bad)


def test_a_message_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr("lamina.domain.storable.MAX_MESSAGE_BYTES", 1000)
    assert storable_event(event(content="ä" * 300)).message.content == "ä" * 300
    for large in (event(content="ä" * 600), event().replace(state={"a": "x" * 1200})):
        with pytest.raises(InvalidInput, match="bytes"):
            storable_event(large)


@pytest.mark.parametrize("counts", [(1, 3, 4), (1, 0, 0), (3, 2, 0), (0, 1, 0)], ids=str)
def test_a_summary_covers_a_range_that_there_can_be(counts):
    first, last, before = counts
    with pytest.raises(InvalidInput):
        storable_fold(Summary("x", first, last, NOW), before)


def test_a_summary_may_cover_what_the_former_one_did():
    assert storable_fold(Summary("x", 1, 3, NOW), 3) == Summary("x", 1, 3, NOW)


def test_a_summary_of_no_text_is_refused():
    with pytest.raises(InvalidType):
        storable_summary(Summary("x", 1, 1, NOW, facts=[3]))


def test_a_replacement_names_each_index_once():
    with pytest.raises(InvalidInput, match="two of the same index"):
        storable_replacement([event(), event()], [])
    with pytest.raises(InvalidInput, match="index"):
        storable_replacement([], [event(index=0)])


def test_events_are_the_same_if_storage_cannot_tell_them_apart():
    one = event().replace(state={"a": 1, "b": 2})
    assert is_same_event(one, event().replace(state={"b": 2, "a": 1}))
    for other in ({"a": 1.0, "b": 2}, {"a": True, "b": 2}, {"a": 1}):
        assert not is_same_event(one, one.replace(state=other))


def test_one_text_is_no_list_of_ids():
    assert possible_ids(["a", "", "\ud800", "b\x00", 3]) == ["a", ""]
    with pytest.raises(InvalidType):
        possible_ids("abc")


class Colour(str, Enum):  # noqa: UP042 - whose str() is its name
    RED = "red"


def test_a_member_of_an_enumeration_of_texts_is_kept_as_its_text():
    kept = storable_json("metadata", {Colour.RED: [Colour.RED]})
    assert kept == {"red": ["red"]}
    assert {type(each) for each in (*kept, *kept["red"])} == {str}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"name": 7}, "message.name"),
        ({"role": Role.TOOL, "tool_call_id": 7}, "message.tool_call_id"),
        ({"metadata": 5}, "message.metadata"),
        ({"content": [TextPart("a"), TextPart(5)]}, "message.content[1].text"),
        ({"content": [ImagePart(url=b"x")]}, "message"),
        ({"content": [ImagePart(url="x", width=1.5)]}, "message.content[0].width"),
        ({"content": [ImagePart(url="x", height=10**400)]}, "message.content[0].height"),
        ({"content": [TextPart("a", [1])]}, "message.content[0].extra"),
        ({"tool_calls": [ToolCall("c", "f", {"a": 1})]}, "message.tool_calls[0].arguments"),
        ({"tool_calls": [ToolCall("c", "f", None)]}, "message.tool_calls[0].arguments"),
        ({"tool_calls": [ToolCall(5, "f")]}, "message.tool_calls[0].id"),
    ],
    ids=str,
)
def test_a_field_of_another_type_is_refused_by_its_name(fields, named):
    with pytest.raises((InvalidType, InvalidInput)) as caught:
        storable_event(event(**fields))
    assert caught.value.field == named


def test_metadata_of_a_head_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr("lamina.domain.storable.MAX_HEAD_BYTES", 1000)
    with pytest.raises(InvalidInput, match="bytes"):
        storable_thread(Thread("t", "acme", NOW, NOW, metadata={"a": "ä" * 600}))
    with pytest.raises(InvalidInput, match="bytes"):
        storable_document(Document("d", "acme", "s", NOW, metadata={"a": "ä" * 600}))
