# ruff: noqa: ASYNC240 - tests may wait for their own files
import asyncio
import os
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from lamina.adapters.sqlite import SqliteAdapter
from lamina.databases.sqlite.connection import APPLICATION_ID, PAGE_SIZE
from lamina.errors import AdapterError, AdapterUnavailable, ConfigError, StoreDamaged
from lamina.testing.memory_contract.material import MINE, NOW, by_text, ids, listed, memory, put

posix = pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")


async def filled(file: Path, number: int = 120) -> None:
    adapter = SqliteAdapter(file)
    await adapter.initialize()
    await adapter.store_many(MINE, [memory(f"m{n}", f"note {n} of many", embedding=[n, 1.0]) for n in range(number)])
    await adapter.close()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}


async def assert_refused_unchanged(file: Path, match: str) -> None:
    before = contents(file.parent)
    adapter = SqliteAdapter(file)
    for _ in range(2):
        with pytest.raises(StoreDamaged, match=match):
            await adapter.initialize()
    with pytest.raises(AdapterError, match="not open"):
        await adapter.get(MINE, "m1")
    await adapter.close()
    after = contents(file.parent)
    assert {name: after[name] for name in before} == before
    assert all(after[name] == b"" for name in after.keys() - before.keys())  # at most an empty log


@posix
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
async def test_the_file_and_its_folders_are_for_their_owner_only(tmp_path: Path, umask: int) -> None:
    file = tmp_path / "a" / "b" / "lamina.db"
    before = os.umask(umask & ~0o200)
    try:
        adapter = SqliteAdapter(file)
        await adapter.initialize()
        await put(adapter, memory())
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()}
        await adapter.close()
    finally:
        os.umask(before)
    assert modes == {"lamina.db": 0o600, "lamina.db-wal": 0o600, "lamina.db-shm": 0o600}
    assert stat.S_IMODE(file.parent.stat().st_mode) & 0o077 == 0
    assert stat.S_IMODE(file.parent.parent.stat().st_mode) & 0o077 == 0


@posix
async def test_a_file_that_was_there_keeps_its_mode(file: Path) -> None:
    file.touch(mode=0o640)
    file.chmod(0o640)
    await filled(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


async def test_the_file_carries_our_mark_and_its_settings(file: Path) -> None:
    await filled(file)
    assert int.from_bytes(file.read_bytes()[68:72], "big") == APPLICATION_ID
    connection = sqlite3.connect(file)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


@pytest.mark.parametrize(
    "name", ["with space.db", "question?.db", "hash#.db", "per%20cent.db", "灯台.db", "a&mode=ro.db"]
)
async def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    await filled(tmp_path / name, 3)
    assert (tmp_path / name).stat().st_size > 0
    assert {path.name for path in tmp_path.iterdir()} == {name}


@pytest.mark.parametrize("journal", ["delete", "wal"])
async def test_another_programs_database_is_refused_and_stays_as_it_was(file: Path, journal: str) -> None:
    connection = sqlite3.connect(file)
    connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.execute("CREATE TABLE theirs (a)")
    connection.execute("INSERT INTO theirs VALUES (1)")
    connection.commit()
    connection.close()
    await assert_refused_unchanged(file, "another program")


async def test_another_programs_database_in_use_is_refused_and_stays_as_it_was(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA journal_mode = wal")
    connection.execute("CREATE TABLE theirs (a)")
    connection.commit()
    assert Path(f"{file}-wal").stat().st_size > 0
    await assert_refused_unchanged(file, "another program")
    assert connection.execute("SELECT count(*) FROM theirs").fetchone() == (0,)
    connection.close()


async def test_a_database_with_another_mark_is_refused_though_it_is_empty(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA application_id = 252006674")
    connection.commit()
    connection.close()
    await assert_refused_unchanged(file, "another program")


async def test_an_empty_database_becomes_ours(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA journal_mode = wal")
    connection.close()
    assert file.stat().st_size > 0
    await filled(file, 3)


@pytest.mark.parametrize("content", [b"just text", b"x", b"\0" * 4096, b"SQLite format 3\0" + b"\xff" * 5000])
async def test_a_file_that_is_no_database_is_refused_and_stays_as_it_was(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    await assert_refused_unchanged(file, "cannot be read|another program|no database")


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.97])
async def test_a_truncated_file_is_refused_and_stays_as_it_was(file: Path, share: float) -> None:
    await filled(file)
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])
    await assert_refused_unchanged(file, "cannot be read|damaged")


@pytest.mark.parametrize("page", [0, 1, 2, 5, 9, 14])
async def test_a_garbled_file_is_refused_and_stays_as_it_was(file: Path, page: int) -> None:
    await filled(file)
    data = bytearray(file.read_bytes())
    start = PAGE_SIZE * page + (100 if page == 0 else 0)
    data[start : start + 600] = bytes(range(7, 207)) * 3
    file.write_bytes(data)
    await assert_refused_unchanged(file, "cannot be read|damaged")


async def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match="folder"):
        await SqliteAdapter(tmp_path).initialize()


