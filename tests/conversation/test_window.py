from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.conversation.window import WindowPolicy, fold_through, policy_of, view
from lamina.domain.message import Message, Role, ToolCall
from lamina.domain.message_groups import atomic_groups, orphans
from lamina.errors import ConfigError
from lamina.settings.conversation import ConversationConfig

COMPACTION = WindowPolicy(60, 10)


def turns(count):
    return [Message.user(str(n)) if n % 2 else Message.assistant(str(n)) for n in range(1, count + 1)]


def calling(*ids):
    return Message.assistant("", tool_calls=[ToolCall(id, "look") for id in ids])


def result(id):
    return Message.tool("found", call_id=id)


@pytest.mark.parametrize(("live", "folded"), [(0, 0), (50, 0), (51, 1), (52, 2), (200, 150)])
def test_the_sliding_window_keeps_fifty_messages(live, folded):
    assert fold_through(turns(live), WindowPolicy()) == folded


@pytest.mark.parametrize(("live", "folded"), [(50, 0), (59, 0), (60, 50), (75, 65)])
def test_compaction_folds_fifty_messages_at_sixty_and_keeps_ten(live, folded):
    assert fold_through(turns(live), COMPACTION) == folded


@pytest.mark.parametrize(("live", "folded"), [(54, 0), (55, 5)])
def test_a_batch_lets_messages_gather_before_they_are_folded_together(live, folded):
    assert fold_through(turns(live), WindowPolicy(batch=5)) == folded


@pytest.mark.parametrize(("live", "folded"), [(10, 0), (11, 1), (30, 20)])
def test_forced_everything_older_than_the_tail_is_folded(live, folded):
    assert fold_through(turns(live), COMPACTION, force=True) == folded


def test_system_messages_neither_count_nor_make_a_thread_fold():
    system = [Message.system(f"Rule {n}") for n in range(60)]
    assert fold_through(system, WindowPolicy()) == 0
    assert fold_through([*system, *turns(50)], WindowPolicy()) == 0
    assert fold_through([*system, *turns(51)], WindowPolicy()) == 61


def test_the_cut_moves_back_to_where_a_tool_call_and_its_results_begin():
    live = [*turns(3), calling("a", "b"), result("b"), Message.user("?"), result("a"), *turns(4)]
    policy = WindowPolicy(fold_at=11, keep=6)
    assert len(live) == 11
    assert fold_through(live, policy) == 3


def test_a_call_that_may_yet_be_answered_is_not_folded():
    live = [*turns(3), calling("a"), *turns(10)]
    assert fold_through(live, WindowPolicy(fold_at=10, keep=4)) == 3


def test_a_call_without_a_result_does_not_hold_up_a_thread_for_ever():
    live = [*turns(3), calling("a"), *turns(30)]
    policy = WindowPolicy(fold_at=10, keep=4)
    assert policy.patience == 20
    assert fold_through(live, policy) == len(live) - 4


def test_an_id_given_again_in_a_later_turn_is_another_call():
    live = [*turns(2), calling("call_0"), result("call_0"), *turns(2), calling("call_0"), *turns(4)]
    assert fold_through(live, WindowPolicy(fold_at=8, keep=2)) == 6


def test_forced_a_call_is_waited_for_only_until_the_model_has_spoken_again():
    waiting = [*turns(3), calling("a"), Message.user("And?"), Message.user("Hello?")]
    assert fold_through(waiting, WindowPolicy(fold_at=10, keep=1), force=True) == 3
    assert fold_through([*waiting, Message.assistant("I went on.")], WindowPolicy(fold_at=10, keep=1), force=True) == 6


@pytest.mark.parametrize("numbers", [(0, 0, 1), (50, 50, 1), (10, 11, 1), (10, -1, 1), (10, 5, 0), (True, 0, 1)])
def test_a_policy_that_cannot_be_is_refused(numbers):
    with pytest.raises(ConfigError):
        WindowPolicy(*numbers)


def test_settings_give_the_window_and_compaction_takes_its_place():
    assert policy_of(ConversationConfig()) == WindowPolicy(51, 50, 1)
    assert policy_of(ConversationConfig(window=8, summarize_batch_size=4)) == WindowPolicy(9, 8, 4)
    assert policy_of(ConversationConfig(contextMessages=20)) == WindowPolicy(21, 20)
    assert policy_of(ConversationConfig(context_messages=20, compaction={})) == COMPACTION
    assert policy_of(ConversationConfig(compaction={"enabled": False})) == WindowPolicy()


def test_the_last_messages_are_shown_and_the_rest_of_the_live_ones_is_covered():
    seen = view([Message.system("Be brief."), *turns(6)], 4)
    assert seen.shown == [0, 3, 4, 5, 6]
    assert seen.covered == [1, 2]


def test_a_result_whose_call_is_not_there_is_covered():
    seen = view([Message.user("a"), result("gone"), Message.user("b")], None)
    assert (seen.shown, seen.covered) == ([0, 2], [1])


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_keeping_the_last_messages_never_parts_parallel_calls_from_their_results(most):
    live = [Message.user("x"), calling("a", "b", "c"), result("a"), result("b"), result("c"), Message.user("y")]
    seen = view(live, most)
    assert orphans([live[place] for place in seen.shown]) == []
    assert seen.shown == ([5] if most == 1 else [1, 2, 3, 4, 5])


IDS = st.sampled_from("abcd")
MESSAGES = st.lists(
    st.one_of(
        st.just(Message.user("u")),
        st.just(Message.assistant("a")),
        st.just(Message.system("s")),
        st.sets(IDS, min_size=1).map(lambda ids: calling(*sorted(ids))),
        IDS.map(result),
    ),
    max_size=30,
)
POLICIES = st.tuples(st.integers(0, 8), st.integers(1, 8), st.integers(1, 5)).map(
    lambda numbers: WindowPolicy(numbers[0] + numbers[1], numbers[0], numbers[2])
)


@given(MESSAGES, POLICIES, st.booleans())
def test_a_fold_keeps_the_tail_and_every_group_whole(live, policy, force):
    cut = fold_through(live, policy, force=force)
    kept = [message for message in live[cut:] if message.role is not Role.SYSTEM]
    if cut:
        assert len(kept) >= policy.keep
        assert all(group.start >= cut or group.stop <= cut for group in atomic_groups(live))
        assert any(message.role is not Role.SYSTEM for message in live[:cut])


@given(MESSAGES, st.none() | st.integers(1, 12))
def test_every_live_message_is_shown_or_covered_and_no_result_is_an_orphan(live, most):
    seen = view(live, most)
    assert sorted([*seen.shown, *seen.covered]) == list(range(len(live)))
    assert orphans([live[place] for place in seen.shown]) == []
    assert all(live[place].role is not Role.SYSTEM for place in seen.covered)
