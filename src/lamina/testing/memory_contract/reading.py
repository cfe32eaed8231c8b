"""Lists, counts, pages, orders and expiry."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import pytest

from lamina.domain.filters import Expiry, MemoryFilter
from lamina.ports.memory_adapter import Capability, MemoryAdapter, Order
from lamina.testing.memory_contract.material import (
    LIVE,
    MINE,
    NOW,
    by_text,
    by_vector,
    ids,
    listed,
    memory,
    put,
    second,
)

__all__ = ["ReadingContract"]

MANY: Final = 1_037
SOME: Final = 437
LIFE: Final = [
    (second(9.999999), Expiry.LIVE, ["forever", "ten seconds"]),
    (second(10), Expiry.LIVE, ["forever"]),
    (second(10.000001), Expiry.LIVE, ["forever"]),
    (second(9.999999), Expiry.EXPIRED, ["gone"]),
    (second(10), Expiry.EXPIRED, ["gone", "ten seconds"]),
    (second(9.999999), Expiry.ANY, ["forever", "gone", "ten seconds"]),
    (second(10), Expiry.ANY, ["forever", "gone", "ten seconds"]),
]


class ReadingContract:
    """What is read, in which order, page by page, and until when."""

    @pytest.mark.parametrize(("now", "expiry", "expected"), LIFE)
    async def test_a_memory_is_absent_from_the_instant_of_its_expiry(
        self, adapter: MemoryAdapter, now: datetime, expiry: Expiry, expected: list[str]
    ) -> None:
        await put(
            adapter,
            memory("forever", embedding=[1.0, 0.0]),
            memory("gone", embedding=[1.0, 0.0], expires_at=second(-1)),
            memory("ten seconds", embedding=[1.0, 0.0], expires_at=second(10)),
        )
        filter = MemoryFilter(now=now, expiry=expiry)
        assert ids(await listed(adapter, MINE, filter)) == expected
        assert sorted(ids(await listed(adapter, MINE, filter, order=Order.RELEVANCE))) == sorted(expected)
        assert await adapter.count(MINE, filter) == len(expected)
        if Capability.TEXT in adapter.capabilities:
            assert ids(await by_text(adapter, "harbour", MINE, filter)) == sorted(expected)
        if Capability.VECTOR in adapter.capabilities:
            assert ids(await by_vector(adapter, [1.0, 0.0], MINE, filter)) == sorted(expected)

    async def test_an_expired_memory_is_still_there_by_its_id(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory(expires_at=second(-1)))
        assert await adapter.get(MINE, "m1") is not None
        assert await adapter.update(MINE, "m1", {"expires_at": second(1)}) is True
        assert ids(await listed(adapter)) == ["m1"]
        assert await adapter.update(MINE, "m1", {"expires_at": second(-1)}) is True
        assert await listed(adapter) == []
        assert await adapter.delete(MINE, "m1") is True

    async def test_insertion_order_is_kept_whatever_the_clock_does(self, adapter: MemoryAdapter) -> None:
        names = [f"m{number * 7 % 50}" for number in range(50)]
        await put(adapter, *(memory(name, created_at=second(number % 3)) for number, name in enumerate(names[:25])))
        await adapter.store_many(MINE, [memory(name, created_at=second(-int(name[1:]))) for name in names[25:]])
        entries = await listed(adapter)
        assert ids(entries) == names
        order = [entry.seq for entry in entries]
        assert order == sorted(set(order))
        assert order[0] > 0

    async def test_relevance_comes_first_then_the_newest_then_the_id(self, adapter: MemoryAdapter) -> None:
        await put(
            adapter,
            memory("c", relevance=0.5, created_at=second(1)),
            memory("B", relevance=0.5, created_at=second(1)),
            memory("a", relevance=0.5, created_at=second(1)),
            memory("newer", relevance=0.5, created_at=second(1.000001)),
            memory("least", relevance=0.1, created_at=second(9)),
            memory("best", relevance=0.9, created_at=second(-9)),
        )
        expected = ["best", "newer", "B", "a", "c", "least"]
        assert ids(await listed(adapter, order=Order.RELEVANCE)) == expected
        assert ids(await listed(adapter, order=Order.RELEVANCE, limit=2, offset=1)) == expected[1:3]

    @pytest.mark.parametrize("order", Order)
    async def test_pages_by_offset_tile(self, adapter: MemoryAdapter, order: Order) -> None:
        await _put_many(adapter)
        whole = ids(await listed(adapter, order=order, limit=MANY))
        assert len(set(whole)) == MANY
        pages = [ids(await listed(adapter, order=order, limit=100, offset=start)) for start in range(0, MANY, 100)]
        assert [len(page) for page in pages] == [100] * 10 + [37]
        assert [id for page in pages for id in page] == whole
        assert await listed(adapter, order=order, limit=100, offset=MANY) == []

    async def test_pages_after_a_seq_tile_while_rows_come_and_go(self, adapter: MemoryAdapter) -> None:
        await _put_many(adapter, SOME)
        seen: list[str] = []
        after = 0
        for rounds in range(1, 20):  # more than there are pages, and an end where they repeat themselves
            page = await listed(adapter, limit=100, after=after)
            if not page:
                break
            seen += ids(page)
            after = page[-1].seq
            if rounds <= 5:
                await put(adapter, memory(f"added {rounds}"))
                await adapter.delete(MINE, ids(page)[0])
                await put(adapter, memory(ids(page)[1], "replaced"))
        assert seen == [*(f"m{number}" for number in range(SOME)), *(f"added {number}" for number in range(1, 6))]

    async def test_a_limit_is_honoured_however_large(self, adapter: MemoryAdapter) -> None:
        await _put_many(adapter)
        for limit in (MANY, 5_000, 1_000_000_000):
            assert len(await listed(adapter, limit=limit)) == MANY
        assert ids(await listed(adapter, limit=1)) == ["m0"]
        assert ids(await listed(adapter, limit=2, offset=1_035)) == ["m1035", "m1036"]
        assert await adapter.count(MINE, LIVE) == MANY

    async def test_a_page_is_one_of_what_the_filter_admits(self, adapter: MemoryAdapter) -> None:
        await put(adapter, *(memory(f"m{n}", tags=["even"] if n % 2 == 0 else []) for n in range(20)))
        await put(adapter, memory("strange", owner="bob", tags=["even"]))
        even = MemoryFilter(now=NOW, tags=("even",))
        first = await listed(adapter, MINE, even, limit=4)
        assert ids(first) == ["m0", "m2", "m4", "m6"]
        assert ids(await listed(adapter, MINE, even, limit=4, after=first[-1].seq)) == ["m8", "m10", "m12", "m14"]
        assert ids(await listed(adapter, MINE, even, limit=4, offset=8)) == ["m16", "m18"]
        assert ids(await listed(adapter, MINE, even, limit=2, offset=1, after=first[-1].seq)) == ["m10", "m12"]
        assert await adapter.count(MINE, even) == 10

    async def test_nothing_is_an_empty_list(self, adapter: MemoryAdapter) -> None:
        assert await listed(adapter) == []
        assert await adapter.count(MINE, LIVE) == 0
        assert await adapter.get(MINE, "m1") is None
        assert await adapter.store_many(MINE, []) == []
        assert await adapter.update_many(MINE, []) == []
        assert await adapter.delete_many(MINE, []) == []
        assert await adapter.drop_embeddings(MINE) == 0
        assert await adapter.load_meta(MINE, "fingerprint") is None
        await adapter.touch(MINE, [], NOW)
        if Capability.TEXT in adapter.capabilities:
            assert await by_text(adapter, "harbour") == []
        if Capability.VECTOR in adapter.capabilities:
            assert await by_vector(adapter, [1.0, 0.0]) == []
        if Capability.HISTORY in adapter.capabilities:
            assert await adapter.history(MINE, "m1") == []

    async def test_lists_are_plain_lists_of_the_callers_own(self, adapter: MemoryAdapter) -> None:
        await put(adapter, memory("m1"), memory("m2"))
        entries = await listed(adapter)
        assert type(entries) is list
        entries.clear()
        assert ids(await listed(adapter)) == ["m1", "m2"]


async def _put_many(adapter: MemoryAdapter, number_of: int = MANY) -> None:
    entries = [memory(f"m{number}", relevance=number % 10 / 10) for number in range(number_of)]
    assert await adapter.store_many(MINE, entries) == [None] * number_of
