"""Conversations whose summaries come over HTTP: from a server that misbehaves, and from a real small model."""

from __future__ import annotations

import json

import pytest
from scripted_server import FAILURES, RUBBISH

from lamina.conversation.short_term import BaseMemory
from lamina.conversation.window import WindowPolicy
from lamina.domain.message import Message
from lamina.domain.thread import SummarySource
from lamina.errors import ProviderError
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


@pytest.fixture
async def asked(make, server, memory):
    """A manager whose model is the server, with a thread of two messages."""
    model = OpenAICompatibleLanguageModel("m", base_url=server.url, max_retries=0, timeout=0.3, schema_attempts=2)
    manager = make(llm=model, memory=memory)
    await manager.add_messages("t", [Message.user("My boat lies at berth 12."), Message.assistant("Noted.")])
    yield manager
    await model.close()


@pytest.mark.parametrize("reply", FAILURES.values(), ids=FAILURES.keys())
async def test_facts_that_cannot_be_asked_for_are_an_error_and_nothing_else(asked, server, reply, memory):
    server.plays(reply)
    await check_no_facts(asked, memory)


@pytest.mark.parametrize("content", RUBBISH.values(), ids=RUBBISH.keys())
async def test_what_is_no_list_of_facts_is_an_error_and_never_a_memory(asked, server, content, memory):
    server.plays(server.chat(content))
    await check_no_facts(asked, memory)


async def check_no_facts(manager, memory):
    with pytest.raises(ProviderError):
        await manager.extract_memories("t")
    assert await memory.query() == []
    assert [message.text for message in await manager.history("t")] == ["My boat lies at berth 12.", "Noted."]


async def test_facts_of_a_good_answer_become_memories(asked, server, memory):
    server.plays(server.chat(json.dumps({"topics": ["boat"], "facts": ["Has a boat at berth 12"]})))
    assert len(await asked.extract_memories("t")) == 1
    assert [entry.content for entry in await memory.query()] == ["Has a boat at berth 12"]


async def test_a_real_model_is_asked_for_facts_and_the_thread_stays_as_it_is(make, real_model, memory):
    model = OpenAICompatibleLanguageModel(real_model.name, base_url=real_model.url, temperature=0, schema_attempts=1)
    manager = make(llm=model, memory=memory, summary=SummaryConfig(tokens=100, window=1_600, timeout=120))
    await manager.add_messages("t", [Message.user("My boat lies at berth 12."), Message.assistant("Noted.")])
    try:
        ids = await manager.extract_memories("t")
    except ProviderError:  # an object that is cut off is refused whole
        ids = []
    await model.close()
    assert {entry.id for entry in await memory.query()} == set(ids)
    assert [message.text for message in await manager.history("t")] == ["My boat lies at berth 12.", "Noted."]


TIERS = {"pre_rot_threshold": 1_000, "recent_to_keep": 2, "summary_tokens": 200}
SAID = [f"Message {number}: the spare key is under the blue pot. {'Ferry times. ' * 12}" for number in range(40)]


@pytest.fixture
async def sessions(server):
    """A short-term memory whose summaries come from the server."""
    model = OpenAICompatibleLanguageModel("m", base_url=server.url, max_retries=0, timeout=0.3, schema_attempts=2)
    async with BaseMemory(llm=model, thresholds=TIERS, enable_context_management=False) as short_term:
        yield short_term
    await model.close()


async def filled(short_term):
    """Its reports, after a check that every message is there, shown or behind a summary, and comes back exactly."""
    reports = []
    for text in SAID:
        await short_term.add(Message.user(text))
        reports.append(await short_term.manage_context())
    events = [*await short_term.archived(), *short_term.decompress_events(await short_term.list())]
    assert [event.message.text for event in events if event.message.index] == SAID
    return reports


@pytest.mark.parametrize("reply", FAILURES.values(), ids=FAILURES.keys())
async def test_a_session_whose_summaries_do_not_come_loses_nothing_and_is_told(sessions, server, reply):
    server.plays(reply)
    reports = await filled(sessions)
    await check_summarised_by_rules(sessions, reports)


@pytest.mark.parametrize("content", RUBBISH.values(), ids=RUBBISH.keys())
async def test_a_session_whose_summaries_are_rubbish_loses_nothing_and_is_told(sessions, server, content):
    server.plays(server.chat(content))
    reports = await filled(sessions)
    await check_summarised_by_rules(sessions, reports)


async def check_summarised_by_rules(short_term, reports):
    told = [warning for report in reports for warning in report.warnings]
    assert any(warning.startswith("the summariser failed (Provider") for warning in told)
    assert "pot" not in str(told)
    summaries = await short_term.get_summaries()
    assert {summary.source for summary in summaries} == {SummarySource.EXTRACTIVE}
    text = (await short_term.get_context())[0].text
    assert "spare key is under the blue pot" in text
    assert "picked from the messages, without a model" in text


async def test_a_session_takes_a_good_summary(sessions, server):
    form = {"user_goal": "Find the key", "last_step": "", "modified_files": [], "key_decisions": ["Look below pots"]}
    server.plays(server.chat(json.dumps({**form, "critical_context": [], "content": "They spoke of a key."})))
    reports = await filled(sessions)
    assert [report.warnings for report in reports if report.warnings] == []
    newest = (await sessions.get_summaries())[0]
    assert (newest.source, newest.user_goal, newest.content) == (
        SummarySource.MODEL,
        "Find the key",
        "They spoke of a key.",
    )


async def test_a_real_model_is_asked_for_a_structured_summary_and_nothing_is_lost(real_model):
    model = OpenAICompatibleLanguageModel(
        real_model.name,
        base_url=real_model.url,
        temperature=0,
        schema_attempts=1,
        timeout=60,  # a summary that comes too late is a failure like another
        max_retries=0,
    )
    options = {"thresholds": TIERS, "enable_context_management": False, "compaction_filter": lambda _event: False}
    async with BaseMemory(llm=model, **options) as short_term:
        await short_term.add_list([Message.user(text) for text in SAID[:20]])
        report = await short_term.manage_context()
        summaries = await short_term.get_summaries()
        assert summaries or report.warnings  # so small a model may fill in nothing
        assert all(summary.count == 18 for summary in summaries)
        events = [*await short_term.archived(), *short_term.decompress_events(await short_term.list())]
        assert [event.message.text for event in events if event.message.index] == SAID[:20]
    await model.close()
