# ruff: noqa: ASYNC240 - tests may wait for their own files
import os
import sqlite3
import stat
from pathlib import Path

import pytest

from lamina.adapters.sqlite import SqliteAdapter, migrations
from lamina.adapters.sqlite.migrations import MIGRATIONS
from lamina.adapters.sqlite.tables import Collection
from lamina.domain.filters import MemoryFilter
from lamina.errors import ConfigError, StoreDamaged
from lamina.testing.memory_contract.material import MINE, NOW, by_text, by_vector, ids, listed, memory, put, second


def add_column(collection: Collection) -> None:
    collection.execute("ALTER TABLE {memories} ADD COLUMN colour TEXT")
    collection.execute("UPDATE {memories} SET colour = 'red'")


def fail_midway(collection: Collection) -> None:
    add_column(collection)
    collection.execute("DELETE FROM {memories}")
    raise RuntimeError("interrupted")


OLD = len(MIGRATIONS)


class Newer(SqliteAdapter):
    _migrations = (*MIGRATIONS, add_column)


class Newest(SqliteAdapter):
    _migrations = (*MIGRATIONS, add_column, lambda collection: collection.execute("CREATE TABLE third (a)"))


class Interrupted(SqliteAdapter):
    _migrations = (*MIGRATIONS, fail_midway)


@pytest.fixture
async def old(file: Path) -> Path:
    """A file of the present version with ten memories."""
    adapter = SqliteAdapter(file)
    await adapter.initialize()
    await adapter.store_many(MINE, [memory(f"m{n}", f"note {n} about lamps") for n in range(10)])
    await adapter.close()
    return file


def versions(file: Path) -> dict[str, int]:
    connection = sqlite3.connect(file)
    found = dict(connection.execute("SELECT component, version FROM schema_version"))
    connection.close()
    return found


def copies(file: Path) -> list[str]:
    return sorted(path.name for path in file.parent.iterdir() if "backup" in path.name)


async def test_an_older_file_is_migrated_and_kept_as_a_copy(old: Path) -> None:
    adapter = Newer(old)
    await adapter.initialize()
    assert len(await listed(adapter)) == 10
    await adapter.close()
    assert versions(old) == {"lamina_memories": OLD + 1}
    copy = Path(f"{old}.lamina_memories-v{OLD}.backup")
    assert copies(old) == [copy.name]
    assert versions(copy) == {"lamina_memories": OLD}
    if os.name == "posix":
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    restored = SqliteAdapter(copy)
    await restored.initialize()
    assert ids(await by_text(restored, "lamps", limit=3)) == ["m0", "m1", "m2"]
    await restored.close()


TO_VERSION_1 = """
ALTER TABLE lamina_memories_partitions DROP COLUMN state;
DROP INDEX lamina_memories_by_superseding;
DROP INDEX lamina_memories_by_validity;
DROP INDEX lamina_memories_by_tags;
UPDATE schema_version SET version = 1;
"""


def take_back(file: Path, script: str) -> None:
    connection = sqlite3.connect(file)
    connection.executescript(script)
    connection.close()


async def test_a_file_of_version_1_leaves_out_what_was_superseded_before_and_finds_what_was_tagged(file: Path) -> None:
    first = SqliteAdapter(file)
    await first.initialize()
    marks = {
        1: {"superseded_by": "m0"},
        2: {"valid_until": NOW, "tags": ["colour"]},
        3: {"valid_until": second(1), "tags": ['the "blue"', "colour"]},
    }
    notes = [memory(f"m{n}", f"note {n}", embedding=[1.0, n], **marks.get(n, {})) for n in range(5)]
    await first.store_many(MINE, notes)
    await first.close()
    take_back(file, TO_VERSION_1)
    assert versions(file) == {"lamina_memories": 1}
    adapter = SqliteAdapter(file)
    await adapter.initialize()
    current = MemoryFilter(now=NOW, current=True)
    assert await adapter.count(MINE, current) == 3
    assert sorted(ids(await by_text(adapter, "note", MINE, current))) == ["m0", "m3", "m4"]
    assert sorted(ids(await by_vector(adapter, [1.0, 0.0], MINE, current))) == ["m0", "m3", "m4"]
    tagged = MemoryFilter(now=NOW, tags_any=('the "blue"', "red"))
    assert ids(await listed(adapter, MINE, tagged)) == ["m3"]
    assert sorted(ids(await listed(adapter, MINE, MemoryFilter(now=NOW, tags=("colour",))))) == ["m2", "m3"]
    assert await adapter.check() == []
    await adapter.close()
    assert versions(file) == {"lamina_memories": OLD}
    assert copies(file) == ["lamina.db.lamina_memories-v1.backup"]


async def test_several_steps_are_taken_one_after_the_other_with_one_copy(old: Path) -> None:
    adapter = Newest(old)
    await adapter.initialize()
    await adapter.close()
    assert versions(old) == {"lamina_memories": OLD + 2}
    assert copies(old) == [f"lamina.db.lamina_memories-v{OLD}.backup"]


