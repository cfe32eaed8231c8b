"""What a memory was: which versions are kept, and for how long."""

from __future__ import annotations

import pytest

from lamina.domain.scope import Scope
from lamina.ports.memory_adapter import HISTORY_FIELDS, HISTORY_KEPT, Capability, MemoryAdapter, Update
from lamina.testing.memory_contract.material import MINE, NOW, fields_of, memory, needs, put, second
from lamina.testing.memory_contract.round_trip import full
from lamina.testing.memory_contract.writing import CHANGES

__all__ = ["HistoryContract"]


class HistoryContract:
    """Earlier versions, of what an entry said and how it was found."""

    async def test_a_history_is_what_was_oldest_first(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.HISTORY)
        await put(adapter, memory(content="first", tags=["a"], embedding=[1.0, 0.0]))
        assert await adapter.history(MINE, "m1") == []
        await adapter.update(MINE, "m1", {"content": "second", "tags": ["b"], "updated_at": second(1)})
        await adapter.touch(MINE, ["m1"], second(2))
        await adapter.update(MINE, "m1", {"content": "third", "metadata": {"n": 1}})
        await put(adapter, memory(content="fourth"))
        past = await adapter.history(MINE, "m1")
        assert [(each.content, each.revision, each.tags) for each in past] == [
            ("first", 1, ["a"]),
            ("second", 2, ["b"]),
            ("third", 3, ["b"]),
        ]
        assert [each.updated_at for each in past] == [NOW, second(1), second(1)]
        assert [each.embedding for each in past] == [None, None, None]
        assert [(each.id, each.owner, each.metadata) for each in past[1:]] == [
            ("m1", "ada", {}),
            ("m1", "ada", {"n": 1}),
        ]

    async def test_a_history_is_of_what_was_said_and_not_of_what_it_is_worth(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.HISTORY)
        await put(adapter, memory(embedding=[1.0, 0.0]))
        for updates in ({"relevance": 0.5}, {"base_relevance": 0.5}, {"embedding": [0.0, 1.0]}, {"embedding": None}):
            await adapter.update(MINE, "m1", {**updates, "updated_at": second(1)})
            await adapter.update_many(MINE, [Update("m1", {**updates, "access_count": 1, "last_accessed_at": NOW})])
        await adapter.update(MINE, "m1", {"embedding": [1.0, 0.0]})
        await adapter.drop_embeddings(MINE)
        assert await adapter.history(MINE, "m1") == []
        back = await adapter.get(MINE, "m1")
        assert back is not None
        assert back.revision == 7  # vectors and access fields do not count

    @pytest.mark.parametrize("field", sorted(HISTORY_FIELDS))
    async def test_each_field_that_says_something_has_a_history(self, adapter: MemoryAdapter, field: str) -> None:
        needs(adapter, Capability.HISTORY)
        before = full()
        await put(adapter, before)
        await adapter.update(MINE, before.id, {field: CHANGES[field], "relevance": 0.25})
        [version] = await adapter.history(MINE, before.id)
        assert fields_of(version) == fields_of(before.replace(embedding=None))

    async def test_a_history_has_the_latest_fifty_versions_at_least(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.HISTORY)
        await put(adapter, memory(content="text 1"), memory("m2"))
        await adapter.update(MINE, "m2", {"content": "changed"})
        for number in range(2, HISTORY_KEPT + 5):
            await adapter.update(MINE, "m1", {"content": f"text {number}"})
        past = await adapter.history(MINE, "m1")
        latest = range(HISTORY_KEPT + 4 - len(past), HISTORY_KEPT + 4)
        assert len(past) >= HISTORY_KEPT
        assert [(each.revision, each.content) for each in past] == [(n, f"text {n}") for n in latest]
        assert len(await adapter.history(MINE, "m2")) == 1

    async def test_what_takes_an_expired_ones_place_begins_a_history_of_its_own(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.HISTORY)
        await put(adapter, memory(content="first", expires_at=second(1)))
        for content in ("second", "third"):
            await adapter.update(MINE, "m1", {"content": content})
        await adapter.store_many(MINE, [memory(content=each, created_at=second(1)) for each in ("anew", "newer")])
        assert [(each.content, each.revision) for each in await adapter.history(MINE, "m1")] == [("anew", 1)]
        await adapter.update(MINE, "m1", {"content": "newest"})
        assert [each.content for each in await adapter.history(MINE, "m1")] == ["anew", "newer"]

    async def test_a_history_ends_with_its_memory(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.HISTORY)
        for id in ("m1", "m2"):
            await put(adapter, memory(id))
            await adapter.update(MINE, id, {"content": "changed"})
        await adapter.delete(MINE, "m1")
        await adapter.delete_many(MINE, ["m2"])
        assert [await adapter.history(Scope("acme"), id) for id in ("m1", "m2")] == [[], []]
        await put(adapter, memory("m1"), memory("m2"))
        assert [await adapter.history(Scope("acme"), id) for id in ("m1", "m2")] == [[], []]
