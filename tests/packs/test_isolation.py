"""What is another owner's or tenant's is as absent as what there is not."""

from __future__ import annotations

import pytest

from lamina.errors import InvalidInput, MemoryNotFound, PackNotFound

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
