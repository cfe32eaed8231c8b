"""What is deleted is gone to the last byte, and what contradicts itself is found."""

import sqlite3
import traceback
from contextlib import closing
from pathlib import Path

import pytest

from lamina.adapters.sqlite import SqliteAdapter
from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.scope import Scope
from lamina.errors import AdapterUnavailable, StoreDamaged
from lamina.testing.memory_contract.material import MINE, NOW, by_text, by_vector, ids, listed, memory, put

CANARIES = (
    "canaryword",
    "canarytag",
    "canarykey",
    "canaryvalue",
    "canaryowner",
    "canarysource",
    "canaryspace",
    "canaryid",
)


def traces(file: Path) -> dict[str, list[str]]:
    """Which canaries stand in which file, as UTF-8 bytes."""
    found = {}
    for path in (file, Path(f"{file}-wal")):
        data = path.read_bytes() if path.exists() else b""
        found[path.name] = [canary for canary in CANARIES if canary.encode() in data]
    return found


async def test_nothing_of_a_deleted_memory_is_left_in_the_file_or_its_log(file: Path, opened) -> None:
    adapter = await opened()
    chosen = memory(
        "canaryid",
        "the canaryword sings " * 40,
        owner="canaryowner",
        namespace="canaryspace",
        tags=["canarytag"],
        metadata={"canarykey": {"deep": "canaryvalue"}},
        source="canarysource",
        embedding=[0.25] * 64,
    )
    own = Scope("acme", "canaryowner")
    await adapter.store_many(
        MINE, [memory(f"m{n}", f"other note {n} " * 20, embedding=[n + 1.0] * 64) for n in range(100)]
    )
    await adapter.store(own, chosen)
    await adapter.update(own, "canaryid", {"content": "a new text without it", "updated_at": NOW})
    await adapter.update(own, "canaryid", {"content": "the canaryword again", "layer": chosen.layer})
    await adapter.store_many(MINE, [memory(f"n{n}", f"later note {n}", embedding=[n + 1.0] * 64) for n in range(100)])
    present = {canary for found in traces(file).values() for canary in found}
    assert present == set(CANARIES)  # so the search for them can fail
    assert await adapter.delete(own, "canaryid")
    await adapter.scrub()
    assert traces(file) == {"lamina.db": [], "lamina.db-wal": []}
    assert await adapter.check() == []
    assert len(await listed(adapter)) == 200


async def test_a_text_that_was_replaced_is_kept_by_the_history_only_until_the_memory_goes(file: Path, opened) -> None:
    adapter = await opened()
    await put(adapter, memory("m1", "canaryword"), memory("m2"))
    await adapter.update(MINE, "m1", {"content": "replaced"})
    await adapter.scrub()
    assert traces(file)["lamina.db"] == ["canaryword"]
    assert await by_text(adapter, "canaryword") == []
    await adapter.delete(MINE, "m1")
    await adapter.scrub()
    assert traces(file) == {"lamina.db": [], "lamina.db-wal": []}


async def test_many_deletions_are_all_without_a_trace(file: Path, opened) -> None:
    adapter = await opened()
    for batch in range(6):
        await adapter.store_many(MINE, [memory(f"m{batch}-{n}", f"canaryword {n} of {batch}") for n in range(50)])
    await adapter.delete_many(MINE, [f"m{batch}-{n}" for batch in range(6) for n in range(50)])
    await adapter.scrub()
    assert traces(file) == {"lamina.db": [], "lamina.db-wal": []}


async def test_a_log_that_is_read_by_another_is_reported_and_not_passed_over(file: Path, opened, rows) -> None:
    adapter = await opened(busy_timeout=0.2)
    other = await opened()
    await put(adapter, memory())

    def hold(connection) -> None:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM lamina_memories").fetchone()

    await other._opened().alone(hold)
    await put(adapter, memory("m2"))
    with pytest.raises(AdapterUnavailable, match="still read"):
        await adapter.scrub()
    await other._opened().alone(lambda connection: connection.execute("ROLLBACK").rowcount)
    await adapter.scrub()


