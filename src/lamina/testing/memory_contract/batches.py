"""Batches: their results in order, and written whole or not at all."""

from __future__ import annotations

from typing import Any, Final

import pytest

from lamina.domain.filters import Expiry, MemoryFilter, Where
from lamina.domain.memory import Layer, MemoryEntry
from lamina.domain.scope import Scope
from lamina.errors import Conflict, EmbeddingDimensionError, InvalidInput, InvalidType, ScopeError
from lamina.ports.memory_adapter import Capability, MemoryAdapter, Update
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
    needs,
    put,
    second,
)

__all__ = ["BatchContract"]

BAD = {
    "metadata": (memory("bad", metadata={"odd": {1}}), (InvalidInput, InvalidType)),
    "text": (memory("bad", "pay\x00roll"), (InvalidInput,)),
    "scope": (memory("bad", owner="bob"), (ScopeError,)),
    "dimensions": (memory("bad", embedding=[1.0, 0.0, 0.0]), (EmbeddingDimensionError,)),
}

_MARK: Final[dict[str, Any]] = {"superseded_by": "n1"}
UNDOABLE: Final = {
    "another revision": ("new", Update("m2", _MARK, 7)),
    "no such entry": ("new", Update("m9", _MARK)),
    "an entry out of the scope": ("new", Update("b1", _MARK)),
    "an entry that is not new": ("said before", Update("m2", _MARK, 1)),
}


