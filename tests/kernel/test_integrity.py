from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lamina.kernel import Kernel
from lamina.kernel.integrity import Problem

DAMAGE = {
    "DELETE FROM lamina_packs": ("packs", "memories of packs have no row in the index", True),
    "DELETE FROM lamina_chunks WHERE key = (SELECT max(key) FROM lamina_chunks)": (
        "documents",
        "has 0 of its 1 chunks: ingest it again",
        False,
    ),
    "UPDATE lamina_memories SET superseded_by = id": ("memories", "is superseded by itself", False),
    "UPDATE lamina_threads SET live_count = 9": ("threads", "count their live messages wrongly", True),
    "DELETE FROM lamina_memories_text": ("memories", "1 memories have no text in the index", True),
}
"""What damages the file → in which part, what is found, and whether it can be mended."""


@pytest.mark.parametrize("statement", DAMAGE)
async def test_whatever_is_kept_is_checked_and_mended_where_the_rows_tell_how(tmp_path: Path, statement: str) -> None:
    part, finding, is_mended = DAMAGE[statement]
    async with Kernel(data_dir=tmp_path, memory={"embedding": {"provider": "none"}}) as kernel:
        await kernel.memory_engine.store("Mira is allergic to kiwi", owner="mira")
        await kernel.conversation.add_message_to_thread("t1", "user", "Hello")
        await kernel.rag.ingest("A document about kiwis.", "kiwi.txt")
        await kernel.packs.create("health", "user", owner="mira")
        await kernel.packs.add("health", "Mira sleeps badly.", owner="mira")
        assert (await kernel.check_integrity()).is_sound
        with closing(sqlite3.connect(tmp_path / "lamina.db")) as connection, connection:
            for side in ("text", "vectors", "blocks", "history") if "FROM lamina_packs" in statement else ():
                connection.execute(f"DELETE FROM lamina_packs_{side}")  # noqa: S608 - our own names
            if "lamina_chunks" in statement:
                connection.execute("DELETE FROM lamina_chunks_text")
            connection.execute(statement)
        found = await kernel.check_integrity()
        assert [each for each in found.problems if each.part == part and finding in each.found], found.problems
        report = await kernel.check_integrity(repair=True)
        assert report.is_sound == is_mended, report
        assert bool(report.repaired) == is_mended
        assert all(isinstance(each, Problem) for each in report.repaired)
        if is_mended:
            hits = await kernel.packs.retrieve("health", "sleeps badly", owner="mira")
            assert [hit.memory.content for hit in hits] == ["Mira sleeps badly."]
