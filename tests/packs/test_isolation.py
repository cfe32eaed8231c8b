"""What is another owner's or tenant's is as absent as what there is not."""

from __future__ import annotations

import asyncio

import pytest

from lamina.errors import InvalidInput, MemoryNotFound, PackNotFound, ScopeError

HOSTILE = ["a", "a_", "a%", "A", "a:1", "a:10", "ａ", "é", "e\u0301", "default", "' OR 1=1 --", "a/../b"]
TENANTS = ["acme", "acme%"]


@pytest.fixture
async def tenants(open_packs):
    """For each of two tenants a service; each owner has a pack and each tenant a shared one, of the same names."""
    services = {}
    for tenant in TENANTS:
        packs = services[tenant] = await open_packs(tenant=tenant)
        for owner in [*HOSTILE, None]:
            await packs.create("notes", "project", owner=owner, description="wafer yield", tags=["t"])
            await packs.add("notes", f"wafer yield of {tenant} {owner}", name="n", owner=owner)
    return services


def told(tenant, *owners):
    return {f"wafer yield of {tenant} {owner}" for owner in owners}


@pytest.mark.parametrize("owner", [*HOSTILE, None])
@pytest.mark.parametrize("tenant", TENANTS)
async def test_every_read_shows_the_owners_own_and_the_shared_alone(tenants, tenant, owner):
    packs = tenants[tenant]
    summaries = await packs.list(owner=owner)
    assert {each.owner for each in summaries} == {owner, None}
    assert await packs.count(owner=owner) == len(summaries)
    matches = await packs.discover("wafer yield", limit=100, owner=owner)
    assert {each.pack.owner for each in matches} == {owner, None}
    assert (await packs.get("notes", owner=owner)).owner == owner
    assert (await packs.metadata("notes", owner=owner)).memory_count == 1
    own = told(tenant, owner)
    assert {each.content for each in await packs.memories("notes", owner=owner)} == own
    for hits in (
        await packs.retrieve("notes", "wafer yield", limit=100, owner=owner),
        await packs.retrieve("notes", limit=100, owner=owner),
        await packs.retrieve("notes", name="n", owner=owner),
    ):
        assert {hit.memory.content for hit in hits} == own
    hits = await packs.search("wafer yield", packs=100, per_pack=100, owner=owner)
    assert {hit.memory.content for hit in hits} == own | told(tenant, None)
    assert {entry.content for entry in await packs.export_entries("notes", owner=owner)} == own


async def test_another_owners_memory_is_not_found_whatever_is_done_with_it(tenants):
    packs = tenants["acme"]
    foreign = [
        (await packs.memories("notes", owner="a", touch=False))[0].id,
        (await tenants["acme%"].memories("notes", touch=False))[0].id,
    ]
    (mine,) = await packs.memories("notes", owner="A", touch=False)
    for id in foreign:
        for owner in ("A", None):
            calls = [
                packs.memory(id, owner=owner),
                packs.update_memory(id, tags=["stolen"], owner=owner),
                packs.pin(id, owner=owner),
                packs.unpin(id, owner=owner),
                packs.archive(id, owner=owner),
                packs.restore(id, owner=owner),
                packs.supersede(id, by=mine.id, owner=owner),
                packs.supersede(mine.id, by=id, owner=owner),
            ]
            for call in calls:
                with pytest.raises(MemoryNotFound):
                    await call
            assert not await packs.delete_memory(id, owner=owner)
            assert not await packs.delete_memory(id, permanent=True, owner=owner)
    assert (await packs.memory(foreign[0], touch=False, owner="a")).access_count == 0


async def test_another_owners_pack_is_not_found_whatever_is_done_with_it(open_packs):
    packs = await open_packs()
    pack = await packs.create("diary", "user", owner="mira")
    for owner in (None, "Mira", "mir", "mira "):
        for call in (
            packs.get("diary", owner=owner),
            packs.update("diary", description="mine", owner=owner),
            packs.archive_pack("diary", owner=owner),
            packs.summary("diary", owner=owner),
            packs.metadata("diary", owner=owner),
            packs.add("diary", "text", owner=owner),
            packs.memories("diary", owner=owner),
            packs.count_memories("diary", owner=owner),
            packs.retrieve("diary", owner=owner),
            packs.import_entries("diary", [], owner=owner),
            packs.export_entries("diary", owner=owner),
        ):
            with pytest.raises(PackNotFound):
                await call
        assert not await packs.delete("diary", owner=owner)
        assert not await packs.delete(pack.id, permanent=True, owner=owner)
    assert await packs.delete("diary", owner="mira")
    assert not await packs.delete(pack.id, permanent=True, owner="noor")
    assert await packs.delete(pack.id, permanent=True, owner="mira")


