from __future__ import annotations

import asyncio

import pytest

from lamina.domain.memory import Layer, MemoryEntry
from lamina.errors import ConfigError, InvalidInput
from lamina.memory.factory import create_memory_engine
from lamina.testing import FrozenClock, HashingEmbedder


class TestBuilding:
    async def test_a_place_must_be_named(self):
        with pytest.raises(ConfigError, match="where memories are kept"):
            await create_memory_engine()

    async def test_unknown_settings_and_backends_are_refused_by_name(self):
        with pytest.raises(ConfigError, match="pathh"):
            await create_memory_engine(pathh="x")
        with pytest.raises(ConfigError, match="sqlite"):
            await create_memory_engine(provider="paper")

    async def test_the_tenant_of_the_bookkeeping_is_reserved(self):
        with pytest.raises(ConfigError, match="reserved"):
            await create_memory_engine(provider="memory", tenant="lamina:meta", embedding="none")

    async def test_camel_case_settings_paste_over(self):
        engine = await create_memory_engine(
            {"adapter": "memory", "embedding": "none", "defaultNamespace": "home", "scoring": {"similarityWeight": 0.5}}
        )
        async with engine:
            assert (await engine.get(await engine.store("one"))).namespace == "home"

    async def test_a_setting_that_the_adapter_does_not_take_is_refused(self, tmp_path):
        with pytest.raises(ConfigError, match="memory"):
            await create_memory_engine(provider="memory", path=tmp_path / "x.db", embedding="none")

    async def test_an_adapter_that_lacks_a_setting_is_named_with_it(self):
        with pytest.raises(ConfigError, match=r"path: is missing\. Give the path of a file"):
            await create_memory_engine(provider="sqlite", embedding="none")

    async def test_none_for_a_place_is_as_if_nothing_was_said(self):
        async with await create_memory_engine(provider="memory", path=None, url=None, embedding="none") as engine:
            assert engine.adapter.name == "memory"


async def test_closing_twice_and_opening_again_is_fine(open_engine, tmp_path):
    engine = await open_engine(path=tmp_path / "lamina.db")
    id = await engine.store("one")
    await engine.close()
    await engine.close()
    await engine.initialize()
    await engine.initialize()
    assert (await engine.get(id)).content == "one"


def test_an_engine_may_be_used_from_one_event_loop_after_another(tmp_path):
    async def make():
        engine = await create_memory_engine(path=tmp_path / "lamina.db", embed=HashingEmbedder())
        await engine.store("one")
        await engine.recall("one")
        return engine

    async def use(engine):
        await engine.store("two")
        found = {result.entry.content for result in await engine.recall("one two")}
        await engine.close()
        return found

    assert asyncio.run(use(asyncio.run(make()))) == {"one", "two"}


async def test_a_hundred_calls_side_by_side(engine):
    await asyncio.gather(*[engine.store(f"fact number {number}") for number in range(100)])
    results = await asyncio.gather(*[engine.recall(f"fact number {number}", limit=1) for number in range(100)])
    assert [result[0].entry.content for result in results] == [f"fact number {number}" for number in range(100)]
    assert await engine.count() == 100


async def test_a_cancelled_store_is_whole_or_absent(engine):
    for delay in range(12):
        task = asyncio.create_task(engine.store_many([f"{delay}: fact {n}" for n in range(40)]))
        await asyncio.sleep(delay / 1000)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await engine.store(f"after {delay}")
        contents = [entry.content async for entry in engine.scan()]
        assert len([content for content in contents if content.startswith(f"{delay}:")]) in {0, 40}
    assert len([content for content in contents if content.startswith("after")]) == 12


def comparable(entry):
    """The entry without its place in the order, which is the store's own."""
    return entry.replace(seq=0, embedding=list(entry.embedding))


async def test_entries_are_restored_exactly_and_only_once(engine, open_engine, clock):
    await engine.store_many([{"content": f"fact {n}", "tags": [str(n)], "ttl": 1000 + n} for n in range(5)])
    await engine.recall("fact 3", limit=2)
    await engine._accesses.flush()
    entries = [entry async for entry in engine.scan(include_embeddings=True)]
    copy = await open_engine(provider="memory", clock=FrozenClock())
    report = await copy.restore(entries)
    assert (report.written, report.skipped) == (5, 0)
    copied = [entry async for entry in copy.scan(include_embeddings=True)]
    assert [each.seq for each in copied] == sorted(each.seq for each in copied)
    assert [comparable(each) for each in copied] == [comparable(each) for each in entries]
    report = await copy.restore(entries)
    assert (report.written, report.skipped) == (0, 5)


async def test_an_id_names_one_memory_wherever_it_is_restored(engine):
    id = await engine.store("apple")
    entry = await engine.get(id)
    moved = entry.replace(layer=Layer.WORKING, content="apple and pear")
    assert (await engine.restore([moved])).skipped == 1
    assert (await engine.restore([moved], replace=True)).written == 1
    assert await engine.count() == 1
    assert (await engine.get(id)).content == "apple and pear"


async def test_a_restored_entry_is_checked(engine, clock):
    bad = MemoryEntry("x", " ", created_at=clock.now, updated_at=clock.now)
    with pytest.raises(InvalidInput, match="content"):
        await engine.restore([bad])


async def test_stats_tell_what_there_is(engine):
    await engine.store_many([{"content": "one", "layer": "session"}, "two", {"content": "three", "layer": "working"}])
    stats = await engine.stats()
    assert stats.memories == 3
    assert stats.by_layer == {"working": 1, "session": 1, "longterm": 1, "organizational": 0, "global": 0}
    assert stats.embedder == "testing:hashing"
    assert stats.without_embedding == 0
