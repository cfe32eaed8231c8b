import json
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from lamina.domain.message import (
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    ReasoningPart,
    Role,
    TextPart,
    ToolCall,
)
from lamina.domain.message_json import canonical_json, message_from_json, message_to_json, part_from_json, part_to_json

TEXT = st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
EXTRA = st.dictionaries(TEXT | st.sampled_from(["type", "text", "id", "role", "extra"]), JSON, max_size=3)
MAYBE = st.none() | TEXT
SIZE = st.none() | st.integers(0, 5000)
PARTS = st.one_of(
    st.builds(TextPart, TEXT, EXTRA),
    st.builds(ImagePart, MAYBE, MAYBE, MAYBE, SIZE, SIZE, st.sampled_from(["auto", "low", "high"]), EXTRA),
    st.builds(FilePart, MAYBE, MAYBE, MAYBE, MAYBE, MAYBE, EXTRA),
    st.builds(ReasoningPart, TEXT, EXTRA),
    st.builds(OpaquePart, st.sampled_from(["text", "opaque", "video"]) | TEXT, EXTRA),
)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(Role),
    content=TEXT | st.lists(PARTS, max_size=3),
    id=TEXT,
    timestamp=st.none() | st.datetimes().map(lambda instant: instant.replace(tzinfo=UTC, fold=0)),
    index=st.integers(0, 2**31),
    name=MAYBE,
    tool_calls=st.lists(st.builds(ToolCall, TEXT, TEXT, TEXT, EXTRA), max_size=2),
    tool_call_id=MAYBE,
    metadata=EXTRA,
    parent=MAYBE,
    extra=EXTRA,
)


@given(MESSAGES)
def test_what_was_written_is_read_back_through_json_text(message):
    back = message_from_json(json.loads(json.dumps(message_to_json(message))))
    assert back == message
    assert repr(back) == repr(message)  # which tells 1, 1.0 and True apart


def test_what_is_empty_is_not_written():
    assert message_to_json(Message.user("hello")) == {"role": "user", "content": "hello"}
    assert part_to_json(ImagePart(url="u")) == {"type": "image", "url": "u"}


def test_an_instant_comes_back_the_same_in_utc():
    there = datetime(2030, 5, 4, 3, 2, 1, 7, tzinfo=timezone(timedelta(hours=-5)))
    back = message_from_json(message_to_json(Message(Role.USER, "x", timestamp=there)))
    assert (back.timestamp, back.timestamp.tzinfo) == (there, UTC)


def test_keys_of_a_newer_version_are_carried_in_extra():
    data = {"role": "user", "content": [], "mood": "calm", "extra": {"cache": 1}, "tool_calls": []}
    assert message_from_json(data).extra == {"mood": "calm", "cache": 1}
    call = {"id": "c", "name": "f", "arguments": "{}", "urgent": True}
    assert message_from_json({**data, "tool_calls": [call]}).tool_calls == [ToolCall("c", "f", extra={"urgent": True})]
    assert part_from_json({"type": "text", "text": "a", "tone": "low"}) == TextPart("a", {"tone": "low"})


def test_a_part_of_an_unknown_type_is_kept_whole():
    data = {"type": "hologram", "url": "u", "extra": {"a": 1}}
    part = part_from_json(data)
    assert part == OpaquePart("hologram", {"url": "u", "extra": {"a": 1}})
    assert part_from_json(part_to_json(part)) == part


def test_canonical_text_does_not_depend_on_the_order_of_keys_but_tells_types_apart():
    assert canonical_json({"a": 1, "b": [True]}) == canonical_json({"b": [True], "a": 1})
    assert len({canonical_json({"a": value}) for value in (1, 1.0, True, "1")}) == 4
