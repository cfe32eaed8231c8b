# ruff: noqa: ASYNC240 - tests may wait for their own files
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self

import pytest

from lamina.domain.pack import PackType
from lamina.domain.pack_decay import Tier
from lamina.domain.pack_query import PackQuery
from lamina.errors import AdapterError, ConfigError, StoreDamaged
from lamina.state.sqlite import SqlitePackStore
from lamina.testing.pack_contract.material import (
    NOW,
    TENANT,
    add,
    all_of,
    days,
    get,
    memory,
    pack,
    supersedes,
    with_pack,
)

CANARY = "zweihundertneunundneunzig"
HOT = {"lamina_pack_memories", "lamina_pack_relations"}
COLD = "lamina_pack_originals"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "lamina.db"


@pytest.fixture
async def store(file: Path) -> AsyncIterator[SqlitePackStore]:
    async with SqlitePackStore(file, readers=0) as store:  # one connection, whose reads are noted
        yield store


def change(file: Path, statement: str, *parameters: object) -> None:
    """Change what is kept, past the store."""
    connection = sqlite3.connect(file)
    connection.execute(statement, parameters)
    connection.commit()
    connection.close()


def bytes_kept(file: Path) -> bytes:
    return b"".join(path.read_bytes() for path in file.parent.iterdir())


class Seen:
    """The tables that SQLite reads for a call, as it asks for leave, and how many statements it runs on packs."""

    def __init__(self, store: SqlitePackStore) -> None:
        self.store = store
        self.tables: set[str] = set()
        self.statements: list[str] = []

    def _authorize(self, action: int, table: str | None, *_: object) -> int:
        if action == sqlite3.SQLITE_READ and table is not None:
            self.tables.add(table)
        return sqlite3.SQLITE_OK

    def _trace(self, statement: str) -> None:
        if "lamina_pack_" in statement:
            self.statements.append(statement)

    def _watch(self, connection: sqlite3.Connection) -> None:
        connection.set_authorizer(self._authorize)  # which also has every statement prepared anew
        connection.set_trace_callback(self._trace)

    def _stop(self, connection: sqlite3.Connection) -> None:
        connection.set_authorizer(None)
        connection.set_trace_callback(None)

    async def __aenter__(self) -> Self:
        await self.store._opened().alone(self._watch)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.store._opened().alone(self._stop)


async def steps(store: SqlitePackStore, *calls) -> list[int]:
    """How many rows and pages SQLite works through for each call, in its own steps."""
    counts = []
    for call in calls:
        taken = 0

        def count() -> int:
            nonlocal taken
            taken += 1
            return 0

        await store._opened().alone(lambda c, count=count: c.set_progress_handler(count, 1))
        await call()
        await store._opened().alone(lambda c: c.set_progress_handler(None, 1))
        counts.append(taken)
    return counts


async def test_reading_packs_is_one_query_each_and_never_touches_their_memories(store: SqlitePackStore) -> None:
    await with_pack(store, memory("m1"), embedding=[1.0], fingerprint="f")
    query = PackQuery(tenant=TENANT, any_owner=True, tag=None)
    for call in (
        lambda: store.list_packs(query),
        lambda: store.pack_faces(query, limit=9),
        lambda: store.count_packs(query),
        lambda: store.get_packs(TENANT, ["p1"]),
        lambda: store.find_pack(TENANT, "pack-p1", owner=None),
        store.tenants,
    ):
        async with Seen(store) as seen:
            assert await call()
        assert "lamina_pack_heads" in seen.tables
        assert not seen.tables & (HOT | {COLD})
        assert len(seen.statements) == 1


async def test_statistics_walks_and_tiers_read_no_original(store: SqlitePackStore) -> None:
    await with_pack(store, memory("m1"), memory("m2"))
    for call in (
        lambda: store.statistics(TENANT, "p1"),
        lambda: store.count_memories(all_of()),
        lambda: store.find_memories(all_of(), with_content=False),
        lambda: store.get_memories(TENANT, ["m1"], with_content=False),
        lambda: store.due(TENANT, until=days(31), limit=9),
        lambda: store.touch(TENANT, ["m1"], now=NOW),
        lambda: store.set_tier(TENANT, "m2", Tier.SUMMARY, expected_revision=1, now=NOW),
        lambda: store.save_memory(memory("m1", "").replace(content=""), expected_revision=1, now=NOW),
    ):
        async with Seen(store) as seen:
            assert await call()
        assert "lamina_pack_memories" in seen.tables
        assert COLD not in seen.tables
    async with Seen(store) as seen:
        assert await store.find_memories(all_of())
    assert COLD in seen.tables


async def test_no_index_and_no_hot_row_holds_content(file: Path, store: SqlitePackStore) -> None:
    await with_pack(store, memory("m1", CANARY * 100))
    connection = sqlite3.connect(file)
    columns = {row[1] for row in connection.execute("PRAGMA table_info(lamina_pack_memories)")}
    assert not columns & {"content", "text", "embedding", "vector"}
    indexed = "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ?"
    assert connection.execute(indexed, (COLD,)).fetchall() == []
    [(size,)] = connection.execute("SELECT length(content) FROM lamina_pack_originals").fetchall()
    connection.close()
    assert size < len(CANARY) * 10
    assert CANARY.encode() not in bytes_kept(file)