DAMAGE = {
    "a text is missing": (
        "DELETE FROM lamina_memories_text WHERE rowid IN (SELECT min(key) FROM lamina_memories)",
        "no text",
    ),
    "a text is left over": (
        "INSERT INTO lamina_memories_text (rowid, terms) VALUES (99, 'ghost')",
        "belong to no memory",
    ),
    "a text is another one": ("UPDATE lamina_memories_text SET terms = 'ghost' WHERE rowid % 9 = 3", "other words"),
    "the index lost a row": (
        "DELETE FROM lamina_memories_text_content WHERE id IN (SELECT min(key) FROM lamina_memories)",
        "contradicts its own texts|malformed",
    ),
    "a vector is left over": ("INSERT INTO lamina_memories_vectors VALUES (99, NULL, NULL, x'0000')", "vectors belong"),
    "a vector is cut": ("UPDATE lamina_memories_vectors SET data = x'00000000' WHERE block IS NULL", "another length"),
    "a vector is another one": (
        "UPDATE lamina_memories_vectors SET data = zeroblob(16) WHERE block IS NOT NULL AND slot = 3",
        "other codes",
    ),
    "a block is missing": ("DELETE FROM lamina_memories_blocks", "does not exist"),
    "a block holds nothing": ("UPDATE lamina_memories_blocks SET data = zeroblob(length(data))", "other vectors"),
    "a count is wrong": ("UPDATE lamina_memories_partitions SET vectors = vectors + 1", "count their vectors"),
    "a tenant is another one": (
        "UPDATE lamina_memories SET tenant = 'rival' WHERE id = 'm1'",
        "contradict their partition",
    ),
    "the counter went back": ("UPDATE lamina_memories_counters SET value = 1 WHERE name = 'seq'", "newer than"),
    "a version is left over": ("INSERT INTO lamina_memories_history VALUES (999, 1, '')", "former versions"),
    "a content is no text": (
        "UPDATE lamina_memories SET content = CAST(x'736563726574ff' AS TEXT) WHERE id = 'm7'",
        "the memory 'm7' has a content",
    ),
    "a content is blank": ("UPDATE lamina_memories SET content = ' ' WHERE id = 'm7'", "the memory 'm7' has a content"),
    "a content is another one": (
        "UPDATE lamina_memories SET content = 'note x' WHERE id = 'm7'",
        "'m7' has the digest",
    ),
    "an id is no text": (
        "UPDATE lamina_memories SET id = CAST(x'6dff' AS TEXT) WHERE id = 'm7'",
        "the memory 'm\\udcff'",
    ),
    "an owner is no text": ("UPDATE lamina_memories_partitions SET owner = CAST(x'ff' AS TEXT)", "has a owner"),
    "metadata is no JSON": ("UPDATE lamina_memories SET metadata = '{' WHERE id = 'm7'", "memory 'm7' cannot be read"),
    "metadata is no object": ("UPDATE lamina_memories SET metadata = '[1]' WHERE id = 'm7'", "'m7' has a metadata"),
    "metadata is bottomless": (
        "UPDATE lamina_memories SET metadata = replace(hex(zeroblob(100000)), '0', '[') WHERE id = 'm7'",
        "memory 'm7' cannot be read",
    ),
    "a number is out of range": ("UPDATE lamina_memories SET relevance = 7 WHERE id = 'm7'", "'m7' has a relevance"),
    "a time is out of range": (
        "UPDATE lamina_memories SET created_at = 1 << 62 WHERE id = 'm7'",
        "'m7' cannot be read",
    ),
    "a vector is no vector": (
        "UPDATE lamina_memories_vectors SET data = x'0000c07f0000c07f0000c07f0000c07f' WHERE block IS NULL",
        "has a embedding",
    ),
    "a version is no text": (
        "UPDATE lamina_memories_history SET entry = CAST(x'ff' AS TEXT)",
        "former version 1 of the memory with the seq 2",
    ),
    "a block is cut": ("UPDATE lamina_memories_blocks SET data = x'00'", "is cut"),
    "a partition is missing": ("DELETE FROM lamina_memories_partitions", "leads nowhere"),
}


@pytest.mark.parametrize(("statement", "finding"), DAMAGE.values(), ids=DAMAGE)
async def test_what_contradicts_itself_is_found(adapter: SqliteAdapter, rows, statement: str, finding: str) -> None:
    await adapter.store_many(MINE, [memory(f"m{n}", f"note {n}", embedding=[n, 1, 2, 3]) for n in range(70)])
    await adapter.update(MINE, "m1", {"content": "note one"})
    assert await adapter.check() == []
    rows(statement)
    findings = await adapter.check()
    assert any(part in each for each in findings for part in finding.split("|")), findings


