"""Many at once, two stores on one place, calls that are cancelled, other event loops, opening again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import ClassVar, TypeVar

import pytest

from lamina.errors import AdapterError
from lamina.ports.state_store import StateStore
from lamina.testing.state_contract.material import (
    NOW,
    REF,
    begin,
    document,
    event,
    fill,
    ids,
    indexes,
    said,
    second,
    summary,
    thread,
)

__all__ = ["ConcurrencyContract"]

T = TypeVar("T")


class ConcurrencyContract:
    """Calls side by side, cut short, and from anywhere."""

    is_persistent: ClassVar[bool] = True

    async def test_of_many_appends_at_once_none_is_lost_and_each_stays_together(self, store: StateStore) -> None:
        await begin(store)
        pairs = [[event(f"q{n}"), event(f"a{n}")] for n in range(50)]
        answers = await _together(*(store.append(REF, pair, now=NOW) for pair in pairs))
        found = await store.events(REF)
        assert indexes(found) == list(range(1, 101))
        assert sorted(ids(found)) == sorted(id for pair in pairs for id in ids(pair))
        assert all(last.message.index == first.message.index + 1 for first, last in answers)
        assert [each.message.parent for each in found] == [None, *ids(found)[:-1]]
        assert await store.live_size(REF) == (100, 200)

    async def test_of_many_who_add_the_same_message_one_does(self, store: StateStore) -> None:
        await begin(store)
        answers = await _together(*(store.append(REF, [event("m1", f"by {n}")], now=NOW) for n in range(20)))
        [kept] = await store.events(REF)
        assert all(answer == [kept] for answer in answers)

    async def test_of_many_who_fold_at_once_one_does(self, store: StateStore) -> None:
        await fill(store, 10)
        calls = [store.fold(REF, summary(n, f"to {n}"), expected_folded_through=0, now=NOW) for n in range(1, 10)]
        adding = [store.append(REF, [event(f"x{n}")], now=NOW) for n in range(10)]
        outcomes, _ = await asyncio.gather(_together(*calls), _together(*adding))
        assert outcomes.count(True) == 1
        winner = outcomes.index(True) + 1
        assert [each.to_index for each in await store.summaries(REF)] == [winner]
        assert await store.live_size(REF) == (20 - winner, 2 * (20 - winner))

    async def test_of_many_who_replace_the_same_message_one_does(self, store: StateStore) -> None:
        read = await fill(store, 2)
        calls = [store.replace_events(REF, [read[0].replace(tokens=9 + n)], expected=read) for n in range(10)]
        outcomes = await _together(*calls)
        assert outcomes.count(True) == 1
        tokens = 9 + outcomes.index(True)
        assert [each.tokens for each in await store.events(REF)] == [tokens, 2]
        assert await store.live_size(REF) == (2, 2 + tokens)

    async def test_of_many_who_save_over_one_generation_one_does(self, store: StateStore) -> None:
        await store.save_document(document(), expected_generation=None)
        calls = [store.save_document(document(generation=2, chunks=n), expected_generation=1) for n in range(10)]
        outcomes = await _together(*calls)
        assert outcomes.count(True) == 1
        assert [each.chunks for each in await store.find_documents("acme")] == [outcomes.index(True)]

    async def test_of_many_who_make_one_thread_all_get_the_same(self, store: StateStore) -> None:
        made = await _together(*(store.create_thread(thread(owner=f"u{n}")) for n in range(10)))
        assert len({str(each.owner) for each in made}) == 1
        assert [each.owner for each in await store.list_threads("acme")] == [made[0].owner]

    async def test_of_many_who_begin_one_thread_one_does(self, store: StateStore) -> None:
        calls = [
            store.begin_thread(thread(owner=f"u{n}"), [event(f"q{n}"), event(f"a{n}")], now=NOW) for n in range(10)
        ]
        begun = [(n, each) for n, each in enumerate(await _together(*calls)) if each is not None]
        [(winner, kept)] = begun
        assert await store.events(REF) == kept
        assert [each.owner for each in await store.list_threads("acme")] == [f"u{winner}"]

    async def test_two_stores_on_one_place_share_all_of_it(self, store: StateStore, second_store: StateStore) -> None:
        await begin(store)
        stores = [store, second_store]
        await _together(*(stores[n % 2].append(REF, [event(f"m{n}")], now=NOW) for n in range(40)))
        found = await store.events(REF)
        assert indexes(found) == list(range(1, 41))
        assert await second_store.events(REF) == found
        for own in (0, 1):
            mine = [int(id[1:]) for id in ids(found) if int(id[1:]) % 2 == own]
            assert mine == sorted(mine)
        folds = [each.fold(REF, summary(30), expected_folded_through=0, now=NOW) for each in stores]
        assert sorted(await _together(*folds)) == [False, True]
        assert await store.live_size(REF) == await second_store.live_size(REF) == (10, 20)
        assert await second_store.delete_thread(REF)
        assert await store.events(REF) == []

    @pytest.mark.parametrize("turns", range(5))
    async def test_a_call_that_is_cancelled_is_done_whole_or_not_at_all(self, store: StateStore, turns: int) -> None:
        await fill(store, 4)
        calls = [
            asyncio.ensure_future(store.append(REF, [event(f"b{n}") for n in range(30)], now=NOW)),
            asyncio.ensure_future(store.fold(REF, summary(2), expected_folded_through=0, now=NOW)),
        ]
        for _ in range(turns):
            await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await store.append(REF, [event("after")], now=NOW)
        found = await store.events(REF)
        assert sum(id.startswith("b") for id in ids(found)) in {0, 30}
        assert ids(found)[-1] == "after"
        assert indexes(found) == list(range(1, len(found) + 1))
        head = await store.get_thread(REF)
        assert head is not None
        assert head.folded_through == 2 * len(await store.summaries(REF))
        assert await store.live_size(REF) == (len(found) - head.folded_through, 2 * (len(found) - head.folded_through))

    async def test_opening_and_closing_twice_is_no_different(self, store: StateStore) -> None:
        await store.initialize()
        await fill(store, 2)
        await store.initialize()
        assert await said(store) == ["m1", "m2"]
        await store.close()
        await store.close()
        with pytest.raises(AdapterError, match="not open"):
            await store.get_thread(REF)

    async def test_what_was_acknowledged_is_there_after_opening_again(self, store: StateStore) -> None:
        read = await fill(store, 4)
        await store.fold(REF, summary(2), expected_folded_through=0, now=second(1))
        await store.replace_events(REF, [read[3].replace(tokens=7)], expected=[read[3]])
        await store.save_document(document(), expected_generation=None)
        before = await store.get_thread(REF), await store.events(REF), await store.summaries(REF)
        await store.close()
        await store.initialize()
        if not self.is_persistent:
            assert await store.list_threads("acme") == []
            return
        assert (await store.get_thread(REF), await store.events(REF), await store.summaries(REF)) == before
        assert await store.live_size(REF) == (2, 9)
        assert await store.get_documents("acme", ["d1"]) == [document()]
        assert indexes(await store.append(REF, [event("m5")], now=NOW)) == [5]

    async def test_another_event_loop_may_use_it_too(self, store: StateStore) -> None:
        await fill(store, 1)

        async def elsewhere(name: str) -> list[str]:
            await store.append(REF, [event(name)], now=NOW)
            return await said(store)

        for number in (2, 3):  # the second of these loops comes after the first is closed
            expected = [f"m{each}" for each in range(1, number + 1)]
            assert await asyncio.to_thread(asyncio.run, elsewhere(f"m{number}")) == expected
        await store.append(REF, [event("m4")], now=NOW)
        assert await said(store) == ["m1", "m2", "m3", "m4"]


async def _together(*calls: Awaitable[T]) -> list[T]:
    return list(await asyncio.gather(*calls))
