"""What happens when the server is down, slow, full, strict, or gone in the middle of a call."""

import asyncio
import threading

import pytest
import services

from lamina.adapters.redis import RedisAdapter
from lamina.domain.lexical import ANALYZER_VERSION
from lamina.domain.scope import Scope
from lamina.errors import AdapterError, AdapterUnavailable, ConfigError, StoreDamaged
from lamina.ports.memory_adapter import Capability, ListOptions, SearchOptions
from lamina.testing.memory_contract.material import LIVE, MINE, NOW, by_text, memory

ALL = ListOptions(scope=MINE, filter=LIVE, limit=1_000)
FIRST = SearchOptions(scope=MINE, filter=LIVE, limit=10)


async def texts(adapter):
    return [each.content for each in await adapter.list(ALL)]


def test_a_repr_shows_where_and_no_password():
    adapter = RedisAdapter("redis://mira:hunter2@db.example:6380/3", table="notes")
    assert "hunter2" not in repr(adapter)
    assert "db.example:6380/3" in repr(adapter)


async def test_a_server_that_is_down_is_said_to_be_and_may_come_later(server_of_its_own, opened):
    server = server_of_its_own()
    server.kill()
    adapter = RedisAdapter(server.url)
    with pytest.raises(AdapterUnavailable, match="cannot be reached"):
        await adapter.initialize()
    server.start()
    await adapter.initialize()
    await adapter.store(MINE, memory())
    assert await texts(adapter) == ["the harbour lamp is lit"]
    await adapter.close()


async def test_the_same_adapter_works_again_after_a_restart(server_of_its_own, opened):
    server = server_of_its_own(durable=True)
    adapter = await opened(server.url)
    await adapter.store_many(MINE, [memory(f"m{n}", f"lamp {n}", embedding=[1.0, float(n)]) for n in range(300)])
    server.kill()
    for call in (adapter.list(ALL), adapter.search_by_text("lamp", FIRST), adapter.store(MINE, memory("new"))):
        with pytest.raises(AdapterUnavailable):
            await call
    server.start()
    every = SearchOptions(scope=MINE, filter=LIVE, limit=1_000)
    assert len(await adapter.search_by_vector([1.0, 0.0], every)) == 300  # however soon it is asked
    assert len(await adapter.search_by_text("lamp", every)) == 300
    await adapter.store(MINE, memory("new"))
    assert len(await texts(adapter)) == 301


async def test_what_was_acknowledged_survives_a_server_that_is_killed_in_mid_write(server_of_its_own, opened):
    server = server_of_its_own(durable=True)
    adapter = await opened(server.url)
    acknowledged = []

    async def write() -> None:
        for number in range(100_000):
            batch = [memory(f"{number} {part}", f"text {number}", embedding=[1.0, 0.0]) for part in "abc"]
            await adapter.store_many(MINE, batch)
            acknowledged.append(number)
            if number == 30:
                threading.Thread(target=server.kill).start()

    with pytest.raises(AdapterUnavailable):
        await write()
    server.start()
    found = await texts(adapter)
    kept = {int(each.removeprefix("text ")) for each in found}
    assert set(acknowledged) <= kept <= {*acknowledged, len(acknowledged)}
    assert len(found) == 3 * len(kept)  # each batch whole
    assert await adapter.count(MINE, LIVE) == len(found)
    every = SearchOptions(scope=MINE, filter=LIVE, limit=100_000)
    assert len(await adapter.search_by_vector([1.0, 0.0], every)) == len(found)
    await adapter.store(MINE, memory("after", "text 0"))


async def test_a_server_that_lost_everything_is_written_to_and_searched_again(server_of_its_own, opened):
    server = server_of_its_own()
    adapter = await opened(server.url)
    await adapter.store(MINE, memory(embedding=[1.0, 0.0]))
    server.kill()
    server.start()
    assert await texts(adapter) == []
    await adapter.store(MINE, memory(embedding=[1.0, 0.0]))
    assert len(await adapter.search_by_vector([1.0, 0.0], FIRST)) == 1
    server.ask("FLUSHALL")
    await adapter.store(MINE, memory("m2"))
    assert [hit.entry.id for hit in await adapter.search_by_text("harbour", FIRST)] == ["m2"]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_write_whose_answer_is_lost_is_not_repeated_and_its_id_settles_it(proxy, opened, when):
    adapter = await opened(f"redis://127.0.0.1:{proxy.port}/0")
    await adapter.store(MINE, memory(content="first"))
    cuts = iter([True])
    setattr(proxy, when, lambda data: b"the second" in data and next(cuts, False))
    with pytest.raises(AdapterUnavailable, match="Whether a change was kept is not known"):
        await adapter.store(MINE, memory("m2", "the second"))
    assert proxy.cuts == 1
    assert await texts(adapter) == (["first"] if when == "before" else ["first", "the second"])
    twins = await adapter.store_many(MINE, [memory("m2", "the second")], if_new=True)
    assert [twin and twin.revision for twin in twins] == [None if when == "before" else 1]
    assert await texts(adapter) == ["first", "the second"]
    assert await adapter.history(MINE, "m2") == []


