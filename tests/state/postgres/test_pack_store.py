from __future__ import annotations

import asyncio

import pytest

from lamina.databases.postgres import PostgresDatabase
from lamina.domain.pack_decay import Tier
from lamina.domain.pack_query import PackQuery
from lamina.errors import ConfigError, StoreDamaged
from lamina.state.postgres import PostgresPackStore, PostgresStateStore, pack_heads, pack_reading
from lamina.testing.pack_contract.material import NOW, TENANT, add, days, get, memory, pack, supersedes, with_pack

CANARY = "zweihundertneunundneunzig"
TABLES = ("pack_heads", "pack_vectors", "pack_memories", "pack_relations", "pack_originals")


@pytest.fixture
async def store(postgres_url, postgres_schema):
    async with PostgresPackStore(postgres_url, schema=postgres_schema) as store:
        yield store


@pytest.fixture
async def owned(postgres):
    """A store of a role that owns its database and is no superuser: row-level security holds for it."""
    url = postgres.make_database("packs_owned", owner="packs_owner")
    try:
        async with PostgresPackStore(url) as store:
            yield store, url
    finally:
        postgres.drop_database("packs_owned")


TOUCHED = """
SELECT coalesce(sum(seq_scan + coalesce(idx_scan, 0)), 0)::integer FROM pg_stat_xact_user_tables
WHERE schemaname = %s AND relname = ANY(%s)
"""


async def scans(store, tables, work):
    """How often the server looks into these tables for the work, by its own count."""

    def so_far(session):
        return session.execute(TOUCHED, (session.schema.name, list(tables))).fetchone()[0]

    def counting(session):
        before = so_far(session)
        work(session)
        return so_far(session) - before

    return await store._opened().write(counting, settings={"lamina.tenant": TENANT})


async def test_reading_packs_never_touches_their_memories(store):
    await with_pack(store, memory("m1"), embedding=[1.0], fingerprint="f")
    query = PackQuery(tenant=TENANT)
    for work in (
        lambda session: pack_heads.list_packs(session, query, limit=None, offset=0),
        lambda session: pack_heads.pack_faces(session, query, 9, None),
        lambda session: pack_heads.count_packs(session, query),
        lambda session: pack_heads.get_packs(session, TENANT, ["p1"]),
        lambda session: pack_heads.find_pack(session, TENANT, "pack-p1", None),
    ):
        assert await scans(store, ["pack_heads"], work) > 0
        assert await scans(store, TABLES[2:], work) == 0


async def test_counting_a_pack_reads_no_original(store):
    await with_pack(store, memory("m1"))
    for work in (
        lambda session: pack_reading.statistics(session, TENANT, "p1"),
        lambda session: pack_reading.get_memories(session, TENANT, ["m1"], with_content=False),
    ):
        assert await scans(store, ["pack_memories"], work) > 0
        assert await scans(store, ["pack_originals"], work) == 0


async def test_row_level_security_hides_other_tenants_from_a_transaction(owned, postgres):
    store, url = owned
    for tenant in (TENANT, "other"):
        await store.create_pack(pack(tenant=tenant, embedding=[1.0], fingerprint="f"))
        await add(store, memory("m1", tenant=tenant), memory("m2", tenant=tenant, relationships=supersedes("m1")))
    for table in TABLES:
        count = f"SELECT count(*) FROM lamina.{table}"  # noqa: S608 - our own names
        assert postgres.run(count, url=url) == [(0,)], table
        found = await store._opened().read(
            lambda session, count=count: session.connection.execute(count).fetchone(),
            settings={"lamina.tenant": "other"},
        )
        assert found in {(1,), (2,)}, table
    assert await store.tenants() == [TENANT, "other"]
    assert (await get(store, "m2")).relationships == supersedes("m1")
    assert await store.touch(TENANT, ["m1"], now=NOW) == {"m1": Tier.FULL}
    assert await store.purge_pack(TENANT, "p1")
    assert await store.tenants() == ["other"]
    assert len(await store.get_memories("other", ["m1", "m2"])) == 2


