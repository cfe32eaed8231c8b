"""Messages: their order, reading parts of a thread, replacing and deleting."""

from __future__ import annotations

from typing import Any

import pytest

from lamina.domain.message import Role
from lamina.domain.thread import ThreadRef
from lamina.errors import InvalidInput, ThreadNotFound
from lamina.ports.state_store import StateStore
from lamina.testing.state_contract.material import (
    NOW,
    REF,
    begin,
    event,
    fill,
    ids,
    indexes,
    said,
    second,
    summary,
    thread,
)

__all__ = ["MessageContract", "ReplacementContract"]


class MessageContract:
    """Adding and reading."""

    async def test_messages_stand_in_the_order_in_which_they_were_added(self, store: StateStore) -> None:
        await begin(store)
        for number in range(1, 12):  # later ones by an earlier clock, and with lower ids
            await store.append(REF, [event(f"m{99 - number}", timestamp=second(-number))], now=second(-number))
        found = await store.events(REF)
        assert indexes(found) == list(range(1, 12))
        assert ids(found) == [f"m{99 - number}" for number in range(1, 12)]

    async def test_an_index_is_never_given_twice(self, store: StateStore) -> None:
        await fill(store, 3)
        assert await store.delete_events(REF, ["m2", "m3"]) == 2
        assert indexes(await store.append(REF, [event("m4"), event("m3")], now=NOW)) == [4, 5]
        assert await store.delete_events(REF, ["m1", "m4", "m3"]) == 3
        assert indexes(await store.append(REF, [event("m5")], now=NOW)) == [6]
        assert (await store.events(REF))[0].message.parent is None
        head = await store.get_thread(REF)
        assert head is not None
        assert head.last_index == 6

    async def test_a_message_that_is_there_is_not_added_again(self, store: StateStore) -> None:
        await fill(store, 2)
        answer = await store.append(REF, [event("m2", "again"), event("m3"), event("m3", "twice")], now=second(1))
        assert [(each.message.id, each.message.index, each.message.content) for each in answer] == [
            ("m2", 2, "says m2"),
            ("m3", 3, "says m3"),
            ("m3", 3, "says m3"),
        ]
        assert await said(store) == ["m1", "m2", "m3"]
        assert await store.live_size(REF) == (3, 6)
        before = await store.get_thread(REF)
        await store.append(REF, [event("m1", "again")], now=second(9))
        assert await store.get_thread(REF) == before

    async def test_a_thread_begins_with_its_first_messages_or_not_at_all(self, store: StateStore) -> None:
        begun = await store.begin_thread(thread(owner="ada"), [event("m1"), event("m2"), event("m2", "twice")], now=NOW)
        assert begun is not None
        assert [(each.message.index, each.message.parent) for each in begun] == [(1, None), (2, "m1"), (2, "m1")]
        assert await store.events(REF) == begun[:2]
        head = await store.get_thread(REF)
        assert head == thread(owner="ada", last_index=2)
        assert await store.live_size(REF) == (2, 4)
        assert await store.begin_thread(thread(owner="bob"), [event("m3")], now=second(1)) is None
        assert await store.get_thread(REF) == head
        assert await said(store) == ["m1", "m2"]
        other = ThreadRef("acme", "t2")
        with pytest.raises(InvalidInput):
            await store.begin_thread(thread(other), [event("m1"), event("")], now=NOW)
        assert await store.get_thread(other) is None

    async def test_no_thread_takes_no_messages(self, store: StateStore) -> None:
        with pytest.raises(ThreadNotFound):
            await store.append(REF, [event("m1")], now=NOW)
        assert await store.get_thread(REF) is None
        await begin(store)
        assert await store.append(REF, [], now=second(5)) == []

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({}, [1, 2, 3, 4, 5, 6, 7]),
            ({"after": 2}, [3, 4, 5, 6, 7]),
            ({"before": 3}, [1, 2]),
            ({"after": 2, "before": 6}, [3, 4, 5]),
            ({"limit": 2}, [1, 2]),
            ({"limit": 2, "newest": True}, [6, 7]),
            ({"after": 2, "before": 6, "limit": 2}, [3, 4]),
            ({"after": 2, "before": 6, "limit": 2, "newest": True}, [4, 5]),
            ({"newest": True}, [1, 2, 3, 4, 5, 6, 7]),
            ({"limit": 0}, []),
            ({"limit": 2**40}, [1, 2, 3, 4, 5, 6, 7]),
            ({"after": 7}, []),
            ({"after": 2**40, "before": 2**60}, []),
            ({"after": 3, "before": 4}, []),
            ({"before": 0}, []),
            ({"before": 2**40}, [1, 2, 3, 4, 5, 6, 7]),
        ],
        ids=str,
    )
    async def test_a_part_of_a_thread_is_read(
        self, store: StateStore, options: dict[str, Any], expected: list[int]
    ) -> None:
        await fill(store, 3, ThreadRef("acme", "before"))
        await fill(store, 7)
        await fill(store, 3, ThreadRef("acme", "z-after"))
        found = await store.events(REF, **options)
        assert indexes(found) == expected
        assert ids(found) == [f"m{number}" for number in expected]

    async def test_messages_are_found_by_their_ids_in_order(self, store: StateStore) -> None:
        await fill(store, 5)
        assert ids(await store.find_events(REF, ["m4", "m1", "m9", "m4"])) == ["m1", "m4"]
        assert await store.find_events(REF, []) == []
        many = [f"x{number}" for number in range(3_000)]
        assert ids(await store.find_events(REF, [*many, "m2"])) == ["m2"]

    async def test_the_systems_messages_are_found_without_the_others(self, store: StateStore) -> None:
        await begin(store)
        roles = [Role.SYSTEM, Role.USER, Role.SYSTEM, Role.ASSISTANT, Role.SYSTEM]
        await store.append(REF, [event(f"m{n}", role=role) for n, role in enumerate(roles)], now=NOW)
        assert ids(await store.system_events(REF, before=6)) == ["m0", "m2", "m4"]
        assert ids(await store.system_events(REF, before=5)) == ["m0", "m2"]
        assert await store.system_events(REF, before=1) == []
        await store.fold(REF, summary(4), expected_folded_through=0, now=NOW)
        assert ids(await store.system_events(REF, before=2**40)) == ["m0", "m2", "m4"]

    async def test_deleted_messages_are_gone(self, store: StateStore) -> None:
        await fill(store, 4)
        await store.fold(REF, summary(2), expected_folded_through=0, now=NOW)
        assert await store.delete_events(REF, ["m1", "m3", "m3", "m9"]) == 2
        assert await said(store) == ["m2", "m4"]
        assert await store.live_size(REF) == (1, 2)
        assert await store.delete_events(REF, []) == 0
        assert await store.delete_events(REF, ["m1", "m3"]) == 0


