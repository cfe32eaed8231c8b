from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.conversation.compaction import COMPACTION_KEY
from lamina.conversation.tiers import Tier, must_summarize, tail_start, tier_of, to_compact, to_summarize
from lamina.domain.message import Message, Role, ToolCall
from lamina.domain.message_groups import orphans
from lamina.domain.thread import ThreadEvent
from lamina.settings.tiers import ContextThresholds

THRESHOLDS = ContextThresholds(pre_rot_threshold=1_000, recent_to_keep=2)


def user(text="hello"):
    return Message.user(text)


def call(*ids):
    return Message.assistant("", tool_calls=[ToolCall(id, "read") for id in ids])


def result(id):
    return Message.tool("done", call_id=id)


def events(messages):
    return [ThreadEvent(message) for message in messages]


@pytest.mark.parametrize(
    ("tokens", "tier"),
    [(0, Tier.NORMAL), (799, Tier.NORMAL), (800, Tier.COMPACTION), (949, Tier.COMPACTION), (950, Tier.SUMMARIZATION)],
)
def test_a_trigger_belongs_to_the_higher_tier(tokens, tier):
    assert tier_of(tokens, THRESHOLDS) is tier


def test_the_defaults_are_120_000_and_142_500():
    assert tier_of(119_999, ContextThresholds()) is Tier.NORMAL
    assert tier_of(120_000, ContextThresholds()) is Tier.COMPACTION
    assert tier_of(142_500, ContextThresholds()) is Tier.SUMMARIZATION


@pytest.mark.parametrize(
    ("tokens", "gain", "least", "expected"),
    [(950, 0, None, True), (900, 0, None, False), (900, 49, 0.05, True), (900, 50, 0.05, False), (799, 0, 0.05, False)],
)
def test_a_summary_follows_in_tier_3_or_where_references_gained_too_little(tokens, gain, least, expected):
    assert must_summarize(tokens, gain, THRESHOLDS.model_copy(update={"min_compaction_gain": least})) is expected


@pytest.mark.parametrize(
    ("messages", "keep", "start"),
    [
        ([user(), user(), user()], 2, 1),
        ([user(), user()], 5, 0),
        ([user(), user()], 0, 2),
        ([user(), call("a"), result("a"), user()], 2, 1),
        ([user(), call("a", "b"), result("a"), result("b"), user()], 2, 1),
        ([user(), call("a")], 0, 1),
        ([call("a"), user()], 0, 2),
        ([call("a"), result("a"), call("a"), result("a")], 1, 2),
    ],
    ids=["two", "few", "none", "a pair", "parallel", "may be answered", "never answered", "an id used again"],
)
def test_the_tail_begins_where_no_call_is_parted_from_its_result(messages, keep, start):
    assert tail_start(messages, keep) == start


turns = st.lists(st.sampled_from(["user", "assistant", "system", "call", "calls", "result"]), max_size=30)


@given(turns, st.integers(0, 12))
def test_no_tail_holds_a_result_without_its_call(kinds, keep):
    messages = conversation(kinds)
    start = tail_start(messages, keep)
    assert start <= max(0, len(messages) - keep)
    assert orphans(messages[start:]) == []


def conversation(kinds):
    """A conversation in which each result answers a call before it that has none yet."""
    messages, waiting, number = [], [], 0
    for kind in kinds:
        if kind in {"call", "calls"}:
            ids = [f"c{number + offset}" for offset in range(1 if kind == "call" else 3)]
            number += 3
            waiting += ids
            messages.append(call(*ids))
        elif kind == "result":
            if waiting:
                messages.append(result(waiting.pop(0)))
        else:
            messages.append(Message(Role(kind), kind))
    return messages


def test_what_is_older_than_the_tail_is_compacted_but_no_system_message_and_none_twice():
    kept = events([Message.system("be kind"), user("a"), user("b"), user("c"), user("d")])
    kept[1] = kept[1].replace(state={COMPACTION_KEY: {"original_content": "x"}})
    assert to_compact(kept, THRESHOLDS) == [2]


def test_a_fraction_leaves_the_newer_ones_in_full():
    half = ContextThresholds(pre_rot_threshold=1_000, recent_to_keep=2, compaction_fraction=0.5)
    assert to_compact(events([user() for _ in range(12)]), half) == [0, 1, 2, 3, 4]


def test_system_messages_alone_are_not_summarised():
    assert to_summarize(events([Message.system("a"), Message.system("b"), user()]), 1) == 0
    assert to_summarize(events([Message.system("a"), user(), user()]), 1) == 2