async def test_damage_that_is_found_while_reading_is_said_and_is_no_empty_answer(file: Path, monkeypatch) -> None:
    monkeypatch.setattr("lamina.databases.sqlite.connection.SMALL_FILE", 0)  # as for a file too large to check whole
    await filled(file, 800)
    data = bytearray(file.read_bytes())
    for page in range(40, len(data) // PAGE_SIZE):  # behind the pages that opening needs
        data[PAGE_SIZE * page : PAGE_SIZE * page + 200] = b"\x0d" + b"\xee" * 199
    file.write_bytes(data)
    adapter = SqliteAdapter(file)
    await adapter.initialize()
    with pytest.raises(StoreDamaged):
        await listed(adapter)
    assert await adapter.check() != []
    await adapter.close()


@pytest.mark.parametrize("size", [0, 8 * 1024 * 1024])
async def test_a_schema_with_a_name_that_is_no_text_is_refused(file: Path, monkeypatch, size: int) -> None:
    monkeypatch.setattr("lamina.databases.sqlite.connection.SMALL_FILE", size)
    await filled(file, 3)
    data = file.read_bytes()
    data = data.replace(b"lamina_memories_by_seq", b"lamina_memories_\xff\xfe_seq")
    file.write_bytes(data.replace(b"(partition, seq)", b"(partition! seq)"))
    with pytest.raises(StoreDamaged):
        await SqliteAdapter(file).initialize()


def let_others_through(folder: Path) -> None:
    """Let other users reach the test's own folder, but not look into those above it."""
    for each in (folder, *folder.parents):
        if each.name.startswith(("test_", "pytest-", "popen-")):
            each.chmod(each.stat().st_mode | 0o011)


def as_somebody_else(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the code as a user whom file modes bind: root is not, so it becomes nobody first."""
    imports = "import asyncio, concurrent.futures.thread, os, sys\nfrom lamina.adapters.sqlite import SqliteAdapter\n"
    imports += "from lamina.errors import AdapterError\n"
    lines = imports + "if os.getuid() == 0:\n    os.setgid(65534)\n    os.setuid(65534)\n" + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", lines, *arguments], capture_output=True, text=True, check=False, timeout=60
    )


REFUSED = """
    try:
        asyncio.run(SqliteAdapter(sys.argv[1]).initialize())
    except AdapterError as error:
        print(error)
"""


@posix
@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o444, 0o777), (0o666, 0o555), (0o000, 0o777)])
async def test_a_file_or_folder_that_may_not_be_written_is_a_clear_error(
    tmp_path: Path, file_mode: int, folder_mode: int
) -> None:
    let_others_through(tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    file = folder / "lamina.db"
    await filled(file, 3)
    before = file.read_bytes()
    file.chmod(file_mode)
    folder.chmod(folder_mode)
    try:
        result = as_somebody_else(REFUSED, str(file))
    finally:
        folder.chmod(0o700)
        file.chmod(0o600)
    assert "may not be written by this user" in result.stdout, result.stderr
    assert file.read_bytes() == before


@posix
def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    let_others_through(tmp_path)
    tmp_path.chmod(0o555)
    try:
        result = as_somebody_else(REFUSED, str(tmp_path / "new" / "lamina.db"))
    finally:
        tmp_path.chmod(0o700)
    assert "cannot be opened: Permission denied" in result.stdout, result.stderr


async def test_a_full_disk_is_said_nothing_is_half_written_and_room_lets_it_go_on(opened) -> None:
    adapter = await opened()
    await put(adapter, memory("before", "written before"))
    await adapter._opened().alone(lambda c: c.execute("PRAGMA max_page_count = 60").fetchone())
    with pytest.raises(AdapterUnavailable, match="no space left"):
        await adapter.store_many(MINE, [memory(f"m{n}", f"word{n} " * 400) for n in range(400)])
    assert ids(await listed(adapter)) == ["before"]
    await adapter._opened().alone(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchone())
    await put(adapter, memory("after", "written after"))
    assert ids(await by_text(adapter, "written")) == ["after", "before"]
    assert await adapter.check() == []


LIMITED = """
    import asyncio, resource
    from lamina.adapters.sqlite import SqliteAdapter
    from lamina.errors import AdapterUnavailable
    from lamina.testing.memory_contract.material import MINE, ids, listed, memory

    async def main():
        adapter = SqliteAdapter(sys.argv[1])
        await adapter.initialize()
        await adapter.store(MINE, memory("before"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
        try:
            await adapter.store_many(MINE, [memory(f"m{n}", f"word{n} " * 400) for n in range(400)])
        except AdapterUnavailable as error:
            print("refused:", error)
        print(ids(await listed(adapter)))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await adapter.store(MINE, memory("after"))
        print(ids(await listed(adapter)), await adapter.check())
        await adapter.close()

    asyncio.run(main())
"""


@posix
def test_a_write_that_the_system_refuses_is_said_and_leaves_no_trace(file: Path) -> None:
    code = "import sys\n" + textwrap.dedent(LIMITED)
    result = subprocess.run(
        [sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=False, timeout=60
    )
    refusal, *rest = result.stdout.splitlines() or [result.stderr]
    assert refusal.startswith("refused: The sqlite backend failed")
    assert rest == ["['before']", "['before', 'after'] []"], result.stderr


@pytest.mark.parametrize(
    "options",
    [
        {"path": ""},
        {"table": ""},
        {"table": "a b"},
        {"table": 'a"; DROP TABLE x; --'},
        {"table": "sqlite_x"},
        {"table": "1a"},
        {"table": "ä"},
        {"table": "x" * 64},
        {"busy_timeout": -1},
        {"busy_timeout": float("nan")},
        {"busy_timeout": "30"},
        {"readers": -1},
        {"readers": True},
        {"readers": 1000},
    ],
    ids=str,
)
def test_a_wrong_setting_is_named(file: Path, options: dict[str, object]) -> None:
    (setting,) = options
    with pytest.raises(ConfigError, match=setting):
        SqliteAdapter(**{"path": file, **options})


@pytest.mark.parametrize("path", ["", "a\0b", "a\ud83d", "file:x.db", "FILE:///x?mode=memory", b"x.db", None], ids=repr)
def test_a_path_that_no_file_can_have_is_named(path: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        SqliteAdapter(path)
    assert refusal.value.field == "path"


@pytest.mark.parametrize("readers", [0, 2])
async def test_a_relative_path_leads_where_it_led_at_first(tmp_path: Path, monkeypatch, readers: int) -> None:
    for folder in ("ours", "theirs"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        await filled(Path("lamina.db"), 0)
    monkeypatch.chdir(tmp_path / "ours")
    adapter = SqliteAdapter("lamina.db", readers=readers)
    monkeypatch.chdir(tmp_path / "theirs")
    await adapter.initialize()
    await put(adapter, memory())
    assert ids(await listed(adapter)) == ["m1"]
    await adapter.close()
    for folder, expected in (("ours", ["m1"]), ("theirs", [])):
        other = SqliteAdapter(tmp_path / folder / "lamina.db")
        await other.initialize()
        assert ids(await listed(other)) == expected
        await other.close()


@posix
@pytest.mark.parametrize("readers", [0, 2])
@pytest.mark.parametrize("what", ["deleted", "moved", "replaced", "its folder deleted"])
async def test_nothing_is_acknowledged_into_a_file_that_is_gone(tmp_path: Path, what: str, readers: int) -> None:
    file = tmp_path / "folder" / "lamina.db"
    await filled(file, 1)
    await filled(tmp_path / "other.db", 0)
    adapter = SqliteAdapter(file, readers=readers)
    await adapter.initialize()
    await put(adapter, memory("before"))
    if what == "its folder deleted":
        shutil.rmtree(file.parent)
    elif what == "deleted":
        file.unlink()
    elif what == "moved":
        file.rename(tmp_path / "moved.db")
    else:
        (tmp_path / "other.db").rename(file)
    for write in (put(adapter, memory("lost")), adapter.delete(MINE, "before"), adapter.save_meta(MINE, "k", "v", NOW)):
        with pytest.raises(AdapterError, match="replaced" if what == "replaced" else "deleted or moved"):
            await write
    await adapter.close()
    if what == "replaced":  # as the error says
        for name in ("lamina.db-wal", "lamina.db-shm"):
            file.with_name(name).unlink(missing_ok=True)
    await adapter.initialize()
    await put(adapter, memory("after"))
    assert ids(await listed(adapter)) == ["after"]
    assert await adapter.check() == []
    await adapter.close()


@posix
async def test_a_file_that_is_put_back_is_written_again(file: Path, opened) -> None:
    adapter = await opened()
    aside = file.with_name("aside.db")
    file.rename(aside)
    with pytest.raises(AdapterError):
        await put(adapter, memory("m1"))
    aside.rename(file)
    await put(adapter, memory("m2"))
    assert ids(await listed(adapter)) == ["m2"]


@posix
async def test_no_further_connection_is_opened_to_another_file(file: Path, tmp_path: Path) -> None:
    adapter = SqliteAdapter(file)
    await adapter.initialize()  # the reading threads open theirs with their first job
    await put(adapter, memory("ours"))
    await filled(tmp_path / "other.db")
    (tmp_path / "other.db").rename(file)
    with pytest.raises(AdapterError, match="replaced"):
        await listed(adapter)
    await adapter.close()


async def test_opening_and_closing_many_times_leaves_no_handle_open(file: Path) -> None:
    handles = Path("/proc/self/fd")
    if not handles.exists():
        pytest.skip("handles are counted in /proc")
    await filled(file, 3)
    before = len(list(handles.iterdir()))
    for _ in range(40):
        adapter = SqliteAdapter(file)
        await adapter.initialize()
        assert len(await listed(adapter)) == 3
        await adapter.close()
    assert len(list(handles.iterdir())) <= before + 1
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > before


async def test_many_that_create_the_file_at_once_all_succeed(file: Path) -> None:
    adapters = [SqliteAdapter(file) for _ in range(8)]
    await asyncio.gather(*(adapter.initialize() for adapter in adapters))
    await asyncio.gather(*(put(adapter, memory(f"m{n}")) for n, adapter in enumerate(adapters)))
    assert len(await listed(adapters[0])) == 8
    await asyncio.gather(*(adapter.close() for adapter in adapters))
