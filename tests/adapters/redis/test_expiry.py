"""The server drops what has expired, with all that belongs to it, whoever is reading."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.memory import Layer
from lamina.domain.scope import Scope
from lamina.ports.memory_adapter import Capability, Update
from lamina.testing.memory_contract.material import MINE, by_text, by_vector, fields_of, ids, listed, memory

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
EVERYTHING = MemoryFilter(now=WHEN - timedelta(days=1), expiry=Expiry.ANY)


@pytest.fixture(params=["query engine", "sorted sets"])
async def adapter(request, opened, plain_redis_server, monkeypatch):
    """One whose memories are dropped as soon as they have expired."""
    monkeypatch.setattr("lamina.adapters.redis.adapter.GRACE", 1)
    return await (opened(plain_redis_server.url) if request.param == "sorted sets" else opened())


def wait_until_gone(server, pattern):
    until = time.monotonic() + 30
    # Unlike KEYS, SCAN does not only pass over what has expired, but removes it, from the index too.
    while server.ask("SCAN", 0, "MATCH", pattern, "COUNT", 1_000_000)[1]:
        assert time.monotonic() < until
        time.sleep(0.002)


def server_of(adapter, redis_server, plain_redis_server):
    return redis_server if Capability.TEXT in adapter.capabilities else plain_redis_server


def keys_of(server, table):
    return sorted(key.decode("utf-8", "replace") for key in server.ask("KEYS", f"{table}:*"))


async def test_what_the_server_drops_is_nowhere(adapter, redis_server, plain_redis_server, table):
    server = server_of(adapter, redis_server, plain_redis_server)
    expiring = memory(
        "gone",
        "the harbour lamp",
        expires_at=WHEN,
        created_at=WHEN - timedelta(days=2),
        embedding=[1.0, 0.0],
        tags=["t"],
    )
    await adapter.store(MINE, memory("kept", "the harbour kite", embedding=[0.0, 1.0]))
    await adapter.store(MINE, expiring)
    wait_until_gone(server, f"{table}:[ehi]:*:gone")
    assert ids(await listed(adapter, MINE, EVERYTHING)) == ["kept"]
    assert await adapter.count(MINE, EVERYTHING) == 1
    assert await adapter.count(MINE, MemoryFilter(now=WHEN - timedelta(days=1))) == 1
    assert await adapter.get(MINE, "gone") is None
    assert await adapter.find_duplicate(MINE, Layer.LONGTERM, expiring.digest, WHEN - timedelta(days=1)) is None
    assert await adapter.delete(MINE, "gone") is False
    assert await adapter.update(MINE, "gone", {"confidence": 0.5}) is False
    if Capability.TEXT in adapter.capabilities:
        assert ids(await by_text(adapter, "harbour", MINE, EVERYTHING)) == ["kept"]
        assert ids(await by_vector(adapter, [1.0, 0.0], MINE, EVERYTHING)) == ["kept"]
        statistics = await adapter.term_statistics(MINE, ["lamp"], WHEN - timedelta(days=1))
        assert (statistics.documents, statistics.frequencies["lamp"]) == (1, 0)


async def test_nothing_is_left_of_what_the_server_dropped(adapter, redis_server, plain_redis_server, table):
    server = server_of(adapter, redis_server, plain_redis_server)
    await adapter.store(MINE, memory("kept"))
    before = keys_of(server, table)
    later = datetime(2099, 1, 1, tzinfo=UTC)
    await adapter.store(Scope("other"), memory("gone", tenant="other", content="the secret", expires_at=later))
    await adapter.update(Scope("other"), "gone", {"content": "the other secret"})
    assert [each.content for each in await adapter.history(Scope("other"), "gone")] == ["the secret"]
    await adapter.update_many(Scope("other"), [Update("gone", {"expires_at": WHEN})])
    wait_until_gone(server, f"{table}:[ehi]:*:gone")
    await adapter.count(MINE, EVERYTHING)  # of another tenant
    assert keys_of(server, table) == before


async def test_what_gets_more_time_or_no_end_is_kept(adapter, redis_server, plain_redis_server, table):
    server = server_of(adapter, redis_server, plain_redis_server)
    later = datetime(2099, 1, 1, tzinfo=UTC)
    await adapter.store_many(MINE, [memory(id, f"text {id}", expires_at=later) for id in ("a", "b")])
    await adapter.update(MINE, "a", {"expires_at": None})
    await adapter.update(MINE, "b", {"expires_at": later + timedelta(days=1), "content": "changed"})
    lives = {key.decode()[-1]: server.ask("PEXPIRETIME", key) for key in server.ask("KEYS", f"{table}:[ehi]:*")}
    assert lives["a"] == -1
    for key in server.ask("KEYS", f"{table}:[ehi]:*:b"):
        assert server.ask("PEXPIRETIME", key) == int((later + timedelta(days=1)).timestamp() * 1_000) + 1
    assert len(server.ask("KEYS", f"{table}:h:*:b")) == 1


async def test_the_id_of_what_the_server_dropped_is_free(adapter, redis_server, plain_redis_server, table):
    server = server_of(adapter, redis_server, plain_redis_server)
    await adapter.store(MINE, memory("m1", "old", expires_at=WHEN, owner="ada"))
    wait_until_gone(server, f"{table}:e:*:m1")
    theirs = memory("m1", "new", owner="bob")
    await adapter.store(Scope("acme", "bob"), theirs)
    back = await adapter.get(Scope("acme"), "m1")
    assert fields_of(back) == fields_of(theirs)
    assert await listed(adapter, MINE) == []


async def test_more_than_one_call_clears_away_is_cleared_away_all_the_same(
    adapter, redis_server, plain_redis_server, table
):
    server = server_of(adapter, redis_server, plain_redis_server)
    later = datetime(2099, 1, 1, tzinfo=UTC)
    await adapter.store_many(MINE, [memory(f"m{n}", f"text {n}", expires_at=later) for n in range(2_300)])
    await adapter.store_many(MINE, [memory(f"m{n}", f"text {n}", expires_at=WHEN) for n in range(2_299)])
    wait_until_gone(server, f"{table}:e:*:m1298")
    assert await adapter.count(MINE, MemoryFilter(now=WHEN - timedelta(days=1))) == 1
    assert server.ask("ZCARD", f"{table}:due") == 1


async def test_an_expired_memory_is_kept_for_a_while_since_clocks_differ(opened):
    adapter = await opened()
    await adapter.store(MINE, memory(expires_at=WHEN))
    assert await adapter.get(MINE, "m1") is not None
    assert ids(await listed(adapter, MINE, MemoryFilter(now=WHEN, expiry=Expiry.EXPIRED))) == ["m1"]
