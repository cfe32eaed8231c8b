"""A file of this machine, through the library `libsql`."""

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from lamina.adapters._shared.where_sql import Sql
from lamina.adapters.turso import TursoAdapter
from lamina.adapters.turso.local import Local
from lamina.domain.conditions import Compare, Operator
from lamina.domain.scope import Scope
from lamina.errors import AdapterError, AdapterUnavailable, MissingExtra, StoreDamaged
from lamina.ports.memory_adapter import Order
from lamina.testing.memory_contract.material import LIVE, MINE, by_text, by_vector, ids, listed, memory, put, where

WRITER = Path(__file__).with_name("writer.py")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "lamina.db"


def writer(file: Path, name: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(WRITER), str(file), name, "25"], stderr=subprocess.PIPE)


async def test_the_file_is_made_with_its_folders(tmp_path: Path, opened) -> None:
    await opened(path=tmp_path / "a" / "b" / "lamina.db")
    assert (tmp_path / "a" / "b" / "lamina.db").is_file()


async def test_two_processes_and_this_one_write_at_once_and_nothing_is_lost(file: Path, opened) -> None:
    processes = [writer(file, f"p{number}") for number in range(2)]
    adapter = await opened(path=file)
    await adapter.store_many(MINE, [memory("shared")], if_new=True)
    for number in range(25):
        await adapter.store(MINE, memory(f"here-{number}", f"here {number}", embedding=[1.0, number]))
        await adapter.touch(MINE, ["shared"], memory().created_at)
    for process in processes:
        _, errors = await asyncio.to_thread(process.communicate, timeout=120)
        assert (process.returncode, errors) == (0, b"")
    found = {each.id: each for each in await listed(adapter)}
    assert len(found) == 76
    assert found["shared"].access_count == 75
    assert len(await by_vector(adapter, [1.0, 0.0])) == 75
    assert len(await by_text(adapter, "p0 p1 here")) == 75


class Holder:
    """Another process that is writing to the file until it is told to stop."""

    def __init__(self, file: Path) -> None:
        program = (
            "import sqlite3, sys; connection = sqlite3.connect(sys.argv[1], isolation_level=None); "
            "connection.execute('BEGIN IMMEDIATE'); print('holds', flush=True); sys.stdin.read()"
        )
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen([sys.executable, "-c", program, str(file)], **pipes)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"holds\n"

    def stop(self) -> None:
        self._process.communicate()


async def test_a_file_that_another_process_is_writing_is_waited_for_and_then_given_up(file: Path, opened) -> None:
    adapter = await opened(path=file, busy_timeout=0.3)
    await put(adapter, memory("m1"))
    holder = Holder(file)
    with pytest.raises(AdapterUnavailable, match="another writer"):
        await put(adapter, memory("m2"))
    assert ids(await listed(adapter)) == ["m1"]
    holder.stop()
    await put(adapter, memory("m2"))
    assert ids(await listed(adapter)) == ["m1", "m2"]


async def test_the_event_loop_goes_on_while_another_process_is_writing(file: Path, opened) -> None:
    adapter = await opened(path=file)
    holder = Holder(file)
    storing = asyncio.ensure_future(put(adapter, memory()))
    for _ in range(20):
        await asyncio.sleep(0.005)
    assert not storing.done()
    holder.stop()
    await storing
    assert ids(await listed(adapter)) == ["m1"]


async def test_a_full_file_takes_no_more_and_is_read_on(file: Path, opened, monkeypatch) -> None:
    monkeypatch.setattr("lamina.adapters.turso.local._PRAGMAS", ("journal_mode = WAL", "max_page_count = 60"))
    adapter = await opened(path=file)
    await put(adapter, memory("m1"))
    with pytest.raises(AdapterUnavailable, match="full"):
        await put(adapter, memory("m2", "lamp " * 100_000))
    assert ids(await listed(adapter)) == ["m1"]
    assert ids(await by_text(adapter, "lamp")) == ["m1"]
    await put(adapter, memory("m3"))
    assert ids(await listed(adapter)) == ["m1", "m3"]


def test_a_file_that_is_no_database_is_damage_and_is_left_as_it_is(file: Path) -> None:
    file.write_bytes(b"no database, but a letter to Mira\n" * 200)
    with pytest.raises(StoreDamaged):
        asyncio.run(TursoAdapter(path=file).initialize())
    assert file.read_bytes().startswith(b"no database")


def test_a_path_that_cannot_be_opened_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    with pytest.raises(AdapterError, match="path"):
        asyncio.run(TursoAdapter(path=tmp_path / "plain" / "lamina.db").initialize())


async def test_what_a_file_holds_is_a_table_that_any_sqlite_can_read(file: Path, opened) -> None:
    adapter = await opened(path=file)
    await put(adapter, memory(tags=["a"], metadata={"due": 2**62}))
    await adapter.close()
    connection = sqlite3.connect(file)
    rows = connection.execute("SELECT id, tags, metadata, typeof(created_at) FROM lamina_memories").fetchall()
    assert rows == [("m1", '["a"]', '{"due": 4611686018427387904}', "integer")]
    connection.close()


@pytest.mark.parametrize("number", [2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63)])
def test_whole_numbers_are_bound_exactly_however_large(file: Path, number: int) -> None:
    local = Local(file, busy_timeout=1)
    local.open()
    try:
        assert local.read(Sql("SELECT ?, typeof(?), ?", (number, number, "x"))) == [(number, "integer", "x")]
    finally:
        local.close()


async def test_large_whole_numbers_are_told_apart_in_conditions(file: Path, opened) -> None:
    adapter = await opened(path=file)
    await put(adapter, memory("m1", metadata={"n": 2**53}), memory("m2", "other", metadata={"n": 2**53 + 1}))
    found = await listed(adapter, filter=where(Compare(("n",), Operator.EQ, 2**53 + 1)))
    assert ids(found) == ["m2"]


async def test_what_an_owner_asks_for_is_found_without_looking_at_the_tenants_others(file: Path, opened) -> None:
    adapter = await opened(path=file)
    entries = [memory(f"m{number}", f"lamp {number}", embedding=[1.0, number]) for number in range(60)]
    await adapter.store_many(MINE, entries)
    runner = adapter._runner
    plans: list[str] = []
    read = runner.read

    def explained(sql: Sql) -> list[tuple]:
        plans.extend(step for *_, step in read(Sql(f"EXPLAIN QUERY PLAN {sql.text}", sql.parameters)))
        return read(sql)

    runner.read = explained
    for scope in (MINE, Scope("acme", "ada"), Scope("acme", "ada", include_shared=True)):
        assert len(await listed(adapter, scope, limit=10)) == 10
        assert len(await listed(adapter, scope, limit=10, order=Order.RELEVANCE)) == 10
        assert len(await by_text(adapter, "lamp", scope, limit=10)) == 10
        assert len(await by_vector(adapter, [1.0, 0.0], scope, limit=10)) == 10
        assert await adapter.count(scope, LIVE) == 60
    await adapter.update(MINE, "m1", {"content": "a kite"})
    await adapter.store_many(MINE, [memory("new")], if_new=True)
    assert [step for step in plans if "by_tenant" in step or step.startswith(("SCAN m", "SCAN lamina_memories "))] == []
    assert any("by_shared" in step for step in plans)


async def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "lamina.adapters.turso.local")
    monkeypatch.setitem(sys.modules, "libsql", None)
    with pytest.raises(MissingExtra, match=r"lamina\[turso\]"):
        TursoAdapter("notes.db")
    assert repr(TursoAdapter("libsql://notes.turso.io")) == "<TursoAdapter notes.turso.io lamina_memories>"