class ReplacementContract:
    """A message changes only if it is still what was read."""

    async def test_messages_are_replaced_in_place(self, store: StateStore) -> None:
        read = (await fill(store, 4))[1:3]
        new = [
            each.replace(
                message=each.message.replace(content="short", role=Role.SYSTEM),
                state={"full": "long"},
                tokens=1,
                counter="x",
            )
            for each in read
        ]
        before = await store.get_thread(REF)
        assert await store.replace_events(REF, new, expected=read)
        assert (await store.events(REF))[1:3] == new
        assert await said(store) == ["m1", "m2", "m3", "m4"]
        assert ids(await store.system_events(REF, before=9)) == ["m2", "m3"]
        assert await store.live_size(REF) == (4, 6)
        after = await store.get_thread(REF)
        assert before is not None
        assert after is not None
        assert after.last_index == before.last_index

    async def test_nothing_is_replaced_if_one_is_no_longer_what_was_read(self, store: StateStore) -> None:
        read = await fill(store, 3)
        other = read[1].replace(state={"by": "another"})
        assert await store.replace_events(REF, [other], expected=[read[1]])
        new = [each.replace(tokens=0) for each in read]
        assert not await store.replace_events(REF, new, expected=read)
        assert await store.events(REF) == [read[0], other, read[2]]
        assert await store.live_size(REF) == (3, 6)

    @pytest.mark.parametrize(
        "change",
        [
            {"tokens": 9},
            {"counter": "other"},
            {"state": {"a": 1.0}},
            {"state": {}},
        ],
        ids=str,
    )
    async def test_every_difference_counts(self, store: StateStore, change: dict[str, Any]) -> None:
        await begin(store)
        [read] = await store.append(REF, [event("m1").replace(state={"a": 1})], now=NOW)
        assert not await store.replace_events(REF, [read.replace(tokens=0)], expected=[read.replace(**change)])
        changed = read.replace(message=read.message.replace(content="other"))
        assert not await store.replace_events(REF, [read.replace(tokens=0)], expected=[changed])
        assert await store.events(REF) == [read]
        assert await store.replace_events(REF, [read.replace(tokens=0)], expected=[read])

    async def test_the_order_of_keys_is_no_difference(self, store: StateStore) -> None:
        await begin(store)
        [read] = await store.append(REF, [event("m1").replace(state={"a": 1, "b": 2})], now=NOW)
        turned = read.replace(state={"b": 2, "a": 1})
        assert await store.replace_events(REF, [turned.replace(tokens=0)], expected=[turned])

    async def test_what_is_not_there_is_not_replaced_and_nothing_else_is(self, store: StateStore) -> None:
        read = await fill(store, 2)
        gone = event("m9", index=9)
        renamed = read[1].replace(message=read[1].message.replace(id="other"))
        for absent in (gone, renamed):
            assert not await store.replace_events(REF, [read[0].replace(tokens=0), absent], expected=[read[0]])
        assert not await store.replace_events(REF, [read[0].replace(tokens=0)], expected=[read[0], gone])
        assert await store.events(REF) == read
        for odd in ([event("m1")], [read[0], read[0]]):
            with pytest.raises(InvalidInput):
                await store.replace_events(REF, odd, expected=[])
        assert await store.events(REF) == read

    async def test_a_replaced_message_that_is_folded_leaves_the_live_size_alone(self, store: StateStore) -> None:
        read = await fill(store, 3)
        await store.fold(REF, summary(2), expected_folded_through=0, now=NOW)
        assert await store.replace_events(REF, [read[0].replace(tokens=50)], expected=[read[0]])
        assert await store.live_size(REF) == (1, 2)
        assert await store.unfold(REF, expected_folded_through=2, now=NOW)
        assert await store.live_size(REF) == (3, 54)
