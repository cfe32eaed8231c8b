"""Packs themselves: what comes back, names, lists, changes, and what removing one leaves."""

from __future__ import annotations

from array import array
from datetime import timedelta
from typing import Any

import pytest

from lamina.domain.pack import Pack, PackFace, PackStatus, PackType
from lamina.domain.pack_decay import Decay, Tier
from lamina.domain.pack_query import PackQuery
from lamina.errors import InvalidInput, PackExists
from lamina.ports.pack_store import PackStore
from lamina.testing.pack_contract.material import (
    LOOKALIKES,
    NOW,
    TENANT,
    add,
    all_of,
    days,
    due_ids,
    get,
    memory,
    pack,
    packs_of,
    supersedes,
    with_pack,
)

__all__ = ["PackContract"]


def whole_pack() -> Pack:
    """A pack with something in every field."""
    return pack(
        name="0_of-all",
        type=PackType.USER,
        owner="ada",
        description="what 'ada' likes\n\u2603 \U0001f600",
        tags=["b", "a", "b"],
        status=PackStatus.ARCHIVED,
        metadata={"b": [1, 1.5, None, {"a": True}], "a": 2**70},
        decay=Decay(timedelta(hours=5, microseconds=3), (0.5, 1.5, 2.25, 10.0)),
        created_at=days(-1.5),
        updated_at=days(-1),
        embedding=[0.25, -1.0, 3e38],
        fingerprint="model-1",
    )


