"""Memories that supersede others by their ids, and what recalls then leave out."""

import asyncio
from datetime import timedelta

import pytest

from lamina.adapters.in_memory import InMemoryAdapter
from lamina.errors import AdapterUnavailable, Conflict, InvalidInput, InvalidType, MemoryNotFound, ScopeError
from lamina.memory.owner_view import OwnerMemory

OLD, NEW, NEWEST = "Ann lives in Berlin", "Ann lives in Munich", "Ann lives in Rome"


async def recalled(engine, **options):
    return {result.entry.content for result in await engine.recall("where does Ann live?", **options)}


async def above(engine):
    """What supersedes each memory, by what they say."""
    entries = {entry.id: entry async for entry in engine.scan()}
    return {entry.content: getattr(entries.get(entry.superseded_by), "content", None) for entry in entries.values()}


async def everything(engine):
    return [entry async for entry in engine.scan(include_embeddings=True)]


async def test_what_is_superseded_is_kept_and_no_longer_found(engine, clock):
    old = await engine.store(OLD, metadata={"key": "home"})
    clock.advance(60)
    new = await engine.store(NEW, supersedes=[old], supersede_reason="she moved")
    entry = await engine.get(old)
    assert (entry.superseded_by, entry.valid_until, entry.updated_at) == (new, clock.now, clock.now)
    assert entry.metadata == {"key": "home", "superseded": {"valid_until": None, "reason": "she moved"}}
    assert (await engine.get(new)).metadata == {"supersedes": [old]}
    for mode in ("text", "vector", "hybrid"):
        assert await recalled(engine, mode=mode) == {NEW}
        assert await recalled(engine, mode=mode, include_superseded=True) == {OLD, NEW}
    assert [each.content for each in await engine.query("Ann")] == [NEW]
    assert len(await engine.query()) == await engine.count() == len(await everything(engine)) == 2
    assert len(await engine.query(include_superseded=False)) == await engine.count(include_superseded=False) == 1
    assert [each.superseded_by for each in await engine.history(old)] == [None]
    with pytest.raises(InvalidType, match="include_superseded"):
        await recalled(engine, include_superseded="yes")


async def test_what_is_no_longer_valid_is_not_found_from_that_instant_on(engine, clock):
    until = clock.now + timedelta(seconds=60)
    await engine.store("the lamp is on", valid_until=until)
    clock.now = until - timedelta(microseconds=1)
    assert len(await engine.recall("lamp")) == 1
    clock.now = until
    assert await engine.recall("lamp") == []
    assert len(await engine.recall("lamp", include_superseded=True)) == 1


async def test_since_when_it_holds_is_when_it_happened_and_an_earlier_end_stays(engine, clock):
    ended, old = await engine.store_many([{"content": OLD, "valid_until": "2020-01-01"}, NEWEST])
    await engine.store(NEW, supersedes=[ended, old], occurred_at="2021-05-09")
    assert [(await engine.get(id)).valid_until.isoformat()[:10] for id in (ended, old)] == ["2020-01-01", "2021-05-09"]


async def test_two_that_are_stored_are_linked_and_again_is_harmless(engine):
    old, new, third = await engine.store_many([OLD, NEW, NEWEST])
    entry = await engine.supersede(old, by=new, reason="she moved")
    assert (entry.id, entry.superseded_by) == (old, new)
    assert await engine.supersede(old, by=new) == await engine.get(old) == entry
    assert await engine.store(NEW, supersedes=[old]) == new
    with pytest.raises(Conflict, match=f"superseded by {new!r} already"):
        await engine.supersede(old, by=third)
    with pytest.raises(MemoryNotFound):
        await engine.supersede("nobody", by=new)
    assert await above(engine) == {OLD: NEW, NEW: None, NEWEST: None}


async def test_a_batch_may_name_its_own_and_confirms_what_it_knows(engine):
    known = await engine.store(NEW)
    batch = [
        {"content": OLD, "id": "first"},
        {"content": NEW, "supersedes": ["first"]},
        {"content": NEWEST, "supersedes": [known]},
    ]
    assert (await engine.store_many(batch))[:2] == ["first", known]
    assert await above(engine) == {OLD: NEW, NEW: NEWEST, NEWEST: None}
    assert await recalled(engine) == {NEWEST}


