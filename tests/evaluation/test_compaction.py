from __future__ import annotations

import json

import pytest

from lamina.conversation.short_term import BaseMemory
from lamina.domain.message import Message
from lamina.errors import InvalidInput
from lamina.evaluation.compaction import evaluate_memory, evaluate_thread
from lamina.evaluation.transcripts import Transcript, read_messages

PATHS = [f"src/part_{number}/module.py" for number in range(4)]
WAYS = pytest.mark.parametrize("evaluate", [evaluate_memory, evaluate_thread])


def rows():
    """A made-up session of an agent that reads and changes files, as a log holds it."""
    yield {"role": "user", "content": "The plan is in docs/plan.md: make the pool larger."}
    for number in range(40):
        path = PATHS[number % 4]
        yield {"role": "user", "content": f"Please look at {path} for the {number}th time, the pool is too small."}
        yield {"role": "assistant", "content": f"I read {path}. It needs a change of line {number}."}
        code = "\n".join(f"{line}\tvalue_{line} = load('{path}')" for line in range(30))
        yield {"role": "tool", "name": "read_file", "content": code}


@pytest.fixture(scope="module")
def transcript():
    return Transcript("t1", read_messages(list(rows())), [*PATHS, "docs/plan.md"], "made up")


@WAYS
async def test_a_transcript_is_replayed_and_measured(transcript, evaluate):
    figures = await evaluate(transcript, pre_rot=2_500)
    assert (figures.id, figures.collection, figures.pre_rot) == ("t1", "made up", 2_500)
    assert figures.messages == 4 * 40 + 1  # each result got a call
    assert figures.tokens > 16_000
    assert figures.saved >= 0.7
    assert figures.saved_of_summarized >= 0.7
    assert figures.restored == 1.0
    assert figures.orphans == 0
    assert figures.paths_after_tier_2 == 1.0
    assert figures.paths_after_tier_3 == 1.0
    assert figures.summaries > 1
    assert not figures.over_budget
    assert figures.tokens_after_tier_3 < figures.tokens_after_tier_2 < figures.tokens


@WAYS
async def test_the_threshold_is_at_most_half_of_the_transcript(evaluate):
    transcript = Transcript("t", [Message.user(f"{n} " + "word " * 300) for n in range(20)], ["no/such/path.py"])
    figures = await evaluate(transcript)
    assert figures.pre_rot == figures.tokens // 2
    assert figures.paths_after_tier_3 == 0.0


class Forgetful(BaseMemory):
    """Compacts so that a part of the original is gone, and summarises without a word of what was said."""

    async def archived(self, session_id=None, **options):
        events = await super().archived(session_id, **options)
        for event in events[::2]:
            event.message.content = event.message.text[:10]
        return events[:-1]

    async def summarize(self, _events):
        return {"content": "They worked."}


async def test_a_memory_that_loses_messages_and_names_is_found_out(transcript):
    figures = await evaluate_memory(transcript, pre_rot=2_500, make=Forgetful)
    assert 0.1 < figures.restored < 0.9
    assert figures.paths_after_tier_3 < 1.0


async def test_a_message_that_comes_back_twice_or_at_another_place_is_not_restored():
    class Stuttering(BaseMemory):
        async def archived(self, session_id=None, **options):
            events = await super().archived(session_id, **options)
            return events[:1] + events

    class Swapping(BaseMemory):
        async def archived(self, session_id=None, **options):
            events = await super().archived(session_id, **options)
            first, second = events[:2]
            first.message.index, second.message.index = second.message.index, first.message.index
            return events

    transcript = Transcript("t", read_messages(list(rows()))[:100])
    for make, wrong in ((Stuttering, 1), (Swapping, 2)):
        figures = await evaluate_memory(transcript, pre_rot=1_500, make=make)
        assert figures.restored == 1 - wrong / 100


async def test_a_memory_that_parts_calls_from_results_is_found_out(transcript):
    class Parting(BaseMemory):
        async def get_context(self, session_id=None, **options):
            context = await super().get_context(session_id, **options)
            return [message for message in context if not message.tool_calls]

    assert (await evaluate_memory(transcript, pre_rot=2_500, make=Parting)).orphans > 0


async def test_a_memory_that_shortens_nothing_saves_nothing(transcript):
    class Idle(BaseMemory):
        async def compact_event(self, event):
            return event

        async def summarize(self, _events):
            raise ValueError

        async def manage_context(self, session_id=None):
            report = await super().manage_context("another session")
            report.over_budget = True
            return report

    figures = await evaluate_memory(transcript, pre_rot=2_500, make=Idle)
    assert (figures.saved, figures.summaries, figures.saved_of_summarized, figures.saved_by_run) == (0.0, 0, None, None)
    assert figures.over_budget


async def test_a_transcript_without_paths_names_them_all():
    figures = await evaluate_memory(Transcript("t", [Message.user("Hello")]))
    assert figures.paths_after_tier_3 == 1.0
    assert figures.restored == 1.0
    assert json.dumps(figures.saved) == "0.0"


async def test_no_message_is_nothing_to_measure():
    with pytest.raises(InvalidInput, match="messages"):
        await evaluate_memory(Transcript("t", []))
    with pytest.raises(InvalidInput, match="messages"):
        await evaluate_thread(Transcript("t", []))