class PackContract:
    """Making, finding, listing, changing and removing packs."""

    async def test_every_field_of_a_pack_comes_back(self, store: PackStore) -> None:
        given = whole_pack()
        await store.create_pack(given.replace(revision=7))
        [bare] = await store.get_packs(TENANT, [given.id])
        assert bare == given.replace(embedding=None, revision=1)
        assert list(bare.metadata) == ["b", "a"]
        query = PackQuery(tenant=TENANT, any_owner=True, statuses=frozenset(PackStatus))
        vector = array("f", given.embedding or [])
        face = PackFace(given.id, given.name, given.description, given.tags, vector, given.fingerprint)
        assert await store.pack_faces(query, limit=9) == [face]
        assert await store.find_pack(TENANT, given.name, owner="ada") == bare
        [without] = await store.list_packs(query)
        assert without == bare

    async def test_texts_of_a_pack_are_cleaned(self, store: PackStore) -> None:
        await store.create_pack(pack(description="a\x00b", tags=["t\ud800"], metadata={"k\x00": "\udfff"}))
        [found] = await store.get_packs(TENANT, ["p1"])
        assert (found.description, found.tags, found.metadata) == ("a\ufffdb", ["t\ufffd"], {"k\ufffd": "\ufffd"})
        assert await packs_of(store, tag="t\ud800") == ["p1"]

    async def test_what_is_returned_of_packs_is_the_callers_own(self, store: PackStore) -> None:
        given = pack(tags=["a"], metadata={"a": [1]})
        await store.create_pack(given)
        given.tags.append("b")
        given.metadata["a"].append(2)
        [found] = await store.get_packs(TENANT, ["p1"])
        assert (found.tags, found.metadata) == (["a"], {"a": [1]})
        found.metadata["a"].append(3)
        assert (await store.get_packs(TENANT, ["p1"]))[0].metadata == {"a": [1]}

    async def test_a_name_is_taken_once_for_each_owner(self, store: PackStore) -> None:
        await store.create_pack(pack("p1", name="x"))
        await store.create_pack(pack("p2", name="x", owner="ada"))
        await store.create_pack(pack("p3", name="x", owner="bob"))
        for owner in (None, "ada"):
            with pytest.raises(PackExists):
                await store.create_pack(pack("p4", name="x", owner=owner))
        assert [await store.find_pack(TENANT, "x", owner=owner) is None for owner in (None, "ada", "eve")] == [
            False,
            False,
            True,
        ]
        assert [each.id for each in await store.get_packs(TENANT, ["p4", "p3", "p1", "p2"])] == ["p1", "p2", "p3"]

    async def test_an_id_of_a_pack_is_taken_once(self, store: PackStore) -> None:
        await store.create_pack(pack("p1", name="x"))
        with pytest.raises(PackExists):
            await store.create_pack(pack("p1", name="y", owner="ada"))
        await store.create_pack(pack("p1", name="y", tenant="other"))
        assert await packs_of(store, any_owner=True) == ["p1"]

    async def test_an_archived_pack_keeps_its_name_and_a_deleted_one_does_not(self, store: PackStore) -> None:
        await store.create_pack(pack("p1", name="x", status=PackStatus.ARCHIVED))
        with pytest.raises(PackExists):
            await store.create_pack(pack("p2", name="x"))
        assert await store.save_pack(pack("p1", name="x", status=PackStatus.DELETED), expected_revision=1)
        assert await store.find_pack(TENANT, "x", owner=None) is None
        await store.create_pack(pack("p2", name="x"))
        with pytest.raises(PackExists):
            await store.save_pack(pack("p1", name="x"), expected_revision=2)
        found = await store.find_pack(TENANT, "x", owner=None)
        assert found is not None
        assert found.id == "p2"
        await store.create_pack(pack("p3", name="x", status=PackStatus.DELETED))

    async def test_packs_are_listed_by_name_and_then_by_id(self, store: PackStore) -> None:
        for id, name, owner in (("c", "b", None), ("B", "b", "ada"), ("ä", "a", "ada"), ("z", "a_", None)):
            await store.create_pack(pack(id, name=name, owner=owner))
        assert await packs_of(store, owner="ada") == ["ä", "z", "B", "c"]
        pages = [await store.list_packs(PackQuery(tenant=TENANT, owner="ada"), limit=3, offset=at) for at in (0, 3, 6)]
        assert [[each.id for each in page] for page in pages] == [["ä", "z", "B"], ["c"], []]
        assert await store.list_packs(PackQuery(tenant=TENANT), limit=0) == []

    async def test_a_walk_over_faces_goes_by_id_and_stays_in_place(self, store: PackStore) -> None:
        for number in range(7):
            owner = "ada" if number % 2 else None
            await store.create_pack(pack(f"p{number}", name=f"n{9 - number}", owner=owner, tags=["t"]))
        await store.create_pack(pack("p4z", name="other", owner="bob", tags=["t"]))
        await store.create_pack(pack("p5z", name="untagged"))
        asked = PackQuery(tenant=TENANT, owner="ada", tag="t")
        seen: list[str] = []
        while page := await store.pack_faces(asked, limit=2, after=seen[-1] if seen else None):
            seen += [each.id for each in page]
            await store.purge_pack(TENANT, seen[-1])
            await store.create_pack(pack(f"a{len(seen)}", name=f"a{len(seen)}", tags=["t"]))
        assert seen == [f"p{number}" for number in range(7)]
        assert [each.embedding for each in await store.pack_faces(asked, limit=1)] == [None]

    async def test_a_query_of_packs_is_kept_to_in_all_it_says(self, store: PackStore) -> None:
        await store.create_pack(pack("p1", tags=["x", "y"]))
        await store.create_pack(pack("p2", type=PackType.DOMAIN, tags=["x"]))
        await store.create_pack(pack("p3", owner="ada", type=PackType.USER, tags=["xy", "X"]))
        await store.create_pack(pack("p4", status=PackStatus.ARCHIVED, tags=["x"]))
        await store.create_pack(pack("p5", status=PackStatus.DELETED))
        asked: list[tuple[dict[str, Any], list[str]]] = [
            ({}, ["p1", "p2"]),
            ({"tag": "x"}, ["p1", "p2"]),
            ({"tag": "y", "owner": "ada"}, ["p1"]),
            ({"tag": "x%", "any_owner": True}, []),
            ({"type": PackType.DOMAIN}, ["p2"]),
            ({"type": PackType.USER, "owner": "bob"}, []),
            ({"owner": "ada"}, ["p1", "p2", "p3"]),
            ({"any_owner": True}, ["p1", "p2", "p3"]),
            ({"statuses": frozenset({PackStatus.ARCHIVED})}, ["p4"]),
            ({"statuses": frozenset(PackStatus), "any_owner": True}, ["p1", "p2", "p3", "p4", "p5"]),
            ({"statuses": frozenset()}, []),
        ]
        for words, expected in asked:
            query = PackQuery(tenant=TENANT, **words)
            assert [each.id for each in await store.list_packs(query)] == expected, words
            assert await store.count_packs(query) == len(expected), words

    @pytest.mark.parametrize("name", LOOKALIKES)
    async def test_owners_whose_names_look_alike_are_apart(self, store: PackStore, name: str) -> None:
        for number, each in enumerate(LOOKALIKES):
            await store.create_pack(pack(f"p{number}", name="mine", type=PackType.USER, owner=each))
        await store.create_pack(pack("p", name="shared"))
        found = await store.list_packs(PackQuery(tenant=TENANT, owner=name))
        assert [each.owner for each in found] == [name, None]
        own = await store.find_pack(TENANT, "mine", owner=name)
        assert own is not None
        assert own.owner == name
        assert await packs_of(store) == ["p"]
        assert await store.find_pack(TENANT, "mine", owner=None) is None

    async def test_a_pack_is_saved_over_its_own_revision_only(self, store: PackStore) -> None:
        await store.create_pack(pack())
        changed = pack(name="new", description="said", tags=["t"], metadata={"a": 1}, updated_at=days(1))
        assert not await store.save_pack(changed, expected_revision=2)
        assert await store.get_packs(TENANT, ["p1"]) == [pack()]
        assert await store.save_pack(changed, expected_revision=1)
        assert not await store.save_pack(pack(), expected_revision=1)
        assert await store.get_packs(TENANT, ["p1"]) == [changed.replace(revision=2)]
        assert not await store.save_pack(pack("p9"), expected_revision=1)
        assert not await store.save_pack(changed.replace(tenant="other"), expected_revision=2)
        assert await packs_of(store) == ["p1"]

    async def test_whose_a_pack_is_and_when_it_was_made_stay(self, store: PackStore) -> None:
        await store.create_pack(pack(owner="ada"))
        assert await store.save_pack(pack(owner="bob", created_at=days(5)), expected_revision=1)
        assert await store.get_packs(TENANT, ["p1"]) == [pack(owner="ada", revision=2)]
        await store.create_pack(pack("p2"))
        with pytest.raises(InvalidInput, match="owner"):
            await store.save_pack(pack("p2", type=PackType.USER, owner="ada"), expected_revision=1)
        assert (await store.get_packs(TENANT, ["p2"]))[0] == pack("p2")

    async def test_a_name_that_another_pack_has_cannot_be_saved(self, store: PackStore) -> None:
        await store.create_pack(pack("p1", name="x"))
        await store.create_pack(pack("p2", name="y"))
        with pytest.raises(PackExists):
            await store.save_pack(pack("p2", name="x"), expected_revision=1)
        assert (await store.get_packs(TENANT, ["p2"]))[0] == pack("p2", name="y")

    async def test_a_vector_is_kept_as_long_as_its_fingerprint_is(self, store: PackStore) -> None:
        await store.create_pack(pack(embedding=[1.0, 2.0], fingerprint="m1"))
        vectors: list[tuple[list[float] | None, str | None]] = []
        changes: list[dict[str, Any]] = [
            {"fingerprint": "m1"},
            {"embedding": [3.0], "fingerprint": "m2"},
            {"fingerprint": "m1"},
            {"fingerprint": "m1"},
            {"embedding": [4.0], "fingerprint": "m2"},
            {},
        ]
        for revision, change in enumerate(changes, start=1):
            assert await store.save_pack(pack(**change), expected_revision=revision)
            [found] = await store.pack_faces(PackQuery(tenant=TENANT), limit=9)
            vectors.append((None if found.embedding is None else list(found.embedding), found.fingerprint))
        none = (None, None)
        assert vectors == [([1.0, 2.0], "m1"), ([3.0], "m2"), none, none, ([4.0], "m2"), none]

    async def test_a_purge_leaves_nothing_of_the_pack(self, store: PackStore) -> None:
        await with_pack(
            store, memory("m1"), memory("m2", relationships=supersedes("m1")), embedding=[1.0], fingerprint="f"
        )
        await store.create_pack(pack("p2"))
        await add(store, memory("m3", pack_id="p2", relationships=supersedes("m2")))
        await add(store, memory("m4", pack_id="p2", name="n"), memory("m5", relationships=supersedes("m4")))
        assert not await store.purge_pack("other", "p1")
        assert await store.purge_pack(TENANT, "p1")
        assert not await store.purge_pack(TENANT, "p1")
        assert await packs_of(store) == ["p2"]
        assert await store.get_memories(TENANT, ["m1", "m2", "m5"]) == []
        assert await store.find_memories(all_of("p1", include_superseded=True)) == []
        assert (await get(store, "m3")).relationships == []
        revived = await get(store, "m4")
        assert (revived.superseded_by, revived.name, revived.content) == (None, "n", "says m4")
        assert await due_ids(store, days(9999)) == ["m3", "m4"]
        await with_pack(store, memory("m1", "anew"))
        assert (await get(store, "m1")).content == "anew"
        assert await store.find_memories(all_of()) == [(await get(store, "m1"))]

    async def test_a_purge_hands_on_what_goes_on_being_superseded(self, store: PackStore) -> None:
        await store.create_pack(pack("p2"))
        await with_pack(store)
        await add(store, memory("m1", pack_id="p2"))
        await add(store, memory("m2", relationships=supersedes("m1")))
        await add(store, memory("m3", relationships=supersedes("m2")))
        await add(store, memory("m4", pack_id="p2", relationships=supersedes("m3")))
        assert await store.purge_pack(TENANT, "p1")
        assert (await get(store, "m1")).superseded_by == "m4"
        assert (await get(store, "m4")).relationships == supersedes("m1")

    async def test_tenants_are_those_that_have_packs_in_order(self, store: PackStore) -> None:
        assert await store.tenants() == []
        for number, tenant in enumerate(reversed(LOOKALIKES)):
            await store.create_pack(pack(f"p{number}", tenant=tenant))
            await store.create_pack(pack(f"q{number}", tenant=tenant, status=PackStatus.DELETED))
        assert await store.tenants() == sorted(LOOKALIKES)
        assert await store.purge_pack("a", f"p{len(LOOKALIKES) - 1}")
        assert await store.purge_pack("a", f"q{len(LOOKALIKES) - 1}")
        assert await store.tenants() == sorted(set(LOOKALIKES) - {"a"})

    @pytest.mark.parametrize("tenant", LOOKALIKES)
    async def test_tenants_whose_names_look_alike_are_apart(self, store: PackStore, tenant: str) -> None:
        for each in LOOKALIKES:
            await store.create_pack(pack(tenant=each, description=f"of {each}"))
            await add(store, memory("m1", f"in {each}", tenant=each, name="n"))
        [found] = await store.list_packs(PackQuery(tenant=tenant, any_owner=True))
        assert found.description == f"of {tenant}"
        assert [each.content for each in await store.find_memories(all_of(tenant=tenant))] == [f"in {tenant}"]
        assert [each.content for each in await store.get_memories(tenant, ["m1"])] == [f"in {tenant}"]
        assert (await store.statistics(tenant, "p1")).memory_count == 1
        assert list(await store.touch(tenant, ["m1"], now=NOW)) == ["m1"]
        assert await store.set_tier(tenant, "m1", Tier.SUMMARY, expected_revision=1, now=NOW)
        assert await store.save_pack(found.replace(description="changed"), expected_revision=1)
        assert [each.content for each in await store.unprojected(tenant, limit=9)] == [f"in {tenant}"]
        await store.mark_projected(tenant, {"m1": 2})
        for each in LOOKALIKES:
            if each != tenant:
                kept = await get(store, "m1", each)
                assert (kept.access_count, kept.revision, kept.content) == (0, 1, f"in {each}")
                assert (await store.get_packs(each, ["p1"]))[0].description == f"of {each}"
                assert len(await store.unprojected(each, limit=9)) == 1
        assert await store.delete_memory(tenant, "m1")
        assert await store.purge_pack(tenant, "p1")
        left = [each for each in LOOKALIKES if await store.get_memories(each, ["m1"])]
        assert left == [each for each in LOOKALIKES if each != tenant]
