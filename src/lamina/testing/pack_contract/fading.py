"""Being read, being due, tiers, and the projection that search runs over."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from lamina.domain.pack import PackStatus, PackType
from lamina.domain.pack_decay import Decay, Tier
from lamina.domain.pack_query import DuePlace
from lamina.ports.pack_store import PackStore
from lamina.testing.pack_contract.material import (
    LOOKALIKES,
    NOW,
    TENANT,
    add,
    days,
    due_ids,
    get,
    ids,
    memory,
    pack,
    supersedes,
    walk,
    with_pack,
)

__all__ = ["FadingContract", "ProjectionContract"]

EVER = days(100_000)


class FadingContract:
    """A pack of a project by default: 30, 60, 120 and 240 days."""

    async def test_reading_counts_once_and_puts_back_to_full(self, store: PackStore) -> None:
        await with_pack(store, memory("m1"), memory("m2"), memory("m3"))
        assert await store.set_tier(TENANT, "m2", Tier.KEY_FACTS, expected_revision=1, now=days(60))
        found = await store.touch(TENANT, ["m2", "m1", "m2", "none", "no\x00ne"], now=days(61))
        assert found == {"m1": Tier.FULL, "m2": Tier.KEY_FACTS}
        one = memory("m1", tier_since=NOW, last_accessed=days(61), access_count=1)
        assert await get(store, "m1") == one
        assert await get(store, "m2") == one.replace(id="m2", content="says m2", tier_since=days(61), revision=3)
        assert await get(store, "m3") == memory("m3", tier_since=NOW)
        assert await store.touch("other", ["m1"], now=NOW) == {}
        assert await store.touch(TENANT, [], now=NOW) == {}

    async def test_a_clock_that_goes_back_takes_no_access_back(self, store: PackStore) -> None:
        await with_pack(store, memory("m1"))
        await store.touch(TENANT, ["m1"], now=days(10))
        await store.touch(TENANT, ["m1"], now=days(5))
        found = await get(store, "m1")
        assert (found.last_accessed, found.access_count) == (days(10), 2)
        assert await due_ids(store, days(39.99)) == []
        assert await due_ids(store, days(40)) == ["m1"]

    async def test_archived_and_deleted_ones_are_not_read_and_superseded_ones_are(self, store: PackStore) -> None:
        await with_pack(store, memory("m1"), memory("m2"), memory("m3"), memory("m4", relationships=supersedes("m3")))
        assert await store.set_tier(TENANT, "m1", Tier.ARCHIVED, expected_revision=1, now=NOW)
        assert await store.save_memory(memory("m2", is_deleted=True), expected_revision=1, now=NOW)
        before = await store.get_memories(TENANT, ["m1", "m2"])
        assert list(await store.touch(TENANT, ["m1", "m2", "m3"], now=days(1))) == ["m3"]
        assert await store.get_memories(TENANT, ["m1", "m2"]) == before

    @pytest.mark.parametrize(
        ("type", "unit"),
        [
            (PackType.SESSION, 0.5),
            (PackType.USER, 30),
            (PackType.PROJECT, 30),
            (PackType.AGENT, 30),
            (PackType.DOMAIN, 365),
        ],
    )
    async def test_each_type_of_pack_has_its_times(self, store: PackStore, type: PackType, unit: float) -> None:
        await with_pack(store, memory("m1"), type=type, owner="ada")
        for revision, (tier, units) in enumerate(zip(Tier, (1, 2, 4, 8, None), strict=True), start=1):
            if tier is not Tier.FULL:
                assert await store.set_tier(TENANT, "m1", tier, expected_revision=revision - 1, now=NOW)
            found = await store.due(TENANT, until=EVER, limit=9)
            assert [instant for instant, _ in found] == ([] if units is None else [days(unit * units)])

    async def test_how_a_pack_fades_of_its_own_goes_before_its_type(self, store: PackStore) -> None:
        await with_pack(store, memory("m1"), memory("m2"), decay=Decay(timedelta(hours=1), (2.0, 3.0, 4.0, 5.5)))
        await store.touch(TENANT, ["m2"], now=days(1))
        assert await store.set_tier(TENANT, "m1", Tier.EXISTENCE_MARKER, expected_revision=1, now=NOW)
        found = await store.due(TENANT, until=EVER, limit=9)
        assert [instant for instant, _ in found] == [days(5.5 / 24), days(1 + 2 / 24)]
        assert [each.content for _, each in found] == ["", ""]
        assert found[1][1] == (await get(store, "m2")).replace(content="")

    async def test_when_memories_are_due_follows_the_pack(self, store: PackStore) -> None:
        await with_pack(store, memory("m1"), memory("m2", created_at=days(3)), memory("m3", pinned_at=NOW))
        await store.create_pack(pack("p2"))
        await add(store, memory("o1", pack_id="p2", created_at=days(50)))
        dues: list[list[tuple[float, str]]] = []
        changes: list[dict[str, Any]] = [
            {"decay": Decay(timedelta(days=1))},
            {"type": PackType.DOMAIN},
            {"status": PackStatus.DELETED},
            {"status": PackStatus.ARCHIVED},
            {"description": "no more"},
        ]
        for revision, change in enumerate(changes, start=1):
            assert await store.save_pack(pack(**change), expected_revision=revision)
            found = await store.due(TENANT, until=EVER, limit=9)
            dues.append([((instant - NOW) / timedelta(days=1), each.id) for instant, each in found])
        other = (80, "o1")
        months = [(30, "m1"), (33, "m2"), other]
        assert dues == [[(1, "m1"), (4, "m2"), other], [other, (365, "m1"), (368, "m2")], [other], months, months]
        assert [each.revision for each in await store.get_memories(TENANT, ["m1", "m2", "o1"])] == [1, 1, 1]

    async def test_a_pinned_memory_is_due_when_it_expires_and_not_before(self, store: PackStore) -> None:
        await with_pack(
            store,
            memory("pinned", pinned_at=NOW),
            memory("both", pinned_at=NOW, expires_at=days(500)),
            memory("early", expires_at=days(7)),
            memory("late", expires_at=days(31)),
        )
        found = await store.due(TENANT, until=EVER, limit=9)
        assert [(instant, each.id) for instant, each in found] == [
            (days(7), "early"),
            (days(30), "late"),
            (days(500), "both"),
        ]
        assert await store.save_memory(
            (await get(store, "pinned")).replace(pinned_at=None), expected_revision=1, now=NOW
        )
        assert await due_ids(store, days(30)) == ["early", "late", "pinned"]

    async def test_archived_and_deleted_ones_are_never_due(self, store: PackStore) -> None:
        await with_pack(store, *(memory(id, expires_at=days(1)) for id in ("m1", "m2", "m3")))
        assert await store.set_tier(TENANT, "m1", Tier.ARCHIVED, expected_revision=1, now=NOW)
        assert await store.save_memory(memory("m2", is_deleted=True), expected_revision=1, now=NOW)
        assert await due_ids(store, EVER) == ["m3"]
        assert await store.save_memory(memory("m1"), expected_revision=2, now=NOW)
        assert await due_ids(store, EVER) == ["m3", "m1"]

    @pytest.mark.parametrize("limit", [1, 3, 4])
    async def test_the_walk_over_what_is_due_tiles(self, store: PackStore, limit: int) -> None:
        await with_pack(store)
        names = [*LOOKALIKES, "b", "B", "ä"]
        await add(store, *(memory(id, created_at=days(place // 5)) for place, id in enumerate(names)))
        expected = sorted((days(30 + place // 5), id) for place, id in enumerate(names))
        pages = await walk(store, days(32), limit)
        assert [place for page in pages for place in page] == [each for each in expected if each[0] <= days(32)]
        assert all(len(page) == limit for page in pages[:-1])
        assert await store.due(TENANT, until=days(32), limit=0) == []
        assert await store.due(TENANT, until=days(29), limit=9) == []
        assert await store.due("other", until=EVER, limit=9) == []

    async def test_what_is_due_of_one_pack_is_of_that_alone(self, store: PackStore) -> None:
        await with_pack(store, memory("m1"), memory("m2", created_at=days(1)))
        await store.create_pack(pack("P1", name="upper"))
        await store.create_pack(pack("p1", tenant="other"))
        await add(store, memory("m3", pack_id="P1"))
        await add(store, memory("m4", tenant="other"))
        found = await store.due(TENANT, until=EVER, limit=9, pack_id="p1")
        assert [(instant, each.id) for instant, each in found] == [(days(30), "m1"), (days(31), "m2")]
        after = DuePlace(days(30), "m1")
        assert ids(each for _, each in await store.due(TENANT, until=EVER, limit=9, after=after, pack_id="p1")) == [
            "m2"
        ]
        assert ids(each for _, each in await store.due(TENANT, until=days(30), limit=9, pack_id="P1")) == ["m3"]
        assert await store.due(TENANT, until=EVER, limit=9, pack_id="none") == []

    async def test_a_walk_goes_on_while_what_it_found_is_changed(self, store: PackStore) -> None:
        await with_pack(store, *(memory(f"m{number}") for number in range(9)))
        seen: list[str] = []
        after: DuePlace | None = None
        while page := await store.due(TENANT, until=days(60), limit=2, after=after):
            seen += ids(found for _, found in page)
            after = DuePlace(page[-1][0], page[-1][1].id)
            for _, found in page:
                assert await store.set_tier(
                    TENANT, found.id, Tier.KEY_FACTS, expected_revision=1, now=days(60), only_if_due=True
                )
        assert seen == [f"m{number}" for number in range(9)]
        assert await due_ids(store, days(60)) == []

    async def test_a_tier_is_set_over_its_own_revision_only(self, store: PackStore) -> None:
        await with_pack(store, memory("m1"))
        assert not await store.set_tier(TENANT, "m1", Tier.SUMMARY, expected_revision=2, now=days(30))
        assert not await store.set_tier(TENANT, "m9", Tier.SUMMARY, expected_revision=1, now=days(30))
        assert not await store.set_tier("other", "m1", Tier.SUMMARY, expected_revision=1, now=days(30))
        assert await get(store, "m1") == memory("m1", tier_since=NOW)
        assert await store.set_tier(TENANT, "m1", Tier.SUMMARY, expected_revision=1, now=days(30))
        assert not await store.set_tier(TENANT, "m1", Tier.SUMMARY, expected_revision=1, now=days(30))
        assert await store.set_tier(TENANT, "m1", Tier.SUMMARY, expected_revision=2, now=days(31))
        assert await get(store, "m1") == memory("m1", tier=Tier.SUMMARY, tier_since=days(30), revision=3)

    async def test_what_was_read_meanwhile_is_no_longer_due(self, store: PackStore) -> None:
        await with_pack(store, memory("m1"), memory("m2", pinned_at=NOW))
        await store.touch(TENANT, ["m1"], now=days(29))
        for id in ("m1", "m2"):
            assert not await store.set_tier(
                TENANT, id, Tier.SUMMARY, expected_revision=1, now=days(30), only_if_due=True
            )
        assert await store.set_tier(TENANT, "m1", Tier.SUMMARY, expected_revision=1, now=days(59), only_if_due=True)
        assert await store.set_tier(TENANT, "m2", Tier.SUMMARY, expected_revision=1, now=days(30))


class ProjectionContract:
    """What search has still to be told."""

    async def test_what_changed_is_unprojected_until_it_is_marked(self, store: PackStore) -> None:
        await with_pack(store, memory("m2"), memory("m1"), memory("m3"))
        found = await store.unprojected(TENANT, limit=9)
        assert [(each.id, each.content) for each in found] == [(f"m{n}", f"says m{n}") for n in (1, 2, 3)]
        assert ids(await store.unprojected(TENANT, limit=2)) == ["m1", "m2"]
        assert await store.unprojected(TENANT, limit=0) == []
        await store.mark_projected(TENANT, {"m1": 1, "m2": 1, "m3": 1, "none": 5, "no\x00ne": 1})
        assert await store.unprojected(TENANT, limit=9) == []
        await store.touch(TENANT, ["m1"], now=NOW)
        assert await store.unprojected(TENANT, limit=9) == []
        assert await store.set_tier(TENANT, "m3", Tier.SUMMARY, expected_revision=1, now=NOW)
        assert await store.save_memory(memory("m2", is_deleted=True), expected_revision=1, now=NOW)
        assert ids(await store.unprojected(TENANT, limit=9)) == ["m2", "m3"]
        await store.mark_projected(TENANT, {"m3": 2, "m2": 2})
        await store.touch(TENANT, ["m3"], now=NOW)
        assert ids(await store.unprojected(TENANT, limit=9)) == ["m3"]

    async def test_superseding_is_a_change_of_the_one_that_is_superseded(self, store: PackStore) -> None:
        await with_pack(store, memory("m1"))
        await store.mark_projected(TENANT, {"m1": 1})
        await add(store, memory("m2", relationships=supersedes("m1")))
        assert ids(await store.unprojected(TENANT, limit=9)) == ["m1", "m2"]
        await store.mark_projected(TENANT, {"m1": 2, "m2": 1})
        assert await store.delete_memory(TENANT, "m2")
        assert ids(await store.unprojected(TENANT, limit=9)) == ["m1"]

    async def test_a_mark_is_never_taken_back_nor_set_ahead(self, store: PackStore) -> None:
        await with_pack(store, memory("m1"), memory("m2"))
        assert await store.set_tier(TENANT, "m1", Tier.SUMMARY, expected_revision=1, now=NOW)
        await store.mark_projected(TENANT, {"m1": 1, "m2": 1})
        assert ids(await store.unprojected(TENANT, limit=9)) == ["m1"]
        await store.mark_projected(TENANT, {"m1": 2})
        await store.mark_projected(TENANT, {"m1": 1, "m2": 99})
        await store.mark_projected("other", {"m1": 1})
        assert await store.unprojected(TENANT, limit=9) == []
        assert await store.save_memory(memory("m2"), expected_revision=1, now=NOW)
        assert ids(await store.unprojected(TENANT, limit=9)) == ["m2"]
