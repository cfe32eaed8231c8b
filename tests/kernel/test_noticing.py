"""Two kernels on one database, as two processes have them: whatever one writes, the other knows, though it read before.

`docs/scaling.md` lists what a process remembers. Each test reads through both first, so that a memory of the former
state would show.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from lamina import Kernel, ModelRouter
from lamina.domain.pack_decay import Tier
from lamina.errors import MemoryNotFound
from lamina.testing import EchoModel, FrozenClock, HashingEmbedder


@pytest.fixture(params=["sqlite", "postgres"])
def memory(request, tmp_path):
    if request.param == "sqlite":
        return {"path": tmp_path / "lamina.db"}
    return {"url": request.getfixturevalue("postgres_database")}


@pytest.fixture
async def two(memory):
    clock = FrozenClock()

    def make():
        return Kernel({"memory": memory}, model_router=ModelRouter(EchoModel(), embed=HashingEmbedder()), clock=clock)

    async with make() as first, make() as second:
        first.advance = clock.advance
        yield first, second


async def ranked(kernel, query):
    return [(each.entry.content, each.score) for each in await kernel.memory_engine.recall(query, touch=False)]


async def test_memories_and_the_rarity_of_their_words(two):
    first, second = two
    stores = [each.memory_engine for each in two]
    await stores[0].store_many(["a common word", "a rare thing"])
    before = await ranked(second, "common rare")
    assert before == await ranked(first, "common rare") != []
    await stores[0].store_many([f"a common word {number}" for number in range(30)])
    after = await ranked(second, "common rare")
    assert after == await ranked(first, "common rare") != before
    id = await stores[0].store("the key is under the pot")
    assert (await stores[1].get(id)).content == "the key is under the pot"
    await stores[1].update(id, content="the key is in the shed", expected_revision=1)
    assert (await stores[0].get(id)).content == "the key is in the shed"
    assert (await ranked(first, "key in the shed"))[0][0] == "the key is in the shed"
    assert await stores[0].forget(id)
    assert await stores[1].get(id) is None
    assert "the key is in the shed" not in [content for content, _ in await ranked(second, "key in the shed")]


async def test_threads_and_their_folding(two):
    first, second = two
    await first.conversation.create("t")
    assert await second.conversation.history("t") == []
    for number in range(6):
        kernel = two[number % 2]
        await kernel.conversation.add_message_to_thread("t", "user", f"message {number}")
    said = [f"message {number}" for number in range(6)]
    for kernel in two:
        assert [each.text for each in await kernel.conversation.history("t")] == said
        assert (await kernel.conversation.retrieve("t")).last_index == 6


async def test_documents_that_are_replaced_and_removed(two):
    first, second = two
    await first.rag.ingest("The blue whale is the largest animal.", "animals.md")
    (hit,) = await second.rag.retrieve("largest animal")
    await first.rag.ingest("The elephant is the largest animal on land.", "animals.md")
    (hit,) = await second.rag.retrieve("largest animal")
    assert "elephant" in hit.content
    (head,) = await second.rag.list_documents()
    assert await second.rag.remove(head.id)
    assert await first.rag.retrieve("largest animal") == []


async def test_packs_their_memories_and_tiers(two):
    first, second = two
    await first.packs.create("notes", "project", description="brewing of beer", tags=["beer"])
    assert [each.pack.name for each in await second.packs.discover("beer")] == ["notes"]
    text = "The kettle of the brewery in Bamberg holds 1200 litres, and Anna cleans it on the 3rd of May each year."
    added = await first.packs.add("notes", text)
    assert [each.memory.id for each in await second.packs.retrieve("notes", "kettle")] == [added.id]
    first.advance(timedelta(days=45))
    assert (await second.packs.degrade()).moved == {Tier.SUMMARY: 1}
    assert (await first.packs.memory(added.id, touch=False)).tier is Tier.SUMMARY
    (hit,) = await first.packs.retrieve("notes", "kettle")
    assert (hit.memory.content, hit.memory.tier) == (text, Tier.FULL)
    assert (await second.packs.memory(added.id, touch=False)).tier is Tier.FULL
    newer = await second.packs.add("notes", "The kettle holds 1500 litres now.")
    await first.packs.supersede(added.id, by=newer.id)
    assert [each.memory.id for each in await second.packs.retrieve("notes", "kettle")] == [newer.id]
    await second.packs.update("notes", description="repair of bicycles", tags=["wheels"])
    assert [each.pack.name for each in await first.packs.discover("bicycles")] == ["notes"]
    assert await first.packs.delete_memory(newer.id, permanent=True)
    with pytest.raises(MemoryNotFound):
        await second.packs.memory(newer.id)
    assert await second.packs.delete("notes")
    assert await first.packs.discover("bicycles") == []
