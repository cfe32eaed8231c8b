"""Memories: what comes back, how they are found and counted, changed and removed."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.domain.pack import (
    MemoryType,
    PackConfidence,
    PackMemory,
    PackMetadata,
    PackSource,
    PackStatus,
    PackUse,
    Relationship,
)
from lamina.domain.pack_decay import Tier
from lamina.domain.storable_pack import MAX_PACK_CONTENT_BYTES
from lamina.domain.text import clean, is_blank
from lamina.errors import Conflict, PackNotFound
from lamina.ports.pack_store import PackStore
from lamina.testing.pack_contract.material import (
    LOOKALIKES,
    NOW,
    TENANT,
    add,
    all_of,
    days,
    get,
    ids,
    memory,
    pack,
    with_pack,
)

__all__ = ["MemoryContract"]

ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=200).filter(
    lambda text: not is_blank(clean(text))
)


def whole_memory() -> PackMemory:
    """A memory with something in every field that can be given."""
    return memory(
        "m1",
        "all\r\n of it \u2603",
        memory_type=MemoryType.NUMERIC_PATTERN,
        name="the rule",
        source=PackSource.AGENT_MESSAGE,
        confidence=0.1,
        provenance="session 9, turn 4",
        tags=["b", "a"],
        metadata={"b": [1.5, {"a": None}], "a": 2**70},
        relationships=[
            Relationship("related_to", "m2"),
            Relationship("explains", "m0"),
            Relationship("explains", "m2"),
        ],
        created_at=days(-2.5),
        updated_at=days(-1),
        pinned_at=days(-1),
        expires_at=days(3),
    )


class MemoryContract:
    """Adding, reading, finding, counting, changing and removing memories."""

    async def test_every_field_of_a_memory_comes_back(self, store: PackStore) -> None:
        await with_pack(store)
        await add(store, memory("m2"), whole_memory(), memory("m0"), now=days(1))
        expected = whole_memory().replace(tier_since=days(1))
        assert await get(store, "m1") == expected
        [bare] = await store.get_memories(TENANT, ["m1"], with_content=False)
        assert bare == expected.replace(content="")
        assert list(bare.metadata) == ["b", "a"]
        assert (await store.find_memories(all_of(name="the rule"))) == [expected]
        assert (await store.find_memories(all_of(name="the rule"), with_content=False)) == [bare]
        plain = memory("m0").replace(tier_since=days(1))
        assert await get(store, "m0") == plain

    async def test_what_is_counted_begins_anew(self, store: PackStore) -> None:
        used = memory("m1", last_accessed=NOW, access_count=9, tier=Tier.ARCHIVED, tier_since=NOW, revision=7)
        await with_pack(store, used.replace(is_deleted=True, embedding=[1.0]))
        assert await get(store, "m1") == memory("m1", tier_since=NOW)

    async def test_adding_is_a_change_of_the_pack_but_of_no_revision(self, store: PackStore) -> None:
        await with_pack(store)
        await store.create_pack(pack("p2"))
        await add(store, memory("m1"), now=days(2))
        assert await store.get_packs(TENANT, ["p1", "p2"]) == [pack(updated_at=days(2)), pack("p2")]
        await add(store, now=days(3))
        assert (await store.get_packs(TENANT, ["p1"]))[0].updated_at == days(2)

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(texts=st.lists(ANY_TEXT, min_size=1, max_size=5))
    async def test_any_text_comes_back_byte_for_byte(self, store: PackStore, texts: list[str]) -> None:
        await store.purge_pack(TENANT, "p1")
        await with_pack(store, *(memory(f"m{number}", text) for number, text in enumerate(texts)))
        found = await store.find_memories(all_of())
        assert [each.content.encode() for each in found] == [clean(text).encode() for text in texts]

    @pytest.mark.parametrize(
        "text", ["x" * MAX_PACK_CONTENT_BYTES, "ж" * (MAX_PACK_CONTENT_BYTES // 2), "e\u0301 é\r\n\t "]
    )
    async def test_the_longest_texts_and_other_normal_forms_come_back(self, store: PackStore, text: str) -> None:
        await with_pack(store, memory("m1", text))
        assert (await get(store, "m1")).content == text
        assert await store.set_tier(TENANT, "m1", Tier.EXISTENCE_MARKER, expected_revision=1, now=NOW)
        assert (await get(store, "m1")).content == text

    async def test_what_is_returned_of_memories_is_the_callers_own(self, store: PackStore) -> None:
        given_one = memory("m1", tags=["a"], metadata={"a": [1]})
        await with_pack(store, given_one)
        given_one.tags.append("b")
        given_one.metadata["a"].append(2)
        found = await get(store, "m1")
        assert (found.tags, found.metadata) == (["a"], {"a": [1]})
        found.metadata["a"].append(3)
        found.relationships.append(Relationship("x", "m2"))
        assert await get(store, "m1") == memory("m1", tags=["a"], metadata={"a": [1]}, tier_since=NOW)

    async def test_memories_are_got_by_id_in_order_and_each_once(self, store: PackStore) -> None:
        await with_pack(store, *(memory(id) for id in ("b", "B", "ä", "a")))
        found = await store.get_memories(TENANT, ["ä", "a", "b", "B", "a", "none", "no\x00ne"])
        assert ids(found) == ["B", "a", "b", "ä"]

    @pytest.mark.parametrize("place", [0, 2])
    async def test_of_a_batch_all_is_added_or_nothing(self, store: PackStore, place: int) -> None:
        await with_pack(store, memory("m0"))
        batch = [memory("m1", name="n"), memory("m2")]
        batch.insert(place, memory("m0", "again"))
        with pytest.raises(Conflict):
            await add(store, *batch, now=days(1))
        with pytest.raises(Conflict):
            await add(store, memory("m3"), memory("m3"))
        assert ids(await store.find_memories(all_of())) == ["m0"]
        assert (await get(store, "m0")).content == "says m0"
        assert (await store.get_packs(TENANT, ["p1"]))[0].updated_at == NOW

    async def test_only_an_active_pack_takes_memories(self, store: PackStore) -> None:
        await store.create_pack(pack("p1", status=PackStatus.ARCHIVED))
        await store.create_pack(pack("p2", status=PackStatus.DELETED))
        await store.create_pack(pack("p3"))
        with pytest.raises(Conflict):
            await add(store, memory("m1", pack_id="p3"), memory("m2", pack_id="p1"))
        for gone in ("p2", "p9"):
            with pytest.raises(PackNotFound):
                await add(store, memory("m1", pack_id="p3"), memory("m2", pack_id=gone))
        with pytest.raises(PackNotFound):
            await add(store, memory("m1", pack_id="p3", tenant="other"))
        assert await store.get_memories(TENANT, ["m1", "m2"]) == []

    async def test_the_oldest_come_first_in_the_order_of_adding(self, store: PackStore) -> None:
        await with_pack(store, memory("z", created_at=days(5)), memory("a", created_at=days(1)))
        await add(store, memory("m"))
        assert ids(await store.find_memories(all_of())) == ["z", "a", "m"]
        assert await store.delete_memory(TENANT, "a")
        await add(store, memory("a"))
        assert ids(await store.find_memories(all_of())) == ["z", "m", "a"]

    async def test_the_last_read_come_first_and_then_the_newest(self, store: PackStore) -> None:
        await with_pack(store, *(memory(f"m{number}") for number in range(6)))
        for id, day in (("m3", 1), ("m0", 2), ("m4", 1)):
            await store.touch(TENANT, [id], now=days(day))
        found = await store.find_memories(all_of(), order="last_accessed")
        assert ids(found) == ["m0", "m4", "m3", "m5", "m2", "m1"]

    @pytest.mark.parametrize("order", ["oldest", "last_accessed"])
    async def test_pages_of_memories_tile(self, store: PackStore, order: str) -> None:
        await with_pack(store, *(memory(f"m{number}") for number in range(11)))
        await store.create_pack(pack("p2"))
        await add(store, *(memory(f"n{number}", pack_id="p2") for number in range(3)))
        await store.touch(TENANT, ["m3", "n1", "m7"], now=NOW)
        query = all_of("p2", "p1")
        whole = ids(await store.find_memories(query, order=order))  # type: ignore[arg-type]  # a parameter
        pages = [
            ids(await store.find_memories(query, order=order, limit=4, offset=offset))  # type: ignore[arg-type]
            for offset in range(0, 20, 4)
        ]
        assert len(whole) == len(set(whole)) == 14 == await store.count_memories(query)
        assert pages == [whole[:4], whole[4:8], whole[8:12], whole[12:], []]
        assert await store.find_memories(query, limit=0) == []

    async def test_a_query_of_memories_is_kept_to_in_all_it_says(self, store: PackStore) -> None:
        await with_pack(store, memory("m1", tags=["x", "y"], confidence=0.5), memory("m2", memory_type=MemoryType.KPI))
        await add(store, memory("m3", name="n", tags=["x"]), memory("m4", name="n", tags=["y", "z"]), memory("m5"))
        await store.create_pack(pack("p2"))
        await add(store, memory("o1", pack_id="p2", name="n"))
        await store.set_tier(TENANT, "m2", Tier.SUMMARY, expected_revision=1, now=NOW)
        await store.set_tier(TENANT, "m5", Tier.ARCHIVED, expected_revision=1, now=NOW)
        await add(store, memory("m6"))
        assert await store.save_memory(memory("m6", is_deleted=True), expected_revision=1, now=NOW)
        every = frozenset(Tier)
        asked = [
            (all_of(), ["m1", "m2", "m4"]),
            (all_of("p1", "p2", "p1"), ["m1", "m2", "m4", "o1"]),
            (all_of(pack_ids=()), []),
            (all_of(pack_ids=("none", "no\x00ne")), []),
            (all_of(tenant="other"), []),
            (all_of(tiers=every), ["m1", "m2", "m4", "m5"]),
            (all_of(tiers=frozenset({Tier.SUMMARY})), ["m2"]),
            (all_of(tiers=frozenset()), []),
            (all_of(include_superseded=True), ["m1", "m2", "m3", "m4"]),
            (all_of(name="n"), ["m4"]),
            (all_of("p1", "p2", name="n", include_superseded=True), ["m3", "m4", "o1"]),
            (all_of(name="N"), []),
            (all_of(memory_type=MemoryType.KPI), ["m2"]),
            (all_of(tags=("y",)), ["m1", "m4"]),
            (all_of(tags=("y", "x")), ["m1"]),
            (all_of(tags=("%",)), []),
            (all_of(min_confidence=0.5), ["m1", "m2", "m4"]),
            (all_of(min_confidence=0.51), ["m2", "m4"]),
        ]
        for query, expected in asked:
            assert ids(await store.find_memories(query)) == expected, query
            assert await store.count_memories(query) == len(expected), query

    @pytest.mark.parametrize("name", LOOKALIKES)
    async def test_memories_whose_names_look_alike_are_apart(self, store: PackStore, name: str) -> None:
        await with_pack(store, *(memory(f"id {each}", name=each, tags=[each]) for each in LOOKALIKES))
        assert ids(await store.find_memories(all_of(name=name))) == [f"id {name}"]
        assert ids(await store.find_memories(all_of(tags=(name,)))) == [f"id {name}"]
        assert ids(await store.get_memories(TENANT, [f"id {name}"])) == [f"id {name}"]
        assert await store.delete_memory(TENANT, f"id {name}")
        assert len(await store.find_memories(all_of())) == len(LOOKALIKES) - 1

    async def test_a_pack_is_counted_without_what_is_superseded_or_deleted(self, store: PackStore) -> None:
        await with_pack(
            store, memory("m1", confidence=0.2, memory_type=MemoryType.POLICY), memory("m2", confidence=0.9)
        )
        await add(store, memory("m3", name="n", confidence=0.1), memory("m4", name="n", confidence=0.4))
        await add(store, memory("m5", confidence=0.0))
        assert await store.save_memory(memory("m5", is_deleted=True), expected_revision=1, now=NOW)
        await store.touch(TENANT, ["m1", "m3"], now=days(1))
        await store.touch(TENANT, ["m1", "m4"], now=days(2))
        assert await store.set_tier(TENANT, "m2", Tier.ARCHIVED, expected_revision=1, now=NOW)
        found = await store.statistics(TENANT, "p1")
        assert found.confidence.mean == pytest.approx(0.5)
        assert found == PackMetadata(
            3,
            {MemoryType.FACT: 2, MemoryType.POLICY: 1},
            {Tier.FULL: 2, Tier.ARCHIVED: 1},
            PackConfidence(0.2, found.confidence.mean, 0.9),
            PackUse(3, days(2), ["m1", "m4"]),
        )
        nothing = PackMetadata(0, {}, {}, PackConfidence(None, None, None), PackUse(0, None, []))
        assert await store.statistics(TENANT, "p9") == await store.statistics("other", "p1") == nothing

    async def test_at_most_five_are_said_to_be_used_most(self, store: PackStore) -> None:
        await with_pack(store, *(memory(f"m{number}") for number in range(8)))
        for number in (7, 3, 3, 5, 1, 2, 6, 6, 6):
            await store.touch(TENANT, [f"m{number}"], now=NOW)
        assert (await store.statistics(TENANT, "p1")).access.most_used == ["m6", "m3", "m1", "m2", "m5"]

    async def test_a_mean_lies_between_the_least_and_the_most(self, store: PackStore) -> None:
        await with_pack(store, *(memory(f"m{number}", confidence=0.1) for number in range(10)))
        assert (await store.statistics(TENANT, "p1")).confidence == PackConfidence(0.1, 0.1, 0.1)

    async def test_a_memory_is_saved_over_its_own_revision_only(self, store: PackStore) -> None:
        await with_pack(store, memory("m1"), memory("m2"), memory("m0"))
        assert not await store.save_memory(whole_memory(), expected_revision=2, now=days(1))
        assert await get(store, "m1") == memory("m1", tier_since=NOW)
        changed = whole_memory().replace(tier=Tier.KEY_FACTS, last_accessed=days(-1))
        assert await store.save_memory(changed, expected_revision=1, now=days(1))
        assert not await store.save_memory(memory("m1"), expected_revision=1, now=days(1))
        assert await get(store, "m1") == changed.replace(created_at=NOW, tier_since=days(1), revision=2)
        assert (await store.get_packs(TENANT, ["p1"]))[0].updated_at == days(1)
        assert not await store.save_memory(memory("m9"), expected_revision=1, now=NOW)
        assert not await store.save_memory(memory("m1", tenant="other"), expected_revision=2, now=NOW)
        assert await store.get_memories(TENANT, ["m9"]) == []

    async def test_what_saving_leaves_as_it_is(self, store: PackStore) -> None:
        await with_pack(store, memory("m1"), memory("m2", superseded_by="m1"))
        await store.create_pack(pack("p2"))
        await store.touch(TENANT, ["m2"], now=days(3))
        before = await get(store, "m2")
        change = memory("m2", "", pack_id="p2", created_at=days(9), access_count=99, tier_since=days(9))
        given_one = change.replace(content="", last_accessed=days(1), confidence=0.3)
        assert await store.save_memory(given_one, expected_revision=1, now=NOW)
        assert await get(store, "m2") == before.replace(confidence=0.3, revision=2)
        assert before.superseded_by == "m1"
        assert await store.save_memory(given_one.replace(content="new"), expected_revision=2, now=NOW)
        assert (await get(store, "m2")).content == "new"

    async def test_deleting_a_memory_leaves_no_relationship_to_it(self, store: PackStore) -> None:
        await with_pack(store, memory("m1"))
        await add(
            store, memory("m2", relationships=[Relationship("related_to", "m1"), Relationship("x", "m0")]), memory("m0")
        )
        assert not await store.delete_memory("other", "m1")
        assert await store.delete_memory(TENANT, "m1")
        assert not await store.delete_memory(TENANT, "m1")
        assert (await get(store, "m2")).relationships == [Relationship("x", "m0")]
        await add(store, memory("m1", "anew"))
        assert (await get(store, "m1")).content == "anew"

    async def test_a_relationship_said_twice_is_kept_once(self, store: PackStore) -> None:
        twice = [Relationship("x", "m0"), Relationship("y", "m0"), Relationship("x", "m0")]
        await with_pack(store, memory("m0"), memory("m1", relationships=twice))
        assert (await get(store, "m1")).relationships == twice[:2]
