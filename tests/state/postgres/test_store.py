from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from lamina.databases.postgres import PostgresDatabase
from lamina.domain.message import Role
from lamina.domain.thread import ThreadRef
from lamina.errors import AdapterError, ConfigError, StoreDamaged
from lamina.state.postgres import PostgresStateStore, messages, summaries, threads
from lamina.testing.state_contract.material import NOW, REF, begin, document, event, fill, said, summary

CANARY = "zweihundertneunundneunzig"

TOUCHED = """
SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::integer
FROM pg_stat_xact_user_tables WHERE schemaname = %s
"""


async def touched(store, work):
    """How many rows the server reads for the work, by its own count."""

    def so_far(session):
        return session.execute(TOUCHED, (session.schema.name,)).fetchone()[0]

    def counting(session):
        session.execute("SET LOCAL enable_seqscan = off")  # as in a database that is not nearly empty
        before = so_far(session)
        work(session)
        return so_far(session) - before

    return await store._opened().write(counting)


async def test_adding_to_a_long_thread_and_reading_its_end_reads_as_many_rows_as_in_a_short_one(
    store, postgres, postgres_schema
):
    short, long = ThreadRef("acme", "short"), ThreadRef("acme", "long")
    for ref, number in ((short, 60), (long, 5000)):
        await begin(store, ref)
        events = [event(f"m{n}", role=Role.SYSTEM if n == 0 else Role.USER) for n in range(number)]
        await store.append(ref, events, now=NOW)
    postgres.run(f'ANALYZE "{postgres_schema}".messages')  # as the server itself does within a minute
    costs = [
        [
            await touched(store, lambda session, ref=ref: messages.append(session, ref, [event("new")], NOW)),
            await touched(
                store,
                lambda session, ref=ref: messages.events(session, ref, after=0, before=None, limit=50, newest=True),
            ),
            await touched(store, lambda session, ref=ref: messages.live_size(session, ref)),
            await touched(store, lambda session, ref=ref: messages.system_events(session, ref, 4000)),
            await touched(store, lambda session, ref=ref: messages.find_events(session, ref, ["m7"])),
            await touched(store, lambda session, ref=ref: threads.get_thread(session, ref)),
            await touched(store, lambda session, ref=ref: summaries.summaries(session, ref, 1)),
        ]
        for ref in (short, long)
    ]
    assert costs[0] == costs[1]
    assert 50 <= costs[1][1] < 60  # the fifty, and what leads to them
    assert max(costs[1][0], *costs[1][2:]) < 15


async def test_listing_heads_reads_no_messages(store):
    await fill(store, 100)
    rows = await touched(
        store,
        lambda session: threads.list_threads(
            session, REF.tenant, REF.kind, owner=None, status=None, limit=10, offset=0, after=None
        ),
    )
    assert rows < 10


async def test_keys_of_json_keep_their_order_and_numbers_their_form(store):
    await begin(store)
    odd = {"zz": 1.0, "a": 1, "b": {"y": 1e16, "x": -0.0}, "large": 2**80, "small": 5e-324}
    [kept] = await store.append(REF, [event("m").replace(state=odd)], now=NOW)
    [read] = await store.events(REF)
    assert repr(read.state) == repr(kept.state) == repr(odd)


@pytest.mark.parametrize(
    "instant", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC), NOW.replace(microsecond=1)]
)
async def test_any_instant_comes_back_to_the_microsecond(store, instant):
    await begin(store)
    assert await store.update_thread(REF, now=instant)
    assert (await store.get_thread(REF)).updated_at == instant
    await store.save_document(document().replace(ingested_at=instant), expected_generation=None)
    [kept] = await store.find_documents("acme")
    assert kept.ingested_at == instant