async def test_a_read_whose_connection_is_cut_is_asked_again(proxy, opened):
    adapter = await opened(f"redis://127.0.0.1:{proxy.port}/0")
    await adapter.store(MINE, memory(embedding=[1.0, 0.0]))
    for call, mark in (
        (lambda: adapter.list(ALL), b"EVALSHA"),
        (lambda: adapter.search_by_text("harbour", FIRST), b"FT.SEARCH"),
        (lambda: adapter.search_by_vector([1.0, 0.0], FIRST), b"FT.SEARCH"),
        (lambda: adapter.load_meta(MINE, "key"), b"HMGET"),
    ):
        cuts = iter([True])
        proxy.before = lambda data, mark=mark, cuts=cuts: mark in data and next(cuts, False)
        await call()
    assert proxy.cuts == 4


async def test_a_server_that_does_not_answer_is_not_waited_for_for_ever(server_of_its_own, opened):
    server = server_of_its_own()
    adapter = await opened(server.url, timeout=0.3)
    await adapter.store(MINE, memory())
    server.ask("CLIENT", "PAUSE", 1_500, "ALL")
    with pytest.raises(AdapterUnavailable, match="did not answer in time"):
        await adapter.list(ALL)
    server.kill()
    server.start()
    await adapter.store(MINE, memory())


async def test_callers_wait_for_a_free_connection(opened):
    adapter = await opened(threads=1)
    await asyncio.gather(*(adapter.store(MINE, memory(f"m{number}")) for number in range(30)))
    assert await adapter.count(MINE, LIVE) == 30


@pytest.mark.parametrize(
    "url", ["redis://:wrong@127.0.0.1:{}/0", "redis://nobody:wrong@127.0.0.1:{}/0", "redis://127.0.0.1:{}/0"]
)
async def test_a_login_that_is_refused_is_named_without_the_password(server_of_its_own, url):
    server = server_of_its_own("--requirepass", "s3cret")
    adapter = RedisAdapter(url.format(server.port))
    with pytest.raises(AdapterError, match="refused the login") as failure:
        await adapter.initialize()
    assert not isinstance(failure.value, AdapterUnavailable)
    assert "wrong" not in str(failure.value)
    right = RedisAdapter(f"redis://:s3cret@127.0.0.1:{server.port}/0")
    await right.initialize()
    await right.close()


async def test_a_user_who_may_not_write_is_told_what_is_lacking(redis_server, opened, table):
    redis_server.ask("ACL", "SETUSER", "reader", "on", ">pw", "allkeys", "+@read", "+info", "+ft._list", "+@connection")
    with pytest.raises(AdapterError, match="does not allow the user"):
        await opened(f"redis://reader:pw@127.0.0.1:{redis_server.port}/0")


async def test_a_user_who_may_only_touch_the_tables_keys_can_work(redis_server, opened, table):
    redis_server.ask("ACL", "SETUSER", "narrow", "on", ">pw", "~mine:*", "+@all", "-@dangerous", "+info")
    adapter = await opened(f"redis://narrow:pw@127.0.0.1:{redis_server.port}/0", prefix="mine:", query_engine=True)
    await adapter.store(MINE, memory(embedding=[1.0, 0.0]))
    assert (
        len(await adapter.search_by_vector([1.0, 0.0], FIRST)) == len(await adapter.search_by_text("lamp", FIRST)) == 1
    )
    assert await texts(adapter) == ["the harbour lamp is lit"]
    with pytest.raises(AdapterError, match="does not allow the user"):
        await opened(f"redis://narrow:pw@127.0.0.1:{redis_server.port}/0", query_engine=False)


async def until_full(write) -> int:
    """How many writes it took."""
    for number in range(1_000):
        try:
            await write(number)
        except AdapterUnavailable as error:
            if "is full" not in str(error):
                raise
            return number
    pytest.fail("it is never full")


