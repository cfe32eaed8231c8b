"""Files that were cut short, opened again, or worked on for long."""

from __future__ import annotations

import sqlite3

import pytest

from lamina.errors import LaminaError
from lamina.kernel import Kernel, ModelRouter
from lamina.testing import EchoModel, HashingEmbedder


@pytest.mark.case("B88")
@pytest.mark.parametrize("part", [0.6, 0.3, 0.01])
async def test_a_file_that_was_cut_short_is_an_error_of_ours_and_stays_as_it_is(tmp_path, open_engine, part):
    path = tmp_path / "lamina.db"
    engine = await open_engine(path=path)
    await engine.store_many([f"note {number} about the harbour" for number in range(300)])
    await engine.close()
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * part)])
    cut = path.read_bytes()

    async def use():
        engine = await open_engine(path=path)
        await engine.count()
        await engine.recall("harbour")
        assert await engine.adapter.check() == []

    with pytest.raises(LaminaError) as refusal:
        await use()
    assert "lamina.db" in str(refusal.value)
    assert path.read_bytes() == cut


@pytest.mark.case("B89")
async def test_fifteen_hundred_memories_answer_alike_before_and_after_a_restart(open_engine, place):
    engine = await open_engine(**place)
    await engine.store_many([f"note {number} of the harbour, berth {number % 37}" for number in range(1500)])
    asked = ["note 7 berth 7", "harbour berth 36", "note 1499"]
    given = {"limit": 20, "touch": False}

    async def answers():
        found = [await engine.recall(query, mode=mode, **given) for query in asked for mode in ("vector", "text")]
        return [[(hit.entry.id, hit.score) for hit in each] for each in found]

    before = await answers()
    await engine.close()
    engine = await open_engine(**place)
    assert await answers() == before
    assert all(len(each) == 20 for each in before)


@pytest.mark.case("B91")
async def test_a_file_that_is_written_over_and_over_keeps_its_size_and_leaves_nothing_beside_it(tmp_path):
    sizes = []
    async with Kernel(data_dir=tmp_path, model_router=ModelRouter(EchoModel(), embed=HashingEmbedder())) as kernel:
        for turn in range(8):
            text = "\n\n".join(f"Edition {turn}, paragraph {number}. " * 12 for number in range(20))
            document = await kernel.rag.ingest(text, "report.md")
            ids = await kernel.memory_engine.store_many([f"note {turn} {number}" for number in range(60)])
            for id in ids:
                await kernel.memory_engine.forget(id)
            await kernel.run_maintenance()
            if turn % 2:
                await kernel.rag.remove(document)
            [path] = tmp_path.rglob("*.db")
            with sqlite3.connect(path) as connection:
                sizes.append(connection.execute("PRAGMA page_count").fetchone()[0])
            connection.close()
    assert max(sizes[4:]) <= max(sizes[:4]) * 1.1
    assert [each.name for each in tmp_path.rglob("*") if each.is_file()] == [path.name]
