from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading

import psycopg
import pytest

from lamina.databases.postgres import PostgresDatabase
from lamina.databases.postgres.address import parse_url
from lamina.databases.postgres.sessions import Limits, connect
from lamina.errors import AdapterError


def message(kind, body):
    return kind + struct.pack("!I", len(body) + 4) + body


def parameter(name, value):
    return message(b"S", f"{name}\0{value}\0".encode())


class OldServer:
    """Greets as a server of that version would, and knows nothing else."""

    def __init__(self, version):
        self._version = version
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"postgresql://127.0.0.1:{self._listening.getsockname()[1]}/d?sslmode=disable&gssencmode=disable"
        self._thread = threading.Thread(target=self._greet)
        self._thread.start()

    def _greet(self):
        with self._listening, self._listening.accept()[0] as client:
            client.recv(65536)
            version = parameter("server_version", self._version) + parameter("server_encoding", "UTF8")
            client.sendall(message(b"R", struct.pack("!I", 0)) + version + message(b"Z", b"I"))
            client.recv(65536)  # until it leaves

    def join(self):
        self._thread.join()


async def test_a_server_before_version_14_is_refused_by_a_server_that_only_says_it_is_one():
    server = OldServer("13.22")
    with pytest.raises(AdapterError, match=r"is PostgreSQL 13\.22\. Use version 14 or newer"):
        await PostgresDatabase(server.url).open()
    server.join()


async def test_a_database_of_another_encoding_is_refused(postgres):
    postgres.run("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    try:
        with pytest.raises(AdapterError, match=r"has the encoding LATIN1\. Use a database .* 'UTF8'"):
            await PostgresDatabase(postgres.url_of("latin")).open()
    finally:
        postgres.run("DROP DATABASE latin")


async def test_a_transaction_is_set_to_what_the_stores_count_on(joined, postgres_url):
    # Of these the url asks for the opposite, as the settings of a server or of a user may.
    wish = "options=-c%20TimeZone%3DAsia/Tokyo%20-c%20DateStyle%3DGerman%20-c%20synchronous_commit%3Doff"
    wish += "%20-c%20default_transaction_isolation%3Dserializable%20-c%20extra_float_digits%3D-5"
    handle = await joined(f"{postgres_url}&{wish}", statement_timeout=7.5)
    names = (
        "TimeZone DateStyle synchronous_commit transaction_isolation extra_float_digits statement_timeout "
        "idle_in_transaction_session_timeout client_encoding application_name"
    ).split()
    query = "SELECT name, current_setting(name) FROM unnest(%s::text[]) AS name"
    found = dict(await handle.write(lambda session: session.execute(query, (names,)).fetchall()))
    assert found.pop("DateStyle").startswith("ISO")
    assert found == {
        "TimeZone": "UTC",
        "synchronous_commit": "on",
        "transaction_isolation": "read committed",
        "extra_float_digits": "1",
        "statement_timeout": "7500ms",
        "idle_in_transaction_session_timeout": "7500ms",
        "client_encoding": "UTF8",
        "application_name": "lamina",
    }


async def test_a_stronger_promise_of_the_server_is_left_as_it_is(joined, postgres_url):
    handle = await joined(f"{postgres_url}&options=-c%20synchronous_commit%3Dremote_apply")
    query = "SELECT current_setting('synchronous_commit')"
    assert await handle.read(lambda session: session.execute(query).fetchone()) == ("remote_apply",)


async def test_a_reading_transaction_sees_one_state_and_writes_nothing(handle, add, count):
    def twice(session):
        before = count(session)
        asyncio.run(handle.write(add(1)))
        return before, count(session)

    assert await handle.read(twice) == (0, 0)
    assert await handle.read(count) == 1
    with pytest.raises(AdapterError, match="takes no writes"):
        await handle.read(add(2))


async def test_settings_of_a_transaction_end_with_it(joined):
    handle = await joined(connections=1)

    def told(session):
        return session.execute("SELECT current_setting('lamina.tenant', true)").fetchone()[0]

    assert await handle.read(told, settings={"lamina.tenant": "acme's"}) == "acme's"
    assert await handle.write(told, settings={"lamina.tenant": "other"}) == "other"
    assert not await handle.read(told)


async def test_a_failure_that_the_work_swallows_is_no_success(handle, add, count):
    def careless(session):
        add(1)(session)
        with contextlib.suppress(psycopg.Error):
            session.execute("SELECT 1 / 0")

    with pytest.raises(AdapterError, match="failed unseen, so that nothing of it was written"):
        await handle.write(careless)
    assert await handle.read(count) == 0


async def test_statements_are_prepared_on_the_server_itself_and_behind_a_pooler_not(postgres, pgbouncer):
    for url, at_least in ((postgres.url_of("postgres"), 1), (pgbouncer.url_of("postgres"), 0)):
        connection = connect(parse_url(url), Limits(1, 10, 30))
        try:
            for turn in range(8):
                assert connection.execute("SELECT %s::int", (turn,)).fetchone() == (turn,)
            (count,) = connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
        finally:
            connection.close()
        assert min(count, 1) == at_least
