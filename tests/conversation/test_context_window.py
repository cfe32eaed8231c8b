from __future__ import annotations

import pytest

from lamina.conversation.context_window import fit, fit_messages, partners, without_orphans
from lamina.domain.message import Message, Role, ToolCall
from lamina.errors import ContextOverflowError

ONE = 5  # a word and the four around a message


def count(text):
    return len(text.split())


def call(*ids):
    return Message.assistant("", tool_calls=[ToolCall(id, "", "") for id in ids])


def test_the_newest_that_fit_stay_in_order():
    messages = [Message.user(text) for text in "abcd"]
    assert fit(messages, 2 * ONE, count) == [2, 3]
    assert fit(messages, 4 * ONE, count) == [0, 1, 2, 3]
    assert fit(messages, 4, count) == []
    assert fit([], 5, count) == []


def test_system_messages_stay_wherever_they_stand():
    messages = [Message.system("s"), *[Message.user("u")] * 3, Message.system("t"), Message.user("v")]
    assert fit(messages, 3 * ONE, count) == [0, 4, 5]
    with pytest.raises(ContextOverflowError):
        fit(messages, 2 * ONE - 1, count)


def test_a_call_and_its_parallel_results_are_kept_or_dropped_together():
    messages = [Message.user("u"), call("a", "b"), Message.tool("x", call_id="a"), Message.tool("y", call_id="b")]
    sizes = 4 + 8 + ONE + ONE
    assert fit(messages, sizes - 1, count) == []
    assert fit(messages, sizes, count) == [1, 2, 3]


def test_where_messages_are_left_out_a_user_speaks_first():
    messages = [Message.user("u"), *[Message.assistant("a b c d e f g h i j k l m n o p")] * 3]
    kept = fit_messages(messages, 40, count)
    assert [message.role for message in kept] == [Role.USER, Role.ASSISTANT]
    assert kept[0].text == "[3 earlier messages are left out here.]"
    assert fit_messages(messages, 1_000, count) == messages


def test_a_result_without_its_call_is_quoted():
    lost = Message.tool("21 degrees", call_id="gone").replace(name="get_weather")
    (quoted,) = without_orphans([lost])
    assert (quoted.role, quoted.tool_call_id) == (Role.USER, None)
    assert "get_weather" in quoted.text
    assert "21 degrees" in quoted.text
    pair = [call("a"), Message.tool("x", call_id="a")]
    assert without_orphans(pair) == pair


def placed(*messages):
    return [message.replace(id=f"m{index}", index=index) for index, message in enumerate(messages, start=1)]


def test_partners_are_the_call_and_all_of_its_results_and_no_others():
    messages = placed(call("a", "b"), Message.tool("x", call_id="a"), Message.tool("y", call_id="b"), Message.user("u"))
    for message in messages[:3]:
        assert partners(messages, message) == {"m1", "m2", "m3"}
    again = placed(call("a"), Message.tool("x", call_id="a"), call("a"), Message.tool("y", call_id="a"))
    assert partners(again, again[0]) == {"m1", "m2"}
    assert partners(again, again[3]) == {"m3", "m4"}
    (alone,) = placed(Message.tool("x", call_id="gone"))
    assert partners([alone], alone) == {"m1"}
