"""Instants are instants: whatever the zone of the host, in the night in which clocks go back, and when time stands."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

EVERYWHERE = pytest.mark.parametrize("place", ["memory", "sqlite", "postgres"], indirect=True)


@pytest.fixture
def zone(request, monkeypatch):
    """The host is in this zone."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.case("B28")
@EVERYWHERE
async def test_a_time_without_a_zone_is_utc_and_compares_with_all_others(engine):
    naive = await engine.store("the lamp was lit", occurred_at="2026-03-01T09:00", valid_until="2027-01-01T00:00")
    aware = await engine.store("the lamp is out", occurred_at="2026-03-01T09:00+02:00", supersedes=[naive])
    assert (await engine.get(naive)).occurred_at == datetime(2026, 3, 1, 9, tzinfo=UTC)
    assert (await engine.get(aware)).occurred_at == datetime(2026, 3, 1, 7, tzinfo=UTC)
    assert (await engine.get(naive)).valid_until == datetime(2026, 3, 1, 7, tzinfo=UTC)
    assert [hit.entry.id for hit in await engine.recall("lamp")] == [aware]
    assert await engine.forget_where(older_than="2020-01-01T00:00") == 0


@pytest.mark.case("B29")
@pytest.mark.parametrize("zone", ["America/New_York"], indirect=True)
async def test_in_the_night_in_which_clocks_go_back_order_and_instants_are_true(zone, manager, clock):
    first = datetime(2026, 11, 1, 3, 30, tzinfo=UTC)  # 23:30 the evening before, by the wall
    instants = [first + timedelta(minutes=30 * number) for number in range(8)]
    for instant in instants:
        clock.now = instant.astimezone(timezone(timedelta(hours=-4)))
        await manager.add_message_to_thread("t", "user", f"at {instant:%H:%M}")
        await manager.create(f"thread {instant:%H:%M}")
    history = await manager.history("t")
    assert [message.timestamp for message in history] == instants
    assert [message.content for message in history] == [f"at {instant:%H:%M}" for instant in instants]
    listed = [thread.id for thread in await manager.list_threads() if thread.id != "t"]
    assert listed == [f"thread {instant:%H:%M}" for instant in reversed(instants)]


@pytest.mark.case("B31")
@EVERYWHERE
@pytest.mark.parametrize("zone", ["America/Bogota", "Pacific/Auckland"], indirect=True)
async def test_two_hours_are_two_hours_in_every_zone(zone, engine, clock):
    id = await engine.store("the ferry leaves soon", ttl=7200)
    assert (await engine.get(id)).expires_at == clock.now + timedelta(hours=2)
    clock.advance(7199)
    assert [hit.entry.id for hit in await engine.recall("ferry")] == [id]
    clock.advance(1)
    assert await engine.get(id) is None
    assert await engine.recall("ferry") == []
    assert await engine.count() == 0


@pytest.mark.case("B32")
async def test_fifty_messages_of_one_instant_keep_their_order_each_time_they_are_read(manager, clock):
    said = [f"message {number}" for number in range(40)]
    await manager.add_messages("t", [{"role": "user", "content": each} for each in said])
    for number in range(40, 50):
        clock.now -= timedelta(hours=1)
        said.append(f"message {number}")
        await manager.add_message_to_thread("t", "user", said[-1])
    for _ in range(20):
        assert [message.content for message in await manager.history("t")] == said


@pytest.mark.case("B32")
@EVERYWHERE
async def test_memories_of_one_instant_are_walked_in_the_order_of_storing(engine, clock):
    stored = []
    for number in range(20):
        stored.append(await engine.store(f"fact {number}"))
        clock.now -= timedelta(seconds=number % 2)
    for _ in range(3):
        assert [entry.id async for entry in engine.scan()] == stored