@pytest.mark.parametrize("owner", ["", " ", "\x00", "x" * 513])
async def test_a_name_that_is_none_is_refused_and_never_read_as_nobody(open_packs, owner):
    packs = await open_packs()
    await packs.create("notes", "project")
    await packs.add("notes", "text", id="m")
    for call in (
        packs.list(owner=owner),
        packs.discover("text", owner=owner),
        packs.get("notes", owner=owner),
        packs.memory("m", owner=owner),
        packs.search("text", owner=owner),
        packs.delete_memory("m", owner=owner),
    ):
        with pytest.raises(InvalidInput, match="owner"):
            await call


async def test_who_may_not_change_what_is_shared_reads_it_and_changes_only_what_is_their_own(packs):
    await packs.create("notes", "project", description="Shared notes")
    await packs.add("notes", "What all share", id="shared")
    await packs.create("notes", "project", owner="ann")
    await packs.add("notes", "What Ann keeps", id="own", owner="ann")
    await packs.create("facts", "domain")
    await packs.add("facts", "A shared fact", id="fact")
    sparing = packs.without_shared_writes()

    assert (await sparing.memory("shared", owner="ann")).content == "What all share"
    assert (await sparing.retrieve("facts", owner="ann"))[0].memory.id == "fact"
    assert (await sparing.update("notes", description="Ann's", owner="ann")).owner == "ann"
    await sparing.add("notes", "One more of Ann's", owner="ann")
    await sparing.pin("own", owner="ann")

    for refused in (
        lambda: sparing.create("new", "domain"),
        lambda: sparing.update("facts", description="mine", owner="ann"),
        lambda: sparing.archive_pack("facts", owner="ann"),
        lambda: sparing.activate("facts", owner="ann"),
        lambda: sparing.delete("facts", owner="ann"),
        lambda: sparing.add("facts", "mine", owner="ann"),
        lambda: sparing.add_many("facts", ["mine"], owner="ann"),
        lambda: sparing.import_entries("facts", [], owner="ann"),
        lambda: sparing.update_memory("fact", content="mine", owner="ann"),
        lambda: sparing.supersede("fact", by="own", owner="ann"),
        lambda: sparing.supersede("own", by="fact", owner="ann"),
        lambda: sparing.pin("fact", owner="ann"),
        lambda: sparing.archive("fact", owner="ann"),
        lambda: sparing.delete_memory("fact", owner="ann"),
        lambda: sparing.delete_memory("fact", permanent=True, owner="ann"),
    ):
        with pytest.raises(ScopeError, match="shared"):
            await refused()
    assert (await packs.memory("fact")).content == "A shared fact"


async def test_deleting_twice_at_once_never_reaches_the_shared_pack_of_the_same_name(packs):
    shared = await packs.create("notes", "project")
    await packs.create("notes", "project", owner="ann")
    sparing = packs.without_shared_writes()
    outcomes = await asyncio.gather(*(sparing.delete("notes", owner="ann") for _ in range(5)), return_exceptions=True)
    assert sorted(outcomes) == [False, False, False, False, True]
    assert (await packs.get("notes")).id == shared.id


async def test_a_deleted_shared_pack_is_not_removed_for_good_by_who_spares_the_shared(packs):
    shared = await packs.create("notes", "project")
    await packs.delete("notes")
    with pytest.raises(ScopeError):
        await packs.without_shared_writes().delete(shared.id, permanent=True, owner="ann")


async def test_packs_are_read_by_their_ids_only_by_who_sees_them(packs):
    own = await packs.create("notes", "project", owner="ann")
    await packs.add("notes", "What Ann keeps", id="own", owner="ann")
    [hit] = await packs.retrieve(own.id, by="id", owner="ann")
    assert hit.memory.id == "own"
    for owner in (None, "bob"):
        with pytest.raises(PackNotFound):
            await packs.retrieve(own.id, by="id", owner=owner)
        assert await packs.read(["own"], owner=owner) == []
    with pytest.raises(InvalidInput, match="by"):
        await packs.retrieve("notes", by="owner")
    assert [each.id for each in await packs.read(["none", "own"], owner="ann")] == ["own"]
