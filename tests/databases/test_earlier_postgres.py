from __future__ import annotations

import asyncio

import psycopg
import pytest

from lamina.databases.earlier_postgres import EarlierPostgres
from lamina.errors import AdapterError, AdapterUnavailable, ConfigError, InvalidInput
from lamina.memory.factory import create_memory_engine
from lamina.registry import open_earlier

LAYOUT = """
CREATE TABLE kernova_memories (
    id uuid PRIMARY KEY,
    content text NOT NULL,
    "type" text,
    tags text[],
    "userId" text,
    user_id text,
    namespace text,
    metadata jsonb,
    embedding vector(3),
    picture bytea,
    mood text,
    importance numeric,
    created_at timestamptz DEFAULT now(),
    updated_at timestamp
)
"""
ID = "00000000-0000-4000-8000-00000000000{}"
ROWS = [
    (ID.format(1), "The spare key is under the blue pot", "long-term", ["home", "key, spare"], "mira", "calm"),
    (ID.format(2), "Lunch is at noon", "working", None, "tomas", None),
    (ID.format(3), "   ", "working", None, "tomas", None),
]


@pytest.fixture
def old(postgres, postgres_database):
    postgres.run("CREATE EXTENSION vector", url=postgres_database)
    postgres.run(LAYOUT, url=postgres_database)
    for row in ROWS:
        postgres.run(
            "INSERT INTO kernova_memories (id, content, type, tags, user_id, mood, namespace, metadata, embedding,"
            " picture, importance, created_at, updated_at) VALUES (%s, %s, %s, %s, %s, %s, 'house', %s, '[1,2,3]', 'x',"
            " 0.25, '2025-01-02 03:04:05.678901+02', '2025-01-03 03:04:05')",
            *row,
            '{"room": {"name": "hall"}, "n": 9007199254740993}',
            url=postgres_database,
        )
    return postgres_database


async def all_rows(store, table="kernova_memories"):
    return [row async for page in store.rows(table) for row in page]


async def test_rows_are_read_with_whatever_columns_they_have_but_bytes(old):
    store = open_earlier(old)
    assert isinstance(store, EarlierPostgres)
    assert await store.tables() == ["kernova_memories"]
    rows = {row["id"]: row for row in await all_rows(store)}
    assert len(rows) == 3
    first = rows[ID.format(1)]
    assert (first["content"], first["tags"], first["mood"]) == (ROWS[0][1], '["home", "key, spare"]', "calm")
    assert first["metadata"] == '{"n": 9007199254740993, "room": {"name": "hall"}}'
    assert "picture" not in first


async def test_memories_are_imported_once_on_request(old, tmp_path):
    async with await create_memory_engine(path=tmp_path / "new.db", embedding="none") as engine:
        report = await engine.migrate_v1(old)
        assert (report.read, report.written, report.skipped, report.bad_count) == (3, 2, 0, 1)
        again = await engine.migrate_v1(old)
        assert (again.written, again.skipped) == (0, 2)
        found = await engine.get(ID.format(1), owner="mira")
        assert (found.layer.value, found.tags, found.namespace) == ("longterm", ["home", "key, spare"], "house")
        assert (found.relevance, found.source) == (0.25, "v1:kernova_memories")
        assert found.created_at.isoformat() == "2025-01-02T01:04:05.678901+00:00"
        assert found.metadata == {"mood": "calm", "room": {"name": "hall"}, "n": 9007199254740993}


async def test_nothing_is_written_there(old, postgres):
    stamp = await EarlierPostgres(old).stamp()
    reading = f"{old}&options=-c%20default_transaction_read_only%3Don"
    assert len(await all_rows(EarlierPostgres(reading))) == 3
    assert await EarlierPostgres(old).stamp() == stamp
    postgres.run("UPDATE kernova_memories SET mood = 'glad'", url=old)
    assert await EarlierPostgres(old).stamp() != stamp


@pytest.mark.parametrize("count", [0, 499, 500, 501, 1250])
async def test_every_row_comes_once_whatever_the_number(postgres, postgres_database, count):
    postgres.run(
        "CREATE TABLE agent_memories AS SELECT n::text AS content FROM generate_series(1, 0) AS n",
        url=postgres_database,
    )
    postgres.run(
        "INSERT INTO agent_memories SELECT n::text FROM generate_series(1, %s) AS n", count, url=postgres_database
    )
    rows = await all_rows(EarlierPostgres(postgres_database), "agent_memories")
    assert [row["content"] for row in rows] == [str(n) for n in range(1, count + 1)]


async def test_a_reader_that_stops_early_leaves_no_session_behind(old, postgres):
    pages = EarlierPostgres(old).rows("kernova_memories")
    assert await anext(pages)
    await pages.aclose()
    query = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%%' AND datname = %s"
    for _ in range(1_000):  # a session ends a moment after its client has
        if postgres.run(query, old.partition("?")[0].rpartition("/")[2]) == [(0,)]:
            return
        await asyncio.sleep(0.005)
    pytest.fail("the session is still there")


async def test_a_database_without_such_memories_is_refused(postgres_database, tmp_path):
    async with await create_memory_engine(path=tmp_path / "new.db", embedding="none") as engine:
        with pytest.raises(InvalidInput, match="holds no table of memories of version 1"):
            await engine.migrate_v1(postgres_database)


async def test_only_tables_of_memories_are_read(old):
    with pytest.raises(AdapterError, match="is no table of memories"):
        await all_rows(EarlierPostgres(old), "pg_class")


async def test_a_server_that_is_not_there_is_told_without_the_password():
    with pytest.raises(AdapterUnavailable, match=r"127.0.0.1:1/notes cannot be reached") as raised:
        await EarlierPostgres("postgresql://mira:hunter2@127.0.0.1:1/notes").tables()
    assert "hunter2" not in str(raised.value)
    assert isinstance(raised.value.__cause__, psycopg.OperationalError)


def test_what_is_no_url_is_refused():
    with pytest.raises(ConfigError, match="url: "):
        EarlierPostgres("mysql://x/y")
