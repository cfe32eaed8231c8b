"""Storing again, updating, counting, deleting."""

from __future__ import annotations

from typing import Any, Final

import pytest

from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.memory import Layer, MemoryEntry, Trust
from lamina.domain.scope import Scope
from lamina.errors import Conflict, InvalidInput, ScopeError
from lamina.ports.memory_adapter import UPDATABLE, Capability, MemoryAdapter, Update
from lamina.testing.memory_contract.material import (
    LIVE,
    MINE,
    NOW,
    by_text,
    by_vector,
    fields_of,
    ids,
    listed,
    memory,
    put,
    second,
)
from lamina.testing.memory_contract.round_trip import full

__all__ = ["CHANGES", "DuplicateContract", "WritingContract"]

CHANGES: Final[dict[str, Any]] = {
    "content": "a kite above the dunes",
    "layer": Layer.GLOBAL,
    "tags": ["green"],
    "metadata": {"status": "shut", "n": [True, 1.0]},
    "relevance": 0.25,
    "base_relevance": 0.5,
    "confidence": 0.75,
    "ttl": 5.0,
    "expires_at": second(100.000001),
    "embedding": [0.25, 0.5, 1.0],
    "updated_at": second(7.000001),
    "occurred_at": second(-100.000001),
    "valid_until": second(200.000001),
    "superseded_by": "m9",
    "source": "document:7",
    "trust": Trust.TRUSTED,
    "derived_from": ["m7"],
    "access_count": 41,
    "last_accessed_at": second(8.000001),
}
EMPTIED: Final[dict[str, Any]] = {
    "tags": [],
    "metadata": {},
    "ttl": None,
    "expires_at": None,
    "embedding": None,
    "occurred_at": None,
    "valid_until": None,
    "superseded_by": None,
    "source": None,
    "derived_from": [],
    "last_accessed_at": None,
    "access_count": 0,
    "relevance": 0.0,
}
NOT_UPDATABLE: Final[dict[str, Any]] = {
    "id": "m2",
    "tenant": "other",
    "owner": "bob",
    "namespace": "else",
    "created_at": NOW,
    "seq": 7,
    "revision": 7,
    "digest": "0",
    "colour": "red",
    "content = 'x', owner": "bob",
}


