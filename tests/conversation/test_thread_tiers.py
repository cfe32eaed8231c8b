from __future__ import annotations

import pytest

from lamina.conversation.window import WindowPolicy
from lamina.domain.message import Message, ToolCall
from lamina.domain.message_groups import orphans
from lamina.errors import MessageNotFound, ScopeError
from lamina.settings.tiers import ContextThresholds
from lamina.testing import EchoModel

THRESHOLDS = ContextThresholds(pre_rot_threshold=2_000, recent_to_keep=4)
LISTING = "src/quay/crane.py\nsrc/quay/berth.py\n" * 40


async def work(manager, rounds):
    for number in range(rounds):
        await manager.add_messages(
            "t",
            [
                Message.user(f"Look at round {number}"),
                Message.assistant("", tool_calls=[ToolCall(f"c{number}", "list_files")]),
                Message.tool(f"Round {number}\n{LISTING}", call_id=f"c{number}"),
                Message.assistant(f"Round {number} has two files."),
            ],
        )


async def test_older_messages_become_references_and_history_has_the_originals(make, events):
    manager = make(context_engineering=THRESHOLDS)
    await work(manager, 4)
    context = await manager.get_thread_context("t")
    compacted = [message for message in context.messages if message.text.startswith("[COMPACTED: ")]
    assert [message.index for message in compacted] == [3, 7, 11]
    assert context.messages[-2].text.startswith("Round 3\nsrc/quay")
    assert context.tokens < 2_000
    assert context.summary is None
    history = await manager.history("t")
    assert [message.text for message in history if message.role == "tool"] == [
        f"Round {number}\n{LISTING}" for number in range(4)
    ]
    compactions = [facts for name, facts in events if name == "context.compacted"]
    assert compactions[0]["thread_id"] == "t"
    assert compactions[0]["tokens_after"] < compactions[0]["tokens_before"]


async def test_an_agent_gets_an_original_back_by_the_reference_that_it_sees(make):
    manager = make(context_engineering=THRESHOLDS)
    await manager.create("t", owner="mira")
    await work(manager, 4)
    expand = manager.expand_tool("t", owner="mira")
    assert await expand("#3") == f"Round 0\n{LISTING}"
    assert (await manager.expand("t", 3)).tool_call_id == "c0"
    for reference in ("#99", "#0", "msg_none"):
        with pytest.raises(MessageNotFound):
            await expand(reference)
    with pytest.raises(ScopeError):
        await manager.expand_tool("t", owner="tomas")("#3")


async def test_where_references_are_not_enough_older_messages_are_summarised_from_their_originals(make):
    model = EchoModel([{"summary": "They looked at files.", "topics": [], "facts": []}] * 20)
    manager = make(context_engineering=THRESHOLDS, policy=WindowPolicy(1_001, 1_000), llm=model)
    await work(manager, 60)
    context = await manager.get_thread_context("t")
    assert context.summary == "They looked at files."
    assert context.tokens < 2_000
    assert context.warnings == []
    assert orphans(context.messages) == []
    assert len(context.messages) >= 4
    assert "COMPACTED" not in str(model.calls)
    assert len(await manager.history("t", limit=1_000)) == 240


async def test_a_tail_that_is_too_large_is_told_and_never_cut(make):
    manager = make(context_engineering=THRESHOLDS)
    for number in range(6):
        await manager.add_message_to_thread("t", "user", f"{number} " + "crane " * 1_500)
    context = await manager.get_thread_context("t")
    assert [len(message.text) for message in context.messages[-4:]] == [9_002] * 4
    assert all(message.text.startswith("[COMPACTED: ") for message in context.messages[:-4])
    assert "over its budget of 1900" in context.warnings[0]


async def test_where_the_tail_alone_is_too_large_not_every_message_costs_a_summary(make):
    model = EchoModel([{"summary": "They spoke of cranes.", "topics": [], "facts": []}] * 60)
    manager = make(context_engineering=THRESHOLDS, policy=WindowPolicy(1_001, 1_000), llm=model)
    for number in range(40):
        await manager.add_message_to_thread("t", "user", f"{number} " + "crane " * 1_500)
    assert 1 <= len(model.calls) <= 40 // 2
    assert (await manager.get_thread_context("t")).summary == "They spoke of cranes."


async def test_adding_the_same_message_again_changes_nothing_though_it_was_compacted(make):
    manager = make(context_engineering=THRESHOLDS)
    sent = [Message.user(f"{number} {LISTING}").replace(id=f"m{number}") for number in range(8)]
    await manager.add_messages("t", sent)
    assert (await manager.get_thread_context("t")).messages[0].text.startswith("[COMPACTED")
    again = await manager.add_messages("t", sent)
    assert [message.text for message in again] == [message.text for message in sent]
    assert len(await manager.history("t")) == 8
