from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import lamina
from lamina.databases.postgres import PostgresDatabase
from lamina.databases.postgres.database import CONNECT_TIMEOUT, CONNECTIONS, STATEMENT_TIMEOUT, database_of
from lamina.errors import AdapterError, ConfigError, MissingExtra

SOURCES = str(Path(lamina.__file__).parents[1])


def sessions_of(postgres):
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'lamina'"
    return postgres.run(query)[0][0]


async def test_it_is_open_as_long_as_one_of_its_users_is(postgres, postgres_url, notes, count):
    database = PostgresDatabase(postgres_url)
    first, second = database.join(notes), database.join(notes)
    await asyncio.gather(first.prepare(), second.prepare())
    await first.leave()
    await first.leave()
    assert await second.read(count) == 0
    await second.leave()
    assert sessions_of(postgres) == 0
    with pytest.raises(AdapterError, match="is not open"):
        await second.read(count)


async def test_a_host_that_opened_it_is_a_user_too(postgres_url, notes, count):
    async with PostgresDatabase(postgres_url) as database:
        await database.open()
        user = database.join(notes)
        await user.prepare()
        await user.leave()
        again = database.join(notes)
        assert await again.read(count) == 0
        await again.leave()
    await database.close()
    with pytest.raises(AdapterError, match="is not open"):
        await again.read(count)


async def test_it_can_be_opened_again(postgres_url, notes, add, count):
    database = PostgresDatabase(postgres_url)
    for number in range(3):
        handle = database.join(notes)
        await handle.prepare()
        await handle.write(add(number))
        assert await handle.read(count) == number + 1
        await handle.leave()


async def test_a_user_without_tables_can_neither_read_nor_write(postgres_url, count):
    database = PostgresDatabase(postgres_url)
    user = database.join(None)
    await user.prepare()
    with pytest.raises(AdapterError, match="has no tables"):
        await user.read(count)
    await user.leave()


def test_one_database_serves_event_loops_in_turn(postgres_url, notes, add, count):
    database = PostgresDatabase(postgres_url)
    handle = database.join(notes)
    asyncio.run(handle.prepare())
    for number in range(3):
        asyncio.run(handle.write(add(number)))
    assert asyncio.run(handle.read(count)) == 3
    asyncio.run(handle.leave())


def test_one_database_serves_event_loops_side_by_side(postgres_url, notes, add, count):
    database = PostgresDatabase(postgres_url)
    handle = database.join(notes)
    asyncio.run(handle.prepare())
    failures = []

    async def write_all(first):
        await asyncio.gather(*(handle.write(add(first + number)) for number in range(10)))

    def run(first):
        try:
            asyncio.run(write_all(first))
        except Exception as error:  # noqa: BLE001 - the edge of a thread: the test looks at it
            failures.append(error)

    threads = [threading.Thread(target=run, args=(100 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert asyncio.run(handle.read(count)) == 40
    asyncio.run(handle.leave())


def test_a_loop_that_closes_before_its_answer_harms_nobody(postgres_url, notes, add, count):
    database = PostgresDatabase(postgres_url)
    handle = database.join(notes)
    asyncio.run(handle.prepare())

    async def go_away():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await handle.read(lambda session: session.execute("SELECT pg_sleep(0.2)"))

    asyncio.run(go_away())
    asyncio.run(handle.write(add(1)))
    assert asyncio.run(handle.read(count)) == 1
    asyncio.run(handle.leave())


async def test_one_that_is_dropped_unclosed_ends_its_sessions_without_a_warning(postgres, postgres_url, notes):
    handle = PostgresDatabase(postgres_url).join(notes)
    await handle.prepare()
    assert sessions_of(postgres) == 1
    del handle
    gc.collect()
    for _ in range(1000):
        if sessions_of(postgres) == 0:
            return
        await asyncio.sleep(0.005)
    pytest.fail("the session is still there")


def test_a_process_that_forgets_to_close_it_ends_in_peace(postgres_url):
    code = f"""
import asyncio, sys
from lamina.databases.postgres import PostgresDatabase
database = PostgresDatabase({postgres_url!r})
asyncio.run(database.open())
"""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-X", "dev", "-c", code],
        env={**os.environ, "PYTHONPATH": SOURCES},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def in_child(handle, database, notes, add, outcomes):
    try:
        asyncio.run(handle.write(add(2)))
    except AdapterError as error:
        outcomes.put(str(error))
    again = database.join(notes)
    asyncio.run(again.prepare())
    asyncio.run(again.write(add(3)))
    asyncio.run(again.leave())
    outcomes.put("written")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_opens_it_anew_and_the_parents_sessions_live_on(postgres_url, notes, add, count):
    database = PostgresDatabase(postgres_url)
    handle = database.join(notes)
    asyncio.run(handle.prepare())
    asyncio.run(handle.write(add(1)))
    context = multiprocessing.get_context("fork")
    outcomes = context.SimpleQueue()
    child = context.Process(target=in_child, args=(handle, database, notes, add, outcomes))
    child.start()
    said = [outcomes.get(), outcomes.get()]
    child.join(30)
    assert child.exitcode == 0
    assert "is not open" in said[0]
    assert said[1] == "written"
    asyncio.run(handle.write(add(4)))
    assert asyncio.run(handle.read(count)) == 3
    asyncio.run(handle.leave())


def test_where_it_is_is_shown_without_the_password():
    database = PostgresDatabase("postgresql://mira:hunter2@db.example/notes")
    assert (str(database), repr(database)) == ("db.example/notes", "<PostgresDatabase db.example/notes>")


DEFAULTS = {
    "connections": CONNECTIONS,
    "connect_timeout": CONNECT_TIMEOUT,
    "statement_timeout": STATEMENT_TIMEOUT,
}


def test_a_store_takes_a_url_or_a_database_and_no_limits_beside_a_database():
    database = PostgresDatabase("postgresql://h/d")
    assert database_of(None, database, **DEFAULTS) is database
    with pytest.raises(ConfigError, match="url: is missing"):
        database_of(None, None, **DEFAULTS)
    with pytest.raises(ConfigError, match="url: is given beside a database"):
        database_of("postgresql://h/d", database, **DEFAULTS)
    with pytest.raises(ConfigError, match="database: has limits of its own"):
        database_of(None, database, **DEFAULTS | {"connections": 3})


@pytest.mark.parametrize("missing", ["psycopg", "psycopg_binary"])
def test_without_the_driver_the_remedy_is_the_extra(missing):
    code = f"""
import sys
sys.modules[{missing!r}] = None
sys.modules["psycopg_c"] = None
import ctypes.util
ctypes.util.find_library = lambda name: None
import lamina.databases.postgres
"""
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": SOURCES},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert f"{MissingExtra.__name__}: PostgreSQL needs an extra: pip install 'lamina[postgres]'" in result.stderr
