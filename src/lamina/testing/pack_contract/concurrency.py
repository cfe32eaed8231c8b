"""Many at once, two stores on one place, calls that are cancelled, other event loops, opening again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any, ClassVar, TypeVar

import pytest

from lamina.domain.pack_decay import Decay, Tier
from lamina.errors import AdapterError, InvalidInput, PackExists
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
    packs_of,
    supersedes,
    with_pack,
)

__all__ = ["ConcurrencyContract"]

T = TypeVar("T")


class ConcurrencyContract:
    """Calls side by side, cut short, and from anywhere."""

    is_persistent: ClassVar[bool] = True

    async def test_of_many_accesses_at_once_each_is_counted(self, store: PackStore) -> None:
        await with_pack(store, *(memory(f"m{number}") for number in range(5)))
        every = [f"m{number}" for number in range(5)]
        calls = [store.touch(TENANT, every if n % 2 else every[::-1], now=days(n)) for n in range(40)]
        await _together(*calls)
        found = await store.find_memories(all_of())
        assert [(each.access_count, each.last_accessed) for each in found] == [(40, days(39))] * 5
        assert (await store.statistics(TENANT, "p1")).access.total == 200

    async def test_two_accesses_from_two_stores_count_two(self, store: PackStore, second_store: PackStore) -> None:
        await with_pack(store, memory("m1"))
        assert await store.set_tier(TENANT, "m1", Tier.SUMMARY, expected_revision=1, now=NOW)
        answers = await _together(*(each.touch(TENANT, ["m1"], now=NOW) for each in (store, second_store)))
        assert sorted(answer["m1"] for answer in answers) == [Tier.FULL, Tier.SUMMARY]
        found = await get(second_store, "m1")
        assert (found.access_count, found.tier, found.revision) == (2, Tier.FULL, 3)

    async def test_two_stores_on_one_place_share_all_of_it(self, store: PackStore, second_store: PackStore) -> None:
        await store.create_pack(pack())
        with pytest.raises(PackExists):
            await second_store.create_pack(pack("p2", name=pack().name))
        stores = [store, second_store]
        await _together(*(add(stores[n % 2], memory(f"m{n}", name="n")) for n in range(20)))
        found = await store.find_memories(all_of(include_superseded=True))
        assert sorted(ids(found)) == sorted(f"m{n}" for n in range(20))
        live = await named(second_store, "n")
        assert len(live) == 1
        assert len({each.superseded_by for each in found}) == 20
        assert await second_store.purge_pack(TENANT, "p1")
        assert await packs_of(store) == []

    async def test_of_many_who_make_a_pack_of_one_name_one_does(self, store: PackStore) -> None:
        outcomes = await _tried(*(store.create_pack(pack(f"p{n}", name="x")) for n in range(10)))
        assert [type(each) for each in outcomes if each is not None] == [PackExists] * 9
        assert await packs_of(store) == [f"p{outcomes.index(None)}"]

    async def test_of_many_who_save_over_one_revision_one_does(self, store: PackStore) -> None:
        await with_pack(store, memory("m1"))
        saved = await _together(
            *(store.save_memory(memory("m1", f"by {n}"), expected_revision=1, now=NOW) for n in range(10))
        )
        assert saved.count(True) == 1
        found = await get(store, "m1")
        assert (found.content, found.revision) == (f"by {saved.index(True)}", 2)
        packs = await _together(*(store.save_pack(pack(description=str(n)), expected_revision=1) for n in range(10)))
        assert packs.count(True) == 1
        assert (await store.get_packs(TENANT, ["p1"]))[0].description == str(packs.index(True))
        tiers = await _together(
            *(store.set_tier(TENANT, "m1", Tier.SUMMARY, expected_revision=2, now=NOW) for _ in range(10))
        )
        assert tiers.count(True) == 1

    async def test_two_who_supersede_each_other_close_no_circle(self, store: PackStore) -> None:
        await with_pack(store, *(memory(f"m{n}") for n in range(20)))
        pairs = [(f"m{n}", f"m{n + 1}") for n in range(0, 20, 2)]
        calls = [store.supersede(TENANT, old, by=by, now=NOW) for pair in pairs for old, by in (pair, pair[::-1])]
        outcomes = await _tried(*calls)
        assert sorted(type(each).__name__ for each in outcomes) == ["InvalidInput"] * 10 + ["NoneType"] * 10
        assert all(isinstance(each, InvalidInput | None) for each in outcomes)
        assert await store.count_memories(all_of()) == 10

    async def test_reading_and_changing_the_pack_at_once_leaves_the_right_time(self, store: PackStore) -> None:
        await with_pack(store, memory("m1"))
        for revision in range(1, 11):
            change = pack(decay=_decay(revision))
            await _together(
                store.save_pack(change, expected_revision=revision), store.touch(TENANT, ["m1"], now=days(revision))
            )
            [(instant, _)] = await store.due(TENANT, until=days(9999), limit=9)
            assert instant == days(revision + revision)

    @pytest.mark.parametrize("turns", range(4))
    async def test_a_call_that_is_cancelled_is_done_whole_or_not_at_all(self, store: PackStore, turns: int) -> None:
        await with_pack(store, memory("old"))
        batch = [memory(f"b{n}", relationships=supersedes("old") if n == 29 else []) for n in range(30)]
        call = asyncio.ensure_future(store.add_memories(batch, now=NOW))
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await add(store, memory("after"))
        found = await store.find_memories(all_of(include_superseded=True))
        assert len(found) in {2, 32}
        assert (await get(store, "old")).superseded_by == (None if len(found) == 2 else "b29")

    async def test_opening_and_closing_twice_is_no_different(self, store: PackStore) -> None:
        await store.initialize()
        await with_pack(store, memory("m1"))
        await store.initialize()
        assert (await get(store, "m1")).content == "says m1"
        await store.close()
        await store.close()
        with pytest.raises(AdapterError, match="not open"):
            await store.get_memories(TENANT, ["m1"])

    async def test_what_was_acknowledged_is_there_after_opening_again(self, store: PackStore) -> None:
        await with_pack(store, memory("m1", name="n"), memory("m2", name="n"), embedding=[1.0], fingerprint="f")
        await store.touch(TENANT, ["m2"], now=days(1))
        before = await store.get_memories(TENANT, ["m1", "m2"]), await store.get_packs(TENANT, ["p1"])
        await store.close()
        await store.initialize()
        if not self.is_persistent:
            assert await store.tenants() == []
            return
        assert (await store.get_memories(TENANT, ["m1", "m2"]), await store.get_packs(TENANT, ["p1"])) == before

    async def test_another_event_loop_may_use_it_too(self, store: PackStore) -> None:
        await with_pack(store)

        async def elsewhere(id: str) -> list[str]:
            await add(store, memory(id))
            return ids(await store.find_memories(all_of()))

        for number in (1, 2):  # the second of these loops comes after the first is closed
            expected = [f"m{each}" for each in range(1, number + 1)]
            assert await asyncio.to_thread(asyncio.run, elsewhere(f"m{number}")) == expected
        await add(store, memory("m3"))
        assert ids(await store.find_memories(all_of())) == ["m1", "m2", "m3"]


def _decay(unit: int) -> Decay:
    return Decay(timedelta(days=unit))


async def _together(*calls: Awaitable[T]) -> list[T]:
    return list(await asyncio.gather(*calls))


async def _tried(*calls: Awaitable[Any]) -> list[Any]:
    return list(await asyncio.gather(*calls, return_exceptions=True))
