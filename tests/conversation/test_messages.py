from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lamina.domain.message import ImagePart, Message, Role, TextPart, ToolCall
from lamina.errors import InvalidInput, InvalidType


async def test_messages_in_the_shape_of_openai_are_taken_with_parts_calls_and_results(manager):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}}
    call = {"id": "c1", "type": "function", "function": {"name": "weigh", "arguments": '{"crate": 1}'}}
    await manager.add_messages(
        "t",
        [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]},
            {"role": "assistant", "content": None, "tool_calls": [call, {**call, "id": "c2"}]},
            {"role": "tool", "tool_call_id": "c2", "content": "two"},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "one"}]},
            {"role": "assistant", "content": "", "refusal": "I will not say."},
        ],
    )
    system, user, calling, two, one, refusal = (await manager.get_thread_context("t")).messages
    assert (system.role, system.text) == (Role.SYSTEM, "Be brief.")
    assert isinstance(user.content[1], ImagePart)
    assert user.content[1].data == "aGk="
    assert calling.tool_calls == [ToolCall("c1", "weigh", '{"crate": 1}'), ToolCall("c2", "weigh", '{"crate": 1}')]
    assert (two.tool_call_id, one.content) == ("c2", [TextPart("one")])
    assert refusal.extra["refusal"] == "I will not say."


async def test_a_mapping_may_bring_an_id_a_time_and_metadata_of_our_own(manager):
    own = {"id": "m1", "timestamp": "2026-03-01T10:00:00+02:00", "metadata": {"a": 1}}
    (kept,) = await manager.add_messages("t", [{"role": "user", "content": "Hi", **own}])
    assert (kept.id, kept.metadata, kept.extra) == ("m1", {"a": 1}, {})
    assert kept.timestamp == datetime(2026, 3, 1, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        ([{"role": "user", "content": "x"}, {"role": "narrator", "content": "x"}], "messages[1].role"),
        ([{"role": "user", "content": "x"}, {"content": "x"}], "messages[1].role"),
        ([{"role": "user", "content": ""}], "content"),
        ([{"role": "user", "content": None, "note": "x"}], "content"),
        ([{"role": "assistant", "content": None, "refusal": None}], "content"),
        ([{"role": "tool", "content": "x"}], "messages[0].tool_call_id"),
        ([{"role": "user", "content": "x", "id": ""}], "messages[0].id"),
        ([{"role": "user", "content": "x", "timestamp": "soon"}], "messages[0].timestamp"),
        ([{"role": "user", "content": "x", "metadata": ["x"]}], "messages[0].metadata"),
        ([{"role": "user", "content": "x", "id": "a"}, {"role": "user", "content": "y", "id": "a"}], "messages"),
        ([{"role": "assistant", "content": "", "tool_calls": [{"id": "a"}]}], "messages[0].tool_calls[0].function"),
    ],
)
async def test_a_mapping_that_is_no_message_is_refused_by_its_place(manager, messages, field):
    with pytest.raises((InvalidInput, InvalidType)) as caught:
        await manager.add_messages("t", messages)
    assert caught.value.field == field
    assert caught.value.remedy
    assert await manager.retrieve("t") is None


@pytest.mark.parametrize("messages", [None, 7, {"role": "user", "content": "x"}, Message.user("x"), [7], ["x"], [None]])
async def test_what_is_no_list_of_messages_is_refused(manager, messages):
    with pytest.raises(InvalidType):
        await manager.add_messages("t", messages)


async def test_a_time_of_the_callers_own_is_kept_in_utc_and_one_without_a_zone_is_read_as_utc(manager, clock):
    stamps = [datetime(2026, 3, 1, 9, tzinfo=UTC), datetime(2026, 3, 1, 9), None]  # noqa: DTZ001 - that is tested
    kept = await manager.add_messages("t", [Message.user("x").replace(timestamp=stamp) for stamp in stamps])
    assert [message.timestamp for message in kept] == [stamps[0], stamps[0], clock.now]


async def test_calls_may_be_given_as_mappings(manager):
    call = {"id": "c", "type": "function", "function": {"name": "weigh", "arguments": "{}"}}
    kept = await manager.add_message_to_thread("t", "assistant", "", tool_calls=[call, ToolCall("d", "weigh")])
    assert kept.tool_calls == [ToolCall("c", "weigh", "{}"), ToolCall("d", "weigh")]
    for calls in ("c", {"id": "c"}, 7, [7]):
        with pytest.raises((InvalidType, InvalidInput)):
            await manager.add_message_to_thread("t", "assistant", "", tool_calls=calls)


async def test_what_is_returned_is_the_callers_own(manager):
    given = Message.user("Hello").replace(metadata={"a": [1]})
    (kept,) = await manager.add_messages("t", [given])
    given.metadata["a"].append(2)
    kept.metadata["a"].append(3)
    assert (await manager.history("t"))[0].metadata == {"a": [1]}
