"""What holds of a thread whatever is added to it, in whatever order, under whatever policy."""

from __future__ import annotations

import asyncio

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.conversation.manager import ConversationManager
from lamina.conversation.window import WindowPolicy
from lamina.domain.message import Message, Role, ToolCall
from lamina.domain.message_groups import orphans
from lamina.errors import ProviderUnavailable
from lamina.settings.tiers import ContextThresholds
from lamina.state.sqlite import SqliteStateStore
from lamina.testing import EchoModel

IDS = st.sampled_from("abcd")
ADDED = st.one_of(
    st.just(Message.user("I am at the quay.")),
    st.just(Message.assistant("The crane is free.")),
    st.just(Message.system("Be brief.")),
    st.sets(IDS, min_size=1).map(lambda ids: Message.assistant("", tool_calls=[ToolCall(i, "look") for i in ids])),
    IDS.map(lambda call: Message.tool("Seen.", call_id=call)),
)
STEPS = st.lists(
    st.one_of(st.lists(ADDED, min_size=1, max_size=6), st.sampled_from(["compact", "archive", "reopen"])), max_size=14
)
POLICIES = st.tuples(st.integers(0, 6), st.integers(1, 6), st.integers(1, 4)).map(
    lambda numbers: WindowPolicy(numbers[0] + numbers[1], numbers[0], numbers[2])
)
REPLIES = st.lists(
    st.sampled_from(
        [
            {"summary": "They met at the quay.", "topics": ["quay"], "facts": ["The crane is free."]},
            {"summary": "", "topics": [], "facts": []},
            ProviderUnavailable("The model", "down"),
            "prose about the quay",
        ]
    ),
    max_size=12,
)
TIERS = st.none() | st.just(ContextThresholds(pre_rot_threshold=60, recent_to_keep=2))


async def check(manager, added):
    history = await manager.history("t", limit=10_000)
    assert [message.text for message in history] == [message.text for message in added]
    assert [message.index for message in history] == list(range(1, len(added) + 1))
    thread = await manager.retrieve("t")
    through = thread.summaries[0].to_index if thread.summaries else 0
    for most in (None, 1, 3):
        context = await manager.get_thread_context("t", max_messages=most)
        shown = {message.index for message in context.messages}
        assert len(shown) == len(context.messages)
        assert orphans(context.messages) == []
        system = {message.index for message in history if message.role is Role.SYSTEM}
        assert system <= shown
        covered = {message.index for message in history if message.index <= through}
        missing = set(range(1, len(history) + 1)) - shown - covered
        if missing:
            assert f"[{len(missing)} messages that are not shown here" in context.summary
        assert (context.summary is None) == (not missing and not through)
        ordered = [message.index for message in context.messages if message.role is not Role.SYSTEM]
        assert ordered == sorted(ordered)


async def play(steps, policy, replies, tiers):
    added = []
    async with SqliteStateStore(":memory:") as store:
        model = EchoModel(replies)

        def new():
            return ConversationManager(store, policy=policy, llm=model if replies else None, context_engineering=tiers)

        manager = new()
        await manager.create("t")
        for step in steps:
            if step == "compact":
                await manager.compact("t")
            elif step == "archive":
                await manager.archive("t")
                assert (await manager.get_thread_context("t")).messages == []
                await manager.unarchive("t")
            elif step == "reopen":
                manager = new()
            else:
                added += await manager.add_messages("t", step)
            await check(manager, added)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS, POLICIES, REPLIES, TIERS)
def test_every_message_is_shown_or_covered_and_no_result_is_an_orphan_after_any_operation(
    steps, policy, replies, tiers
):
    asyncio.run(play(steps, policy, replies, tiers))
