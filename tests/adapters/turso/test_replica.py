"""Replicas on this machine of a real server: what they show, and what they refuse to show."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from real_sqld import SqldServer
from scripted_server import ScriptedServer

from lamina.adapters.turso import TursoAdapter
from lamina.adapters.turso.replica import Replica
from lamina.errors import AdapterError, AdapterUnavailable, Conflict, StoreDamaged
from lamina.testing.memory_contract.material import MINE, NOW, by_text, by_vector, ids, listed, memory, put

pytestmark = pytest.mark.usefixtures("turso_follower")


def runner_of(adapter: TursoAdapter) -> Replica:
    runner = adapter._runner
    assert isinstance(runner, Replica)
    return runner


async def test_what_was_written_through_a_replica_is_read_from_it_at_once(
    own_server: SqldServer, tmp_path: Path, opened
) -> None:
    adapter = await opened(own_server.url, replica_path=tmp_path / "r.db", sync_every=3_600)
    await adapter.store_many(
        MINE, [memory(f"m{number}", f"lamp {number}", embedding=[1, number]) for number in range(30)]
    )
    await adapter.update(MINE, "m3", {"content": "a kite"})
    assert await adapter.delete(MINE, "m4")
    assert len(await listed(adapter)) == len(await by_vector(adapter, [1.0, 0.0])) == 29
    assert ids(await by_text(adapter, "kite")) == ["m3"]
    assert [each.content for each in await adapter.history(MINE, "m3")] == ["lamp 3"]
    own_server.kill()  # it was the replica that answered
    assert len(await listed(adapter)) == 29


async def test_two_replicas_see_each_others_writes_after_the_time_agreed_on(
    own_server: SqldServer, tmp_path: Path, opened
) -> None:
    first = await opened(own_server.url, replica_path=tmp_path / "first.db", sync_every=3_600)
    second = await opened(own_server.url, replica_path=tmp_path / "second.db", sync_every=0.05)
    await put(first, memory("m1"))
    await put(second, memory("m2"))
    assert ids(await listed(first)) == ["m1"]
    assert ids(await listed(second)) == ["m1", "m2"]
    await put(first, memory("m3"))
    await asyncio.sleep(0.06)
    assert ids(await listed(second)) == ["m1", "m2", "m3"]
    assert ids(await listed(first)) == ["m1", "m2", "m3"]


async def test_writes_are_worked_out_on_what_is_there_and_not_on_an_old_replica(
    own_server: SqldServer, tmp_path: Path, opened
) -> None:
    old = await opened(own_server.url, replica_path=tmp_path / "old.db", sync_every=3_600)
    other = await opened(own_server.url)
    await put(old, memory("m1"))
    await other.update(MINE, "m1", {"content": "changed", "tags": ["kept"]})
    await put(other, memory("m2", "said elsewhere"))
    await other.save_meta(MINE, "fingerprint", "new", NOW)
    [twin] = await old.store_many(MINE, [memory("m3", "said elsewhere")], if_new=True)
    assert twin is not None
    assert twin.id == "m2"
    with pytest.raises(Conflict):
        await old.update(MINE, "m1", {"confidence": 0.5}, expected_revision=1)
    assert await old.update(MINE, "m1", {"confidence": 0.5}, expected_revision=2)
    await old.save_meta(MINE, "fingerprint", "newer", NOW, expected="new")
    found = await old.get(MINE, "m1")
    assert found is not None
    assert (found.content, found.tags, found.confidence) == ("changed", ["kept"], 0.5)


async def test_while_the_server_is_down_reads_go_on_and_writes_fail(
    own_server: SqldServer, tmp_path: Path, opened
) -> None:
    adapter = await opened(own_server.url, replica_path=tmp_path / "r.db", sync_every=0.01)
    await put(adapter, memory("m1", embedding=[1.0, 0.0]))
    own_server.kill()
    assert ids(await listed(adapter)) == ids(await by_vector(adapter, [1.0, 0.0])) == ["m1"]
    for call in (
        adapter.store(MINE, memory("m2")),
        adapter.update(MINE, "m1", {"confidence": 0.5}),
        adapter.delete(MINE, "m1"),
        adapter.touch(MINE, ["m1"], NOW),
        adapter.save_meta(MINE, "key", "value", NOW),
    ):
        with pytest.raises(AdapterUnavailable):
            await call
    assert ids(await listed(adapter)) == ["m1"]
    own_server.start()
    await put(adapter, memory("m3"))
    assert ids(await listed(adapter)) == ["m1", "m3"]


async def test_a_replica_that_is_there_is_opened_without_the_server(
    own_server: SqldServer, tmp_path: Path, opened
) -> None:
    adapter = await opened(own_server.url, replica_path=tmp_path / "r.db")
    await put(adapter, memory())
    await adapter.close()
    own_server.kill()
    await adapter.initialize()
    assert ids(await listed(adapter)) == ["m1"]
    fresh = TursoAdapter(own_server.url, replica_path=tmp_path / "new.db")
    with pytest.raises(AdapterUnavailable):
        await fresh.initialize()


async def test_what_was_written_and_has_not_come_back_is_never_passed_over_in_silence(
    own_server: SqldServer, tmp_path: Path, opened
) -> None:
    adapter = await opened(own_server.url, replica_path=tmp_path / "r.db", sync_every=3_600, timeout=5)
    await put(adapter, memory("m1"))
    follower = runner_of(adapter)._follower
    asked, follower._asked = follower._asked, {**follower._asked, "url": "http://127.0.0.1:1"}
    follower.close()
    await put(adapter, memory("m2"))  # the server took it
    with pytest.raises(AdapterUnavailable):
        await listed(adapter)
    follower._asked = asked
    follower.close()
    assert ids(await listed(adapter)) == ["m1", "m2"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_process_that_follows_no_more_is_replaced(
    own_server: SqldServer, tmp_path: Path, opened, how: signal.Signals
) -> None:
    adapter = await opened(own_server.url, replica_path=tmp_path / "r.db", sync_every=3_600, timeout=1)
    await put(adapter, memory("m1"))
    process = runner_of(adapter)._follower._process
    assert process is not None
    os.kill(process.pid, how)
    await put(adapter, memory("m2"))
    with_both = ["m1", "m2"]
    try:
        assert ids(await listed(adapter)) == with_both
    except AdapterError:  # the first one who waited for it
        assert ids(await listed(adapter)) == with_both


def test_a_file_that_is_no_replica_of_the_database_is_damage(own_server: SqldServer, tmp_path: Path) -> None:
    (tmp_path / "r.db").write_bytes(b"not a database at all\n" * 500)
    with pytest.raises(StoreDamaged, match="replica_path"):
        asyncio.run(TursoAdapter(own_server.url, replica_path=tmp_path / "r.db").initialize())


async def test_a_scripted_server_that_does_not_replicate_is_told_from_one_that_is_down(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.plays(ScriptedServer.error(404))
    adapter = TursoAdapter(server.url, replica_path=tmp_path / "r.db", timeout=5)
    with pytest.raises(AdapterError) as caught:
        await adapter.initialize()
    assert not isinstance(caught.value, AdapterUnavailable)
    server.plays(ScriptedServer.error(401))
    with pytest.raises(AdapterError, match="auth_token"):
        await adapter.initialize()