async def test_the_longest_names_there_can_be_have_room_in_every_index(store):
    longest = "\U0001f409" * 512
    ref = ThreadRef(longest, longest)
    await begin(store, ref, owner=longest, namespace=longest)
    await store.append(ref, [event(longest)], now=NOW)
    head = document().replace(tenant=longest, id=longest, source=longest, owner=longest)
    assert await store.save_document(head, expected_generation=None)
    assert [each.id for each in await store.list_threads(longest, owner=longest)] == [longest]
    assert [each.id for each in await store.find_documents(longest, source=longest)] == [longest]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {}.messages SET state = '\"CANARY\"' WHERE id = 'm2'",
        "UPDATE {}.messages SET message = '[\"CANARY\"]' WHERE id = 'm2'",
        'UPDATE {}.messages SET message = \'{{"role": "CANARY", "content": ""}}\' WHERE id = \'m2\'',
    ],
)
async def test_a_message_that_cannot_be_read_is_told_without_its_content_and_hides_no_other(
    store, postgres, postgres_schema, statement
):
    await fill(store, 3)
    postgres.run(statement.format(f'"{postgres_schema}"').replace("CANARY", CANARY))
    for options in ({}, {"limit": 2, "newest": True}, {"limit": 2}):
        found = await store.events(REF, **options)
        assert ([each.message.id for each in found], found.unreadable) == (["m1", "m3"], [2])
    with pytest.raises(StoreDamaged) as raised:
        await store.find_events(REF, ["m2"])
    assert CANARY not in str(raised.value)
    assert raised.value.__cause__ is None


async def test_nothing_of_a_deleted_thread_is_left_in_a_row(store, postgres, postgres_schema):
    await fill(store, 3)
    await store.append(REF, [event("c", CANARY)], now=NOW)
    await store.fold(REF, summary(4, CANARY), expected_folded_through=0, now=NOW)
    assert await store.delete_thread(REF)
    for table in ("threads", "messages", "summaries"):
        assert postgres.run(f'SELECT count(*) FROM "{postgres_schema}".{table}') == [(0,)]  # noqa: S608


async def test_text_that_spells_sql_is_text(store, postgres, postgres_schema):
    spelled = "x'); DROP TABLE messages; -- %s %(id)s {schema} \\ \""
    ref = ThreadRef(spelled, spelled)
    await begin(store, ref, owner=spelled)
    await store.append(ref, [event(spelled, spelled)], now=NOW)
    assert await said(store, ref) == [spelled]
    assert [each.owner for each in await store.list_threads(spelled, owner=spelled)] == [spelled]


async def test_schemas_of_one_database_are_apart(postgres_url, postgres_schema, store, postgres):
    other = f"{postgres_schema}_other"
    try:
        async with PostgresDatabase(postgres_url) as database:
            stores = [PostgresStateStore(database=database, schema=name) for name in (postgres_schema, other)]
            for each in stores:
                await each.initialize()
            await fill(stores[0], 1)
            assert await stores[1].get_thread(REF) is None
            assert await store.get_thread(REF) is not None
            for each in stores:
                await each.close()
    finally:
        postgres.run(f'DROP SCHEMA "{other}" CASCADE')


def test_a_store_can_be_used_from_one_event_loop_after_another(postgres_url, postgres_schema):
    store = PostgresStateStore(postgres_url, schema=postgres_schema)

    async def use(number):
        await store.initialize()
        await begin(store)
        await store.append(REF, [event(f"m{number}")], now=NOW)
        return await said(store)

    assert asyncio.run(use(1)) == ["m1"]
    assert asyncio.run(use(2)) == ["m1", "m2"]
    asyncio.run(store.close())
    asyncio.run(store.close())


async def test_a_closed_store_says_how_to_open_it(postgres_url):
    with pytest.raises(AdapterError, match=r"Call `await store.initialize\(\)` first"):
        await PostgresStateStore(postgres_url).get_thread(REF)


async def test_a_store_whose_server_was_down_can_be_opened_later(postgres, postgres_url, postgres_schema):
    store = PostgresStateStore(postgres_url, schema=postgres_schema)
    postgres.halt()
    try:
        with pytest.raises(AdapterError, match="cannot be reached"):
            await store.initialize()
    finally:
        postgres.start()
    await store.initialize()
    await begin(store)
    await store.close()


def test_a_store_needs_a_place():
    with pytest.raises(ConfigError, match="url: is missing"):
        PostgresStateStore()
