"""Threads that are trimmed and summarised: nothing is lost, nothing is parted, and what is sent fits."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from lamina.context.trimming import trim_messages
from lamina.conversation.manager import ConversationManager
from lamina.conversation.short_term import BaseMemory
from lamina.conversation.window import WindowPolicy
from lamina.domain.message import Message, Role, ToolCall
from lamina.domain.message_size import message_tokens
from lamina.errors import ProviderUnavailable
from lamina.providers.tokens import EstimateCounter
from lamina.settings.conversation import SummaryConfig
from lamina.state.sqlite import SqliteStateStore
from lamina.testing import FrozenClock

COUNT = EstimateCounter().count
TWELVE = WindowPolicy(fold_at=12, keep=6)


def talk_with_calls(parallel):
    """A question, calls that stand side by side, their results, an answer, and a last question."""
    calls = [ToolCall(f"c{number}", "weigh", "{}") for number in range(parallel)]
    results = [Message(Role.TOOL, f"{number} kilos", tool_call_id=call.id) for number, call in enumerate(calls)]
    return [
        Message(Role.SYSTEM, "answer in Turkish only"),
        Message.user("how heavy is the boat? " * 20),
        Message(Role.ASSISTANT, "", tool_calls=calls),
        *results,
        Message(Role.ASSISTANT, "seven kilos"),
        Message.user("and the oars?"),
    ]


def check_sendable(messages, *, begins_with_summary=False):
    """No result without its call, no call without its results, and a user or the summary speaks first."""
    called = {call.id for message in messages for call in message.tool_calls}
    assert {message.tool_call_id for message in messages if message.role is Role.TOOL} == called
    spoken = [message.role for message in messages if message.role is not Role.SYSTEM]
    assert begins_with_summary or not spoken or spoken[0] is Role.USER


@pytest.mark.case("B92", "B94", "B95")
@pytest.mark.parametrize("parallel", [1, 3])
async def test_at_every_budget_calls_keep_their_results_and_the_system_stays(parallel):
    messages = talk_with_calls(parallel)
    memory = BaseMemory(clock=FrozenClock())
    await memory.add_list(messages, "s")
    whole = sum(message_tokens(message, COUNT) for message in messages)
    for budget in range(10, whole + 5):
        kept, cut = trim_messages(messages, budget, COUNT)
        assert sorted(map(id, [*kept, *cut])) == sorted(map(id, messages))
        check_sendable(kept)
        assert kept[0] is messages[0]
        if budget > 40:
            shown = await memory.get_context("s", max_tokens=budget)
            check_sendable(shown)
            assert shown[0].content == "answer in Turkish only"
            assert sum(message_tokens(message, COUNT) for message in shown) <= budget


@pytest.mark.case("B92", "B94", "B95")
async def test_every_number_of_messages_that_a_thread_shows_is_sendable(manager):
    await manager.add_messages("t", talk_with_calls(3))
    for number in range(1, 8):
        context = await manager.get_thread_context("t", max_messages=number)
        check_sendable(context.messages, begins_with_summary=context.summary is not None)
        assert context.messages[0].content == "answer in Turkish only"


@pytest.fixture
async def make(tmp_path, clock):
    async with SqliteStateStore(tmp_path / "folded.db") as store:
        yield lambda **options: ConversationManager(store, clock=clock, **options)


async def say(manager, first, last):
    await manager.add_messages("t", [{"role": "user", "content": f"turn {n} at berth {n}"} for n in range(first, last)])


async def never(previous, messages):
    await asyncio.sleep(60)


async def raises(previous, messages):
    raise ProviderUnavailable("The model", "429: Error: rate limited")


@pytest.mark.case("B98", "B104")
@pytest.mark.parametrize("summarizer", [raises, never, lambda p, m: "", lambda p, m: " \n"], ids=range(4))
async def test_a_summariser_that_gives_nothing_changes_nothing_is_told_and_not_asked_for_ever(make, summarizer):
    asked = Counter()

    def counted(previous, messages):
        asked["calls"] += 1
        return summarizer(previous, messages)

    manager = make(policy=TWELVE, summarizer=counted, summary=SummaryConfig(timeout=0.02))
    await say(manager, 0, 60)
    context = await manager.get_thread_context("t")
    assert "rate limited" not in str(context.summary)
    assert len(await manager.history("t")) == 60
    assert asked["calls"] == 1
    assert (await manager.compact("t")).warnings != []
    for number in range(60, 90):
        await say(manager, number, number + 1)
    assert len(await manager.history("t")) == 90
    assert asked["calls"] <= 6  # of thirty messages that might each have asked


@pytest.mark.case("B100", "B106")
async def test_a_summary_of_the_older_half_is_followed_by_the_newer_half_as_it_was(make):
    given = []

    def summarizer(previous, messages):
        given.extend(message.content for message in messages)
        return "the first six"

    manager = make(policy=TWELVE, summarizer=summarizer)
    await say(manager, 1, 13)
    context = await manager.get_thread_context("t")
    said = [f"turn {number} at berth {number}" for number in range(1, 13)]
    assert given == said[:6]
    assert context.summary == "the first six"
    assert [message.content for message in context.messages] == said[6:]
    assert [message.content for message in await manager.history("t")] == said


@pytest.mark.case("B101", "B103")
async def test_a_backlog_beyond_the_window_is_folded_and_five_summaries_keep_their_size(make):
    manager = make(policy=WindowPolicy(fold_at=30, keep=10), summary=SummaryConfig(tokens=200, window=1800))
    await manager.add_message_to_thread("t", "user", "Remember that Ada Lind moors at berth 77 in Rotterdam.")
    sizes = []
    for turn in range(5):
        filler = [f"In turn {turn}, part {n}, we spoke of cargo {n * 31} for a while. " * 12 for n in range(40)]
        await manager.add_messages("t", [{"role": "user", "content": each} for each in filler])
        context = await manager.get_thread_context("t")
        sizes.append(COUNT(context.summary))
        assert context.summary.count("messages") <= 2  # none nested in the next
    assert max(sizes) <= 200
    assert "Ada Lind" in context.summary
    assert len(await manager.history("t")) == 201


@pytest.mark.case("B97")
async def test_schemas_and_instructions_are_charged_before_the_thread(kernel):
    schema = {"type": "object", "properties": {"weight": {"type": "number", "description": "in kilos " * 10}}}
    tools = [{"name": f"tool_{number}", "description": "weighs " * 8, "parameters": schema} for number in range(40)]
    await kernel.conversation.add_messages("t", [{"role": "user", "content": f"turn {n}"} for n in range(20)])
    await kernel.memory_engine.store_many(
        [{"content": f"fact {n} about the harbour " * 10, "owner": "ann"} for n in range(40)]
    )
    given = {"intent_id": "i", "goal": "harbour", "owner_id": "ann", "thread_id": "t", "system": "be brief " * 50}
    bare = await kernel.context_engine.compute(**given, token_budget=4500)
    full = await kernel.context_engine.compute(**given, tools=tools, token_budget=4500)
    assert full.estimated_tokens <= 4500
    assert not full.over_budget
    assert full.tokens_by_source["tools"] >= sum(COUNT(str(tool)) for tool in tools) * 0.8
    assert sum(full.tokens_by_source.values()) == full.estimated_tokens
    assert len(full.memories) < len(bare.memories)
    assert {each.reason for each in full.dropped} == {"budget"}


@pytest.mark.case("B106", "B107")
async def test_fifty_turns_of_a_kept_thread_are_sent_as_the_summary_and_the_rest(make):
    manager = make(policy=WindowPolicy(fold_at=20, keep=10))
    for number in range(50):
        await say(manager, number, number + 1)
    context = await manager.get_thread_context("t")
    assert 10 <= len(context.messages) < 20
    assert context.summary is not None
    assert [message.content for message in context.messages][-1] == "turn 49 at berth 49"
    shown = {message.content for message in context.messages}
    assert shown == {f"turn {number} at berth {number}" for number in range(50 - len(shown), 50)}
    assert len(await manager.history("t")) == 50
