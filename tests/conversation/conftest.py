"""Managers over real SQLite files, with a driven clock, counted ids and models that say what a test gives them."""

from __future__ import annotations

import pytest

from lamina.conversation.manager import ConversationManager
from lamina.memory.factory import create_memory_engine
from lamina.state.sqlite import SqliteStateStore
from lamina.testing import FrozenClock, HashingEmbedder, counting_ids


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lamina.db"


@pytest.fixture
async def store(path):
    async with SqliteStateStore(path) as opened:
        yield opened


@pytest.fixture
async def memory(clock):
    async with await create_memory_engine(
        provider="memory", embed=HashingEmbedder(), clock=clock, new_id=counting_ids()
    ) as engine:
        yield engine


@pytest.fixture
def events():
    """What was emitted: pairs of a name and facts."""
    return []


@pytest.fixture
def make(store, clock, events):
    """Makes managers on the one store."""
    new_id = counting_ids("msg_")

    def manager(**settings):
        defaults = {
            "clock": clock,
            "new_id": new_id,
            "emit": lambda event: events.append((event.name.value, dict(event.facts))),
        }
        return ConversationManager(store, **{**defaults, **settings})

    return manager


@pytest.fixture
def manager(make):
    return make()


@pytest.fixture
def fill():
    """Adds numbered messages, of the user and the assistant in turn."""

    async def add(manager, count, *, thread="t", start=1, **options):
        for number in range(start, start + count):
            role = "user" if number % 2 else "assistant"
            await manager.add_message_to_thread(thread, role, f"Message {number} of the harbour log.", **options)

    return add
