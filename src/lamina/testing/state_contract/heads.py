"""Threads: whose they are, which there are, and what becomes of them."""

from __future__ import annotations

import pytest

from lamina.domain.thread import ThreadKind, ThreadRef, ThreadStatus
from lamina.errors import ThreadArchivedError, ThreadNotFound
from lamina.ports.state_store import StateStore
from lamina.testing.state_contract.material import (
    LOOKALIKES,
    NOW,
    REF,
    begin,
    document,
    event,
    fill,
    said,
    second,
    summary,
    thread,
)

__all__ = ["HeadContract", "IsolationContract"]


class IsolationContract:
    """Nothing leaks between tenants, kinds and names that look alike."""

    @pytest.mark.parametrize("name", LOOKALIKES)
    async def test_threads_whose_names_look_alike_are_apart(self, store: StateStore, name: str) -> None:
        refs = [ThreadRef("acme", each) for each in LOOKALIKES]
        for ref in refs:
            await begin(store, ref)
            await store.append(ref, [event("m1", f"in {ref.id}"), event("m2")], now=NOW)
        own = ThreadRef("acme", name)
        assert (await store.events(own))[0].message.content == f"in {name}"
        assert await store.fold(own, summary(1), expected_folded_through=0, now=NOW)
        assert await store.update_thread(own, now=NOW, metadata={"mine": True})
        assert await store.delete_events(own, ["m2"]) == 1
        others = [ref for ref in refs if ref != own]
        for ref in others:
            head = await store.get_thread(ref)
            assert head is not None
            assert (head.folded_through, head.metadata, await said(store, ref)) == (0, {}, ["m1", "m2"])
            assert await store.summaries(ref) == []
        assert await store.delete_thread(own)
        assert {each.id for each in await store.list_threads("acme")} == {ref.id for ref in others}
        assert [await said(store, ref) for ref in others] == [["m1", "m2"]] * len(others)

    @pytest.mark.parametrize("tenant", LOOKALIKES)
    async def test_tenants_whose_names_look_alike_are_apart(self, store: StateStore, tenant: str) -> None:
        for each in LOOKALIKES:
            await begin(store, ThreadRef(each, "t1"), owner=each)
            await store.append(ThreadRef(each, "t1"), [event("m1", f"of {each}")], now=NOW)
            await store.save_document(document(tenant=each, source=each), expected_generation=None)
        [head] = await store.list_threads(tenant)
        assert (head.owner, head.tenant) == (tenant, tenant)
        assert [each.source for each in await store.find_documents(tenant)] == [tenant]
        assert [each.source for each in await store.get_documents(tenant, ["d1"])] == [tenant]
        assert await store.delete_document(tenant, "d1")
        assert await store.delete_thread(ThreadRef(tenant, "t1"))
        for each in LOOKALIKES:
            left = [] if each == tenant else ["m1"]
            assert await said(store, ThreadRef(each, "t1")) == left
            assert len(await store.find_documents(each)) == len(left)

    async def test_a_thread_and_a_session_of_one_name_are_apart(self, store: StateStore) -> None:
        session = ThreadRef("acme", "t1", ThreadKind.SESSION)
        await fill(store, 2)
        assert await store.get_thread(session) is None
        with pytest.raises(ThreadNotFound):
            await store.append(session, [event("m1")], now=NOW)
        await fill(store, 3, session)
        assert [each.kind for each in await store.list_threads("acme")] == [ThreadKind.THREAD]
        assert [each.kind for each in await store.list_threads("acme", ThreadKind.SESSION)] == [ThreadKind.SESSION]
        assert await store.delete_thread(REF)
        assert await said(store, session) == ["m1", "m2", "m3"]

    async def test_equal_ids_of_messages_in_two_threads_are_two_messages(self, store: StateStore) -> None:
        other = ThreadRef("acme", "t2")
        await fill(store, 2)
        await fill(store, 1, other)
        assert await store.delete_events(other, ["m1", "m2"]) == 1
        assert await said(store) == ["m1", "m2"]
        assert [each.message.id for each in await store.find_events(REF, ["m2", "m1"])] == ["m1", "m2"]


