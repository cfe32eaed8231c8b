"""A real server that fails, and a scripted one where the real one cannot be made to."""

import asyncio

import httpx2
import pytest
from real_sqld import SqldServer
from scripted_server import ScriptedServer

from lamina.adapters._shared.where_sql import Sql
from lamina.adapters.turso import TursoAdapter
from lamina.adapters.turso.failures import Failed
from lamina.adapters.turso.remote import Remote
from lamina.domain.scope import Scope
from lamina.errors import (
    AdapterError,
    AdapterUnavailable,
    ConfigError,
    EmbeddingDimensionError,
    InvalidInput,
    StoreDamaged,
)
from lamina.ports.memory_adapter import Capability
from lamina.testing.memory_contract.material import LIVE, MINE, by_text, by_vector, ids, listed, memory, put

RIGHT = "bWlyYTpzZWNyZXQ="


async def test_a_server_that_is_down_at_the_start_is_no_obstacle_once_it_is_up(own_server: SqldServer) -> None:
    own_server.kill()
    adapter = TursoAdapter(own_server.url)
    with pytest.raises(AdapterUnavailable, match="cannot be reached"):
        await adapter.initialize()
    own_server.start()
    await adapter.initialize()
    await put(adapter, memory())
    assert ids(await listed(adapter)) == ["m1"]
    await adapter.close()


async def test_a_server_that_was_killed_and_is_up_again_is_used_on(own_server: SqldServer, opened) -> None:
    adapter = await opened(own_server.url)
    await put(adapter, memory("m1"))
    own_server.kill()
    for call in (adapter.store(MINE, memory("m2")), adapter.get(MINE, "m1"), listed(adapter)):
        with pytest.raises(AdapterUnavailable):
            await call
    own_server.start()
    await put(adapter, memory("m3"))
    assert ids(await listed(adapter)) == ["m1", "m3"]


async def test_what_was_acknowledged_before_a_server_was_killed_in_mid_write_is_there(
    own_server: SqldServer, opened
) -> None:
    adapter = await opened(own_server.url)
    stored: list[str] = []

    async def write() -> None:
        for number in range(10_000):
            batch = [memory(f"m{number}-{each}", f"number {number} {each}", embedding=[1.0, each]) for each in range(3)]
            await adapter.store_many(MINE, batch)
            stored.extend(each.id for each in batch)

    writing = asyncio.ensure_future(write())
    while len(stored) < 30 and not writing.done():  # noqa: ASYNC110 - it is asked how far it is
        await asyncio.sleep(0.01)
    own_server.kill()
    with pytest.raises(AdapterUnavailable):
        await writing
    own_server.start()
    found = ids(await listed(adapter))
    assert set(stored) <= set(found)
    assert len(found) % 3 == 0
    assert sorted(ids(await by_vector(adapter, [1.0, 0.0], limit=1_000))) == sorted(found)
    assert sorted(ids(await by_text(adapter, "number", limit=1_000))) == sorted(found)


def relayed(target: SqldServer, loses):
    """A reply that passes requests on, and cuts the connection once the server has answered what `loses` names."""

    async def reply(request, writer) -> None:
        async with httpx2.AsyncClient() as client:
            answer = await client.post(f"{target.url}/v2/pipeline", content=request.body)
        if loses(request.body):
            writer.transport.abort()
        else:
            await ScriptedServer.raw(answer.content, answer.status_code)(request, writer)

    return reply


async def test_storing_again_under_the_same_id_settles_a_write_whose_answer_was_lost(
    turso: SqldServer, server: ScriptedServer, table: str, opened
) -> None:
    lost = []

    def loses(body: bytes) -> bool:
        if b"COMMIT" in body and b"the lamp" in body and not lost:
            lost.append(body)
            return True
        return False

    server.plays(relayed(turso, loses))
    adapter = await opened(server.url, table=table)
    entry = memory("m1", "the lamp", embedding=[1.0, 0.0])
    with pytest.raises(AdapterUnavailable, match="Whether a change was kept is not known"):
        await adapter.store_many(MINE, [entry], if_new=True)
    [twin] = await adapter.store_many(MINE, [entry], if_new=True)
    assert twin is not None
    assert (twin.id, twin.revision) == ("m1", 1)
    assert len(lost) == 1
    assert ids(await by_text(adapter, "lamp")) == ids(await by_vector(adapter, [1.0, 0.0])) == ["m1"]


