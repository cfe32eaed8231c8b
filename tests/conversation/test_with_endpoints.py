"""Conversations whose summaries come over HTTP: from a server that misbehaves, and from a real small model."""

from __future__ import annotations

import json

import pytest
from scripted_server import FAILURES, RUBBISH

from lamina.conversation.window import WindowPolicy
from lamina.domain.thread import SummarySource
from lamina.providers.openai_compatible import OpenAICompatibleLanguageModel
from lamina.settings.conversation import SummaryConfig

SMALL = WindowPolicy(fold_at=6, keep=2)
MESSAGES = 9


@pytest.fixture
async def talk(make, server, memory):
    """Holds a conversation of nine messages with the scripted server as the summariser."""
    model = OpenAICompatibleLanguageModel("m", base_url=server.url, max_retries=0, timeout=0.3, schema_attempts=2)

    async def held():
        manager = make(
            policy=SMALL, llm=model, memory=memory, summary=SummaryConfig(timeout=2, tokens=200, window=4_000)
        )
        for number in range(1, MESSAGES + 1):
            await manager.add_message_to_thread("t", "user", f"Message {number}: the spare key is under the blue pot.")
        return manager

    yield held
    await model.close()


async def covered(manager):
    """The context, after a check that every message is kept, and shown or covered."""
    history = await manager.history("t")
    assert [message.text.split(":")[0] for message in history] == [f"Message {n}" for n in range(1, MESSAGES + 1)]
    thread = await manager.retrieve("t")
    through = thread.summaries[0].to_index if thread.summaries else 0
    context = await manager.get_thread_context("t")
    assert [message.index for message in context.messages] == list(range(through + 1, MESSAGES + 1))
    return context


@pytest.mark.parametrize("reply", FAILURES.values(), ids=FAILURES.keys())
async def test_an_endpoint_that_gives_no_answer_costs_no_message_and_is_told_of(talk, server, reply):
    server.plays(reply)
    manager = await talk()
    context = await covered(manager)
    assert "3 times in a row" in context.warnings[0]
    assert "spare key is under the blue pot" in context.summary
    assert (await manager.retrieve("t")).summaries[0].source is SummarySource.EXTRACTIVE
    assert "gateway" not in context.summary.lower()


@pytest.mark.parametrize("content", RUBBISH.values(), ids=RUBBISH.keys())
async def test_an_answer_that_is_no_object_never_costs_a_message_nor_fills_the_summary_with_rubbish(
    talk, server, content, memory
):
    server.plays(server.chat(content))
    context = await covered(await talk())
    assert "spare key" in context.summary
    assert "{" not in context.summary
    assert len(context.summary) < 4_000
    assert await memory.query() == []


async def test_a_good_answer_becomes_the_summary_and_its_facts_memories(talk, server, memory):
    answer = {"summary": "They spoke of a key.", "topics": ["home"], "facts": ["The spare key is under the blue pot."]}
    server.plays(server.chat(json.dumps(answer)))
    context = await covered(await talk())
    assert context.summary.startswith("They spoke of a key.")
    assert context.warnings == []
    assert [entry.content for entry in await memory.query()] == answer["facts"]


async def test_a_real_model_summarises_a_thread_through_its_endpoint(make, real_model, memory):
    model = OpenAICompatibleLanguageModel(
        real_model.name, base_url=real_model.url, temperature=0, schema_attempts=1, timeout=600
    )
    summary = SummaryConfig(tokens=50, window=1_600, timeout=600)
    manager = make(policy=SMALL, llm=model, memory=memory, summary=summary)
    for text in ("I am Mira.", "Hello Mira.", "My boat lies at berth 12.", "Noted.", "It is blue.", "I see."):
        await manager.add_message_to_thread("t", "user", text)
    context = await manager.get_thread_context("t")
    (kept,) = (await manager.retrieve("t")).summaries
    await model.close()
    assert kept.source is SummarySource.MODEL, context.warnings
    assert 0 < kept.tokens <= 50
    assert [message.text for message in context.messages] == ["It is blue.", "I see."]
