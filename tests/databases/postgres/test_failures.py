"""What the server reports, as ours: each on a real server, but for the one that would fill a disk."""

from __future__ import annotations

import asyncio
import socket
import threading
import traceback

import psycopg
import pytest

from lamina.databases.postgres import PostgresDatabase
from lamina.databases.postgres.failures import translated
from lamina.errors import AdapterError, AdapterUnavailable, StoreDamaged


def working(statement, *parameters):
    return lambda session: session.execute(statement, parameters or None)


def whole(error):
    return "".join(traceback.format_exception(error))


async def test_a_server_that_is_not_there_is_unavailable():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    database = PostgresDatabase(f"postgresql://mira:hunter2@127.0.0.1:{port}/notes")
    with pytest.raises(AdapterUnavailable, match=f"127.0.0.1:{port}/notes cannot be reached") as raised:
        await database.open()
    assert "hunter2" not in whole(raised.value)
    assert isinstance(raised.value.__cause__, psycopg.OperationalError)


async def test_a_server_that_never_answers_is_unavailable_after_the_connect_timeout():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        database = PostgresDatabase(f"postgresql://127.0.0.1:{port}/notes", connect_timeout=1)
        with pytest.raises(AdapterUnavailable, match="cannot be reached"):
            await database.open()


@pytest.mark.parametrize("what", ["database", "user"])
async def test_a_database_or_a_user_that_is_not_there_is_no_passing_failure(postgres, what):
    url = postgres.url_of("nowhere") if what == "database" else postgres.url_of("postgres", user="nobody_here")
    with pytest.raises(AdapterError, match="refused the login") as raised:
        await PostgresDatabase(url).open()
    assert not isinstance(raised.value, AdapterUnavailable)
    assert "Check the user, the password and the database" in str(raised.value)


async def test_a_wrong_password_is_told_and_not_shown(postgres, postgres_database):
    name = postgres_database.partition("?")[0].rpartition("/")[2]
    rules = postgres.data / "pg_hba.conf"
    former = rules.read_text(encoding="utf-8")
    postgres.run("CREATE ROLE mira LOGIN PASSWORD 'right'")
    rules.write_text(f"local {name} mira scram-sha-256\n{former}", encoding="utf-8")
    postgres.run("SELECT pg_reload_conf()")
    try:
        url = postgres_database.replace("postgres@", "mira:hunter2@")
        with pytest.raises(AdapterError, match="refused the login") as raised:
            await PostgresDatabase(url).open()
        assert "hunter2" not in whole(raised.value)
        async with PostgresDatabase(url.replace("hunter2", "right")):
            pass
    finally:
        rules.write_text(former, encoding="utf-8")
        postgres.run("SELECT pg_reload_conf()")
        postgres.run("DROP ROLE mira")


async def test_a_statement_that_takes_too_long_is_ended(joined):
    handle = await joined(statement_timeout=0.1)
    with pytest.raises(AdapterUnavailable, match="took too long") as raised:
        await handle.read(working("SELECT pg_sleep(60)"))
    assert "statement_timeout" in str(raised.value)


async def test_waiting_for_a_lock_is_ended_too_and_nothing_is_written(joined, postgres, add, count):
    handle = await joined(statement_timeout=0.2)
    with psycopg.connect(postgres.url) as other:
        schema = handle._component.schema.name
        other.execute(f'LOCK TABLE "{schema}".notes IN ACCESS EXCLUSIVE MODE')
        with pytest.raises(AdapterUnavailable, match="took too long"):
            await handle.write(add(1))
    assert await handle.read(count) == 0


async def test_a_session_that_the_server_ends_is_unavailable_and_the_next_call_works(handle, postgres, count):
    def ended(session):
        pid = session.connection.info.backend_pid
        postgres.run("SELECT pg_terminate_backend(%s)", pid)
        return count(session)

    with pytest.raises(AdapterUnavailable, match=r"for now|cannot be reached"):
        await handle.write(ended)
    assert await handle.read(count) == 0


async def test_tables_that_are_gone_are_damage(handle, postgres, add, count):
    postgres.run(f'DROP TABLE "{handle._component.schema.name}".notes')
    with pytest.raises(StoreDamaged, match="lacks what Lamina made there"):
        await handle.read(count)
    with pytest.raises(StoreDamaged, match="lacks what Lamina made there"):
        await handle.write(add(1))


async def test_what_the_user_may_not_do_is_told_with_the_remedy(joined, postgres, postgres_database):
    postgres.run("CREATE ROLE guest LOGIN")
    try:
        with pytest.raises(AdapterError, match=r"does not allow it: permission denied.* Grant it"):
            await joined(postgres_database.replace("postgres@", "guest@"))
    finally:
        postgres.run("DROP ROLE guest")


async def test_a_server_that_takes_no_writes_is_told(joined, handle, postgres_url, add):
    reading = await joined(f"{postgres_url}&options=-c%20default_transaction_read_only%3Don")
    with pytest.raises(AdapterError, match=r"takes no writes.* primary"):
        await reading.write(add(1))


async def test_of_two_that_wait_for_each_other_one_is_told_to_try_again(handle, add):
    await handle.write(add(1))
    await handle.write(add(2))
    both = threading.Barrier(2)

    def crossing(first, second):
        def work(session):
            session.execute("SET LOCAL deadlock_timeout = '50ms'")
            session.execute("UPDATE {schema}.notes SET text = 'changed' WHERE id = %s", (first,))
            both.wait()
            session.execute("UPDATE {schema}.notes SET text = 'changed' WHERE id = %s", (second,))

        return work

    outcomes = await asyncio.gather(handle.write(crossing(1, 2)), handle.write(crossing(2, 1)), return_exceptions=True)
    (refused,) = [outcome for outcome in outcomes if outcome is not None]
    assert isinstance(refused, AdapterUnavailable)
    assert "for now: deadlock detected" in str(refused)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {schema}.notes (id, text) VALUES (1, 'secret-7')",
        "SELECT 'secret-7'::integer",
        "SELECT 'secret-7'::json",
    ],
)
async def test_an_error_that_quotes_a_value_is_told_without_it(handle, add, statement):
    await handle.write(add(1))
    with pytest.raises(AdapterError, match="refused a value") as raised:
        await handle.write(working(statement))
    assert raised.value.__cause__ is None
    assert "secret-7" not in str(raised.value)
    assert raised.value.__suppress_context__


def test_an_error_made_by_hand_of_a_full_disk_is_unavailable():
    with pytest.raises(AdapterUnavailable, match=r"no space left on h/d\. .*Free some space"), translated("h/d"):
        raise psycopg.errors.DiskFull


def test_an_error_made_by_hand_of_a_broken_page_is_damage():
    with pytest.raises(StoreDamaged, match="h/d cannot be read"), translated("h/d"):
        raise psycopg.errors.DataCorrupted


def test_what_is_no_error_of_the_server_passes_as_it_is():
    with pytest.raises(KeyError), translated("h/d"):
        raise KeyError