class HeadContract:
    """Making, listing, changing and deleting threads."""

    async def test_a_thread_that_is_there_is_returned_and_stays(self, store: StateStore) -> None:
        await store.create_thread(thread(owner="ada", metadata={"a": 1}))
        await store.append(REF, [event("m1")], now=second(1))
        kept = await store.create_thread(thread(owner="bob", metadata={"b": 2}, created_at=second(9)))
        assert kept == await store.get_thread(REF)
        assert kept == thread(owner="ada", metadata={"a": 1}, updated_at=second(1), last_index=1)

    async def test_the_latest_activity_comes_first_and_then_the_id(self, store: StateStore) -> None:
        for number, name in enumerate(["c", "B", "a", "ä", "b"]):
            await store.create_thread(thread(ThreadRef("acme", name), updated_at=second(number // 2)))
        assert [each.id for each in await store.list_threads("acme")] == ["b", "a", "ä", "B", "c"]
        await store.append(ThreadRef("acme", "c"), [event("m1")], now=second(5))
        await store.update_thread(ThreadRef("acme", "a"), now=second(4), metadata={})
        assert [each.id for each in await store.list_threads("acme")] == ["c", "a", "b", "ä", "B"]

    async def test_pages_of_threads_tile(self, store: StateStore) -> None:
        for number in range(7):
            await store.create_thread(thread(ThreadRef("acme", f"t{number}"), updated_at=second(-number // 3)))
        whole = [each.id for each in await store.list_threads("acme")]
        pages = [await store.list_threads("acme", limit=3, offset=offset) for offset in (0, 3, 6, 9)]
        assert [[each.id for each in page] for page in pages] == [whole[:3], whole[3:6], whole[6:], []]
        assert await store.list_threads("acme", limit=0) == []
        assert [each.id for each in await store.list_threads("acme", offset=5)] == whole[5:]

    async def test_pages_of_threads_do_not_move_when_others_are_made_and_deleted(self, store: StateStore) -> None:
        for number in range(7):
            await store.create_thread(thread(ThreadRef("acme", f"t{number}"), updated_at=second(-number // 3)))
        whole = [each.id for each in await store.list_threads("acme")]
        seen: list[str] = []
        after = None
        while page := await store.list_threads("acme", limit=2, after=after):
            seen += [each.id for each in page]
            after = (page[-1].updated_at, page[-1].id)
            await store.delete_thread(ThreadRef("acme", page[0].id))
            await store.delete_thread(ThreadRef("acme", page[-1].id))
            await store.create_thread(thread(ThreadRef("acme", f"new{len(seen)}"), updated_at=second(len(seen))))
        assert seen == whole
        assert await store.list_threads("acme", owner="ada", after=(second(9), "a")) == []

    async def test_an_owner_sees_its_own_threads_and_nobody_elses(self, store: StateStore) -> None:
        for name in (*LOOKALIKES, None):
            await store.create_thread(thread(ThreadRef("acme", f"of {name}"), owner=name))
        for name in LOOKALIKES:
            assert [each.id for each in await store.list_threads("acme", owner=name)] == [f"of {name}"]
        assert len(await store.list_threads("acme")) == len(LOOKALIKES) + 1
        assert await store.list_threads("acme", owner="nobody") == []

    async def test_threads_are_listed_by_status(self, store: StateStore) -> None:
        await begin(store, ThreadRef("acme", "a"), ThreadRef("acme", "b"))
        assert await store.update_thread(ThreadRef("acme", "a"), now=NOW, status=ThreadStatus.ARCHIVED)
        listed = [
            await store.list_threads("acme", status=each) for each in (ThreadStatus.ACTIVE, ThreadStatus.ARCHIVED)
        ]
        assert [[each.id for each in some] for some in listed] == [["b"], ["a"]]
        assert len(await store.list_threads("acme", status=None)) == 2

    async def test_a_change_of_a_head_changes_what_it_names(self, store: StateStore) -> None:
        await store.create_thread(thread(owner="ada", metadata={"a": 1}))
        assert await store.update_thread(REF, now=second(1), metadata={"b": [2]})
        assert await store.get_thread(REF) == thread(owner="ada", metadata={"b": [2]}, updated_at=second(1), revision=2)
        assert await store.update_thread(REF, now=second(2), status=ThreadStatus.ARCHIVED)
        assert await store.get_thread(REF) == thread(
            owner="ada", metadata={"b": [2]}, updated_at=second(2), revision=3, status=ThreadStatus.ARCHIVED
        )
        assert await store.update_thread(REF, now=second(3), metadata={})
        head = await store.get_thread(REF)
        assert head is not None
        assert head.metadata == {}

    async def test_a_head_of_another_revision_is_not_changed(self, store: StateStore) -> None:
        await begin(store)
        for expected in (0, 2):
            assert not await store.update_thread(REF, now=second(1), metadata={"a": 1}, expected_revision=expected)
        assert await store.get_thread(REF) == thread()
        assert await store.update_thread(REF, now=second(1), metadata={"a": 1}, expected_revision=1)
        assert not await store.update_thread(REF, now=second(1), metadata={"a": 2}, expected_revision=1)
        assert await store.get_thread(REF) == thread(metadata={"a": 1}, updated_at=second(1), revision=2)

    async def test_a_thread_of_another_revision_or_instant_is_not_deleted(self, store: StateStore) -> None:
        await fill(store, 2)
        await store.update_thread(REF, now=second(1), metadata={})
        assert not await store.delete_thread(REF, expected_revision=1)
        assert not await store.delete_thread(REF, expected_created_at=second(1))
        assert not await store.delete_thread(REF, expected_revision=2, expected_created_at=second(1))
        assert len(await store.events(REF)) == 2
        assert await store.delete_thread(REF, expected_revision=2, expected_created_at=NOW)

    async def test_an_append_is_no_change_of_the_head(self, store: StateStore) -> None:
        await fill(store, 3)
        head = await store.get_thread(REF)
        assert head is not None
        assert (head.revision, head.last_index) == (1, 3)

    async def test_an_archived_thread_takes_no_messages_and_keeps_what_it_has(self, store: StateStore) -> None:
        await fill(store, 2)
        await store.update_thread(REF, now=NOW, status=ThreadStatus.ARCHIVED)
        before = await store.get_thread(REF)
        for events in ([event("m3")], [event("m1")], []):
            with pytest.raises(ThreadArchivedError):
                await store.append(REF, events, now=second(1))
        assert await said(store) == ["m1", "m2"]
        assert await store.get_thread(REF) == before
        await store.update_thread(REF, now=NOW, status=ThreadStatus.ACTIVE)
        assert [each.message.index for each in await store.append(REF, [event("m3")], now=NOW)] == [3]

    async def test_nothing_is_left_of_a_deleted_thread(self, store: StateStore) -> None:
        await fill(store, 5)
        await store.fold(REF, summary(3), expected_folded_through=0, now=NOW)
        assert await store.delete_thread(REF)
        assert not await store.delete_thread(REF)
        assert await store.get_thread(REF) is None
        assert await store.events(REF) == []
        assert await store.summaries(REF) == []
        with pytest.raises(ThreadNotFound):
            await store.append(REF, [event("m1")], now=NOW)
        await begin(store)
        assert await store.get_thread(REF) == thread()
        assert await store.events(REF) == await store.system_events(REF, before=9) == []
        assert await store.summaries(REF) == []
        assert await store.live_size(REF) == (0, 0)
        assert [each.message.index for each in await store.append(REF, [event("m1")], now=NOW)] == [1]
