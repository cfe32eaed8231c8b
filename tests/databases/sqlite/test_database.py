# ruff: noqa: ASYNC240 - tests may wait for their own files
import asyncio
import gc
import multiprocessing
import os
import sqlite3
import threading
import warnings
from pathlib import Path

import pytest

from lamina.adapters.sqlite import SqliteAdapter
from lamina.databases.sqlite import SqliteDatabase
from lamina.databases.sqlite.components import Component
from lamina.domain.thread import ThreadRef
from lamina.errors import AdapterError, ConfigError, StoreDamaged
from lamina.state.sqlite import SqliteStateStore
from lamina.state.sqlite.tables import STEPS
from lamina.testing.memory_contract.material import MINE, ids, listed, memory, put
from lamina.testing.state_contract.material import NOW, REF, event, fill, said


class NewerState(SqliteStateStore):
    _steps = (*STEPS, lambda connection: connection.execute("ALTER TABLE lamina_threads ADD COLUMN colour TEXT"))


class NewerAdapter(SqliteAdapter):
    _migrations = (*SqliteAdapter._migrations, lambda collection: collection.execute("CREATE TABLE new (a)"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "lamina.db"


def versions(file: Path) -> dict[str, int]:
    connection = sqlite3.connect(file)
    found = dict(connection.execute("SELECT component, version FROM schema_version"))
    connection.close()
    return found


def threads() -> int:
    return sum(each.name.startswith("lamina-sqlite") for each in threading.enumerate())


async def test_memories_and_conversations_share_one_file_and_one_writing_thread(file: Path) -> None:
    before = threads()
    database = SqliteDatabase(file)
    adapter, chunks = SqliteAdapter(database=database), SqliteAdapter(database=database, table="chunks")
    store = SqliteStateStore(database=database)
    for each in (adapter, chunks, store):
        await each.initialize()
    assert threads() - before == 3
    await asyncio.gather(put(adapter, memory("m1")), put(chunks, memory("c1")), fill(store, 3))
    assert ids(await listed(adapter)) == ["m1"]
    assert ids(await listed(chunks)) == ["c1"]
    assert await said(store) == ["m1", "m2", "m3"]
    assert versions(file) == {"lamina_memories": 4, "chunks": 4, "lamina_state": 1}
    assert await adapter.check() == await chunks.check() == await store.check() == []
    for each in (adapter, chunks, store):
        await each.close()
    assert threads() == before


@pytest.mark.parametrize("turns", range(4))
async def test_closing_that_is_cancelled_leaves_no_thread_behind(file: Path, turns: int) -> None:
    before = threads()
    store = SqliteStateStore(file)
    await store.initialize()
    closing = asyncio.create_task(store.close())
    for _ in range(turns):
        await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    if turns == 0:  # it had not begun
        await store.close()
    for _ in range(3000):  # they end on their own
        if threads() <= before:  # fewer: of stores that others dropped
            break
        await asyncio.sleep(0.01)
    assert threads() <= before


async def test_who_leaves_closes_nothing_for_the_others_and_may_come_again(file: Path) -> None:
    database = SqliteDatabase(file)
    adapter, store = SqliteAdapter(database=database), SqliteStateStore(database=database)
    await adapter.initialize()
    await store.initialize()
    await adapter.close()
    await adapter.close()
    with pytest.raises(AdapterError, match="not open"):
        await listed(adapter)
    await fill(store, 1)
    await adapter.initialize()
    await put(adapter, memory("m1"))
    await store.close()
    assert ids(await listed(adapter)) == ["m1"]
    await adapter.close()
    await store.initialize()
    assert await said(store) == ["m1"]
    await store.close()


async def test_an_open_database_outlives_its_users_and_is_closed_by_its_host(file: Path) -> None:
    before = threads()
    async with SqliteDatabase(":memory:") as database:
        await database.open()
        store = SqliteStateStore(database=database)
        await store.initialize()
        await fill(store, 1)
        await store.close()
        assert threads() > before
        await store.initialize()
        assert await said(store) == ["m1"]
        await store.close()
    assert threads() == before
    await database.close()
    async with database, SqliteStateStore(database=database) as store:
        assert await said(store) == []


async def test_a_host_that_closes_early_leaves_the_file_open_for_its_users(file: Path) -> None:
    database = SqliteDatabase(file)
    await database.open()
    store = SqliteStateStore(database=database)
    await store.initialize()
    await database.close()
    await fill(store, 1)
    await store.close()
    assert not Path(f"{file}-wal").exists()


async def test_a_user_that_was_dropped_does_not_keep_the_file_open(file: Path) -> None:
    before = threads()
    database = SqliteDatabase(file)
    store = SqliteStateStore(database=database)
    await store.initialize()
    dropped = SqliteAdapter(database=database)
    await dropped.initialize()
    del dropped
    gc.collect()
    await store.close()
    assert threads() <= before  # fewer: of stores that others dropped


async def test_whose_tables_are_too_new_is_refused_alone_and_nothing_is_changed(file: Path) -> None:
    async with NewerState(file) as newer:
        await fill(newer, 1)
    database = SqliteDatabase(file)
    adapter = SqliteAdapter(database=database)
    await adapter.initialize()
    before = versions(file)
    store = SqliteStateStore(database=database)
    with pytest.raises(StoreDamaged, match="lamina_state has the version 2, and this Lamina knows 1"):
        await store.initialize()
    with pytest.raises(AdapterError, match="not open"):
        await store.get_thread(REF)
    await put(adapter, memory("m1"))
    assert versions(file) == before
    await adapter.close()


async def test_a_file_with_newer_tables_stays_as_it_was_byte_for_byte(file: Path) -> None:
    async with NewerState(file) as newer:
        await fill(newer, 1)
    before = file.read_bytes()
    with pytest.raises(StoreDamaged, match="newest Lamina"):
        await SqliteStateStore(file).initialize()
    assert file.read_bytes() == before


async def test_each_users_tables_are_migrated_on_their_own(file: Path) -> None:
    async with SqliteStateStore(file) as store:
        await fill(store, 2)
    adapter = NewerAdapter(file)
    await adapter.initialize()
    async with SqliteStateStore(file) as store:
        assert await said(store) == ["m1", "m2"]
        await store.append(REF, [event("m3")], now=NOW)
    await adapter.close()
    assert versions(file) == {"lamina_memories": 5, "lamina_state": 1}
    async with NewerState(file) as newer:
        assert await said(newer) == ["m1", "m2", "m3"]
    copies = sorted(path.name for path in file.parent.iterdir() if "backup" in path.name)
    assert copies == ["lamina.db.lamina_state-v1.backup"]


async def test_old_code_no_longer_writes_once_its_tables_were_migrated_elsewhere(file: Path) -> None:
    async with SqliteStateStore(file) as store:
        await fill(store, 1)
        async with NewerState(file) as newer:
            with pytest.raises(StoreDamaged, match="newest Lamina"):
                await store.append(REF, [event("late")], now=NOW)
            assert await said(newer) == ["m1"]


async def test_many_may_join_at_the_same_moment(file: Path) -> None:
    database = SqliteDatabase(file)
    users = [SqliteAdapter(database=database, table=f"t{n}") for n in range(5)]
    stores = [SqliteStateStore(database=database) for _ in range(5)]
    await asyncio.gather(*(each.initialize() for each in (*users, *stores)))
    await fill(stores[0], 2)
    assert [await said(each) for each in stores] == [["m1", "m2"]] * 5
    await asyncio.gather(*(each.close() for each in (*users, *stores)))


async def test_a_caller_that_gave_up_opening_may_open_again(file: Path) -> None:
    store = SqliteStateStore(file)
    opening = asyncio.create_task(store.initialize())
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    async with store:
        await fill(store, 1)
        assert await said(store) == ["m1"]


@pytest.mark.parametrize("first", ["adapter", "state"])
async def test_a_collection_and_the_state_do_not_take_each_others_tables(file: Path, first: str) -> None:
    adapter = SqliteAdapter(file, table="lamina_threads")
    store = SqliteStateStore(file)
    one, other = (adapter, store) if first == "adapter" else (store, adapter)
    await one.initialize()
    with pytest.raises(ConfigError, match="for something else"):
        await other.initialize()
    await one.close()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({}, "path"),
        ({"path": "x.db", "database": True}, "path"),
        ({"database": True, "busy_timeout": 5}, "database"),
        ({"database": True, "readers": 0}, "database"),
        ({"database": True, "backup": False}, "database"),
        ({"path": "x.db", "readers": -1}, "readers"),
    ],
    ids=str,
)
@pytest.mark.parametrize("user", [SqliteAdapter, SqliteStateStore])
def test_settings_that_contradict_each_other_are_named(file: Path, user, options, field: str) -> None:
    if options.get("database"):
        options = {**options, "database": SqliteDatabase(file)}
    with pytest.raises(ConfigError) as refusal:
        user(**options)
    assert refusal.value.field == field


