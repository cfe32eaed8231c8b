"""Collections beside each other, their names, their versions, and what is written into them at once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from lamina.adapters.postgres import PostgresAdapter, analyzer, inserting
from lamina.adapters.postgres.tables import name_of
from lamina.databases.postgres import PostgresDatabase
from lamina.errors import ConfigError, StoreDamaged
from lamina.state.postgres import PostgresStateStore
from lamina.testing.memory_contract.material import (
    LIVE,
    MINE,
    NOW,
    by_text,
    by_vector,
    fields_of,
    ids,
    listed,
    memory,
    put,
)
from lamina.testing.memory_contract.round_trip import full

WRITER = """
import asyncio, sys
from lamina.adapters.postgres import PostgresAdapter
from lamina.testing.memory_contract.material import MINE, NOW, memory

async def main(url, name):
    adapter = PostgresAdapter(url)
    await adapter.initialize()
    for number in range(60):
        await adapter.store_many(MINE, [memory(f"{name}{number}", f"said {number}", embedding=[1.0, 0.0])], if_new=True)
        await adapter.touch(MINE, ["shared"], NOW)
    await adapter.close()

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


async def test_collections_of_one_schema_never_see_each_other(opened, url):
    tables = ["a", "A", "a_b", "x" * 63, "x" * 62 + "y"]
    adapters = [await opened(url, table=table) for table in tables]
    for number, adapter in enumerate(adapters):
        await put(adapter, memory(content=f"number{number}", embedding=[1.0, float(number)]))
        await adapter.save_meta(MINE, "key", str(number), NOW)
    for number, adapter in enumerate(adapters):
        assert [each.content for each in await listed(adapter)] == [f"number{number}"]
        assert len(await by_text(adapter, f"number{number}")) == len(await by_vector(adapter, [1.0, 0.0])) == 1
        assert await adapter.load_meta(MINE, "key") == str(number)


@pytest.mark.parametrize("table", ["", "1a", "_a", "a-b", "a b", 'a"; DROP', "größe", "a" * 64, None])
def test_a_name_that_cannot_be_a_tables_is_refused(table):
    with pytest.raises(ConfigError, match="table: ") as refusal:
        PostgresAdapter("postgresql://localhost/x", table=table)
    assert "ASCII letters" in refusal.value.remedy


def test_names_that_would_be_cut_by_the_server_are_told_apart():
    long, other = "a" * 63, "a" * 62 + "b"
    names = {name_of(table, part) for table in (long, other) for part in ("words", "by_owner")}
    assert len(names) == 4
    assert all(len(name) <= 63 for name in names)


async def test_somebody_elses_table_is_left_alone(opened, url, aside):
    aside("CREATE SCHEMA lamina AUTHORIZATION lamina_app")
    aside("CREATE TABLE lamina.lamina_memories (mine text)")
    with pytest.raises(ConfigError, match="that Lamina did not make"):
        await opened(url)


async def test_a_newer_lamina_is_refused_and_nothing_is_changed(opened, url, aside):
    adapter = await opened(url)
    await put(adapter, memory())
    aside("UPDATE lamina.schema_version SET version = 2 WHERE component = 'memories of lamina_memories'")
    with pytest.raises(StoreDamaged, match="Use the newest Lamina"):
        await put(adapter, memory("m2"))
    with pytest.raises(StoreDamaged, match="Use the newest Lamina"):
        await opened(url)


async def test_words_of_an_older_analyzer_are_made_anew_for_all_tenants(opened, url, aside, monkeypatch):
    monkeypatch.setattr(analyzer, "PAGE", 2)
    adapter = await opened(url)
    await adapter.store_many(MINE, [memory(f"m{number}", f"the lamp {number}") for number in range(5)])
    await put(adapter, memory(tenant="other"))
    aside("UPDATE lamina.lamina_memories_words SET words = '{1}'")
    aside("UPDATE lamina.schema_version SET version = 0 WHERE component = 'words of lamina_memories'")
    assert await by_text(adapter, "lamp") == []
    again = await opened(url)
    assert len(await by_text(again, "lamp")) == 5
    assert aside("SELECT count(*) FROM lamina.lamina_memories_words WHERE words = '{1}'") == [(0,)]
    forced = "SELECT relforcerowsecurity FROM pg_class WHERE relname IN ('lamina_memories', 'lamina_memories_tenants')"
    assert aside(forced) == [(True,), (True,)]


async def test_words_of_a_newer_analyzer_are_refused(opened, url, aside):
    await opened(url)
    aside("UPDATE lamina.schema_version SET version = 999 WHERE component = 'words of lamina_memories'")
    with pytest.raises(StoreDamaged, match="indexed by a newer Lamina"):
        await opened(url)


