from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lamina.context.trimming import trim_messages, without_orphans
from lamina.domain.message import Message, Role, ToolCall
from lamina.domain.message_groups import orphans
from lamina.domain.message_size import messages_tokens

_IDS = st.sampled_from("abc")
_MESSAGES = st.lists(
    st.one_of(
        st.builds(lambda n: Message.user("u" * n), st.integers(1, 30)),
        st.builds(lambda n: Message.system("s" * n), st.integers(1, 10)),
        st.builds(
            lambda ids: Message.assistant("a", tool_calls=[ToolCall(id, "look") for id in ids]),
            st.lists(_IDS, unique=True, max_size=2),
        ),
        st.builds(lambda call: Message.tool("result", call_id=call), _IDS),
    ),
    max_size=15,
)


@given(_MESSAGES, st.integers(0, 400))
def test_a_trim_cuts_from_the_oldest_keeps_system_messages_and_orphans_nothing(messages, budget):
    whole = without_orphans(messages)
    assert orphans(whole) == []
    kept, cut = trim_messages(whole, budget, len)
    assert orphans(kept) == []
    assert sorted(map(id, [*kept, *cut])) == sorted(map(id, whole))
    assert [each for each in whole if each.role is Role.SYSTEM] == [each for each in kept if each.role is Role.SYSTEM]
    if cut:
        assert messages_tokens(whole, len) > budget
        spoken = [each for each in whole if each.role is not Role.SYSTEM]
        assert [id(each) for each in spoken[: len(cut)]] == [id(each) for each in cut]
    if whole:
        assert whole[-1] in kept


def test_a_call_and_its_results_go_together():
    messages = [
        Message.user("question"), Message.assistant("", tool_calls=[ToolCall("c7", "look")]),
        Message.tool("answer", call_id="c7"), Message.user("next"),
    ]  # fmt: skip
    size = messages_tokens(messages[2:], len)
    assert [each.text for each in trim_messages(messages, size, len)[0]] == ["next"]


def test_what_is_left_begins_with_the_user():
    messages = [Message.user("x" * 50), Message.assistant("answer"), Message.user("next"), Message.assistant("end")]
    kept, _ = trim_messages(messages, messages_tokens(messages[1:], len), len)
    assert [each.text for each in kept] == ["next", "end"]


def test_a_system_message_inside_a_call_stays_when_the_call_goes():
    messages = [
        Message.assistant("", tool_calls=[ToolCall("a", "look")]), Message.system("stay"),
        Message.tool("x" * 90, call_id="a"), Message.user("next"),
    ]  # fmt: skip
    assert [each.text for each in trim_messages(messages, 30, len)[0]] == ["stay", "next"]


def test_a_talk_in_which_the_user_never_speaks_is_looked_through_once():
    looked_at = 0

    class Counted(Message):
        def __getattribute__(self, name):
            nonlocal looked_at
            looked_at += name == "role"
            return super().__getattribute__(name)

    messages = [Counted(Role.ASSISTANT, "x") for _ in range(1_000)]
    looked_at = 0
    kept, cut = trim_messages(messages, 0, len)
    assert (len(kept), len(cut)) == (1, 999)
    assert looked_at < 20_000
