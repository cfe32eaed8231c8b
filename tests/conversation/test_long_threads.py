"""What an operation reads of a thread is the same however long the thread is: statements and messages are counted."""

from __future__ import annotations

import sqlite3
from collections import Counter

import pytest

from lamina.conversation.compaction import is_compacted
from lamina.conversation.manager import ConversationManager
from lamina.conversation.tiering import size_of
from lamina.conversation.tiers import Tier, tier_of
from lamina.conversation.window import WindowPolicy
from lamina.domain.message import Message
from lamina.domain.thread import ThreadRef
from lamina.settings.tiers import ContextThresholds
from lamina.state.sqlite import SqliteStateStore, messages

SHORT, LONG = 100, 400
SAID = "We agreed to move the nightly export of the ledger to Rotterdam, because Ada Lind asked for it in March."
TIERS = ContextThresholds(pre_rot_threshold=20_000, recent_to_keep=10)
MANY, REFERENCE_TOKENS = 300, 33


@pytest.fixture
def cost(monkeypatch):
    """Statements that were run, and messages that were read, since it was cleared; not what opens a connection."""
    counted = Counter()
    connect, event_of = sqlite3.connect, messages.event_of

    def traced(*args, **options):
        connection = connect(*args, **options)
        connection.set_trace_callback(lambda text: counted.update(statements=not text.startswith("PRAGMA")))
        return connection

    def read(row):
        counted["messages"] += 1
        return event_of(row)

    monkeypatch.setattr(sqlite3, "connect", traced)
    monkeypatch.setattr(messages, "event_of", read)
    return counted


async def costs_of_one(cost, operation, rounds=6):
    """The most that one of several costs: shortening comes now and then."""
    most = Counter()
    for _ in range(rounds):
        cost.clear()
        await operation()
        most |= cost
    return most


@pytest.mark.parametrize("options", [{}, {"context_engineering": TIERS}], ids=["by number", "by number and tokens"])
async def test_a_long_thread_costs_no_more_than_a_short_one(tmp_path, cost, options):
    async with SqliteStateStore(tmp_path / "threads.db") as store:
        manager = ConversationManager(store, **options)
        seen = []
        for length in (SHORT, LONG):
            name = f"t{length}"
            await manager.add_messages(name, [Message.user(f"{place}. {SAID}") for place in range(length)])

            async def add(name=name):
                await manager.add_message_to_thread(name, "user", SAID)

            async def page(name=name, length=length):
                assert len(await manager.history(name, offset=length - 20, limit=10)) == 10

            async def context(name=name):
                await manager.get_thread_context(name)

            await add()
            seen.append([await costs_of_one(cost, operation) for operation in (add, page, context)])
            cost.clear()
            assert await manager.delete(name)
            seen[-1].append(Counter(cost))
        short, long = seen
        assert long == short
        assert long[0]["statements"] <= 25
        assert long[2]["statements"] <= 6
        assert long[0]["messages"] <= 2 * WindowPolicy().due_at


async def test_references_are_not_looked_through_again_at_each_message(tmp_path, cost):
    async with SqliteStateStore(tmp_path / "threads.db") as store:
        tiers = ContextThresholds(pre_rot_threshold=REFERENCE_TOKENS * MANY, recent_to_keep=10)
        manager = ConversationManager(store, context_engineering=tiers, policy=WindowPolicy(100_001, 100_000))
        await manager.add_messages("t", [Message.user(f"{place}. {SAID * 3}") for place in range(MANY)])
        ref = ThreadRef("default", "t")
        size = await size_of(store, ref)
        assert tier_of(size.tokens, tiers) is Tier.COMPACTION
        one = await costs_of_one(cost, lambda: manager.add_message_to_thread("t", "user", SAID * 3))
        assert one["messages"] < 30
        events = await store.events(ref)
        assert [is_compacted(each) for each in events] == [True] * (MANY - 4) + [False] * 10
        await manager.delete("t")
        await manager.add_messages("t", [Message.user(f"{place}. {SAID * 3}") for place in range(MANY)])
        assert is_compacted((await store.events(ref, limit=1))[0])  # a new thread of that name is looked through anew


async def test_a_message_under_a_new_id_is_not_looked_for(tmp_path, cost):
    async with SqliteStateStore(tmp_path / "threads.db") as store:
        manager = ConversationManager(store)
        await manager.add_message_to_thread("t", "user", "first")
        given = await costs_of_one(cost, lambda: manager.add_message_to_thread("t", "user", "again", id="mine"))
        made = await costs_of_one(cost, lambda: manager.add_message_to_thread("t", "user", "new"))
        assert made["statements"] < given["statements"]
        assert made["messages"] == 0