REFUSED = {
    "unknown": ({"supersedes": ["nobody"]}, "no memory here has the id 'nobody'"),
    "another owner's": ({"supersedes": ["theirs"]}, "no memory here has the id 'theirs'"),
    "itself": ({"id": "new", "supersedes": ["new"]}, "'new' is the memory itself"),
    "itself, by what it says": ({"content": OLD, "supersedes": ["old"]}, "'old' is the memory itself"),
    "a shared one": ({"supersedes": ["shared"]}, "lies in the global layer"),
    "one of two": ({"supersedes": ["old", "nobody"]}, "nobody"),
    "a circle": ({"content": OLD, "id": "old", "supersedes": ["newer"]}, "'old' cannot supersede 'newer'"),
    "a reason for nothing": ({"supersede_reason": "why"}, "supersede_reason"),
    "a blank reason": ({"supersedes": ["old"], "supersede_reason": " "}, "supersede_reason"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_cannot_supersede_is_refused_by_name_and_nothing_is_written(engine, case):
    given, said = REFUSED[case]
    await engine.store(OLD, id="old")
    await engine.store("theirs", owner="bob", id="theirs")
    await engine.store("shared", layer="global", id="shared")
    await engine.store(NEWEST, id="newer")
    await engine.supersede("old", by="newer")
    if case != "a circle":
        await engine.forget("newer")
    before = await everything(engine)
    with pytest.raises(InvalidInput, match=said):
        await engine.store_many(["something else", {"content": NEW, **given}])
    assert await everything(engine) == before


async def test_a_circle_through_several_and_within_a_batch_is_refused(engine):
    a, b, c = await engine.store_many([OLD, NEW, NEWEST])
    await engine.supersede(a, by=b)
    await engine.supersede(b, by=c)
    with pytest.raises(InvalidInput, match="cannot supersede"):
        await engine.supersede(c, by=a)
    batch = [{"content": id, "id": id, "supersedes": [other]} for id, other in (("x", "y"), ("y", "x"))]
    with pytest.raises(InvalidInput, match="cannot supersede"):
        await engine.store_many(batch)
    assert await engine.count() == 3


async def test_what_is_forgotten_lets_go_of_what_it_superseded(engine, clock):
    until = clock.now + timedelta(days=1)
    a = await engine.store(OLD, valid_until=until, metadata={"key": "home"})
    b = await engine.store(NEW, supersedes=[a])
    c = await engine.store(NEWEST, supersedes=[b], tags=["last"])
    assert await engine.forget(b)
    assert await above(engine) == {OLD: NEWEST, NEWEST: None}
    assert await engine.forget_where(tags=["last"]) == 1
    entry = await engine.get(a)
    assert (entry.superseded_by, entry.valid_until, entry.metadata) == (None, until, {"key": "home"})
    assert await recalled(engine) == {OLD}
    assert await engine.get(c) is None


async def test_what_expires_lets_go_at_the_next_purge(engine, clock):
    old = await engine.store(OLD)
    await engine.store(NEW, supersedes=[old], ttl=60)
    clock.advance(61)
    assert await engine.purge_expired() == 1
    assert await recalled(engine) == {OLD}


async def test_what_is_said_anew_holds_again_but_not_by_a_repeated_call(engine):
    old = await engine.store(OLD, id="old")
    new = await engine.store(NEW, supersedes=[old])
    assert await engine.store(OLD, id="old") == old
    assert await recalled(engine) == {NEW}
    assert await engine.store(OLD, supersedes=[new]) == old
    assert await recalled(engine) == {OLD}
    assert await above(engine) == {OLD: None, NEW: OLD}


async def test_an_owner_supersedes_what_is_its_own_and_nothing_shared(engine):
    mine = OwnerMemory(engine, "ann")
    old = await mine.store(OLD)
    shared = await engine.store("the harbour is open", layer="global", owner="ann")
    new = await mine.store(NEW, supersedes=[old])
    assert (await mine.get(old)).superseded_by == new
    with pytest.raises(ScopeError):
        await mine.supersede(shared, by=new)
    with pytest.raises(InvalidInput, match="no memory here"):
        await mine.supersede(new, by=await engine.store(NEWEST, owner="bob"))


async def test_both_stores_of_an_engine_take_part(engine):
    old = await engine.store(OLD, layer="working", ttl=None)
    new = await engine.store(NEW, supersedes=[old])
    newest = await engine.store(NEWEST, layer="working", ttl=None, supersedes=[new])
    assert await above(engine) == {OLD: NEW, NEW: NEWEST, NEWEST: None}
    assert await engine.forget(newest)
    assert await recalled(engine) == {NEW}


class Fails(InMemoryAdapter):
    """Fails with what is to be written beside a new memory."""

    failing = False

    async def store_many(self, scope, entries, **options):
        if self.failing and options.get("updates"):
            raise AdapterUnavailable("memory", "gone", "Try again.")
        return await super().store_many(scope, entries, **options)


async def test_a_failure_writes_nothing_and_is_made_good_by_repeating(open_engine):
    adapter = Fails()
    engine = await open_engine(adapter=adapter)
    old = await engine.store(OLD)
    adapter.failing = True
    with pytest.raises(AdapterUnavailable):
        await engine.store(NEW, supersedes=[old])
    assert await above(engine) == {OLD: None}
    adapter.failing = False
    await engine.store(NEW, supersedes=[old])
    assert await above(engine) == {OLD: NEW, NEW: None}


async def test_of_many_that_supersede_one_at_the_same_time_one_does(engine):
    old = await engine.store(OLD)
    calls = [engine.store(f"Ann lives in place {n}", supersedes=[old]) for n in range(8)]
    done = await asyncio.gather(*calls, return_exceptions=True)
    (id,) = [each for each in done if isinstance(each, str)]
    assert all(isinstance(each, Conflict) for each in done if each != id)
    assert (await engine.get(old)).superseded_by == id
    assert await engine.count() == 2