async def test_what_a_sweep_does_costs_the_same_however_many_memories_are_not_due(store: SqlitePackStore) -> None:
    await with_pack(store, *(memory(f"old {n}", created_at=days(-30)) for n in range(5)))

    async def cost() -> list[int]:
        return await steps(
            store,
            lambda: store.due(TENANT, until=NOW, limit=3),
            lambda: store.touch(TENANT, ["old 4"], now=days(-30)),
            lambda: store.unprojected(TENANT, limit=2),
        )

    before = await cost()
    await add(store, *(memory(f"new {n}") for n in range(2000)))
    await store.mark_projected(TENANT, {f"new {n}": 1 for n in range(2000)})
    assert await cost() == before
    assert all(each > 0 for each in before)


@pytest.mark.parametrize("deed", ["delete the memory", "purge the pack", "replace it"])
async def test_nothing_of_what_was_removed_is_left_in_the_file(file: Path, store: SqlitePackStore, deed: str) -> None:
    texts = {"name": CANARY, "provenance": CANARY, "tags": [CANARY], "metadata": {"x": CANARY}}
    await with_pack(store, memory("m0"), description=CANARY)
    await add(store, memory("m1", "short", **texts))
    await store.save_pack(pack(), expected_revision=1)
    assert CANARY.encode() in bytes_kept(file)
    if deed == "delete the memory":
        assert await store.delete_memory(TENANT, "m1")
    elif deed == "purge the pack":
        assert await store.purge_pack(TENANT, "p1")
    else:
        assert await store.save_memory(memory("m1", "other"), expected_revision=1, now=NOW)
    await store.scrub()
    assert CANARY.encode() not in bytes_kept(file)
    assert await store.check() == []


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        ("UPDATE lamina_pack_memories SET superseded_by = NULL", "1 relationships supersede a memory that does not"),
        ("DELETE FROM lamina_pack_relations", "1 memories are superseded by one that does not say so"),
        ("DELETE FROM lamina_pack_originals WHERE memory = 1", "1 memories have no original"),
        ("UPDATE lamina_pack_memories SET tenant = 'x' WHERE id = 'm3'", "1 memories are of another tenant than"),
        ("UPDATE lamina_pack_memories SET due_at = 5 WHERE id = 'm3'", "1 memories are said to be due at another"),
        ("UPDATE lamina_pack_memories SET tier = 'half' WHERE id = 'm3'", "the row of the pack memory 'm3' cannot"),
        ("UPDATE lamina_pack_memories SET tags = '{}' WHERE id = 'm3'", "the row of the pack memory 'm3' cannot"),
        ("UPDATE lamina_pack_originals SET content = x'00'", "the row of the original of the pack memory 'm"),
        ("UPDATE lamina_pack_heads SET decay = '[1]'", "the row of the pack 'p1' cannot be read"),
    ],
)
async def test_packs_that_contradict_themselves_are_found_out(
    file: Path, store: SqlitePackStore, statement: str, finding: str
) -> None:
    await with_pack(store, memory("m1"), memory("m2", relationships=supersedes("m1")), memory("m3"))
    assert await store.check() == []
    change(file, statement)
    assert (await store.check())[0].startswith(finding)
    done = await store.repair()
    if "supersede" in finding or "due" in finding:
        assert len(done) == 1
        assert await store.check() == []
        assert await store.repair() == []
    else:
        assert (await store.check())[0].startswith(finding)  # which only a backup mends


@pytest.mark.parametrize("blob", [b"", b"\x00", b"x\x9cK\xce\x04\x00", None])
async def test_an_original_that_cannot_be_read_is_an_error_and_no_empty_text(
    file: Path, store: SqlitePackStore, blob: bytes | None
) -> None:
    await with_pack(store, memory("m1"))
    if blob is None:
        change(file, "DELETE FROM lamina_pack_originals")
    else:
        change(file, "UPDATE lamina_pack_originals SET content = ?", blob)
    for call in (lambda: get(store, "m1"), lambda: store.unprojected(TENANT, limit=1)):
        with pytest.raises(StoreDamaged, match="original"):
            await call()


async def test_a_place_that_is_taken_for_memories_is_refused(file: Path) -> None:
    async with SqlitePackStore(file):
        pass
    change(file, "DELETE FROM schema_version WHERE component = 'lamina_packs_state'")
    with pytest.raises(ConfigError, match="lamina_pack_heads"):
        await SqlitePackStore(file).initialize()


async def test_packs_of_a_newer_version_are_refused(file: Path) -> None:
    async with SqlitePackStore(file) as store:
        await with_pack(store, memory("m1"))
        change(file, "UPDATE schema_version SET version = 9 WHERE component = 'lamina_packs_state'")
        with pytest.raises(StoreDamaged, match="version 9"):
            await add(store, memory("m2"))
    with pytest.raises(StoreDamaged, match="version 9"):
        await SqlitePackStore(file).initialize()


async def test_a_closed_pack_store_says_how_to_open_it(file: Path) -> None:
    store = SqlitePackStore(file)
    with pytest.raises(AdapterError, match=r"Call `await store.initialize\(\)` first"):
        await store.tenants()
    assert not file.exists()


async def test_ten_thousand_memories_are_counted_added_and_found_due(store: SqlitePackStore) -> None:
    await with_pack(store, type=PackType.SESSION, owner="ada")
    for hundred in range(20):
        await add(store, *(memory(f"m{hundred * 500 + n}") for n in range(500)))
    assert (await store.statistics(TENANT, "p1")).memory_count == 10_000
    assert len(await store.due(TENANT, until=days(1), limit=20_000)) == 10_000
    assert await store.check() == []