async def test_what_is_copied_and_what_is_inserted_are_the_same(adapter, monkeypatch):
    monkeypatch.setattr(inserting, "PORTION", 4)
    batch = [full().replace(id=f"f{number}", content=f"lit {number}") for number in range(6)]
    batch += [memory(f"m{number}", f"plain {number}") for number in range(5)]
    found = []
    for least in (1, 1_000):
        monkeypatch.setattr(inserting, "COPIED_FROM", least)
        await adapter.store_many(MINE, batch)
        entries = await listed(adapter, include_embeddings=True)
        found.append([fields_of(entry) for entry in entries])
        assert len(await by_text(adapter, "lit plain")) == 11
        assert len(await by_vector(adapter, [1.0, 0.0, 0.0])) == 6
        await adapter.delete_many(MINE, ids(entries))
    assert found[0] == found[1] == [fields_of(entry) for entry in batch]


async def test_a_word_that_no_index_could_hold_is_found(adapter):
    word = "x" * 500_000
    await put(adapter, memory("m1", f"{word} harbour"), memory("m2", "a lamp"))
    assert ids(await by_text(adapter, "harbour")) == ["m1"]
    await put(adapter, memory("m3", "y" * 5_000))
    assert ids(await by_text(adapter, "y" * 5_000)) == ["m3"]


async def test_entries_become_visible_in_the_order_of_their_seq(opened, url):
    writers = [await opened(url) for _ in range(3)]
    reader = await opened(url)
    seen = []

    async def write(adapter, name):
        for number in range(15):
            await put(adapter, memory(f"{name}{number}", embedding=[1.0, 0.0]))

    async def follow():
        while len(seen) < 45:
            seen.extend(await listed(reader, after=seen[-1].seq if seen else 0))

    await asyncio.gather(follow(), *(write(adapter, f"w{n}-") for n, adapter in enumerate(writers)))
    assert len({entry.id for entry in seen}) == 45
    assert [entry.seq for entry in seen] == list(range(1, 46))


async def test_two_processes_that_say_the_same_store_it_once_and_count_every_read(adapter, url, tmp_path):
    await put(adapter, memory("shared"))
    script = tmp_path / "writer.py"
    script.write_text(WRITER, encoding="utf-8")
    source = str(Path(inserting.__file__).parents[3])
    ended = await asyncio.gather(*(asyncio.to_thread(_run, script, url, name, source) for name in ("x", "y")))
    assert ended == [0, 0]
    entries = await listed(adapter)
    assert sorted(each.content for each in entries[1:]) == sorted(f"said {number}" for number in range(60))
    assert entries[0].access_count == 120


async def test_a_kernels_stores_share_connections(postgres, url):
    database = PostgresDatabase(url, connections=2)
    memories, chunks = PostgresAdapter(database=database), PostgresAdapter(database=database, table="lamina_chunks")
    async with PostgresStateStore(database=database):
        await asyncio.gather(memories.initialize(), chunks.initialize())
        await asyncio.gather(*(put(each, memory(f"m{n}")) for each in (memories, chunks) for n in range(10)))
        name = url.partition("?")[0].rpartition("/")[2]
        assert postgres.run("SELECT count(*) FROM pg_stat_activity WHERE datname = %s", name)[0][0] <= 2
        await memories.close()
        assert await chunks.count(MINE, LIVE) == 10
    await chunks.close()


def _run(script, url, name, source):
    command = [sys.executable, str(script), url, name]
    return subprocess.run(command, env={"PYTHONPATH": source}, timeout=120, check=False).returncode


@pytest.mark.parametrize(
    ("statement", "finding", "is_mended"),
    [
        ("DELETE FROM {words}", "the memory 'm1' has no words in the index", True),
        ("UPDATE {words} SET words = '{{1}}'", "the memory 'm1' is indexed with other words", True),
        ("UPDATE {memories} SET content = 'other'", "the memory 'm1' has the digest of another content", True),
        ("UPDATE {tenants} SET last_seq = 0", "1 memories are newer than the counter", True),
        ("UPDATE {vectors} SET dimensions = 9", "1 vectors say another length", False),
        ("UPDATE {memories} SET metadata_text = '['", "the row of the memory 'm1' cannot be read", False),
    ],
)
async def test_a_collection_that_contradicts_itself_is_found_out(
    postgres_url, postgres_schema, statement, finding, is_mended
):
    adapter = PostgresAdapter(postgres_url, schema=postgres_schema)
    await adapter.initialize()
    await put(adapter, memory("m1", "kiwi and lime", embedding=[1.0, 2.0]))
    assert await adapter.check_tenant("acme") == []
    await adapter._write(MINE, lambda collection: collection.execute(statement).rowcount)
    assert (await adapter.check_tenant("acme"))[0].startswith(finding)
    assert bool(await adapter.repair_tenant("acme")) == is_mended
    assert (await adapter.check_tenant("acme") == []) == is_mended
    await adapter.close()