async def test_a_read_whose_connection_broke_is_asked_again_once(
    turso: SqldServer, server: ScriptedServer, table: str, opened
) -> None:
    broken = []

    def loses(body: bytes) -> bool:
        if b"ORDER BY m.seq LIMIT" in body and len(broken) < 1:
            broken.append(body)
            return True
        return False

    server.plays(relayed(turso, loses))
    adapter = await opened(server.url, table=table)
    await put(adapter, memory())
    assert ids(await listed(adapter)) == ["m1"]
    assert len(broken) == 1


@pytest.mark.parametrize(
    ("reply", "error", "says"),
    [
        (ScriptedServer.error(401), AdapterError, "auth_token"),
        (ScriptedServer.error(403), AdapterError, "auth_token"),
        (ScriptedServer.error(404), AdapterError, "url"),
        (ScriptedServer.error(413), AdapterError, "fewer entries"),
        (ScriptedServer.error(429), AdapterUnavailable, "throttles"),
        (ScriptedServer.error(503), AdapterUnavailable, "throttles"),
        (ScriptedServer.hangs, AdapterUnavailable, "did not answer in time"),
        (ScriptedServer.resets, AdapterUnavailable, "broke"),
        (ScriptedServer.raw(b"<html>Welcome</html>"), AdapterError, "Hrana"),
        (ScriptedServer.json({"results": []}), AdapterError, "Hrana"),
        (ScriptedServer.json({"results": [{"type": "ok", "response": {"result": 7}}]}), AdapterError, "Hrana"),
        (ScriptedServer.json([1]), AdapterError, "Hrana"),
        (ScriptedServer.raw(b'{"results": [', missing=50), AdapterUnavailable, "broke"),
    ],
)
async def test_a_scripted_server_that_gives_no_answer_is_an_error_that_says_what_to_do(
    server: ScriptedServer, reply, error, says
) -> None:
    server.plays(reply)
    adapter = TursoAdapter(server.url, auth_token="very-secret", timeout=0.3)
    with pytest.raises(error, match=says) as caught:
        await adapter.initialize()
    assert isinstance(caught.value, AdapterUnavailable) == (error is AdapterUnavailable)
    assert "very-secret" not in f"{caught.value} {caught.value!r} {adapter!r}"


@pytest.mark.parametrize(
    ("said", "code", "error"),
    [
        ("SQLite error: database is locked", "SQLITE_BUSY", AdapterUnavailable),
        ("SQLite error: database or disk is full", "SQLITE_FULL", AdapterUnavailable),
        ("SQL write operations are forbidden (writes are blocked)", "BLOCKED", AdapterUnavailable),
        ("The stream has expired", "STREAM_EXPIRED", AdapterUnavailable),
        ("SQLite error: database disk image is malformed", "SQLITE_CORRUPT", StoreDamaged),
        ("SQLite error: attempt to write a readonly database", "SQLITE_READONLY", AdapterError),
        ("SQLite error: something about 'the spare key'", "SQLITE_UNKNOWN", AdapterError),
        ("SQLite error", "what should be a code is the spare key", AdapterError),
    ],
)
async def test_what_a_scripted_database_says_becomes_an_error_of_ours_without_its_words(
    server: ScriptedServer, said: str, code: str, error
) -> None:
    server.plays(ScriptedServer.json({"results": [{"type": "error", "error": {"message": said, "code": code}}]}))
    adapter = TursoAdapter(server.url, timeout=1)
    with pytest.raises(error) as caught:
        await adapter.initialize()
    cause = caught.value.__cause__
    assert "spare key" not in f"{caught.value} {caught.value!r} {cause} {cause!r}"


async def test_a_wrong_token_is_refused_and_the_right_one_is_not(turso: SqldServer, opened) -> None:
    guarded = SqldServer("--http-auth", f"basic:{RIGHT}")
    try:
        for token in (None, "d3Jvbmc="):
            with pytest.raises(AdapterError, match="refused the login") as caught:
                await opened(guarded.url, auth_token=token)
            assert not isinstance(caught.value, AdapterUnavailable)
        adapter = await opened(guarded.url, auth_token=RIGHT)
        await put(adapter, memory())
        assert ids(await listed(adapter)) == ["m1"]
    finally:
        guarded.stop()