class WritingContract:
    """One memory at a time: replaced whole, changed by the field, counted, deleted without a trace."""

    async def test_storing_again_replaces_the_whole_memory_in_its_place(self, adapter: MemoryAdapter) -> None:
        await put(adapter, full(), memory("m2"))
        first = await adapter.get(MINE, full().id)
        new = memory(full().id, "quite another text", layer=Layer.LONGTERM)
        await put(adapter, new)
        back = await adapter.get(MINE, new.id)
        assert first is not None
        assert back is not None
        assert fields_of(back, "revision") == fields_of(new, "revision")
        assert (back.seq, back.revision) == (first.seq, 2)
        assert ids(await listed(adapter)) == [new.id, "m2"]
        await put(adapter, new)
        again = await adapter.get(MINE, new.id)
        assert again is not None
        assert (again.seq, again.revision) == (first.seq, 3)

    async def test_order_and_revision_are_the_adapters_to_give(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory("m1", seq=900), memory("m2", seq=5), memory("m3", seq=900))
        entries = await listed(adapter)
        assert ids(entries) == ["m1", "m2", "m3"]
        assert entries[0].seq < entries[1].seq < entries[2].seq
        assert [entry.revision for entry in entries] == [1, 1, 1]

    async def test_a_new_memory_keeps_a_greater_revision(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory(revision=7))
        brought = await adapter.get(MINE, "m1")
        assert brought is not None
        assert brought.revision == 7
        await put(adapter, memory(revision=1))
        replaced = await adapter.get(MINE, "m1")
        assert replaced is not None
        assert replaced.revision == 8

    @pytest.mark.parametrize("many", [False, True])
    async def test_nothing_of_an_expired_memory_is_left_in_the_new_one_of_its_id(
        self, adapter: MemoryAdapter, many: bool
    ) -> None:
        everyone = Scope("acme")
        await put(adapter, memory(content="old", expires_at=second(5), owner="bob", embedding=[1.0, 0.0]), memory("m2"))
        await adapter.update(everyone, "m1", {"content": "older", "tags": ["red"]})
        new = memory(content="new", created_at=second(5), updated_at=second(5), embedding=[1.0, 0.0])
        if many:
            assert await adapter.store_many(everyone, [new], if_new=True) == [None]
        else:
            await adapter.store(everyone, new)
        back = await adapter.get(MINE, "m1")
        assert back is not None
        assert fields_of(back) == fields_of(new)
        assert ids(await listed(adapter, everyone, MemoryFilter(now=NOW, expiry=Expiry.ANY))) == ["m2", "m1"]
        if Capability.HISTORY in adapter.capabilities:
            assert await adapter.history(everyone, "m1") == []
        if Capability.TEXT in adapter.capabilities:
            assert await by_text(adapter, "old older", everyone) == []
        if Capability.VECTOR in adapter.capabilities:
            assert ids(await by_vector(adapter, [1.0, 0.0], everyone)) == ["m1"]

    async def test_an_expired_memory_of_others_keeps_its_id(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory(expires_at=second(-1), owner="bob"))
        for batch in (False, True):
            with pytest.raises(ScopeError):
                await (adapter.store_many(MINE, [memory()], if_new=True) if batch else adapter.store(MINE, memory()))
        back = await adapter.get(Scope("acme", "bob"), "m1")
        assert back is not None
        assert back.revision == 1

    async def test_a_memory_that_is_not_expired_yet_is_replaced(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory(content="old", expires_at=second(1)), memory(content="new"))
        everything = MemoryFilter(now=NOW, expiry=Expiry.ANY)
        assert [(each.content, each.revision) for each in await listed(adapter, MINE, everything)] == [("new", 2)]

    @pytest.mark.parametrize("field", sorted(UPDATABLE))
    async def test_each_field_changes_alone(self, adapter: MemoryAdapter, field: str) -> None:
        await put(adapter, full(), memory("beside"))
        assert await adapter.update(MINE, full().id, {field: CHANGES[field]}) is True
        back = await adapter.get(MINE, full().id)
        assert back is not None
        expected = full().replace(**{field: CHANGES[field]})
        assert fields_of(back, "revision") == fields_of(expected, "revision")
        beside = await adapter.get(MINE, "beside")
        assert beside is not None
        assert fields_of(beside) == fields_of(memory("beside"))

    async def test_all_fields_change_together(self, adapter: MemoryAdapter) -> None:
        await put(adapter, full())
        assert await adapter.update(MINE, full().id, CHANGES) is True
        back = await adapter.get(MINE, full().id)
        assert back is not None
        assert fields_of(back) == fields_of(full().replace(**CHANGES, revision=2))

    async def test_fields_can_be_emptied(self, adapter: MemoryAdapter) -> None:
        await put(adapter, full())
        assert await adapter.update(MINE, full().id, EMPTIED) is True
        back = await adapter.get(MINE, full().id)
        assert back is not None
        assert fields_of(back) == fields_of(full().replace(**EMPTIED, revision=2))

    async def test_a_change_shows_in_every_read(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory(embedding=[1.0, 0.0]))
        await adapter.update(MINE, "m1", {"content": "a kite", "confidence": 0.5})
        assert [(each.content, each.confidence) for each in await listed(adapter)] == [("a kite", 0.5)]
        if Capability.TEXT in adapter.capabilities:
            assert [hit.entry.confidence for hit in await by_text(adapter, "kite")] == [0.5]
        if Capability.VECTOR in adapter.capabilities:
            assert [hit.entry.content for hit in await by_vector(adapter, [1.0, 0.0])] == ["a kite"]

    @pytest.mark.parametrize(("field", "value"), NOT_UPDATABLE.items(), ids=NOT_UPDATABLE)
    async def test_other_fields_do_not_change(self, adapter: MemoryAdapter, field: str, value: object) -> None:
        await put(adapter, memory())
        before = await adapter.get(MINE, "m1")
        with pytest.raises(InvalidInput) as refusal:
            await adapter.update(MINE, "m1", {"confidence": 0.5, field: value})
        assert refusal.value.field == "updates"
        assert await adapter.get(MINE, "m1") == before

    async def test_an_update_of_nothing_is_refused(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory())
        with pytest.raises(InvalidInput):
            await adapter.update(MINE, "m1", {})
        back = await adapter.get(MINE, "m1")
        assert back is not None
        assert back.revision == 1

    async def test_a_memory_that_is_not_there_does_not_change(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory())
        assert await adapter.update(MINE, "m2", {"content": "new"}) is False
        assert await adapter.update(MINE, "m2", {"content": "new"}, expected_revision=1) is False
        assert await adapter.delete(MINE, "m2") is False
        assert ids(await listed(adapter)) == ["m1"]

    async def test_each_update_counts_the_revision_up(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory())
        for number in range(2, 6):
            await adapter.update(MINE, "m1", {"confidence": number / 10})
            back = await adapter.get(MINE, "m1")
            assert back is not None
            assert back.revision == number

    async def test_counting_reads_leaves_the_revision_alone(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory())
        for changes in ({"access_count": 1}, {"last_accessed_at": NOW}, {"access_count": 2, "last_accessed_at": NOW}):
            await adapter.update(MINE, "m1", changes)
        back = await adapter.get(MINE, "m1")
        assert back is not None
        assert (back.revision, back.access_count, back.last_accessed_at) == (1, 2, NOW)
        await adapter.update(MINE, "m1", {"access_count": 3, "confidence": 0.5})
        back = await adapter.get(MINE, "m1")
        assert back is not None
        assert (back.revision, back.access_count) == (2, 3)

    async def test_making_and_dropping_a_vector_leaves_the_revision(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory())
        assert await adapter.update(MINE, "m1", {"embedding": [1.0, 0.0]}, expected_revision=1) is True
        assert await adapter.update_many(MINE, [Update("m1", {"embedding": [0.0, 1.0]}, 1)]) == [True]
        await adapter.drop_embeddings(MINE)
        back = await adapter.get(MINE, "m1")
        assert back is not None
        assert (back.revision, back.embedding) == (1, None)

    async def test_an_expected_revision_that_is_not_the_present_one_is_a_conflict(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory())
        assert await adapter.update(MINE, "m1", {"content": "second"}, expected_revision=1) is True
        before = await adapter.get(MINE, "m1")
        for wrong in (1, 3, 0):
            with pytest.raises(Conflict):
                await adapter.update(MINE, "m1", {"content": "stale"}, expected_revision=wrong)
        with pytest.raises(Conflict):
            await adapter.update(MINE, "m1", {"access_count": 9}, expected_revision=1)
        assert await adapter.get(MINE, "m1") == before
        assert await adapter.update(MINE, "m1", {"content": "third"}, expected_revision=2) is True
        if Capability.TEXT in adapter.capabilities:
            assert await by_text(adapter, "stale") == []

    async def test_reads_are_counted_id_by_id(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory("m1", access_count=3), memory("m2"), memory("m3"))
        await adapter.touch(MINE, ["m1", "none", "m2", "m1", "pay\x00roll", "m1"], second(5))
        entries = await listed(adapter)
        assert [(each.access_count, each.last_accessed_at) for each in entries] == [
            (6, second(5)),
            (1, second(5)),
            (0, None),
        ]
        assert [(each.revision, each.updated_at) for each in entries] == [(1, NOW)] * 3

    async def test_a_memory_of_another_revision_is_not_deleted(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory())
        await adapter.update(MINE, "m1", {"content": "changed"})
        with pytest.raises(Conflict):
            await adapter.delete(MINE, "m1", expected_revision=1)
        assert [each.content for each in await listed(adapter)] == ["changed"]
        assert await adapter.delete(MINE, "none", expected_revision=1) is False
        assert await adapter.delete(MINE, "m1", expected_revision=2) is True

    async def test_a_deleted_memory_is_nowhere(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory("m1", embedding=[1.0, 0.0], tags=["red"]), memory("m2", embedding=[0.0, 1.0]))
        assert await adapter.delete(MINE, "m1") is True
        assert await adapter.delete(MINE, "m1") is False
        assert await adapter.get(MINE, "m1") is None
        assert ids(await listed(adapter, MINE, MemoryFilter(now=NOW, expiry=Expiry.ANY))) == ["m2"]
        assert await adapter.count(MINE, LIVE) == 1
        assert await adapter.find_duplicate(MINE, Layer.LONGTERM, memory().digest, NOW) is not None
        if Capability.TEXT in adapter.capabilities:
            assert ids(await by_text(adapter, "harbour")) == ["m2"]
        if Capability.VECTOR in adapter.capabilities:
            assert ids(await by_vector(adapter, [1.0, 0.0])) == ["m2"]

    async def test_an_id_that_comes_back_is_a_new_memory(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory("m1", embedding=[1.0, 0.0], tags=["red"]), memory("m2"))
        await adapter.update(MINE, "m1", {"confidence": 0.5})
        last = (await listed(adapter))[-1].seq
        await adapter.delete(MINE, "m1")
        await put(adapter, memory("m1"))
        back = await adapter.get(MINE, "m1")
        assert back is not None
        assert fields_of(back) == fields_of(memory("m1"))
        assert back.seq > last
        assert ids(await listed(adapter)) == ["m2", "m1"]

    async def test_a_seq_is_never_given_twice(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory("m1"), memory("m2"))
        last = (await listed(adapter))[-1].seq
        await adapter.delete_many(MINE, ["m1", "m2"])
        await put(adapter, memory("m3"))
        assert (await listed(adapter))[0].seq > last


