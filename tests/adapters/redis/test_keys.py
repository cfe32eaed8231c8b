"""Keys are a table's own and unambiguous, whatever stands in names and ids."""

import asyncio
import sys
from textwrap import dedent

import pytest

from lamina.domain.filters import MemoryFilter, Where
from lamina.domain.scope import Scope
from lamina.ports.memory_adapter import Capability
from lamina.testing.memory_contract.material import LIVE, MINE, NOW, by_text, by_vector, ids, listed, memory

TABLES = [("", "a"), ("", "ab"), ("a:", "a"), ("a:i:", "a"), ("a", "a")]
"""Prefixes and tables of which some begin others' keys."""

HOSTILE = [
    *("m", "m:1", "m:", ":m", "m*", "m?", "[m]", "{m}", "m\n", "m\r\nDEL x", "m,n", "m|n", "-m", "m\\", "@a:{m}"),
    *("'\"", "$v", "(m)=>[KNN 1 @v2 $v]", "m\u2028", "👩‍👧", "ǆ", "x" * 512),
]


@pytest.fixture(params=["query engine", "sorted sets"])
def url(request, redis_server, plain_redis_server):
    return (redis_server if request.param == "query engine" else plain_redis_server).url


async def test_tables_and_prefixes_never_see_each_other(url, opened, table):
    adapters = [await opened(url, prefix=f"{table}:{prefix}", table=name) for prefix, name in TABLES]
    for number, adapter in enumerate(adapters):
        await adapter.store(MINE, memory("m1", f"the harbour lamp {number}", embedding=[1.0, 0.0]))
        await adapter.save_meta(MINE, "key", f"value {number}", NOW)
    for number, adapter in enumerate(adapters):
        assert [each.content for each in await listed(adapter)] == [f"the harbour lamp {number}"]
        assert await adapter.count(Scope("acme"), LIVE) == 1
        assert await adapter.load_meta(MINE, "key") == f"value {number}"
        if Capability.TEXT in adapter.capabilities:
            assert [hit.entry.content for hit in await by_text(adapter, "harbour")] == [f"the harbour lamp {number}"]
            assert len(await by_vector(adapter, [1.0, 0.0])) == 1
    await adapters[0].delete(MINE, "m1")
    assert [await each.count(MINE, LIVE) for each in adapters] == [0, 1, 1, 1, 1]


async def test_every_key_begins_with_the_prefix_and_the_table(redis_server, opened, table):
    redis_server.ask("FLUSHALL")
    adapter = await opened(prefix="mine/", table=table)
    await adapter.store(MINE, memory(expires_at=NOW, embedding=[1.0, 0.0]))
    await adapter.update(MINE, "m1", {"content": "changed"})
    await adapter.save_meta(MINE, "key", "value", NOW)
    assert all(key.startswith(f"mine/{table}:".encode()) for key in redis_server.ask("KEYS", "*"))
    await adapter.delete(MINE, "m1")
    left = {key.decode().removeprefix(f"mine/{table}:").split(":")[0] for key in redis_server.ask("KEYS", "*")}
    assert left <= {"layout", "clock", "seq", "dimensions", "c"}


async def test_hostile_ids_tags_and_keys_of_metadata_stay_what_they_are(url, opened):
    adapter = await opened(url)
    entries = [
        memory(each, f"the harbour lamp {number}", tags=[each], metadata={each: each}, embedding=[1.0, float(number)])
        for number, each in enumerate(HOSTILE)
    ]
    await adapter.store_many(MINE, entries)
    assert ids(await listed(adapter)) == HOSTILE
    for each in HOSTILE:
        assert (await adapter.get(MINE, each)).tags == [each]
        for filter in (MemoryFilter(now=NOW, tags=(each,)), MemoryFilter(now=NOW, where=Where((each,)).eq(each))):
            assert ids(await listed(adapter, MINE, filter)) == [each]
            if Capability.TEXT in adapter.capabilities:
                assert ids(await by_text(adapter, "harbour", MINE, filter)) == [each]
                assert ids(await by_vector(adapter, [1.0, 0.0], MINE, filter)) == [each]
    assert await adapter.delete_many(MINE, HOSTILE) == [True] * len(HOSTILE)
    assert await adapter.count(MINE, LIVE) == 0


WRITER = dedent("""
    import asyncio, sys
    from lamina.adapters.redis import RedisAdapter
    from lamina.testing.memory_contract.material import MINE, NOW, memory

    async def main(url, table, name):
        adapter = RedisAdapter(url, table=table)
        await adapter.initialize()
        new = 0
        for number in range(60):
            [twin] = await adapter.store_many(MINE, [memory(f"{name}{number}", f"fact {number}")], if_new=True)
            new += twin is None
            await adapter.touch(MINE, ["shared"], NOW)
        await adapter.close()
        print(new)

    asyncio.run(main(*sys.argv[1:]))
""")


async def test_processes_that_write_the_same_store_it_once_and_lose_no_count(url, opened, table):
    adapter = await opened(url)
    await adapter.store(MINE, memory("shared", "shared"))
    command = [sys.executable, "-c", WRITER, url, table]
    pipe = asyncio.subprocess.PIPE
    writers = [await asyncio.create_subprocess_exec(*command, name, stdout=pipe) for name in "ab"]
    new = [int((await writer.communicate())[0]) for writer in writers]
    assert sum(new) == 60
    entries = await listed(adapter)
    assert sorted(each.content for each in entries) == sorted(["shared", *(f"fact {n}" for n in range(60))])
    assert (await adapter.get(MINE, "shared")).access_count == 120
