from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.conversation.structured import (
    StructuredSummary,
    TimeRange,
    complete_summary,
    fitted,
    summary_from_json,
    summary_text,
    united,
)
from lamina.domain.message import Message
from lamina.domain.thread import SummarySource, ThreadEvent
from lamina.errors import InvalidInput, InvalidType
from lamina.providers.tokens import EstimateCounter

count = EstimateCounter().count
EARLY, LATE = datetime(2026, 3, 1, 9, tzinfo=UTC), datetime(2026, 3, 2, 9, tzinfo=UTC)
words = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=200)
summaries = st.builds(
    StructuredSummary,
    count=st.integers(0, 10**6),
    time_range=st.none() | st.just(TimeRange(EARLY, LATE)),
    timestamp=st.just(LATE),
    content=st.none() | words.map(str.strip).map(lambda text: text or None),
    modified_files=st.lists(words.map(str.strip).filter(bool), max_size=60),
    user_goal=st.none() | words.map(str.strip).map(lambda text: text or None),
    key_decisions=st.lists(words.map(str.strip).filter(bool), max_size=40),
    critical_context=st.dictionaries(words, words | st.integers(), max_size=40),
    source=st.sampled_from(SummarySource),
)


@given(summaries)
def test_the_json_form_gives_back_what_was_put_in(summary):
    assert summary_from_json(summary.to_json()) == summary


@given(summaries, st.integers(60, 2_000))
def test_the_text_has_at_most_the_tokens_that_it_may_have(summary, max_tokens):
    assert count(summary_text(fitted(summary, max_tokens, count))) <= max_tokens


def test_camel_case_and_further_fields_are_read():
    summary = summary_from_json({"userGoal": " fix ", "keyDecisions": ["a", " "], "lastStep": None, "errorRate": 7.5})
    assert (summary.user_goal, summary.key_decisions, summary.last_step) == ("fix", ["a"], None)
    assert summary.extra == {"error_rate": 7.5}
    assert summary.source is SummarySource.CUSTOM


@pytest.mark.parametrize(
    "given",
    [
        None,
        [],
        5,
        {"count": -1},
        {"count": "three"},
        {"content": 5},
        {"modified_files": "a.py"},
        {"modified_files": [1]},
        {"critical_context": []},
        {"time_range": {}},
        {"time_range": 5},
        {"timestamp": "soon"},
        {"timestamp": datetime(2026, 3, 1)},  # noqa: DTZ001
    ],
)
def test_a_form_that_is_none_is_refused(given):
    with pytest.raises((InvalidType, InvalidInput)):
        summary_from_json(given)


def test_counts_and_times_are_those_of_the_events_and_of_what_went_before():
    events = [ThreadEvent(Message.user("x").replace(timestamp=LATE)) for _ in range(3)]
    former = StructuredSummary(count=7, time_range=TimeRange(EARLY, EARLY))
    done = complete_summary(StructuredSummary(count=99), events, former, now=LATE)
    assert (done.count, done.time_range, done.timestamp) == (10, TimeRange(EARLY, LATE), LATE)


def test_what_a_newer_summary_leaves_out_is_taken_from_the_older_and_nothing_twice():
    older = StructuredSummary(user_goal="fix", key_decisions=["a", "b"], critical_context={"x": 1, "y": 1})
    newer = StructuredSummary(last_step="done", key_decisions=["b", "c"], critical_context={"x": 2})
    both = united(newer, older)
    assert (both.user_goal, both.last_step, both.key_decisions) == ("fix", "done", ["a", "b", "c"])
    assert both.critical_context == {"x": 2, "y": 1}
    assert united(newer, None) is newer


def test_a_long_value_is_shortened_and_the_newest_decisions_stay():
    summary = StructuredSummary(
        key_decisions=[f"decision {number}" for number in range(100)], critical_context={"log": "x" * 10_000}
    )
    short = fitted(summary, 400, count)
    assert short.key_decisions[-1] == "decision 99"
    assert 0 < len(short.critical_context.get("log", "x")) <= 300


def test_the_text_says_of_how_many_messages_and_when_and_by_whom():
    summary = StructuredSummary(
        count=2, time_range=TimeRange(EARLY, LATE), user_goal="fix", content="said", source=SummarySource.EXTRACTIVE
    )
    assert summary_text(summary) == (
        "[SUMMARY of 2 earlier messages, 2026-03-01 09:00 to 2026-03-02 09:00.\n"
        "Sentences and facts picked from the messages, without a model.\nGoal: fix\nsaid]"
    )
