"""One owner's memories, and no way out to those of others."""

from __future__ import annotations

import pytest

from lamina.errors import InvalidInput, MemoryNotFound, ScopeError
from lamina.memory.inputs import MemoryInput
from lamina.memory.owner_view import OwnerMemory


@pytest.fixture
def mine(engine):
    return OwnerMemory(engine, "mira")


async def test_reads_see_the_owners_own_and_what_is_shared(engine, mine):
    own = await engine.store("The key is blue", owner="mira")
    foreign = await engine.store("The key is red", owner="tomas")
    shared = await engine.store("The key opens the door", owner="team", layer="organizational")
    assert {each.entry.id for each in await mine.recall("key")} == {own, shared}
    assert {each.id for each in await mine.query()} == {own, shared}
    assert await mine.count() == 2
    assert (await mine.get(own)).content == "The key is blue"
    assert await mine.get(foreign) is None


@pytest.mark.parametrize(
    "content",
    [
        {"content": "planted", "owner": "tomas"},
        {"content": "planted", "Owner": "tomas"},
        MemoryInput(content="planted", owner="tomas"),
        {"content": "planted", "layer": "global"},
        MemoryInput(content="planted", layer="organizational"),
    ],
    ids=str,
)
async def test_nothing_is_written_for_others(engine, mine, content):
    with pytest.raises((ScopeError, InvalidInput)):
        await mine.store(content)
    with pytest.raises(ScopeError):
        await mine.store("planted", owner="tomas")
    with pytest.raises(ScopeError):
        await mine.store("planted", layer="global")
    assert await engine.count() == 0


async def test_what_is_stored_is_the_owners(engine, mine):
    for content in ("one", {"content": "two"}, MemoryInput(content="three"), {"content": "four", "owner": "mira"}):
        await mine.store(content)
    assert await engine.count(owner="mira") == 4
    with pytest.raises(InvalidInput, match="tags"):
        await mine.store({"content": "five"}, tags=["x"])


async def test_memories_of_others_can_be_neither_changed_nor_forgotten(engine, mine):
    foreign = await engine.store("The key is red", owner="tomas")
    shared = await engine.store("The key opens the door", owner="team", layer="organizational")
    for id in (foreign, shared):
        with pytest.raises(MemoryNotFound):
            await mine.update(id, content="changed")
        assert not await mine.forget(id)
    assert await mine.forget_where(tags_any=["x"]) == 0
    assert await mine.forget_where(layer="organizational") == 0
    assert await engine.count() == 2


async def test_the_owners_own_can_be_changed_and_forgotten_but_not_made_shared(engine, mine):
    id = await mine.store("The key is blue")
    assert (await mine.update(id, content="The key is green")).content == "The key is green"
    with pytest.raises(ScopeError):
        await mine.update(id, layer="global")
    with pytest.raises(ScopeError):
        await mine.update(id, owner="tomas", content="x")
    assert await mine.forget(id)
    published = await engine.store("Ours", owner="mira", layer="organizational")
    with pytest.raises(ScopeError):
        await mine.update(published, content="Theirs")


@pytest.mark.parametrize("name", ["owner", "owner_id"])
async def test_a_filter_that_names_another_owner_is_refused(mine, name):
    for call in (mine.recall("key", **{name: "tomas"}), mine.query(**{name: "tomas"}), mine.count(**{name: "tomas"})):
        with pytest.raises(ScopeError, match="bound"):
            await call
    assert await mine.query(**{name: "mira"}) == []
