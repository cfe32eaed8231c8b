"""Superseding: both sides at once, no circles, names that are taken over, and what is live again."""

from __future__ import annotations

from itertools import pairwise

import pytest

from lamina.domain.pack import SUPERSEDES, Relationship
from lamina.domain.pack_decay import Tier
from lamina.errors import Conflict, InvalidInput, MemoryNotFound
from lamina.ports.pack_store import PackStore
from lamina.testing.pack_contract.material import (
    NOW,
    TENANT,
    add,
    all_of,
    days,
    get,
    ids,
    memory,
    named,
    pack,
    supersedes,
    with_pack,
)

__all__ = ["SupersedingContract"]


class SupersedingContract:
    """Relationships by which one memory takes the place of another."""

    async def test_a_relationship_marks_the_other_side(self, store: PackStore) -> None:
        await with_pack(store, memory("m1"), memory("m2"))
        await add(store, memory("m3", relationships=supersedes("m1")), now=days(1))
        old = await get(store, "m1")
        assert old == memory("m1", superseded_by="m3", updated_at=days(1), tier_since=NOW, revision=2)
        assert (await get(store, "m3")).relationships == supersedes("m1")
        assert ids(await store.find_memories(all_of())) == ["m2", "m3"]
        change = memory("m3", relationships=supersedes("m1", "m2"))
        assert await store.save_memory(change, expected_revision=1, now=days(2))
        assert (await get(store, "m1")).revision == 2
        assert (await get(store, "m2")).superseded_by == "m3"
        assert (await get(store, "m2")).updated_at == days(2)

    async def test_a_mark_makes_the_relationship_of_the_other_side(self, store: PackStore) -> None:
        await with_pack(store, memory("m1", relationships=[]), memory("m2"))
        await add(store, memory("m0", superseded_by="m2"), now=days(1))
        new = await get(store, "m2")
        assert new == memory("m2", relationships=supersedes("m0"), updated_at=days(1), tier_since=NOW, revision=2)
        assert (await get(store, "m0")).superseded_by == "m2"

    async def test_a_batch_may_point_into_itself_in_either_order(self, store: PackStore) -> None:
        await with_pack(
            store,
            memory("m4", relationships=supersedes("m3")),
            memory("m1", superseded_by="m2"),
            memory("m2"),
            memory("m3", relationships=[Relationship("related_to", "m4")], superseded_by="m4"),
        )
        found = await store.get_memories(TENANT, ["m1", "m2", "m3", "m4"])
        assert [each.superseded_by for each in found] == ["m2", None, "m4", None]
        assert [each.relationships for each in found] == [
            [],
            supersedes("m1"),
            [Relationship("related_to", "m4")],
            supersedes("m3"),
        ]
        assert [each.revision for each in found] == [1, 1, 1, 1]

    async def test_superseding_by_call_writes_both_sides_once(self, store: PackStore) -> None:
        await with_pack(store, memory("m1"), memory("m2"))
        await store.create_pack(pack("p2"))
        await add(store, memory("m3", pack_id="p2"))
        await store.supersede(TENANT, "m1", by="m3", now=days(1))
        await store.supersede(TENANT, "m1", by="m3", now=days(2))
        old, new = await get(store, "m1"), await get(store, "m3")
        assert (old.superseded_by, old.revision, old.updated_at) == ("m3", 2, days(1))
        assert (new.relationships, new.revision, new.updated_at) == (supersedes("m1"), 2, days(1))
        assert [each.updated_at for each in await store.get_packs(TENANT, ["p1", "p2"])] == [days(1)] * 2
        assert [each.revision for each in await store.get_packs(TENANT, ["p1", "p2"])] == [1, 1]

    async def test_what_is_not_there_supersedes_nothing(self, store: PackStore) -> None:
        await with_pack(store, memory("m1"), memory("m2"))
        assert await store.save_memory(memory("m2", is_deleted=True), expected_revision=1, now=NOW)
        for old, by in (("m1", "m9"), ("m9", "m1"), ("m1", "m2"), ("m2", "m1")):
            with pytest.raises(MemoryNotFound):
                await store.supersede(TENANT, old, by=by, now=NOW)
        with pytest.raises(MemoryNotFound):
            await store.supersede("other", "m1", by="m2", now=NOW)
        assert await get(store, "m1") == memory("m1", tier_since=NOW)

    async def test_a_memory_is_superseded_by_one_only(self, store: PackStore) -> None:
        await with_pack(store, memory("m1"), memory("m2", relationships=supersedes("m1")), memory("m3"))
        with pytest.raises(Conflict):
            await store.supersede(TENANT, "m1", by="m3", now=NOW)
        with pytest.raises(Conflict):
            await add(store, memory("m4", relationships=supersedes("m1")))
        with pytest.raises(Conflict):
            await add(store, memory("m4", relationships=supersedes("m3")), memory("m5", relationships=supersedes("m3")))
        with pytest.raises(Conflict):
            await store.save_memory(memory("m3", relationships=supersedes("m1")), expected_revision=1, now=NOW)
        assert ids(await store.find_memories(all_of(include_superseded=True))) == ["m1", "m2", "m3"]
        assert (await get(store, "m1")).superseded_by == "m2"
        assert await get(store, "m3") == memory("m3", tier_since=NOW)

    @pytest.mark.parametrize("length", [2, 5])
    async def test_no_circle_is_ever_closed(self, store: PackStore, length: int) -> None:
        chain = [f"m{number}" for number in range(length)]
        await with_pack(store, *(memory(id) for id in chain))
        for old, new in pairwise(chain):
            await store.supersede(TENANT, old, by=new, now=NOW)
        before = await store.get_memories(TENANT, chain)
        with pytest.raises(InvalidInput):
            await store.supersede(TENANT, chain[-1], by=chain[0], now=NOW)
        first = before[0].replace(relationships=supersedes(chain[-1]))
        with pytest.raises(InvalidInput):
            await store.save_memory(first, expected_revision=first.revision, now=NOW)
        with pytest.raises(InvalidInput):
            await add(store, memory("x", relationships=supersedes(chain[-1]), superseded_by=chain[0]))
        assert await store.get_memories(TENANT, [*chain, "x"]) == before

    @pytest.mark.parametrize("length", [2, 5])
    async def test_a_batch_that_is_a_circle_is_refused(self, store: PackStore, length: int) -> None:
        await with_pack(store)
        names = [f"m{number}" for number in range(length)]
        batch = [memory(id, relationships=supersedes(names[place - 1])) for place, id in enumerate(names)]
        with pytest.raises(InvalidInput):
            await add(store, *batch)
        assert await store.find_memories(all_of(include_superseded=True)) == []

    async def test_a_relationship_needs_a_target_that_the_owner_can_see(self, store: PackStore) -> None:
        await with_pack(store, memory("shared"))
        await store.create_pack(pack("pa", owner="ada"))
        await store.create_pack(pack("pb", owner="bob"))
        await store.create_pack(pack("p1", tenant="other"))
        await add(store, memory("of ada", pack_id="pa"))
        await add(store, memory("abroad", tenant="other"))
        await add(store, memory("gone", pack_id="pb"))
        assert await store.save_memory(memory("gone", is_deleted=True), expected_revision=1, now=NOW)
        for type in ("related_to", SUPERSEDES):
            for target in ("of ada", "abroad", "nothing", "gone", *(["shared"] if type == SUPERSEDES else [])):
                related = [Relationship(type, target)]
                with pytest.raises(InvalidInput, match="relationships"):
                    await add(store, memory("of bob", pack_id="pb", relationships=related))
        for target in ("of ada", "nothing"):
            related = [Relationship("related_to", target)]
            with pytest.raises(InvalidInput):
                await add(store, memory("m1", relationships=related))
            with pytest.raises(InvalidInput):
                await store.save_memory(memory("shared", relationships=related), expected_revision=1, now=NOW)
            with pytest.raises(InvalidInput):
                await add(store, memory("m1", superseded_by=target))
        for old, by in (("shared", "of ada"), ("of ada", "shared"), ("shared", "shared")):
            with pytest.raises(InvalidInput):
                await store.supersede(TENANT, old, by=by, now=NOW)
        assert await store.get_memories(TENANT, ["of bob", "m1"]) == []
        assert [await get(store, id) for id in ("shared", "of ada")] == [
            memory("shared", tier_since=NOW),
            memory("of ada", pack_id="pa", tier_since=NOW),
        ]
        seen = [Relationship("related_to", "shared"), Relationship("x", "own")]
        await add(store, memory("of bob", pack_id="pb", relationships=seen), memory("own", pack_id="pb"))
        assert (await get(store, "of bob")).relationships == seen

    async def test_a_relationship_to_what_was_deleted_later_may_stay(self, store: PackStore) -> None:
        related = [Relationship("x", "m1"), *supersedes("m2")]
        await with_pack(store, memory("m1"), memory("m2"), memory("m3", relationships=related))
        for id, revision in (("m1", 1), ("m2", 1)):
            assert await store.save_memory(memory(id, is_deleted=True), expected_revision=revision, now=NOW)
        kept = await get(store, "m3")
        assert await store.save_memory(kept.replace(confidence=0.5), expected_revision=1, now=NOW)
        assert (await get(store, "m3")).relationships == related
        assert (await get(store, "m2")).superseded_by == "m3"

    async def test_a_name_is_taken_over_by_superseding(self, store: PackStore) -> None:
        await with_pack(store, memory("m1", name="n"), memory("m2", name="N"))
        await add(store, memory("m3", name="n", relationships=[Relationship("x", "m2")]), now=days(1))
        old, new = await get(store, "m1"), await get(store, "m3")
        assert (old.superseded_by, old.name, old.revision) == ("m3", "n", 2)
        assert new.relationships == [Relationship("x", "m2"), *supersedes("m1")]
        await add(store, memory("m4", name="n"), memory("m5", name="n"), now=days(2))
        assert [(await get(store, id)).superseded_by for id in ("m1", "m3", "m4", "m5")] == ["m3", "m4", "m5", None]
        assert await named(store, "n") == ["m5"]
        assert await named(store, "N") == ["m2"]
        await store.create_pack(pack("p2"))
        await add(store, memory("m6", pack_id="p2", name="n"))
        assert await named(store, "n") == ["m5"]

    async def test_what_is_not_live_has_no_claim_on_a_name(self, store: PackStore) -> None:
        await with_pack(store, memory("m1", name="n"))
        await add(store, memory("m0", name="n", superseded_by="m1"))
        assert await named(store, "n") == ["m1"]
        assert await store.save_memory(memory("m1", name="n", is_deleted=True), expected_revision=2, now=NOW)
        await add(store, memory("m2", name="n"))
        assert (await get(store, "m1")).superseded_by is None
        assert await named(store, "n") == ["m2"]
        with pytest.raises(Conflict):
            await store.save_memory(memory("m1", name="n"), expected_revision=3, now=NOW)
        assert (await get(store, "m1")).is_deleted

    async def test_an_archived_memory_keeps_its_name(self, store: PackStore) -> None:
        await with_pack(store, memory("m1", name="n"), memory("m2"))
        assert await store.set_tier(TENANT, "m1", Tier.ARCHIVED, expected_revision=1, now=NOW)
        with pytest.raises(Conflict):
            await store.save_memory(memory("m2", name="n"), expected_revision=1, now=NOW)
        await add(store, memory("m3", name="n"))
        assert (await get(store, "m1")).superseded_by == "m3"

    async def test_saving_takes_no_name_over(self, store: PackStore) -> None:
        await with_pack(store, memory("m1", name="n"), memory("m2", name="o"), memory("m3", name="o"))
        with pytest.raises(Conflict, match="m1"):
            await store.save_memory(memory("m3", name="n"), expected_revision=1, now=NOW)
        assert (await get(store, "m3")).name == "o"
        assert await store.save_memory(memory("m2", name="n"), expected_revision=1, now=NOW)  # it is superseded
        assert await named(store, "n") == ["m1"]

    async def test_a_relationship_that_goes_makes_live_again(self, store: PackStore) -> None:
        await with_pack(store, memory("m1", name="n"))
        await add(store, memory("m2", name="n"))
        change = (await get(store, "m2")).replace(relationships=[], name="o")
        assert await store.save_memory(change, expected_revision=1, now=NOW)
        old = await get(store, "m1")
        assert (old.superseded_by, old.name, old.revision) == (None, "n", 3)
        assert await named(store, "n") == ["m1"]

    async def test_what_is_live_again_leaves_its_name_to_who_has_it(self, store: PackStore) -> None:
        await with_pack(store, memory("m1", name="n"))
        await add(store, memory("m2", name="n"))
        assert await store.save_memory(memory("m2", name="n"), expected_revision=1, now=NOW)
        old = await get(store, "m1")
        assert (old.superseded_by, old.name) == (None, None)
        assert await named(store, "n") == ["m2"]

    async def test_deleting_makes_live_again(self, store: PackStore) -> None:
        await with_pack(store, memory("m1", name="n"), memory("m2"))
        await add(store, memory("m3", name="n", relationships=supersedes("m2")))
        assert await store.delete_memory(TENANT, "m3")
        found = await store.find_memories(all_of())
        assert [(each.id, each.name, each.superseded_by, each.revision) for each in found] == [
            ("m1", "n", None, 3),
            ("m2", None, None, 3),
        ]

    async def test_deleting_one_of_a_chain_closes_the_chain(self, store: PackStore) -> None:
        await with_pack(store, *(memory(f"m{number}", name="n") for number in range(4)))
        assert await store.delete_memory(TENANT, "m1")
        assert await store.delete_memory(TENANT, "m2")
        first, last = await get(store, "m0"), await get(store, "m3")
        assert first.superseded_by == "m3"
        assert last.relationships == supersedes("m0")
        assert (first.revision, last.revision) == (3, 2)
        assert await named(store, "n") == ["m3"]
        assert await store.delete_memory(TENANT, "m3")
        assert await named(store, "n") == ["m0"]

    async def test_of_several_that_are_live_again_the_newest_has_the_name(self, store: PackStore) -> None:
        await with_pack(store, memory("m1", name="n"), memory("m9"))
        await store.supersede(TENANT, "m1", by="m9", now=NOW)
        await add(store, memory("m2", name="n"))
        await store.supersede(TENANT, "m2", by="m9", now=NOW)
        assert await store.delete_memory(TENANT, "m9")
        assert await named(store, "n") == ["m2"]
        assert ids(await store.find_memories(all_of())) == ["m1", "m2"]
