from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.domain.memory import MemoryEntry
from lamina.memory.surroundings import SHORT, support

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def turn(seq, source="conversation:1", *, speaker=None, content="words", **fields):
    metadata = {} if speaker is None else {"speaker": speaker}
    return MemoryEntry(str(seq), content, NOW, NOW, seq=seq, source=source, metadata=metadata, **fields)


def test_a_turn_between_two_that_are_close_is_lent_more_than_one_apart():
    entries = [turn(1), turn(2), turn(3), turn(9), *(turn(seq, None) for seq in range(20, 30))]
    added = support("what?", entries, [0.8, 0.3, 0.8, 0.3, *[0.2] * 10])
    assert added[1] > added[3] > 0
    assert added[4:] == [0.0] * 10


def test_nothing_is_assumed_of_memories_of_unknown_or_different_conversations():
    for sources in [(None, None), ("import:1", "import:1"), ("conversation:1", "conversation:2")]:
        assert support("what?", [turn(1, sources[0]), turn(2, sources[1])], [0.9, 0.1]) == [0.0, 0.0]


@pytest.mark.parametrize("field", ["tenant", "owner", "namespace"])
def test_a_conversation_of_the_same_name_elsewhere_lends_nothing(field):
    entries = [turn(1, **{field: "a"}), turn(2, **{field: "b"}), turn(4, **{field: "b"})]
    assert support("what?", entries, [0.9, 0.1, 0.1]) == [0.0, 0.0, 0.0]


def test_nobody_lends_to_itself():
    entries = [turn(1), turn(5, "conversation:2"), turn(7, "conversation:3")]
    assert support("what?", entries, [0.9, 0.5, 0.1]) == [0.0, 0.0, 0.0]


def test_a_long_text_borrows_less():
    close = [turn(1), turn(3)]
    short, long = (
        support("what?", [*close, turn(2, content="x" * length), turn(8, None)], [0.9, 0.9, 0.2, 0.1])[2]
        for length in (SHORT, 4 * SHORT)
    )
    assert short == pytest.approx(4 * long)


def test_who_is_named_is_preferred_unless_all_are():
    mira, jon = turn(1, None, speaker="Mira"), turn(2, None, speaker="Jon")
    assert support("What does Mira drink?", [mira, jon], [0.5, 0.5]) == [0.08, 0.0]
    assert support("what does MIRA drink?", [mira, jon], [0.5, 0.5]) == [0.08, 0.0]
    assert support("Do Mira and Jon drink?", [mira, jon], [0.5, 0.5]) == [0.0, 0.0]
    assert support("Does Miranda drink?", [mira, jon], [0.5, 0.5]) == [0.0, 0.0]
    assert support("Does Mira drink?", [turn(1, None, speaker=7), jon], [0.5, 0.5]) == [0.0, 0.0]
    assert support("Does Mira drink?", [], []) == []


@given(
    st.lists(
        st.tuples(st.integers(1, 40), st.sampled_from([None, "conversation:1", "conversation:2"]), st.floats(0, 1)),
        unique_by=lambda each: each[0],
    )
)
def test_what_is_lent_is_never_negative_and_hangs_on_no_order(drawn):
    entries = [turn(seq, source) for seq, source, _ in drawn]
    values = [value for *_, value in drawn]
    added = support("what?", entries, values)
    assert all(each >= 0 for each in added)
    backwards = support("what?", entries[::-1], values[::-1])[::-1]
    assert added == pytest.approx(backwards)


async def test_a_recall_says_what_the_turns_around_a_memory_lent_it(open_engine):
    said = ["Which gift did you buy for the wedding?", "A kettle.", "A kettle as a wedding gift, how lovely!"]
    other = ["The wedding is in May.", "A gift.", "The rain has stopped.", "See you.", "A bridge.", "Two apples."]
    memory = await open_engine(provider="memory", embedding="none")
    await memory.store_many({"content": text, "source": f"conversation:{text}"} for text in other)
    await memory.store_many({"content": text, "source": "conversation:w"} for text in said)
    best, *_ = await memory.recall("gift for the wedding", explain=True)
    assert best.entry.content in {said[0], said[2]}
    assert best.explanation.support > 0
    parts = best.score_breakdown
    assert parts.similarity == pytest.approx(min(1, parts.text + best.explanation.support))