async def test_answers_larger_than_the_server_gives_are_read_in_portions(turso: SqldServer, opened) -> None:
    small = SqldServer("--max-response-size", "300KB")
    try:
        adapter = await opened(small.url)
        for number in range(8):
            await put(adapter, memory(f"m{number}", f"lamp {number} " + "x" * 90_000, embedding=[1.0, number]))
        assert ids(await listed(adapter, include_embeddings=True)) == [f"m{number}" for number in range(8)]
        assert ids(await by_vector(adapter, [1.0, 0.0])) == [f"m{number}" for number in range(8)]
        assert sorted(ids(await by_text(adapter, "lamp"))) == [f"m{number}" for number in range(8)]
    finally:
        small.stop()


async def test_text_that_the_server_does_not_take_is_refused_by_name(turso: SqldServer, table: str, opened) -> None:
    adapter = await opened(turso.url, table=table)
    with pytest.raises(InvalidInput, match="content"):
        await put(adapter, memory(content="\x01" * 4_000_000))  # six bytes each, once they are escaped
    assert await adapter.count(MINE, LIVE) == 0


async def test_writers_in_two_adapters_lose_nothing(turso: SqldServer, table: str, opened) -> None:
    first, second = await opened(turso.url, table=table), await opened(turso.url, table=table)
    await put(first, memory("m0"))
    calls = [each.touch(MINE, ["m0"], LIVE.now) for each in (first, second) for _ in range(10)]
    calls += [each.store(MINE, memory(f"m{number}")) for number in range(1, 11) for each in (first, second)]
    await asyncio.gather(*calls)
    found = await listed(first)
    assert len(found) == 11
    assert found[0].access_count == 20
    assert [each.revision for each in found[1:]] == [2] * 10


async def test_a_database_that_a_scripted_server_calls_busy_is_written_to_once_it_is_not(
    turso: SqldServer, server: ScriptedServer, table: str, opened
) -> None:
    passes = relayed(turso, lambda body: False)
    busy = {"step_results": [None], "step_errors": [{"message": "database is locked", "code": "SQLITE_BUSY"}]}
    adapter = await opened(turso.url, table=table)
    refuses = ScriptedServer.json(
        {"results": [{"type": "ok", "response": {"type": "batch", "result": busy}}, {"type": "ok"}]}
    )
    server.plays(passes, passes, passes, passes, refuses, refuses, passes, refuses, passes)
    through = await opened(server.url, table=table)
    for _ in range(2):
        await put(through, memory())
    assert [each.revision for each in await listed(adapter)] == [2]


async def test_two_collections_of_one_database_never_see_each_other(turso: SqldServer, table: str, opened) -> None:
    first = await opened(turso.url, table=f"{table}_a")
    second = await opened(turso.url, table=f"{table}_b")
    await put(first, memory("m1", embedding=[1.0, 0.0]))
    await put(second, memory("m1", "another", embedding=[1.0, 0.0, 0.0]))
    assert [each.content for each in await listed(first)] == ["the harbour lamp is lit"]
    assert ids(await by_text(first, "another")) == []
    assert await second.delete(MINE, "m1")
    assert ids(await by_vector(first, [1.0, 0.0])) == ["m1"]


@pytest.mark.parametrize("other", ["{}_text", "{}_COUNTERS"])
async def test_a_collection_is_not_made_over_the_tables_of_another(
    turso: SqldServer, table: str, opened, other: str
) -> None:
    await opened(turso.url, table=table)
    with pytest.raises(ConfigError, match="table"):
        await opened(turso.url, table=other.format(table))


async def test_tables_of_a_newer_lamina_are_refused_and_left_as_they_are(turso: SqldServer, table: str, opened) -> None:
    adapter = await opened(turso.url, table=table)
    await put(adapter, memory())
    turso.run("UPDATE {t}_counters SET value = 99 WHERE name = 'schema'", t=table)
    with pytest.raises(StoreDamaged, match="newer Lamina"):
        await opened(turso.url, table=table)
    assert turso.run("SELECT count(*) FROM {t}", t=table) == [(1,)]