@pytest.mark.parametrize("deed", ["delete the memory", "purge the pack"])
async def test_no_row_is_left_of_what_was_removed(store, postgres, postgres_schema, deed):
    await with_pack(store, embedding=[1.0], fingerprint="f")
    await add(store, memory("m1", CANARY, name=CANARY), memory("m2", superseded_by="m1"))
    if deed == "purge the pack":
        assert await store.purge_pack(TENANT, "p1")
        tables = TABLES
    else:
        assert await store.delete_memory(TENANT, "m1")
        assert await store.delete_memory(TENANT, "m2")
        tables = TABLES[2:]
    for table in tables:
        assert postgres.run(f'SELECT count(*) FROM "{postgres_schema}".{table}') == [(0,)]  # noqa: S608


async def test_text_that_spells_sql_is_text(store):
    spelled = "x'); DROP TABLE pack_memories; -- %s %(id)s {schema} \\ \""
    await store.create_pack(pack(spelled, tenant=spelled, name="x", owner=spelled, tags=[spelled]))
    await add(store, memory(spelled, spelled, tenant=spelled, pack_id=spelled, name=spelled, tags=[spelled]))
    assert (await get(store, spelled, spelled)).content == spelled
    assert len(await store.list_packs(PackQuery(tenant=spelled, owner=spelled, tag=spelled))) == 1


async def test_packs_and_conversations_share_a_schema(postgres_url, postgres_schema):
    async with (
        PostgresDatabase(postgres_url) as database,
        PostgresStateStore(database=database, schema=postgres_schema),
        PostgresPackStore(database=database, schema=postgres_schema) as store,
    ):
        await with_pack(store, memory("m1"))
        assert (await get(store, "m1")).content == "says m1"


@pytest.mark.parametrize(
    ("statement", "read"),
    [
        ("UPDATE {}.pack_memories SET tier = 'half'", "memory"),
        ("UPDATE {}.pack_memories SET metadata = '[]'", "memory"),
        ("UPDATE {}.pack_originals SET content = '\\x00'", "memory"),
        ("DELETE FROM {}.pack_originals", "memory"),
        ("UPDATE {}.pack_heads SET decay = '[1]'", "pack"),
    ],
)
async def test_a_row_that_cannot_be_read_is_an_error(store, postgres, postgres_schema, statement, read):
    await with_pack(store, memory("m1", CANARY))
    postgres.run(statement.format(f'"{postgres_schema}"'))
    with pytest.raises(StoreDamaged) as refusal:
        await (store.get_memories(TENANT, ["m1"]) if read == "memory" else store.get_packs(TENANT, ["p1"]))
    assert CANARY not in str(refusal.value)


async def test_a_table_that_is_somebody_elses_is_refused(postgres_url, postgres_schema, postgres):
    postgres.run(f'CREATE SCHEMA IF NOT EXISTS "{postgres_schema}"')
    postgres.run(f'CREATE TABLE "{postgres_schema}".pack_heads (id text)')
    with pytest.raises(ConfigError, match="packs"):
        await PostgresPackStore(postgres_url, schema=postgres_schema).initialize()


async def test_many_kinds_of_changes_at_once_wait_for_each_other_and_never_deadlock(postgres_url, postgres_schema):
    async with (
        PostgresPackStore(postgres_url, schema=postgres_schema) as one,
        PostgresPackStore(postgres_url, schema=postgres_schema) as other,
    ):
        await with_pack(one, *(memory(f"m{n}") for n in range(20)))
        every = [f"m{n}" for n in range(20)]
        calls = []
        for turn, store in enumerate((one, other) * 10):
            calls += [
                store.touch(TENANT, every if turn % 2 else every[::-1], now=days(turn)),
                store.mark_projected(TENANT, dict.fromkeys(every[:: 1 if turn % 3 else -1], 1)),
                store.set_tier(TENANT, every[turn], Tier.SUMMARY, expected_revision=1, now=NOW),
                add(store, memory(f"n{turn}", name="n")),
                store.save_memory(memory(every[-turn]), expected_revision=1, now=NOW),
            ]
        await asyncio.gather(*calls)
        found = await one.get_memories(TENANT, every)
        assert [each.access_count for each in found] == [20] * 20
