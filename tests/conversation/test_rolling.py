from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from lamina.conversation.rolling import SummaryDraft, bounded, one_line, rendered
from lamina.domain.thread import Summary
from lamina.providers.tokens import EstimateCounter

count = EstimateCounter().count


def summary(**fields):
    return Summary(
        **{"text": "Before.", "from_index": 1, "to_index": 5, "created_at": datetime(2026, 3, 1, tzinfo=UTC), **fields}
    )


def test_a_summary_is_read_as_its_text_its_facts_and_its_topics():
    draft = SummaryDraft("They met.", ["quay"], ["Mira sails."])
    assert rendered(draft) == "They met.\n\nKnown facts:\n- Mira sails.\n\nTopics: quay"
    assert rendered(SummaryDraft("They met.")) == "They met."


def test_facts_and_topics_are_joined_with_the_former_ones_each_once():
    made = bounded(
        SummaryDraft("Now.", new_topics=["Quay", "tar"], new_facts=["mira  sails.", "Tar is dear."]),
        summary(topics=["quay"], facts=["Mira sails."]),
        limit=200,
        count=count,
    )
    assert (made.topics, made.facts) == (["quay", "tar"], ["Mira sails.", "Tar is dear."])


def test_where_facts_are_too_many_the_oldest_and_the_newest_stay():
    former = summary(facts=[f"Old fact number {number} of the quay." for number in range(40)])
    made = bounded(SummaryDraft("Now.", new_facts=["The newest fact."]), former, limit=200, count=count)
    assert made.facts[0] == "Old fact number 0 of the quay."
    assert made.facts[-1] == "The newest fact."
    assert len(made.facts) < 15


@given(
    st.text(max_size=3_000),
    st.lists(st.text(max_size=400), max_size=30),
    st.lists(st.text(max_size=400), max_size=30),
    st.integers(50, 400),
)
def test_a_summary_never_has_more_tokens_than_it_may(text, facts, topics, limit):
    draft = SummaryDraft(text, new_topics=topics, new_facts=facts)
    former = summary(facts=facts[::-1], topics=topics[::-1])
    assert count(rendered(bounded(draft, former, limit=limit, count=count))) <= limit


def test_a_fact_is_one_clean_line():
    assert one_line("a\n- b\x00\tc", 80) == "a - b\ufffd c"
    assert one_line("word " * 100, 20) == "word word word word…"
