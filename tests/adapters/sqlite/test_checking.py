"""What is deleted is gone to the last byte, and what contradicts itself is found."""

from pathlib import Path

import pytest

from lamina.adapters.sqlite import SqliteAdapter
from lamina.domain.scope import Scope
from lamina.errors import AdapterUnavailable
from lamina.testing.memory_contract.material import MINE, NOW, by_text, ids, listed, memory, put

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


async def test_checking_and_scrubbing_change_no_answer(adapter: SqliteAdapter) -> None:
    await adapter.store_many(MINE, [memory(f"m{n}", f"note {n}", embedding=[n, 1.0]) for n in range(100)])
    await adapter.delete_many(MINE, [f"m{n}" for n in range(0, 100, 3)])
    before = (await listed(adapter), await by_text(adapter, "note 50", limit=5))
    await adapter.check()
    await adapter.scrub()
    assert (await listed(adapter), await by_text(adapter, "note 50", limit=5)) == before
    assert "m50" in ids(before[1])
