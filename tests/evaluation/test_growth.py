from __future__ import annotations

from lamina.domain.message import Message, ToolCall
from lamina.domain.message_groups import orphans
from lamina.evaluation.growth import joined, measure_growth
from lamina.evaluation.transcripts import Transcript

TALK = Transcript(
    "t",
    [
        Message.user("Look"),
        Message.assistant("", tool_calls=[ToolCall("c1", "read")]),
        Message.tool("It is green. " * 50, call_id="c1"),
    ],
)


def test_transcripts_are_joined_over_and_over_with_calls_of_their_own():
    messages = joined([TALK, TALK], 10)
    assert len(messages) == 10
    ids = [call.id for message in messages for call in message.tool_calls]
    assert len(set(ids)) == len(ids) == 3
    assert orphans(messages) == []
    assert joined([], 10) == joined([Transcript("empty", [])], 10) == []


async def test_times_are_told_at_each_mark_that_is_reached_for_memory_and_thread():
    figures = await measure_growth(joined([TALK], 60), pre_rot=1_000, marks=(20, 50, 90))
    assert [(each.way, each.messages) for each in figures] == [
        ("memory", 20),
        ("memory", 50),
        ("thread", 20),
        ("thread", 50),
    ]
    assert all(each.median > 0 and each.mean > 0 and each.plain > 0 for each in figures)
    assert all(each.tokens_per_message > 10 for each in figures)
