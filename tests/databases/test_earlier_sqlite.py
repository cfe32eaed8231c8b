from __future__ import annotations

import hashlib
import os
import sqlite3
from contextlib import closing

import pytest

from lamina.databases.earlier_sqlite import EarlierSqlite
from lamina.errors import AdapterError, StoreDamaged

TABLE = "CREATE TABLE agent_memories (id TEXT PRIMARY KEY, content TEXT)"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "old" / "memory.db"


def write(file, *statements, journal="delete"):
    file.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def picture(file):
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in file.parent.iterdir()}


async def all_rows(store, table):
    return [row async for page in store.rows(table) for row in page]


@pytest.mark.parametrize("journal", ["delete", "wal"])
async def test_rows_are_read_and_the_folder_stays_as_it_was_byte_for_byte(file, journal):
    write(file, TABLE, "INSERT INTO agent_memories VALUES ('m1', 'tea'), ('m2', 'milk')", journal=journal)
    before = picture(file)
    store = EarlierSqlite(file)
    assert await store.tables() == ["agent_memories"]
    assert await all_rows(store, "agent_memories") == [{"id": "m1", "content": "tea"}, {"id": "m2", "content": "milk"}]
    assert picture(file) == before


async def test_what_is_only_in_the_log_of_a_running_program_is_read_too(file):
    write(file, TABLE, journal="wal")
    with closing(sqlite3.connect(file)) as running:
        running.execute("INSERT INTO agent_memories VALUES ('m1', 'fresh')")
        running.commit()
        assert await all_rows(EarlierSqlite(file), "agent_memories") == [{"id": "m1", "content": "fresh"}]


async def test_a_file_that_may_only_be_read_in_a_folder_that_may_only_be_read_is_read(file):
    write(file, TABLE, "INSERT INTO agent_memories VALUES ('m1', 'tea')", journal="wal")
    file.chmod(0o400)
    file.parent.chmod(0o500)
    try:
        assert len(await all_rows(EarlierSqlite(file), "agent_memories")) == 1
    finally:
        file.parent.chmod(0o700)


@pytest.mark.parametrize("count", [0, 499, 500, 501, 1750])
async def test_every_row_comes_once_whatever_the_number(file, count):
    write(file, "CREATE TABLE agent_memories (content TEXT)")
    with closing(sqlite3.connect(file)) as connection:
        connection.executemany("INSERT INTO agent_memories VALUES (?)", [(str(n),) for n in range(count)])
        connection.commit()
    rows = await all_rows(EarlierSqlite(file), "agent_memories")
    assert [row["content"] for row in rows] == [str(n) for n in range(count)]


async def test_a_table_without_row_ids_and_one_with_extreme_ones_are_read(file):
    write(
        file,
        "CREATE TABLE agent_memories (id TEXT PRIMARY KEY, content TEXT) WITHOUT ROWID",
        "INSERT INTO agent_memories VALUES ('m1', 'tea')",
        "CREATE TABLE Kernova_Memories (n INTEGER PRIMARY KEY, content TEXT)",
        "INSERT INTO Kernova_Memories VALUES (9223372036854775807, 'last'), (-9223372036854775808, 'first')",
    )
    store = EarlierSqlite(file)
    assert await store.tables() == ["agent_memories", "Kernova_Memories"]
    assert await all_rows(store, "agent_memories") == [{"id": "m1", "content": "tea"}]
    assert [row["content"] for row in await all_rows(store, "Kernova_Memories")] == ["first", "last"]


async def test_views_and_other_tables_are_not_read(file):
    write(file, "CREATE TABLE secrets (content TEXT)", "CREATE VIEW agent_memories AS SELECT * FROM secrets")
    store = EarlierSqlite(file)
    assert await store.tables() == []
    with pytest.raises(AdapterError, match="no table of memories"):
        await all_rows(store, 'secrets"; DROP TABLE secrets; --')


async def test_text_that_is_no_utf8_is_read_with_signs_for_what_is_broken(file):
    write(file, TABLE, "INSERT INTO agent_memories VALUES ('m1', CAST(x'746561ff' AS TEXT))")
    assert await all_rows(EarlierSqlite(file), "agent_memories") == [{"id": "m1", "content": "tea\ufffd"}]


async def test_the_stamp_changes_with_the_rows(file):
    write(file, TABLE)
    store = EarlierSqlite(file)
    before = await store.stamp()
    assert await store.stamp() == before
    write(file, "INSERT INTO agent_memories VALUES ('m1', 'tea')")
    os.utime(file, ns=(1, 1))
    assert await store.stamp() != before


async def test_a_missing_file_is_an_error_and_is_not_made(file):
    with pytest.raises(AdapterError, match="is no file"):
        await EarlierSqlite(file).tables()
    assert not file.exists()


@pytest.mark.parametrize("data", [b"not a database, but some text that is long enough to look like one" * 20, b"short"])
async def test_a_file_that_is_no_database_is_an_error(file, data):
    file.parent.mkdir()
    file.write_bytes(data)
    with pytest.raises(StoreDamaged, match="no database"):
        await EarlierSqlite(file).tables()


async def test_a_truncated_file_is_an_error_and_no_shorter_answer(file):
    write(file, TABLE, "INSERT INTO agent_memories VALUES ('m1', hex(randomblob(20000)))")
    file.write_bytes(file.read_bytes()[:-8192])
    with pytest.raises(StoreDamaged):
        await all_rows(EarlierSqlite(file), "agent_memories")
