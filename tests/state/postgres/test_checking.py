from __future__ import annotations

import pytest

from lamina.state.postgres import PostgresPackStore, PostgresStateStore
from lamina.testing.pack_contract.material import TENANT, memory, supersedes, with_pack
from lamina.testing.state_contract.material import NOW, REF, fill, summary

PACKS = {
    "UPDATE {schema}.pack_memories SET superseded_by = NULL": (
        "1 relationships supersede a memory that does not",
        True,
    ),
    "DELETE FROM {schema}.pack_relations": ("1 memories are superseded by one that does not say so", False),
    "DELETE FROM {schema}.pack_originals WHERE memory = (SELECT min(memory) FROM {schema}.pack_originals)": (
        "1 memories have no original",
        False,
    ),
    "UPDATE {schema}.pack_memories SET due_at = now() WHERE id = 'm3'": ("1 memories are said to be due", True),
    "UPDATE {schema}.pack_memories SET tier = 'half' WHERE id = 'm3'": ("the row of the pack memory 'm3'", False),
    "UPDATE {schema}.pack_heads SET decay = '[1]'": ("the row of the pack 'p1' cannot be read", False),
}
"""What damages packs → what is found, and whether it can be mended."""

STATE = {
    "UPDATE {schema}.threads SET live_count = 7": ("1 threads count their live messages wrongly", True),
    "DELETE FROM {schema}.messages WHERE id = 'm3'": ("1 threads count their live messages wrongly", True),
    "DELETE FROM {schema}.summaries": ("1 threads are folded through another index", True),
    "UPDATE {schema}.threads SET last_index = 3": ("1 messages have an index that their thread", True),
    "UPDATE {schema}.messages SET message = '[]' WHERE id = 'm2'": ("the row of the message 2 cannot be read", False),
}


@pytest.mark.parametrize("statement", PACKS)
async def test_packs_that_contradict_themselves_are_found_out(
    postgres_url: str, postgres_schema: str, statement: str
) -> None:
    finding, is_mended = PACKS[statement]
    async with PostgresPackStore(postgres_url, schema=postgres_schema) as store:
        await with_pack(store, memory("m1"), memory("m2", relationships=supersedes("m1")), memory("m3"))
        assert await store.check() == []
        await store._opened().write(lambda session: session.execute(statement), settings={"lamina.tenant": TENANT})
        assert (await store.check())[0].startswith(finding)
        done = await store.repair()
        assert bool(done) == is_mended
        assert (await store.check() == []) == is_mended


@pytest.mark.parametrize("statement", STATE)
async def test_threads_that_contradict_themselves_are_found_out(store: PostgresStateStore, statement: str) -> None:
    finding, is_mended = STATE[statement]
    await fill(store, 4)
    await store.fold(REF, summary(1), expected_folded_through=0, now=NOW)
    assert await store.check() == []
    await store._opened().write(lambda session: session.execute(statement))
    assert (await store.check())[0].startswith(finding)
    assert bool(await store.repair()) == is_mended
    assert (await store.check() == []) == is_mended