async def test_a_new_file_is_made_at_the_newest_version_without_a_copy(file: Path) -> None:
    adapter = Newest(file)
    await adapter.initialize()
    await put(adapter, memory())
    await adapter.close()
    assert versions(file) == {"lamina_memories": OLD + 2}
    assert copies(file) == []


async def test_no_copy_is_made_if_none_is_wanted(old: Path) -> None:
    adapter = Newer(old, backup=False)
    await adapter.initialize()
    await adapter.close()
    assert versions(old) == {"lamina_memories": OLD + 1}
    assert copies(old) == []


async def test_an_interrupted_migration_leaves_the_old_version_which_goes_on_working(old: Path) -> None:
    with pytest.raises(RuntimeError, match="interrupted"):
        await Interrupted(old).initialize()
    adapter = SqliteAdapter(old)
    await adapter.initialize()
    assert len(await listed(adapter)) == 10
    assert await adapter.check() == []
    await put(adapter, memory("m10"))
    await adapter.close()
    later = Newer(old)
    await later.initialize()
    assert len(await listed(later)) == 11
    await later.close()
    assert versions(old) == {"lamina_memories": OLD + 1}


async def test_a_newer_file_is_refused_and_stays_as_it_was(old: Path) -> None:
    newer = Newer(old)
    await newer.initialize()
    await newer.close()
    before = old.read_bytes()
    with pytest.raises(StoreDamaged, match="newest Lamina"):
        await SqliteAdapter(old).initialize()
    assert old.read_bytes() == before


async def test_old_code_that_has_the_file_open_no_longer_writes_once_it_was_migrated(old: Path, opened) -> None:
    adapter = await opened(old)
    newer = Newer(old)
    await newer.initialize()
    with pytest.raises(StoreDamaged, match="newest Lamina"):
        await put(adapter, memory("late"))
    assert "late" not in ids(await listed(newer))
    await newer.close()


async def test_another_analyzer_makes_the_text_index_anew(old: Path, monkeypatch) -> None:
    monkeypatch.setattr(migrations, "ANALYZER_VERSION", 99)
    monkeypatch.setattr(migrations, "index_terms", lambda text: [*text.split(), "extra"])
    adapter = SqliteAdapter(old)
    await adapter.initialize()
    assert len(await by_text(adapter, "extra")) == 10
    await adapter.close()
    assert copies(old) == [f"lamina.db.lamina_memories-v{OLD}.backup"]
    monkeypatch.undo()
    back = SqliteAdapter(old)
    await back.initialize()
    assert await by_text(back, "extra") == []
    assert await back.check() == []
    await back.close()


async def test_a_text_index_of_a_newer_sqlite_is_refused_before_anything_is_written(
    old: Path, rows, monkeypatch
) -> None:
    rows("UPDATE lamina_memories_text_config SET v = 5 WHERE k = 'version'")
    monkeypatch.setattr(migrations, "_SECURE_FTS", (99, 0, 0))
    with pytest.raises(StoreDamaged, match=r"SQLite 3\.42"):
        await SqliteAdapter(old).initialize()


async def test_collections_in_one_file_are_apart_in_all_they_hold(file: Path, opened) -> None:
    one, other = await opened(file, table="one"), await opened(file, table="other")
    await put(one, memory("m1", "lamp of one", embedding=[1.0, 0.0]))
    await put(other, memory("m1", "lamp of the other", embedding=[1.0, 0.0, 0.0]))
    assert [hit.entry.content for hit in await by_text(one, "lamp")] == ["lamp of one"]
    assert versions(file) == {"one": OLD, "other": OLD}
    assert await one.delete(MINE, "m1")
    assert ids(await listed(other)) == ["m1"]
    assert await one.check() == await other.check() == []


@pytest.mark.parametrize(
    "table",
    ["lamina_memories_text", "LAMINA_Memories", "Lamina_memories_BY_seq", "schema_version", "other_thing", "Some"],
)
async def test_a_name_that_is_taken_is_refused(old: Path, rows, table: str) -> None:
    rows("CREATE TABLE other_thing_meta (a)")
    rows("CREATE TABLE some_text_data (a)")
    with pytest.raises(ConfigError, match="Choose another name"):
        await SqliteAdapter(old, table=table).initialize()
    assert versions(old) == {"lamina_memories": OLD}


@pytest.mark.parametrize("table", ["select", "ORDER", "table", "values", "transaction", "rowid"])
async def test_a_word_of_sql_can_name_a_collection(file: Path, opened, table: str) -> None:
    adapter = await opened(file, table=table)
    await adapter.store_many(MINE, [memory(f"m{n}", f"lamp {n}", embedding=[n, 1.0]) for n in range(70)])
    await adapter.update(MINE, "m1", {"content": "kite", "embedding": [5.0, 5.0]})
    await adapter.delete_many(MINE, [f"m{n}" for n in range(2, 60)])
    assert len(await by_text(adapter, "lamp")) == 11
    assert ids(await by_vector(adapter, [1.0, 1.0], limit=1)) == ["m1"]
    assert [each.content for each in await adapter.history(MINE, "m1")] == ["lamp 1"]
    assert await adapter.drop_embeddings(MINE) == 12
    await adapter.scrub()
    assert await adapter.check() == []
