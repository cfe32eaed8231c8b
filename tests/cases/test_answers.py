"""Answers of models that are none: nothing of them becomes a memory, the words stay, and the step is named."""

from __future__ import annotations

import json

import pytest

from lamina.errors import ProviderError
from lamina.kernel import Kernel, ModelRouter
from lamina.testing import HashingEmbedder

SAID = "I always moor at the north pier."
FACTS = json.dumps(
    {"topics": [], "facts": [SAID, *(f"Ann keeps {number} boats at the north pier" for number in range(9))]}
)
BROKEN = {
    "cut off": FACTS[: len(FACTS) * 4 // 5],
    "an escape of nothing": FACTS.replace("boats", "\\uZZZZ boats", 1),
    "a trailing comma": FACTS[:-2] + ",]}",
    "a bracket": "[",
    "nothing": "",
    "prose": "There are no facts in this, I fear.",
    "another shape": '{"facts": "none"}',
    "two objects": FACTS + FACTS,
}


@pytest.fixture
async def broken(request, tmp_path):
    """A kernel whose model for facts always answers so, and whose other model says that it is noted."""
    asked = []

    def answers(messages):
        asked.append(messages)
        return request.param

    router = ModelRouter(lambda messages: "It is noted.", HashingEmbedder(), facts=answers, summaries=answers)
    async with Kernel(data_dir=tmp_path, model_router=router, memory={"auto_save": True}) as kernel:
        yield kernel
    assert 1 <= len(asked) <= 4  # it is asked again, and not for ever


@pytest.mark.case("B110", "B112")
@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN, indirect=True)
async def test_a_broken_list_of_facts_fails_whole_and_the_words_stay_to_be_read_again(broken):
    talk = broken.conversation
    await talk.add_message_to_thread("t", "user", SAID, owner="ann")
    with pytest.raises(ProviderError):
        await talk.extract_memories("t", owner="ann")
    assert await broken.memory_engine.count() == 0
    assert [message.content for message in await talk.history("t", owner="ann")] == [SAID]


@pytest.mark.case("B110", "B112")
@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN, indirect=True)
async def test_a_turn_whose_facts_do_not_come_is_kept_and_names_the_step(broken):
    result = await broken.submit({"goal": SAID, "owner_id": "ann", "thread_id": "t"})
    assert (result.answer, result.error) == ("It is noted.", None)
    assert [warning.partition(" went by rules")[0] for warning in result.warnings] == ["auto_save"]
    history = await broken.conversation.history("t", owner="ann")
    assert [message.content for message in history] == [SAID, "It is noted."]
    assert {entry.content async for entry in broken.memory_engine.scan()} <= {SAID}


@pytest.mark.case("B110")
@pytest.mark.parametrize(
    "broken", ['{"topics": [], "facts": ["I moor \\ud83d at the north pier"]}'], ids=["half"], indirect=True
)
async def test_half_an_escape_in_an_answer_is_replaced_and_the_fact_kept(broken):
    await broken.conversation.add_message_to_thread("t", "user", SAID, owner="ann")
    await broken.conversation.extract_memories("t", owner="ann")
    assert [entry.content async for entry in broken.memory_engine.scan()] == ["I moor \ufffd at the north pier"]
