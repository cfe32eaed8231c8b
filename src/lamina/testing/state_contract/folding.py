"""Summaries take the place of messages only if nobody else was faster."""

from __future__ import annotations

import pytest

from lamina.domain.message import Role
from lamina.domain.thread import Events, ThreadStatus
from lamina.errors import InvalidInput
from lamina.ports.state_store import StateStore
from lamina.testing.state_contract.material import NOW, REF, begin, event, fill, said, second, summary

__all__ = ["FoldingContract"]


class FoldingContract:
    """Folding, unfolding, and the chain of summaries."""

    async def test_what_is_folded_is_kept_and_no_longer_live(self, store: StateStore) -> None:
        await fill(store, 5)
        assert await store.live_size(REF) == (5, 10)
        assert await store.fold(REF, summary(3), expected_folded_through=0, now=second(1))
        head = await store.get_thread(REF)
        assert head is not None
        assert (head.folded_through, head.revision, head.updated_at, head.last_index) == (3, 2, second(1), 5)
        assert await store.live_size(REF) == (2, 4)
        assert await said(store) == ["m1", "m2", "m3", "m4", "m5"]
        assert await said(store, after=head.folded_through) == ["m4", "m5"]

    async def test_a_thread_as_it_stands_is_what_single_looks_say(self, store: StateStore) -> None:
        assert await store.live(REF) is None
        await fill(store, 2)
        await store.append(REF, [event("s", role=Role.SYSTEM), event("m4"), event("m5")], now=NOW)
        for number in (0, 3, 4):
            if number:
                folded = 3 if number == 4 else 0
                assert await store.fold(REF, summary(number, f"to {number}"), expected_folded_through=folded, now=NOW)
            now, sized = await store.live(REF), await store.live(REF, with_events=False)
            assert now is not None
            assert now.head == await store.get_thread(REF)
            assert now.summary == next(iter(await store.summaries(REF)), None)
            assert now.system == (await store.system_events(REF, before=number + 1) if number else [])
            assert now.events == await store.events(REF, after=number)
            assert (now.count, now.tokens) == await store.live_size(REF)
            now.events = Events()
            assert sized == now

    async def test_messages_that_came_meanwhile_survive(self, store: StateStore) -> None:
        await fill(store, 3)
        await store.append(REF, [event("m4"), event("m5")], now=NOW)
        assert await store.fold(REF, summary(2), expected_folded_through=0, now=NOW)
        assert await said(store, after=2) == ["m3", "m4", "m5"]
        assert await store.live_size(REF) == (3, 6)

    async def test_who_lost_the_race_changes_nothing(self, store: StateStore) -> None:
        await fill(store, 5)
        assert await store.fold(REF, summary(2, "first"), expected_folded_through=0, now=NOW)
        before = await store.get_thread(REF)
        for expected in (0, 1, 3):
            assert not await store.fold(REF, summary(4, "second"), expected_folded_through=expected, now=second(1))
        assert await store.get_thread(REF) == before
        assert [each.text for each in await store.summaries(REF)] == ["first"]
        assert await store.live_size(REF) == (3, 6)

    async def test_a_summary_of_a_deleted_thread_does_not_land_in_its_successor(self, store: StateStore) -> None:
        await fill(store, 3)
        assert await store.delete_thread(REF)
        await begin(store, created_at=second(1))
        await store.append(REF, [event("m1"), event("m2")], now=second(1))
        late = summary(2, "of the deleted one")
        assert not await store.fold(REF, late, expected_folded_through=0, now=NOW, expected_created_at=NOW)
        assert await store.summaries(REF) == []
        assert await store.fold(REF, late, expected_folded_through=0, now=NOW, expected_created_at=second(1))

    async def test_former_summaries_are_kept_newest_first(self, store: StateStore) -> None:
        await fill(store, 6)
        for number in (2, 4, 5):
            assert await store.fold(
                REF,
                summary(number, f"to {number}"),
                expected_folded_through=max(0, number - 2 if number < 5 else 4),
                now=NOW,
            )
        assert [each.text for each in await store.summaries(REF)] == ["to 5", "to 4", "to 2"]
        assert [each.text for each in await store.summaries(REF, limit=2)] == ["to 5", "to 4"]
        assert await store.summaries(REF, limit=0) == []

    async def test_a_summary_may_be_written_anew(self, store: StateStore) -> None:
        await fill(store, 3)
        assert await store.fold(REF, summary(2, "rough"), expected_folded_through=0, now=NOW)
        assert await store.fold(REF, summary(2, "better"), expected_folded_through=2, now=NOW)
        assert [each.text for each in await store.summaries(REF)] == ["better", "rough"]
        assert await store.live_size(REF) == (1, 2)
        assert await store.unfold(REF, expected_folded_through=2, now=NOW)
        head = await store.get_thread(REF)
        assert head is not None
        assert head.folded_through == 2

    async def test_a_summary_of_what_is_not_there_is_refused(self, store: StateStore) -> None:
        await fill(store, 3)
        await store.fold(REF, summary(2), expected_folded_through=0, now=NOW)
        before = await store.get_thread(REF)
        for bad in (summary(4), summary(1), summary(0), summary(3, from_index=4), summary(3, tokens=-1)):
            with pytest.raises(InvalidInput):
                await store.fold(REF, bad, expected_folded_through=2, now=NOW)
        assert await store.get_thread(REF) == before
        assert len(await store.summaries(REF)) == 1

    async def test_unfolding_goes_back_step_by_step(self, store: StateStore) -> None:
        await fill(store, 5)
        await store.fold(REF, summary(2, "first"), expected_folded_through=0, now=NOW)
        await store.fold(REF, summary(4, "second"), expected_folded_through=2, now=NOW)
        assert not await store.unfold(REF, expected_folded_through=2, now=second(1))
        assert await store.unfold(REF, expected_folded_through=4, now=second(1))
        head = await store.get_thread(REF)
        assert head is not None
        assert (head.folded_through, head.revision, head.updated_at) == (2, 4, second(1))
        assert [each.text for each in await store.summaries(REF)] == ["first"]
        assert await store.live_size(REF) == (3, 6)
        assert await store.unfold(REF, expected_folded_through=2, now=NOW)
        assert await store.live_size(REF) == (5, 10)
        assert not await store.unfold(REF, expected_folded_through=0, now=NOW)
        assert await store.summaries(REF) == []

    async def test_an_archived_thread_can_be_folded(self, store: StateStore) -> None:
        await fill(store, 3)
        await store.update_thread(REF, now=NOW, status=ThreadStatus.ARCHIVED)
        assert await store.fold(REF, summary(2), expected_folded_through=0, now=NOW)
        assert await store.live_size(REF) == (1, 2)