async def test_a_failing_backend_does_not_call_itself_an_adapter(file: Path) -> None:
    file.write_bytes(b"no database")
    with pytest.raises(StoreDamaged, match=r"^The sqlite backend failed: .* is no database"):
        await SqliteStateStore(file).initialize()


async def test_a_step_that_fails_leaves_what_was_there(file: Path) -> None:
    async with SqliteStateStore(file) as store:
        await fill(store, 1)

    def fails(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM lamina_messages")
        raise RuntimeError("interrupted")

    database = SqliteDatabase(file)
    handle = database.join(Component("lamina_state", (*STEPS, fails)))
    with pytest.raises(RuntimeError, match="interrupted"):
        await handle.prepare()
    assert not handle.is_open
    async with SqliteStateStore(file) as store:
        assert await said(store) == ["m1"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
async def test_users_that_were_forked_off_open_the_file_anew(file: Path) -> None:
    database = SqliteDatabase(file)
    adapter, store = SqliteAdapter(database=database), SqliteStateStore(database=database)
    await database.open()
    await adapter.initialize()
    await store.initialize()
    await fill(store, 1)

    async def in_child() -> None:
        try:
            await store.append(REF, [event("refused")], now=NOW)
        except AdapterError:
            await store.initialize()
            await adapter.initialize()
            await store.append(REF, [event("child")], now=NOW)
            await put(adapter, memory("child"))
            await store.close()
            await adapter.close()

    child = multiprocessing.get_context("fork").Process(target=lambda: asyncio.run(in_child()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking beside threads
        child.start()
    await asyncio.to_thread(child.join, 60)
    assert child.exitcode == 0
    assert await said(store) == ["m1", "child"]
    assert ids(await listed(adapter)) == ["child"]
    for each in (store, adapter, database):
        await each.close()


async def test_a_change_in_both_is_seen_by_whoever_reads_next(file: Path) -> None:
    async with SqliteDatabase(file) as database, SqliteStateStore(database=database) as store:
        adapter = SqliteAdapter(database=database)
        await adapter.initialize()
        await fill(store, 1, ThreadRef("acme", "t0"))
        for number in range(30):
            await put(adapter, memory(f"m{number}"))
            await store.append(ThreadRef("acme", "t0"), [event(f"e{number}")], now=NOW)
            assert await adapter.get(MINE, f"m{number}") is not None
            assert len(await store.events(ThreadRef("acme", "t0"))) == number + 2
        await adapter.close()
