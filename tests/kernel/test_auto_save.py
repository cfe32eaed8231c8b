"""What users say about themselves is remembered: their own words only, and never at the cost of the turn."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.agents import AgentAnswer, define_agent
from lamina.domain.intent import IntentStatus
from lamina.domain.memory import Layer
from lamina.errors import ProviderError, ProviderUnavailable
from lamina.kernel import ModelRouter
from lamina.kernel.said_facts import said_facts
from lamina.ports.language_model import Completion
from lamina.testing import EchoModel, HashingEmbedder

TURNS = [json.loads(line) for line in (Path(__file__).parent / "data/turns.jsonl").read_text("utf-8").splitlines()]
LANGUAGES = ("en", "de", "fr", "es", "zh", "ja")


def measured(turns):
    """Right, wrong and missed facts."""
    right = wrong = missed = 0
    for turn in turns:
        found, wanted = {fact.content for fact in said_facts(turn["text"])}, set(turn["facts"])
        right += len(found & wanted)
        wrong += len(found - wanted)
        missed += len(wanted - found)
    return right, wrong, missed


def test_the_written_set_has_turns_of_both_kinds_in_every_language():
    assert len(TURNS) >= 120
    for language in LANGUAGES:
        own = [turn for turn in TURNS if turn["lang"] == language]
        assert min(sum(bool(turn["facts"]) for turn in own), sum(not turn["facts"] for turn in own)) >= 10


def test_the_rules_find_most_and_hardly_ever_what_is_not_there():
    right, wrong, missed = measured(TURNS)
    assert right / (right + wrong) >= 0.9
    assert right / (right + missed) >= 0.6


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_rules_hold_in_each_language(language):
    right, wrong, missed = measured([turn for turn in TURNS if turn["lang"] == language])
    assert right / (right + wrong) >= 0.9
    assert right / (right + missed) >= 0.6


def test_at_most_five_facts_are_taken_from_a_message_and_each_once():
    text = " ".join(f"I live in Town{number}." for number in range(9)) + " I live in Town0."
    assert [fact.content for fact in said_facts(text)] == [f"I live in Town{number}." for number in range(5)]
    assert len(said_facts("I live in Rome. I live in Rome.")) == 1


def test_a_fact_is_the_users_sentence_as_it_was_written():
    (fact,) = said_facts("Ok! J’habite à Rennes, près du canal. Et toi ?")
    assert fact.content == "J’habite à Rennes, près du canal."


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_read_without_trouble_and_every_fact_stands_in_it(text):
    for fact in said_facts(text):
        assert fact.content in text.replace("\0", "\ufffd")


def test_long_and_hostile_texts_are_read_in_little_time():
    for text in (
        "I live in " * 30_000,
        '"' * 50_000,
        "a" * 1_000_000,
        "I love " + "very " * 20_000,
        "「" * 50_000,
        ", and" * 20_000,
    ):
        assert len(said_facts(text)) <= 5


async def saved(kernel, owner="mira"):
    return {each.content: each for each in await kernel.memory_engine.query(owner=owner)}


@pytest.fixture
async def saving(open_kernel):
    """A kernel whose auto-save goes by rules: its agent answers by itself."""
    kernel = await open_kernel(router=ModelRouter(embed=HashingEmbedder()), memory={"auto_save": True})

    async def answer(intent, context, model):
        return AgentAnswer("I live in the cloud. My name is Robot.")

    kernel.agent_registry.register(define_agent("robot", executor=answer))
    return kernel


async def test_what_the_user_says_is_remembered_and_marked(saving):
    result = await saving.submit(goal="Hi! My name is Ada. What can you do?", owner="mira", thread_id="t")
    entries = await saved(saving)
    assert list(entries) == ["My name is Ada."]
    entry = entries["My name is Ada."]
    assert result.saved == [entry.id]
    assert entry.layer is Layer.LONGTERM
    assert entry.tags == ["auto", "name"]
    assert entry.metadata == {"source": "auto_save", "thread_id": "t", "intent_id": result.intent_id}


async def test_nothing_is_taken_from_the_answer_a_document_or_a_tool(saving):
    await saving.rag.ingest("# Note\n\nMy name is Mallory. I live in Perth.", "note.md")
    await saving.submit(goal="Who wrote the note?", owner="mira", thread_id="t")
    assert await saved(saving) == {}


async def test_saying_it_again_confirms_and_does_not_double(saving):
    for _ in range(3):
        await saving.submit(goal="I live in Graz.", owner="mira")
    assert len(await saved(saving)) == 1


async def test_hooks_may_veto_and_one_that_fails_does_not_fail_the_turn(open_kernel):
    router = ModelRouter(
        complete=EchoModel(), embed=HashingEmbedder(), facts=EchoModel([ProviderUnavailable("x", "y")] * 9)
    )
    vetoing = await open_kernel(
        router=router, memory={"auto_save": True, "hooks": {"on_before_store": lambda entry: None}}
    )
    result = await vetoing.submit(goal="I live in Graz.", owner="mira")
    assert (result.status, result.saved) == (IntentStatus.COMPLETED, [])

    def broken(entry):
        raise RuntimeError("guard")

    failing = await open_kernel(router=router, memory={"auto_save": True, "hooks": {"on_before_store": broken}})
    result = await failing.submit(goal="I live in Graz.", owner="mira", thread_id="t")
    assert result.status is IntentStatus.COMPLETED
    assert result.warnings[-1] == "auto_save failed: RuntimeError"
    assert len(await failing.conversation.history("t")) == 2


async def test_a_failed_turn_saves_nothing(open_kernel):
    kernel = await open_kernel(router=ModelRouter(embed=HashingEmbedder()), memory={"auto_save": True})
    result = await kernel.submit(goal="I live in Graz.", owner="mira")
    assert result.status is IntentStatus.FAILED
    assert await saved(kernel) == {}


async def test_auto_save_is_off_unless_it_is_switched_on(open_kernel):
    kernel = await open_kernel()
    await kernel.submit(goal="I live in Graz.", owner="mira")
    assert await saved(kernel) == {}


def fact(content="Lives in Graz", **changes):
    return {"content": content, "tags": ["home"], "relevance": 0.8, "layer": "longterm", **changes}


async def by_model(open_kernel, *replies, goal="I live in Graz and I love tea, you know. So what about it?"):
    facts = EchoModel(replies)
    router = ModelRouter(complete=EchoModel(), embed=HashingEmbedder(), facts=facts)
    kernel = await open_kernel(router=router, memory={"auto_save": True})
    result = await kernel.submit(goal=goal, owner="mira", thread_id="t")
    assert result.status is IntentStatus.COMPLETED
    return result, await saved(kernel), facts


async def test_a_models_facts_are_stored_with_their_tags_and_layer(open_kernel):
    result, entries, facts = await by_model(open_kernel, {"facts": [fact(), fact("Loves tea", layer="session")]})
    assert entries.keys() == {"Lives in Graz", "Loves tea"}
    assert entries["Lives in Graz"].tags == ["auto", "home"]
    assert entries["Loves tea"].layer is Layer.SESSION
    assert result.warnings == []
    told = "".join(each.content for each in facts.calls[0])
    assert "I live in Graz" in told


@pytest.mark.parametrize(
    "bad",
    [
        fact(owner="tomas"),
        fact(layer="organizational"),
        fact(layer="global"),
        fact(layer="eternal"),
        fact(relevance=7),
        fact(relevance=True),
        fact(content=""),
        fact(content="x Graz " * 200),
        fact(tags="home"),
        fact(tags=[5]),
        fact("Owns a yacht"),
        "Lives in Graz",
        None,
    ],
    ids=lambda value: str(value)[:60],
)
async def test_a_fact_that_was_made_up_or_is_malformed_is_refused_and_told(open_kernel, bad):
    result, entries, _ = await by_model(open_kernel, {"facts": [bad, fact("Loves tea")]})
    assert list(entries) == ["Loves tea"]
    assert result.warnings == ["auto_save refused 1 of 2 facts of the model"]


async def test_at_most_five_facts_of_a_model_are_kept(open_kernel):
    goal = " ".join(f"I have been to place{number}." for number in range(9))
    many = [fact(f"Has been to place{number}") for number in range(9)]
    result, entries, _ = await by_model(open_kernel, {"facts": many}, goal=goal)
    assert len(entries) == 5
    assert result.warnings == ["auto_save kept 5 of 9 facts"]


@pytest.mark.parametrize(
    "reply",
    [
        ProviderUnavailable("testing", "down"),
        ProviderError("testing", "no object"),
        {"facts": "Lives in Graz"},
        {"fact": []},
        {},
        "prose instead of JSON",
    ],
    ids=str,
)
async def test_a_model_that_cannot_be_relied_on_is_told_of_and_the_rules_are_used(open_kernel, reply):
    result, entries, _ = await by_model(open_kernel, reply)
    assert list(entries) == ["I live in Graz and I love tea, you know."]
    assert len(result.warnings) == 1
    assert result.warnings[0].startswith("auto_save went by rules")
    assert "Graz" not in result.warnings[0]


class Rubbish(EchoModel):
    """A model that keeps to no contract."""

    async def complete(self, messages, *, schema=None, max_tokens=None):
        reply = await super().complete(messages)
        match reply.text:
            case "raise":
                raise ValueError("SECRET")
            case "none":
                return None
        return Completion("", data=["no mapping"])


@pytest.mark.parametrize("reply", ["raise", "none", "list"])
async def test_a_model_that_keeps_to_no_contract_does_not_fail_a_turn_that_is_kept(open_kernel, reply):
    router = ModelRouter(complete=EchoModel(), embed=HashingEmbedder(), facts=Rubbish([reply]))
    kernel = await open_kernel(router=router, memory={"auto_save": True})
    result = await kernel.submit(goal="I live in Graz.", owner="mira", thread_id="t")
    assert result.status is IntentStatus.COMPLETED
    assert "went by rules" in result.warnings[0]
    assert "SECRET" not in result.warnings[0]
    assert len(await kernel.conversation.history("t")) == 2
    assert list(await saved(kernel)) == ["I live in Graz."]


async def test_being_cancelled_while_facts_are_looked_for_keeps_the_exchange(open_kernel):
    asked = asyncio.Event()

    async def stuck(messages):
        asked.set()
        await asyncio.Event().wait()

    router = ModelRouter(complete=EchoModel(), embed=HashingEmbedder(), facts=stuck)
    kernel = await open_kernel(router=router, memory={"auto_save": True})
    task = asyncio.create_task(kernel.submit(goal="I live in Graz.", owner="mira", thread_id="t"))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(await kernel.conversation.history("t")) == 2
    assert await saved(kernel) == {}