async def test_a_full_server_refuses_writes_and_takes_deletions(server_of_its_own, opened):
    server = server_of_its_own("--maxmemory", "20mb", "--maxmemory-policy", "noeviction")
    adapter = await opened(server.url)
    stored = await until_full(
        lambda number: adapter.store_many(
            MINE, [memory(f"m{10 * number + n}", f"text {n} " + "7" * 40_000) for n in range(10)]
        )
    )
    stored *= 10
    assert await adapter.count(MINE, LIVE) == stored  # the last batch left nothing behind
    assert len(await adapter.search_by_text("text", SearchOptions(scope=MINE, filter=LIVE, limit=5_000))) == stored
    changed = await until_full(lambda number: adapter.update(MINE, f"m{number}", {"content": "7" * 1_000_000}))
    assert (await adapter.get(MINE, f"m{changed}")).revision == 1
    assert all(await adapter.delete_many(MINE, [f"m{n}" for n in range(stored)]))
    await adapter.store(MINE, memory("m0", "room again"))
    assert await texts(adapter) == ["room again"]


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
async def test_a_server_that_drops_memories_is_refused_unless_that_is_accepted(server_of_its_own, opened, policy):
    server = server_of_its_own("--maxmemory", "500mb", "--maxmemory-policy", policy)
    with pytest.raises(AdapterError, match="accept_eviction=True"):
        await opened(server.url)
    adapter = await opened(server.url, accept_eviction=True)
    assert Capability.PERSISTENCE not in adapter.capabilities
    await adapter.store_many(MINE, [memory("m1"), memory("m2")])
    [key] = [key for key in server.ask("KEYS", "*") if b":e:" in key and key.endswith(b"m1")]
    server.ask("DEL", key)  # as an eviction would
    assert [each.id for each in await adapter.list(ALL)] == ["m2"]
    assert await adapter.count(MINE, LIVE) == 1
    assert await adapter.find_duplicate(MINE, memory().layer, memory().digest, NOW) is not None
    theirs = memory("m1", owner="bob")
    await adapter.store(Scope("acme", "bob"), theirs)
    assert [each.id for each in await adapter.list(ALL)] == [
        "m2"
    ]  # an owner's old place shows nothing of the new one's
    assert await adapter.count(MINE, LIVE) == 1


async def test_a_policy_that_never_applies_is_no_reason_to_refuse(server_of_its_own, opened):
    adapter = await opened(server_of_its_own("--maxmemory-policy", "allkeys-lru").url)
    assert Capability.PERSISTENCE in adapter.capabilities


async def test_a_node_of_a_cluster_is_refused(server_of_its_own, opened):
    server = server_of_its_own("--cluster-enabled", "yes", engine=False)
    with pytest.raises(ConfigError, match="node of a Redis Cluster"):
        await opened(server.url)


async def test_a_replica_takes_no_writes(server_of_its_own, opened):
    server = server_of_its_own(engine=False)
    adapter = await opened(server.url)
    await adapter.store(MINE, memory())
    server.ask("REPLICAOF", "127.0.0.1", services.free_port())
    with pytest.raises(AdapterError, match="takes no writes"):
        await adapter.store(MINE, memory("m2"))


async def test_scripts_that_the_server_forgot_are_sent_again(redis_server, opened):
    adapter = await opened()
    await adapter.store(MINE, memory())
    redis_server.ask("SCRIPT", "FLUSH")
    await adapter.store(MINE, memory("m2"))
    redis_server.ask("SCRIPT", "FLUSH")
    assert len(await texts(adapter)) == 2


async def test_a_layout_of_a_newer_lamina_is_refused_and_left_alone(redis_server, opened, table):
    await opened()
    redis_server.ask("SET", f"{table}:layout", "2 1")
    with pytest.raises(StoreDamaged, match="Upgrade Lamina"):
        await opened()
    assert redis_server.ask("GET", f"{table}:layout") == b"2 1"


async def test_words_of_an_older_analyzer_are_indexed_anew_but_not_those_of_another_table(redis_server, opened, table):
    for adapter in (await opened(), await opened(prefix=f"{table}:e:", table="x")):
        await adapter.store_many(MINE, [memory(f"m{n}", "die Bücher und das Haus") for n in range(3)])
    keys = redis_server.ask("KEYS", f"{table}:*i:*:m*")
    for key in keys:
        redis_server.ask("HSET", key, "w", "bucher")
    redis_server.ask("SET", f"{table}:layout", f"1 {ANALYZER_VERSION - 1}")
    anew = await opened()
    assert len(await by_text(anew, "Buch")) == len(await by_text(anew, "Haus")) == 3
    assert sum(redis_server.ask("HGET", key, "w") == b"bucher" for key in keys) == 3
    assert redis_server.ask("GET", f"{table}:layout").decode() == f"1 {ANALYZER_VERSION}"


async def test_keys_that_are_not_ours_are_damage_and_not_quoted(redis_server, opened, table):
    adapter = await opened()
    await adapter.store(MINE, memory())
    [key] = redis_server.ask("KEYS", f"{table}:e:*")
    redis_server.ask("HSET", key, "d", '{"id": "the secret"}')
    with pytest.raises(StoreDamaged) as failure:
        await adapter.list(ALL)
    assert "secret" not in str(failure.value)
    assert failure.value.__cause__ is None
    redis_server.ask("DEL", key)
    redis_server.ask("SET", key, "the secret")
    with pytest.raises(StoreDamaged) as failure:
        await adapter.get(MINE, "m1")
    assert "secret" not in str(failure.value)