async def test_texts_of_an_older_analyzer_are_indexed_again_when_the_collection_is_opened(
    turso: SqldServer, table: str, opened
) -> None:
    adapter = await opened(turso.url, table=table)
    await adapter.store_many(MINE, [memory(f"m{number}", f"a lamp {number}") for number in range(250)])
    turso.run("UPDATE {t}_text SET terms = 'old'", t=table)
    turso.run("UPDATE {t}_counters SET value = 0 WHERE name = 'analyzer'", t=table)
    assert ids(await by_text(adapter, "lamp")) == []
    again = await opened(turso.url, table=table)
    assert len(await by_text(again, "lamp", limit=1_000)) == 250


async def test_rows_that_are_not_ours_are_damage_and_are_not_quoted(turso: SqldServer, table: str, opened) -> None:
    adapter = await opened(turso.url, table=table)
    await put(adapter, memory(content="the spare key"))
    turso.run("UPDATE {t} SET entry = '[\"the spare key\"]'", t=table)
    for call in (adapter.get(MINE, "m1"), listed(adapter), adapter.store(MINE, memory())):
        with pytest.raises(StoreDamaged) as caught:
            await call
        assert "spare" not in f"{caught.value} {caught.value.__cause__}"
    turso.run("DROP TABLE {t}_text", t=table)
    with pytest.raises(StoreDamaged, match="lacks what Lamina made"):
        await by_text(adapter, "key")


async def test_a_vector_of_another_length_is_refused_until_those_that_were_there_are_gone(
    turso: SqldServer, table: str, opened
) -> None:
    adapter = await opened(turso.url, table=table)
    await put(adapter, memory("m1", embedding=[1.0, 0.0]), memory("m2", tenant="globex", embedding=[1.0, 0.0, 0.0]))
    with pytest.raises(EmbeddingDimensionError):
        await put(adapter, memory("m3", embedding=[1.0, 0.0, 0.0]))
    assert await adapter.drop_embeddings(Scope("acme")) == 1
    await put(adapter, memory("m3", embedding=[1.0, 0.0, 0.0]))
    assert ids(await by_vector(adapter, [0.0, 1.0, 0.0])) == ["m3"]
    assert turso.run("SELECT count(*) FROM {t}_vectors_2", t=table) == [(0,)]


async def test_a_length_that_another_process_brought_is_searched_at_once(turso: SqldServer, table: str, opened) -> None:
    first, second = await opened(turso.url, table=table), await opened(turso.url, table=table)
    await put(first, memory("m1", embedding=[1.0, 0.0]))
    assert ids(await by_vector(second, [1.0, 0.0])) == ["m1"]


async def test_nothing_of_a_deleted_memory_is_left_in_any_table(turso: SqldServer, table: str, opened) -> None:
    adapter = await opened(turso.url, table=table)
    await put(adapter, memory("m1", "zanzibar", embedding=[1.0, 0.0]))
    await adapter.update(MINE, "m1", {"content": "zanzibar again"})
    await adapter.delete(MINE, "m1")
    for part in ("", "_text", "_history", "_vectors_2"):
        assert turso.run("SELECT count(*) FROM {t}", t=table + part) == [(0,)]
    assert turso.run("SELECT count(*) FROM {t} WHERE {t} MATCH 'zanzibar'", t=f"{table}_text") == [(0,)]


def test_a_transaction_is_written_whole_or_not_at_all(turso: SqldServer, table: str) -> None:
    remote = Remote(turso.url, None, "there", timeout=10, connect_timeout=5, connections=1)
    insert = f"INSERT INTO {table} VALUES (?)"  # noqa: S608
    remote.open()
    try:
        remote.write([Sql(f"CREATE TABLE {table} (a INTEGER UNIQUE)"), Sql(insert, (1,))])
        with pytest.raises(Failed):
            remote.write([Sql(insert, (2,)), Sql(insert, (1,))])
        assert turso.run("SELECT a FROM {t}", t=table) == [(1,)]
        values = (2**63 - 1, -(2**63), 0.1, "ünï\ud7ff", b"\x00\xff", None)
        assert remote.read(Sql("SELECT ?, ?, ?, ?, ?, ?", values)) == [values]
    finally:
        remote.close()


def test_it_declares_all_but_native_expiry() -> None:
    assert frozenset(Capability) - TursoAdapter.capabilities == {Capability.EXPIRY}
