from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.domain.message import Message, Role, ToolCall
from lamina.domain.message_groups import atomic_groups, orphans, sendable


def calls(*ids: str, text: str = "") -> Message:
    return Message.assistant(text, tool_calls=[ToolCall(id, "look") for id in ids])


def result(id: str, text: str = "found") -> Message:
    return Message.tool(text, call_id=id)


USER = Message.user("hello")
SAID = Message.assistant("good day")


@pytest.mark.parametrize(
    ("messages", "groups"),
    [
        ([], []),
        ([USER, SAID], [[0], [1]]),
        ([USER, calls("a"), result("a"), SAID], [[0], [1, 2], [3]]),
        ([calls("a", "b", "c"), result("b"), result("a"), result("c"), USER], [[0, 1, 2, 3], [4]]),
        ([calls("a"), USER, result("a"), USER], [[0, 1, 2], [3]]),
        ([calls("a"), calls("b"), result("a"), result("b")], [[0, 1, 2, 3]]),
        ([calls("a"), result("a"), calls("a"), result("a")], [[0, 1], [2, 3]]),
        ([result("gone"), USER], [[0], [1]]),
        ([calls("a"), USER], [[0], [1]]),
        ([USER, calls("a", "b"), result("a")], [[0], [1, 2]]),
    ],
)
def test_a_call_and_its_results_are_one_group(messages, groups):
    assert [list(group) for group in atomic_groups(messages)] == groups


@pytest.mark.parametrize(
    ("messages", "places"),
    [
        ([USER, calls("a"), result("a")], []),
        ([result("a"), calls("a")], [0]),
        ([calls("a"), result("b"), result("a")], [1]),
        ([Message(Role.TOOL, "no id")], [0]),
        ([Message(Role.USER, "not a result", tool_call_id="x")], []),
    ],
)
def test_a_result_without_a_call_before_it_is_an_orphan(messages, places):
    assert orphans(messages) == places


MESSAGES = st.lists(
    st.one_of(
        st.sampled_from([USER, SAID, Message.system("be brief")]),
        st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True).map(lambda ids: calls(*ids)),
        st.sampled_from("abcd").map(result),
    ),
    max_size=14,
)


@given(MESSAGES)
def test_the_groups_cover_all_messages_in_order_without_gaps(messages):
    assert [place for group in atomic_groups(messages) for place in group] == list(range(len(messages)))


@given(MESSAGES, st.data())
def test_no_choice_of_whole_groups_makes_a_new_orphan(messages, data):
    groups = atomic_groups(messages)
    kept = [group for group in groups if data.draw(st.booleans())]
    places = [place for group in kept for place in group]
    was = set(orphans(messages))
    assert [places[each] for each in orphans([messages[place] for place in places])] == [
        place for place in places if place in was
    ]


@given(MESSAGES)
def test_what_is_sendable_has_no_orphan_and_each_result_directly_behind_its_call(messages):
    sent = sendable(messages)
    waiting: list[str] = []
    for message in sent:
        if message.role is Role.TOOL:
            assert message.tool_call_id in waiting
            waiting.remove(message.tool_call_id)
        else:
            assert waiting == []
            waiting = [call.id for call in message.tool_calls]
    last = [message for message in sent if message.role is not Role.TOOL][-1:]
    assert waiting == [] or last[0].tool_calls  # only the newest calls may still wait


@given(MESSAGES)
def test_what_is_sendable_stays_as_it_is_when_it_is_made_so_again(messages):
    assert sendable(sendable(messages)) == sendable(messages)


@given(MESSAGES)
def test_what_users_and_systems_say_is_always_sent(messages):
    def spoken(all):
        return [each for each in all if each.role in {Role.USER, Role.SYSTEM}]

    assert spoken(sendable(messages)) == spoken(messages)


def test_results_move_up_to_their_call_in_the_order_in_which_they_came():
    caller = calls("a", "b")
    assert sendable([caller, USER, result("b"), SAID, result("a")]) == [caller, result("b"), result("a"), USER, SAID]


def test_a_call_that_was_never_answered_is_left_out_but_not_what_was_said_beside_it():
    assert sendable([calls("a"), USER]) == [USER]
    assert sendable([calls("a", text="I look."), USER]) == [Message.assistant("I look."), USER]
    assert sendable([calls("a", "b"), result("b"), USER]) == [calls("b"), result("b"), USER]


def test_the_newest_calls_are_kept_while_their_results_may_come():
    assert sendable([USER, calls("a", "b"), result("a")]) == [USER, calls("a", "b"), result("a")]


def test_a_second_result_of_one_call_is_left_out():
    assert sendable([calls("a"), result("a", "one"), result("a", "two"), USER]) == [
        calls("a"),
        result("a", "one"),
        USER,
    ]


def test_a_reused_id_belongs_to_the_call_before_it():
    messages = [calls("0"), result("0", "one"), calls("0"), result("0", "two"), USER]
    assert sendable(messages) == messages


def test_the_given_messages_are_not_changed():
    caller = calls("a", "b")
    sendable([caller, result("a"), USER])
    assert [call.id for call in caller.tool_calls] == ["a", "b"]
