"""Many at once, calls that are cancelled, other event loops, closing and opening again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import pytest

from lamina.domain.filters import MemoryFilter
from lamina.domain.scope import Scope
from lamina.errors import Conflict
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
)
from lamina.testing.memory_contract.round_trip import full

__all__ = ["ConcurrencyContract"]

T = TypeVar("T")


class ConcurrencyContract:
    """Calls side by side, cut short, and from anywhere."""

    async def test_concurrent_writers_lose_nothing(self, adapter: MemoryAdapter) -> None:
        names = [f"m{number}" for number in range(100)]
        await _together(*(put(adapter, memory(name, f"text of {name}", embedding=[1.0, 0.0])) for name in names))
        entries = await listed(adapter)
        assert sorted(ids(entries)) == sorted(names)
        assert len({entry.seq for entry in entries}) == 100
        assert all(entry.content == f"text of {entry.id}" for entry in entries)
        if Capability.TEXT in adapter.capabilities:
            assert sorted(ids(await by_text(adapter, "text"))) == sorted(names)
        if Capability.VECTOR in adapter.capabilities:
            assert sorted(ids(await by_vector(adapter, [1.0, 0.0]))) == sorted(names)

    async def test_readers_and_writers_do_not_disturb_each_other(self, adapter: MemoryAdapter) -> None:
        await put(adapter, *(memory(f"m{number}") for number in range(20)))

        async def write(number: int) -> None:
            await adapter.update(MINE, f"m{number}", {"content": f"changed {number}"})
            await put(adapter, memory(f"n{number}"))
            await adapter.delete(MINE, f"n{number}")

        async def read() -> None:
            found = set(ids(await listed(adapter)))
            assert {f"m{number}" for number in range(20)} <= found
            assert await adapter.count(MINE, LIVE) >= 20

        await _together(*(write(number) for number in range(20)), *(read() for _ in range(20)))
        assert sorted(each.content for each in await listed(adapter)) == sorted(f"changed {n}" for n in range(20))

    async def test_of_many_who_expect_the_same_revision_one_wins(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.COMPARE_AND_SET)
        await put(adapter, memory())

        async def change(number: int) -> int | None:
            try:
                assert await adapter.update(MINE, "m1", {"content": f"changed {number}"}, expected_revision=1)
            except Conflict:
                return None
            return number

        winners = [winner for winner in await _together(*map(change, range(30))) if winner is not None]
        back = await adapter.get(MINE, "m1")
        assert back is not None
        assert [f"changed {winner}" for winner in winners] == [back.content]
        assert back.revision == 2

    async def test_who_meets_a_conflict_and_tries_again_loses_nothing(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.COMPARE_AND_SET)
        await put(adapter, memory(metadata={"n": 0}))

        async def add_one() -> None:
            for _ in range(1_000):
                entry = await adapter.get(MINE, "m1")
                assert entry is not None
                try:
                    changes = {"metadata": {"n": entry.metadata["n"] + 1}}
                    await adapter.update(MINE, "m1", changes, expected_revision=entry.revision)
                except Conflict:
                    continue
                return
            pytest.fail("a thousand attempts met a thousand conflicts")

        await _together(*(add_one() for _ in range(12)))
        back = await adapter.get(MINE, "m1")
        assert back is not None
        assert (back.metadata, back.revision) == ({"n": 12}, 13)

    async def test_what_changed_since_it_was_listed_is_not_deleted(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.COMPARE_AND_SET)
        names = [f"m{number}" for number in range(20)]
        await put(adapter, *(memory(name, tags=["old"]) for name in names))
        old = MemoryFilter(now=NOW, tags=("old",))

        async def keep(name: str) -> bool:
            return await adapter.update(MINE, name, {"tags": ["kept"]})

        async def delete(name: str) -> bool:
            if int(name[1:]) % 2:
                return (await adapter.delete_many(MINE, [name], filter=old))[0]
            try:
                return await adapter.delete(MINE, name, expected_revision=1)
            except Conflict:
                return False

        outcomes = await _together(*(call(name) for name in names for call in (delete, keep)))
        deleted, kept = outcomes[::2], outcomes[1::2]
        assert [one != other for one, other in zip(deleted, kept, strict=True)] == [True] * len(names)
        assert ids(await listed(adapter)) == [name for name, is_kept in zip(names, kept, strict=True) if is_kept]

    async def test_of_many_who_expect_the_same_meta_one_wins(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.COMPARE_AND_SET)

        async def claim(number: int) -> int | None:
            try:
                await adapter.save_meta(MINE, "fingerprint", f"value {number}", NOW, expected=None)
            except Conflict:
                return None
            return number

        winners = [winner for winner in await _together(*map(claim, range(30))) if winner is not None]
        assert [f"value {winner}" for winner in winners] == [await adapter.load_meta(MINE, "fingerprint")]

    @pytest.mark.parametrize("deed", ["store", "update"])
    async def test_nothing_is_written_after_the_meta_that_it_expects_has_changed(
        self, adapter: MemoryAdapter, deed: str
    ) -> None:
        needs(adapter, Capability.COMPARE_AND_SET)
        await put(adapter, *(memory(f"m{number}") for number in range(40)))
        await adapter.save_meta(MINE, "fingerprint", "first", NOW)
        expected = {"fingerprint": "first"}

        async def write(number: int) -> int:
            try:
                if deed == "store":
                    batch = [memory(f"n{number}", f"new {number}")]
                    await adapter.store_many(MINE, batch, if_new=True, expected_meta=expected)
                else:
                    changes = {"content": f"new {number}"}
                    await adapter.update_many(MINE, [Update(f"m{number}", changes)], expected_meta=expected)
            except Conflict:
                return 0
            return 1

        async def switch() -> int:
            await adapter.save_meta(MINE, "fingerprint", "second", NOW, expected="first")
            return await written()

        async def written() -> int:
            return sum(each.content.startswith("new") for each in await listed(adapter))

        calls = [write(number) for number in range(40)]
        *acknowledged, seen = await _together(*calls[:20], *calls[20:], switch())
        assert await written() == seen == sum(acknowledged)

    async def test_every_read_is_counted(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory("m1"), memory("m2"))
        await _together(*(adapter.touch(MINE, ["m1", "m2", "m1"], NOW) for _ in range(40)))
        assert [each.access_count for each in await listed(adapter)] == [80, 40]

    async def test_of_many_who_say_the_same_one_is_stored(self, adapter: MemoryAdapter) -> None:
        calls = (adapter.store_many(MINE, [memory(f"m{number}")], if_new=True) for number in range(30))
        answers = [twin for [twin] in await _together(*calls)]
        [left] = await listed(adapter)
        assert answers.count(None) == 1
        assert {twin.id for twin in answers if twin is not None} == {left.id}
        assert answers.index(None) == int(left.id[1:])

    @pytest.mark.parametrize("turns", range(6))
    async def test_a_call_that_is_cancelled_is_done_whole_or_not_at_all(
        self, adapter: MemoryAdapter, turns: int
    ) -> None:
        batch = [memory(f"b{number}", "of the batch", embedding=[1.0, 0.0]) for number in range(50)]
        await put(adapter, memory("before"))
        calls = [
            asyncio.ensure_future(adapter.store_many(MINE, batch)),
            asyncio.ensure_future(adapter.store(MINE, memory("single", embedding=[1.0, 0.0]))),
            asyncio.ensure_future(adapter.update(MINE, "before", {"content": "changed", "tags": ["changed"]})),
        ]
        for _ in range(turns):
            await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await put(adapter, memory("after"))
        await _check_whole(adapter, len(batch))

    async def test_opening_and_closing_twice_is_no_different(self, adapter: MemoryAdapter) -> None:
        await adapter.initialize()
        await put(adapter, memory())
        await adapter.initialize()
        assert ids(await listed(adapter)) == ["m1"]
        await adapter.close()
        await adapter.close()

    async def test_a_closed_adapter_opens_again(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory("m1"))
        for number in range(2, 4):
            await adapter.close()
            await adapter.initialize()
            await put(adapter, memory(f"m{number}"))
            assert f"m{number}" in ids(await listed(adapter))

    async def test_what_was_acknowledged_is_there_after_opening_again(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.PERSISTENCE)
        await put(adapter, full(), memory("m2", "a kite"))
        await adapter.update(MINE, "m2", {"confidence": 0.5})
        await adapter.touch(MINE, ["m2"], NOW)
        await adapter.save_meta(MINE, "fingerprint", "kept", NOW)
        before = await listed(adapter, include_embeddings=True)
        await adapter.close()
        await adapter.initialize()
        after = await listed(adapter, include_embeddings=True)
        assert [(each.seq, fields_of(each)) for each in after] == [(each.seq, fields_of(each)) for each in before]
        assert await adapter.load_meta(MINE, "fingerprint") == "kept"
        if Capability.TEXT in adapter.capabilities:
            assert ids(await by_text(adapter, "kite")) == ["m2"]
        if Capability.VECTOR in adapter.capabilities:
            assert ids(await by_vector(adapter, [1.0, 0.0, 0.0])) == [full().id]
        if Capability.HISTORY in adapter.capabilities:
            assert [each.confidence for each in await adapter.history(MINE, "m2")] == [1.0]
        await put(adapter, memory("m3"))
        assert ids(await listed(adapter)) == [*ids(before), "m3"]

    async def test_another_event_loop_may_use_it_too(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory("here"))

        async def elsewhere() -> list[str]:
            await put(adapter, memory("there"))
            await adapter.touch(MINE, ["here"], NOW)
            await adapter.store_many(MINE, [memory("again")], if_new=True)
            return ids(await listed(adapter))

        for _ in range(2):  # the second of these loops comes after the first is closed
            assert await asyncio.to_thread(asyncio.run, elsewhere()) == ["here", "there"]
        await adapter.touch(MINE, ["here"], NOW)
        assert [(each.id, each.access_count) for each in await listed(adapter)] == [("here", 3), ("there", 0)]

    async def test_event_loops_may_use_it_side_by_side(self, adapter: MemoryAdapter) -> None:
        needs(adapter, Capability.COMPARE_AND_SET)
        await put(adapter, memory("m1"))

        async def work(name: str) -> None:
            for number in range(15):
                await put(adapter, memory(f"{name}{number}", owner=name))
                await adapter.touch(MINE, ["m1"], NOW)

        await _together(*(asyncio.to_thread(asyncio.run, work(name)) for name in ("x", "y", "z")), work("w"))
        entries = await listed(adapter, Scope("acme"))
        assert len({entry.seq for entry in entries}) == len(entries) == 61
        assert entries[0].access_count == 60


async def _together(*calls: Awaitable[T]) -> list[T]:
    return list(await asyncio.gather(*calls))


async def _check_whole(adapter: MemoryAdapter, size: int) -> None:
    """What can be listed can be searched for, and an update or a batch is there whole or not at all."""
    entries = await listed(adapter)
    names = ids(entries)
    assert (names[0], names[-1]) == ("before", "after")
    assert entries[0].content == ("changed" if entries[0].tags else "the harbour lamp is lit")
    batch = sorted(name for name in names if name.startswith("b") and name != "before")
    if Capability.TRANSACTIONS in adapter.capabilities:
        assert len(batch) in {0, size}
    if Capability.TEXT in adapter.capabilities:
        assert sorted(ids(await by_text(adapter, "batch"))) == batch
    if Capability.VECTOR in adapter.capabilities:
        single = ["single"] if "single" in names else []
        assert sorted(ids(await by_vector(adapter, [1.0, 0.0]))) == sorted(batch + single)