class DuplicateContract:
    """Two memories that say the same are found to."""

    @pytest.mark.parametrize(
        ("stored", "asked", "same"),
        [
            ("Tea at  four", "Tea at four", True),
            (" Tea\n at\tfour ", "Tea at four", True),
            ("Tea\u3000at\u00a0four", "Tea at four", True),
            ("caf\u00e9", "cafe\u0301", True),
            ("cafe\u0301", "caf\u00e9", True),
            ("Tea at four", "tea at four", False),
            ("Tea at four", "Tea at four.", False),
            ("Tea at four", "Teaat four", False),
            ("caf\u00e9", "cafe", False),
            ("\uff54\uff45\uff41", "tea", False),
        ],
    )
    async def test_what_is_the_same_is_one_rule(
        self, adapter: MemoryAdapter, stored: str, asked: str, same: bool
    ) -> None:
        await put(adapter, memory("beside", "another text"), memory("m1", stored))
        found = await adapter.find_duplicate(MINE, Layer.LONGTERM, memory(content=asked).digest, NOW)
        assert (found is not None) is same
        if found is not None:
            assert (found.id, found.content) == ("m1", stored)

    async def test_the_oldest_twin_is_found_whole(self, adapter: MemoryAdapter) -> None:
        twins = [memory(id, embedding=[1.0, 0.0], tags=[id], created_at=second(-n)) for n, id in enumerate("zxa")]
        await put(adapter, *twins)
        found = await adapter.find_duplicate(MINE, Layer.LONGTERM, memory().digest, NOW)
        assert found is not None
        assert fields_of(found) == fields_of(twins[0])
        await adapter.delete(MINE, "z")
        found = await adapter.find_duplicate(MINE, Layer.LONGTERM, memory().digest, NOW)
        assert found is not None
        assert found.id == "x"

    @pytest.mark.parametrize("digest", ["", "nonsense", "f" * 63, "F" * 64, "é" * 64, "\ud800", f" {'0' * 62} "])
    async def test_what_is_no_digest_is_refused(self, adapter: MemoryAdapter, digest: str) -> None:
        with pytest.raises(InvalidInput) as refusal:
            await adapter.find_duplicate(MINE, Layer.LONGTERM, digest, NOW)
        assert refusal.value.field == "digest"

    async def test_an_expired_twin_is_absent(self, adapter: MemoryAdapter) -> None:
        digest = memory().digest
        await put(adapter, memory("old", expires_at=second(10)), memory("new", expires_at=second(20)))
        for now, expected in ((second(9.999999), "old"), (second(10), "new"), (second(20), None)):
            found = await adapter.find_duplicate(MINE, Layer.LONGTERM, digest, now)
            assert (found and found.id) == expected

    async def test_a_twin_is_looked_for_in_its_layer(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory("m1", layer=Layer.SESSION))
        assert await adapter.find_duplicate(MINE, Layer.LONGTERM, memory().digest, NOW) is None
        found = await adapter.find_duplicate(MINE, Layer.SESSION, memory().digest, NOW)
        assert found is not None
        await adapter.update(MINE, "m1", {"layer": Layer.LONGTERM})
        assert await adapter.find_duplicate(MINE, Layer.SESSION, memory().digest, NOW) is None

    async def test_a_twin_is_what_it_says_now(self, adapter: MemoryAdapter) -> None:
        old, new = memory(content="old"), memory(content="new")
        await put(adapter, old, memory("m2", "replaced"))
        await adapter.update(MINE, "m1", {"content": "new"})
        await put(adapter, memory("m2", "again"))
        for entry, expected in ((old, None), (new, "m1"), (memory(content="again"), "m2"), (_REPLACED, None)):
            found = await adapter.find_duplicate(MINE, Layer.LONGTERM, entry.digest, NOW)
            assert (found and found.id) == expected

    async def test_a_twin_far_down_is_found(self, adapter: MemoryAdapter) -> None:
        await adapter.store_many(MINE, [memory(f"m{number}", f"text {number}") for number in range(1_200)])
        found = await adapter.find_duplicate(MINE, Layer.LONGTERM, memory(content="text 1150").digest, NOW)
        assert found is not None
        assert found.id == "m1150"
        twins = await adapter.store_many(Scope("acme"), [memory("n", "text 1150"), memory("o", "new")], if_new=True)
        assert [twin and twin.id for twin in twins] == ["m1150", None]


_REPLACED: Final[MemoryEntry] = memory(content="replaced")