MENDED = {
    "a text is missing": "text index was made anew from 70",
    "a text is left over": "text index was made anew",
    "a text is another one": "text index was made anew",
    "the index lost a row": "text index was made anew",
    "a vector is left over": "1 vectors of no memory were removed",
    "a vector is cut": "6 vectors of another length",
    "a vector is another one": "blocks and counts",
    "a block is missing": "blocks and counts",
    "a block holds nothing": "blocks and counts",
    "a count is wrong": "blocks and counts",
    "the counter went back": "counter of the order",
    "a content is another one": "1 memories got the digest",
    "a block is cut": "blocks and counts",
}
"""What can be made anew from the rows, and what is said of it; the other damages are left as they are, and found."""


@pytest.mark.parametrize("damage", DAMAGE)
async def test_repairing_mends_what_the_rows_tell_and_drops_nothing_that_can_be_read(
    adapter: SqliteAdapter, rows, file: Path, damage: str
) -> None:
    await adapter.store_many(MINE, [memory(f"m{n}", f"note {n}", embedding=[n, 1, 2, 3]) for n in range(70)])
    await adapter.update(MINE, "m1", {"content": "note one"})
    rows(DAMAGE[damage][0])
    with closing(sqlite3.connect(file)) as connection:
        connection.text_factory = bytes
        kept = (
            "SELECT key, tenant, id, content, metadata FROM lamina_memories",
            "SELECT * FROM lamina_memories_history",
        )
        before = [connection.execute(query).fetchall() for query in kept]
        done = await adapter.repair()
        assert [connection.execute(query).fetchall() for query in kept] == before
    if damage in MENDED:
        assert any(MENDED[damage] in each for each in done), done
        assert await adapter.check() == []
        assert await adapter.repair() == []
        assert ids(await by_text(adapter, "69", limit=1)) == ["m69"]
        assert ids(await by_vector(adapter, [2, 1, 2, 3], limit=1)) == ["m2"]
    else:
        findings = await adapter.check()
        assert any(part in each for each in findings for part in DAMAGE[damage][1].split("|")), findings


@pytest.mark.parametrize("readers", [0, 2])
async def test_text_that_is_no_text_is_said_without_what_stands_there(opened, rows, readers: int) -> None:
    adapter = await opened(readers=readers)
    await adapter.store_many(MINE, [memory("m1", "lamp"), memory("m2", "lamp two")])
    rows("UPDATE lamina_memories SET content = CAST(x'736563726574ff' AS TEXT) WHERE id = 'm1'")
    assert await adapter.check() != []
    for read in (adapter.get(MINE, "m1"), listed(adapter), by_text(adapter, "lamp"), adapter.delete(MINE, "m1")):
        with pytest.raises(StoreDamaged, match="no UTF-8") as refusal:
            await read
        shown = "".join(traceback.format_exception(refusal.value))
        assert "secret" not in shown
        assert refusal.value.__cause__ is None
    entry = await adapter.get(MINE, "m2")
    assert entry is not None
    assert entry.content == "lamp two"


async def test_what_leads_to_no_memory_is_damage_and_no_missing_key(adapter: SqliteAdapter, rows) -> None:
    await adapter.store_many(MINE, [memory(f"m{n}", f"note {n}", embedding=[n, 1.0]) for n in range(70)])
    rows("DELETE FROM lamina_memories WHERE id IN ('m3', 'm69')")
    for limit in (1_000, 70):
        with pytest.raises(StoreDamaged, match="no memory"):
            await by_vector(adapter, [1.0, 1.0], limit=limit)


async def test_an_index_that_leads_nowhere_is_damage_and_no_missing_key(opened, file: Path, rows) -> None:
    adapter = await opened(readers=0)
    await adapter.store_many(MINE, [memory(f"m{n}", f"note {n}") for n in range(5)])
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE name = 'lamina_memories_by_seq'")
    rows("DELETE FROM lamina_memories WHERE id = 'm3'")  # the index, which is unknown here, keeps its row
    with pytest.raises(StoreDamaged, match="an index leads"):
        await listed(adapter, MINE, MemoryFilter(now=NOW, expiry=Expiry.ANY))  # the index alone answers this
    assert await adapter.check() != []


async def test_checking_and_scrubbing_change_no_answer(adapter: SqliteAdapter) -> None:
    await adapter.store_many(MINE, [memory(f"m{n}", f"note {n}", embedding=[n, 1.0]) for n in range(100)])
    await adapter.delete_many(MINE, [f"m{n}" for n in range(0, 100, 3)])
    before = (await listed(adapter), await by_text(adapter, "note 50", limit=5))
    await adapter.check()
    await adapter.scrub()
    assert (await listed(adapter), await by_text(adapter, "note 50", limit=5)) == before
    assert "m50" in ids(before[1])