class BatchContract:
    """Several at once."""

    async def test_a_batch_is_stored_in_its_order(self, adapter: MemoryAdapter) -> None:
        batch = [memory(id, f"text {id}", embedding=[1.0, 0.0], tags=[id]) for id in "zaqm"]
        assert await adapter.store_many(MINE, batch) == [None] * 4
        entries = await listed(adapter, include_embeddings=True)
        assert [fields_of(each) for each in entries] == [fields_of(each) for each in batch]
        if Capability.TEXT in adapter.capabilities:
            assert ids(await by_text(adapter, "text")) == sorted("zaqm")
        if Capability.VECTOR in adapter.capabilities:
            assert ids(await by_vector(adapter, [1.0, 0.0])) == sorted("zaqm")

    async def test_updates_go_with_a_batch(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory("m1", "old", tags=["red"]), memory("m2", "other"))
        updates = [Update("m1", {"superseded_by": "n1"}, 1), Update("m2", {"valid_until": second(9)})]
        assert await adapter.store_many(MINE, [memory("n1", "new")], if_new=True, updates=updates) == [None]
        found = [(each.id, each.superseded_by, each.valid_until, each.revision) for each in await listed(adapter)]
        assert found == [("m1", "n1", None, 2), ("m2", None, second(9), 2), ("n1", None, None, 1)]
        assert await adapter.store_many(MINE, [], updates=[Update("m1", {"superseded_by": None}, 2)]) == []
        assert ids(await listed(adapter, MINE, MemoryFilter(now=NOW, current=True))) == ["m1", "m2", "n1"]

    @pytest.mark.parametrize("obstacle", UNDOABLE)
    async def test_what_goes_with_an_update_that_cannot_be_made_is_not_written(
        self, adapter: MemoryAdapter, obstacle: str
    ) -> None:
        await put(adapter, memory("m1", "old"), memory("m2", "said before"), memory("b1", "theirs", owner="bob"))
        said, update = UNDOABLE[obstacle]
        with pytest.raises(Conflict):
            await adapter.store_many(
                MINE, [memory("n1", said)], if_new=True, updates=[Update("m1", {"superseded_by": "n1"}, 1), update]
            )
        assert [(each.id, each.superseded_by) for each in await listed(adapter)] == [("m1", None), ("m2", None)]
        theirs = await adapter.get(Scope("acme", "bob"), "b1")
        assert theirs is not None
        assert theirs.superseded_by is None

    async def test_a_batch_replaces_too(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory("m1", "old", tags=["red"]), memory("m2"))
        await adapter.store_many(MINE, [memory("m3"), memory("m1", "new"), memory("m1", "newest")])
        found = [(each.id, each.content, each.revision, each.tags) for each in await listed(adapter)]
        lit = "the harbour lamp is lit"
        assert found == [("m1", "newest", 3, []), ("m2", lit, 1, []), ("m3", lit, 1, [])]

    async def test_only_what_is_new_is_stored(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory("m1", "said  before", embedding=[1.0, 0.0], tags=["red"]))
        batch = [
            memory("n1", "new"),
            memory("n2", " said before "),
            memory("n3", "new"),
            memory("n4", "Said before"),
            memory("m1", "said before"),
        ]
        twins = await adapter.store_many(MINE, batch, if_new=True)
        assert [twin and twin.id for twin in twins] == [None, "m1", "n1", None, "m1"]
        assert ids(await listed(adapter)) == ["m1", "n1", "n4"]
        assert twins[1] is not None
        assert fields_of(twins[1]) == fields_of(memory("m1", "said  before", embedding=[1.0, 0.0], tags=["red"]))

    async def test_an_id_that_is_taken_is_not_new(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory("m1", "first"), memory("m2", "gone", expires_at=second(5)))
        batch = [
            memory("m1", "another"),
            memory("n1", "new"),
            memory("n1", "newer"),
            memory("m2", "back again", created_at=second(6), updated_at=second(6)),
        ]
        twins = await adapter.store_many(MINE, batch, if_new=True)
        assert [twin and (twin.id, twin.content) for twin in twins] == [("m1", "first"), None, ("n1", "new"), None]
        found = await listed(adapter, MINE, MemoryFilter(now=NOW, expiry=Expiry.ANY))
        assert {(each.id, each.content) for each in found} == {("m1", "first"), ("n1", "new"), ("m2", "back again")}

    async def test_twins_are_found_without_storing(self, adapter: MemoryAdapter) -> None:
        gone = memory("m2", "gone", expires_at=second(5))
        await put(adapter, memory("m1", "said  before", embedding=[1.0, 0.0]), gone)
        batch = [memory("n1", " said before "), memory("n2", "new"), memory("n2", "new"), memory("m1", "other")]
        late = memory("m2", "gone", created_at=second(6), updated_at=second(6))
        twins = await adapter.find_twins(MINE, [*batch, late])
        assert [twin and twin.id for twin in twins] == ["m1", None, None, "m1", None]
        assert twins[0] is not None
        assert fields_of(twins[0]) == fields_of(memory("m1", "said  before", embedding=[1.0, 0.0]))
        assert ids(await listed(adapter, MINE, MemoryFilter(now=NOW, expiry=Expiry.ANY))) == ["m1", "m2"]

    async def test_a_twin_is_looked_for_within_the_scope_only(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory("m1", "theirs", owner="bob"))
        for entry in (memory("m1", "mine"), memory("n1", "theirs", owner="bob")):
            with pytest.raises(ScopeError):
                await adapter.find_twins(MINE, [entry])
        assert await adapter.find_twins(MINE, [memory("n1", "theirs")]) == [None]

    async def test_without_being_asked_twins_are_stored(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory("m1"))
        assert await adapter.store_many(MINE, [memory("m2"), memory("m3")]) == [None, None]
        assert ids(await listed(adapter)) == ["m1", "m2", "m3"]

    async def test_a_twin_that_is_expired_by_then_does_not_count(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory("m1", expires_at=second(10)))
        at_nine, at_ten = memory("n1", created_at=second(9)), memory("n2", created_at=second(10))
        twins = await adapter.store_many(MINE, [at_nine, at_ten], if_new=True)
        assert [twin and twin.id for twin in twins] == ["m1", None]
        assert ids(await listed(adapter, MINE, MemoryFilter(now=NOW, expiry=Expiry.ANY))) == ["m1", "n2"]

    async def test_another_layer_is_another_saying(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory("m1"))
        twins = await adapter.store_many(MINE, [memory("n1", layer=Layer.SESSION), memory("n2")], if_new=True)
        assert [twin and twin.id for twin in twins] == [None, "m1"]

    async def test_updates_answer_in_order(self, adapter: MemoryAdapter) -> None:
        await put(adapter, *(memory(f"m{number}") for number in range(4)))
        done = await adapter.update_many(
            MINE,
            [
                Update("m2", {"content": "changed"}),
                Update("none", {"content": "changed"}),
                Update("m0", {"content": "stale"}, expected_revision=7),
                Update("m1", {"content": "changed"}, expected_revision=1),
                Update("m1", {"confidence": 0.5}, expected_revision=2),
                Update("m1", {"content": "stale"}, expected_revision=1),
                Update("m3", {"access_count": 2}),
            ],
        )
        assert done == [True, False, False, True, True, False, True]
        lit = "the harbour lamp is lit"
        found = [(each.content, each.confidence, each.revision) for each in await listed(adapter)]
        assert found == [(lit, 1.0, 1), ("changed", 0.5, 3), ("changed", 1.0, 2), (lit, 1.0, 1)]

    @pytest.mark.parametrize("deed", ["store", "store if new", "update"])
    async def test_a_batch_is_written_only_beside_the_meta_that_it_expects(
        self, adapter: MemoryAdapter, deed: str
    ) -> None:
        await put(adapter, memory("m1", "old"))
        await adapter.save_meta(Scope("other"), "key", "theirs", NOW)
        await adapter.save_meta(Scope("acme"), "other key", "value", NOW)

        async def write(expected: dict[str, str | None]) -> None:
            if deed == "update":
                await adapter.update_many(MINE, [Update("m1", {"content": "new"})], expected_meta=expected)
            else:
                batch = [memory("m1" if deed == "store" else "n1", "new")]
                await adapter.store_many(MINE, batch, if_new=deed == "store if new", expected_meta=expected)

        for value in (None, "right"):
            if value is not None:
                await adapter.save_meta(MINE, "key", value, NOW)
            for wrong in ("wrong", "theirs", "Right", "right" if value is None else None):
                with pytest.raises(Conflict) as refusal:
                    await write({"other key": "value", "key": wrong})
                assert refusal.value.subject == "The meta value 'key'"
                assert [each.content for each in await listed(adapter)] == ["old"]
        await write({"key": "right", "other key": "value", "absent": None})
        assert [each.content for each in await listed(adapter)] in (["new"], ["old", "new"])

    async def test_an_empty_batch_expects_meta_too(self, adapter: MemoryAdapter) -> None:
        await adapter.save_meta(MINE, "key", "right", NOW)
        assert await adapter.store_many(MINE, [], expected_meta={"key": "right"}) == []
        assert await adapter.update_many(MINE, [], expected_meta={"key": "right"}) == []
        with pytest.raises(Conflict):
            await adapter.store_many(MINE, [], expected_meta={"key": "wrong"})
        with pytest.raises(Conflict):
            await adapter.update_many(MINE, [], expected_meta={"key": None})

    async def test_what_takes_an_expired_ones_place_in_a_batch_comes_last(self, adapter: MemoryAdapter) -> None:
        expired = memory("m1", "once", expires_at=second(-1))
        await adapter.store_many(MINE, [expired, memory("m2"), memory("m1", "anew")])
        entries = await listed(adapter)
        assert [(each.id, each.content, each.revision) for each in entries] == [
            ("m2", "the harbour lamp is lit", 1),
            ("m1", "anew", 1),
        ]

    async def test_deletions_answer_in_order(self, adapter: MemoryAdapter) -> None:
        await put(adapter, *(memory(f"m{number}", embedding=[1.0, 0.0]) for number in range(4)))
        assert await adapter.delete_many(MINE, ["m2", "none", "m0", "m2"]) == [True, False, True, False]
        assert ids(await listed(adapter)) == ["m1", "m3"]
        if Capability.TEXT in adapter.capabilities:
            assert ids(await by_text(adapter, "harbour")) == ["m1", "m3"]
        if Capability.VECTOR in adapter.capabilities:
            assert ids(await by_vector(adapter, [1.0, 0.0])) == ["m1", "m3"]

    async def test_only_what_passes_the_filter_is_deleted(self, adapter: MemoryAdapter) -> None:
        await put(
            adapter,
            *(memory(f"m{number}", tags=["old"], metadata={"n": number}, embedding=[1.0]) for number in range(5)),
            memory("gone", tags=["old"], expires_at=second(-1)),
            memory("theirs", tags=["old"], owner="bob"),
        )
        old = MemoryFilter(now=NOW, tags=("old",), has_embedding=True, where=Where("n").lt(4))
        await adapter.update(MINE, "m1", {"tags": ["new"]})
        await adapter.update(MINE, "m2", {"embedding": None})
        await adapter.update(MINE, "m3", {"expires_at": NOW})
        names = ["m0", "m1", "m2", "m3", "m4", "none", "gone", "theirs", "m0"]
        assert await adapter.delete_many(MINE, names, filter=old) == [True] + [False] * 8
        anything = MemoryFilter(now=NOW, expiry=Expiry.ANY)
        assert ids(await listed(adapter, Scope("acme"), anything)) == ["m1", "m2", "m3", "m4", "gone", "theirs"]
        assert await adapter.delete_many(MINE, ["m1", "gone"], filter=anything) == [True, True]

    @pytest.mark.parametrize("if_new", [False, True])
    @pytest.mark.parametrize("kind", BAD)
    async def test_a_batch_with_a_bad_entry_is_not_written_at_all(
        self, adapter: MemoryAdapter, kind: str, if_new: bool
    ) -> None:
        needs(adapter, Capability.TRANSACTIONS)
        await put(adapter, memory("m1", "old", embedding=[1.0, 0.0]), memory("m2", "second"))
        before = await listed(adapter, include_embeddings=True)
        bad, errors = BAD[kind]
        good = [memory("g1", "fresh", embedding=[0.0, 1.0]), memory("m1", "taken"), memory("g2", "fresh too")]
        with pytest.raises(errors):
            await adapter.store_many(MINE, [*good, bad, memory("g3", "fresh as well")], if_new=if_new)
        await _check_unchanged(adapter, before, "fresh taken")

    @pytest.mark.parametrize(
        "bad",
        [
            {"metadata": {"odd": {1}}},
            {"content": "pay\x00roll"},
            {"owner": "bob"},
            {"embedding": [1.0, 0.0, 0.0]},
            {},
            {"relevance": 2.0},
        ],
        ids=repr,
    )
    async def test_a_batch_with_a_bad_update_changes_nothing(
        self, adapter: MemoryAdapter, bad: dict[str, object]
    ) -> None:
        needs(adapter, Capability.TRANSACTIONS)
        await put(adapter, memory("m1", "old", embedding=[1.0, 0.0]), memory("m2", "second"), memory("m3", "third"))
        before = await listed(adapter, include_embeddings=True)
        changes = [Update("m1", {"content": "fresh", "embedding": [0.0, 1.0]}), Update("m2", {"content": "taken"})]
        with pytest.raises((InvalidInput, InvalidType, EmbeddingDimensionError)):
            await adapter.update_many(MINE, [*changes, Update("m3", bad), Update("m2", {"content": "fresh too"})])
        await _check_unchanged(adapter, before, "fresh taken")

    async def test_a_batch_that_fails_brings_back_the_expired_in_its_place(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.TRANSACTIONS)
        await put(adapter, memory("m1", "old", expires_at=second(5)), memory("m2"))
        await adapter.update(MINE, "m1", {"content": "older"})
        everything = MemoryFilter(now=NOW, expiry=Expiry.ANY)
        before = await listed(adapter, MINE, everything)
        late = memory("m1", "new", created_at=second(5))
        with pytest.raises(InvalidInput):
            await adapter.store_many(MINE, [late, memory("bad", " ")], if_new=True)
        assert await listed(adapter, MINE, everything) == before
        if Capability.HISTORY in adapter.capabilities:
            assert [each.content for each in await adapter.history(MINE, "m1")] == ["old"]

    async def test_a_large_batch_is_one_batch(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.TRANSACTIONS)
        many = [memory(f"m{number}", f"text {number}") for number in range(1_100)]
        with pytest.raises(InvalidInput):
            await adapter.store_many(MINE, [*many, memory("bad", " ")])
        assert await adapter.count(MINE, LIVE) == 0
        await adapter.store_many(MINE, many)
        assert await adapter.count(MINE, LIVE) == 1_100
        done = await adapter.update_many(MINE, [Update(entry.id, {"tags": ["red"]}) for entry in many])
        assert done == [True] * 1_100
        assert await adapter.count(MINE, MemoryFilter(now=NOW, tags=("red",))) == 1_100
        assert await adapter.delete_many(MINE, [entry.id for entry in many]) == [True] * 1_100
        assert await adapter.count(Scope("acme"), LIVE) == 0


async def _check_unchanged(adapter: MemoryAdapter, before: list[MemoryEntry], words: str) -> None:
    """The store is as it was, in each of its indexes, and takes the next batch."""
    assert await listed(adapter, include_embeddings=True) == before
    assert await adapter.count(Scope("acme"), LIVE) == len(before)
    for entry in before:
        found = await adapter.find_duplicate(MINE, entry.layer, entry.digest, NOW)
        assert found is not None
        assert found.id == entry.id
        if Capability.HISTORY in adapter.capabilities:
            assert await adapter.history(MINE, entry.id) == []
    if Capability.TEXT in adapter.capabilities:
        assert await by_text(adapter, words) == []
        assert ids(await by_text(adapter, "old")) == ["m1"]
    if Capability.VECTOR in adapter.capabilities:
        assert [round(hit.similarity, 5) for hit in await by_vector(adapter, [1.0, 0.0])] == [1.0]
    await adapter.store_many(MINE, [memory("next", "fresh", embedding=[0.0, 1.0])])
    assert ids(await listed(adapter)) == [*ids(before), "next"]
