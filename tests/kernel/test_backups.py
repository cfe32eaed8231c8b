# ruff: noqa: ASYNC240 - tests may wait for their own files
from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from lamina.errors import AdapterUnavailable, ConfigError, StoreDamaged, Unsupported
from lamina.kernel import Kernel


def kernel(folder: Path, **settings: Any) -> Kernel:
    return Kernel(data_dir=folder, memory={"embedding": {"provider": "none"}}, **settings)


@pytest.fixture
async def filled(tmp_path: Path) -> Path:
    """A folder with memories, a thread, a document and a pack."""
    async with kernel(tmp_path / "kept") as opened:
        for number in range(20):
            await opened.memory_engine.store(f"fact {number} about Mira", owner="mira")
        await opened.conversation.create("t1")
        await opened.conversation.add_message_to_thread("t1", "user", "Hello from the thread")
        await opened.rag.ingest("A document about kiwis.", "kiwi.txt")
        await opened.packs.create("health", "user", owner="mira")
        await opened.packs.add("health", "Mira sleeps badly.", owner="mira")
    return tmp_path / "kept"


def read(file: Path, query: str) -> Any:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchone()[0]


@contextmanager
def written_by_another(file: Path) -> Iterator[None]:
    """Inside the block another connection commits without pause."""
    begun, stop = threading.Event(), threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(file, timeout=30, isolation_level=None)) as connection:
            while not stop.is_set():
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("UPDATE lamina_memories SET access_count = access_count + 1")
                connection.execute("UPDATE lamina_threads SET revision = revision + 1")
                connection.execute("COMMIT")
                begun.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert begun.wait(10)
        yield
    finally:
        stop.set()
        thread.join()


async def test_a_backup_made_while_another_writes_is_one_moment_and_can_be_restored(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.databases.sqlite.backup.PAGES", 1)  # many steps, with commits between them
    copy = filled.parent / "copy.db"
    with written_by_another(filled / "lamina.db"):
        done = await kernel(filled).backup(copy)
    assert (done.path, done.bytes) == (copy, copy.stat().st_size)
    assert done.rows["lamina_memories"] == 20
    assert copy.stat().st_mode & 0o777 == 0o600
    distinct = "SELECT count(DISTINCT access_count) FROM lamina_memories"
    assert read(copy, distinct) == 1  # a commit is in it whole or not at all
    assert sorted(path.name for path in filled.parent.iterdir()) == ["copy.db", "kept"]
    restored = filled.parent / "restored"
    back = await kernel(restored).restore(copy)
    assert (back.former, back.rows) == (None, done.rows)
    async with kernel(restored) as opened:
        assert await opened.memory_engine.count(owner="mira") == 20
        assert [each.content for each in await opened.conversation.history("t1")] == ["Hello from the thread"]
        assert len(await opened.rag.list_documents()) == 1


async def test_restoring_keeps_the_former_file_and_needs_force_and_a_file_that_nobody_has_open(filled: Path) -> None:
    copy = filled.parent / "copy.db"
    await kernel(filled).backup(copy)
    with pytest.raises(ConfigError, match="there already"):
        await kernel(filled).backup(copy)
    async with kernel(filled) as opened:
        await opened.memory_engine.store("later than the backup", owner="mira")
        with pytest.raises(AdapterUnavailable, match="in use"):
            await opened.restore(copy, force=True)
        assert await opened.memory_engine.count(owner="mira") == 21
    with pytest.raises(ConfigError, match="there already"):
        await kernel(filled).restore(copy)
    done = await kernel(filled).restore(copy, force=True)
    assert done.former is not None
    assert read(done.former, "SELECT count(*) FROM lamina_memories") == 21
    assert read(filled / "lamina.db", "SELECT count(*) FROM lamina_memories") == 20
    (filled / "lamina.db").write_bytes(b"garbled" * 1000)  # why one restores
    again = await kernel(filled).restore(copy, force=True)
    assert again.former == filled / "lamina.db.before-restore-2"
    assert read(filled / "lamina.db", "SELECT count(*) FROM lamina_memories") == 20


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:20_000])


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[8192 * 3 : 8192 * 3 + 400] = bytes(400)
    file.write_bytes(data)


def newer(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE schema_version SET version = 99 WHERE component = 'lamina_state'")


def drift(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE lamina_memories_text_content SET c0 = 'other' WHERE rowid = 1 << 32 | 1")


def foreign(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE others (a)")


@pytest.mark.parametrize("damage", [cut, flip, newer, drift, foreign])
async def test_a_backup_that_cannot_be_used_is_refused_and_changes_nothing(filled: Path, damage: Any) -> None:
    copy, file = filled.parent / "copy.db", filled / "lamina.db"
    await kernel(filled).backup(copy)
    damage(copy)
    before = file.read_bytes()
    with pytest.raises(StoreDamaged):
        await kernel(filled).restore(copy, force=True)
    assert file.read_bytes() == before
    assert sorted(path.name for path in filled.iterdir()) == ["lamina.db"]


async def test_a_damaged_file_gives_no_backup(filled: Path) -> None:
    drift(filled / "lamina.db")
    with pytest.raises(StoreDamaged, match="text index"):
        await kernel(filled).backup(filled.parent / "copy.db")
    assert sorted(path.name for path in filled.parent.iterdir()) == ["kept"]


async def test_what_is_not_in_one_sqlite_file_is_refused_by_name(tmp_path: Path) -> None:
    elsewhere: list[tuple[Kernel, str]] = [
        (Kernel(memory={"url": "postgresql://127.0.0.1:1/x", "provider": "postgres"}), "pg_dump"),
        (Kernel(ephemeral=True), "memory"),
        (kernel(tmp_path, state_url=f"sqlite:///{tmp_path / 'state.db'}"), "state_url"),
    ]
    for each, word in elsewhere:
        with pytest.raises(Unsupported, match=word):
            await each.backup(tmp_path / "copy.db")
