"""Many at once, two stores on one place, other event loops, opening again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import ClassVar, TypeVar

import pytest

from lamina.domain.api_token import token_digest
from lamina.domain.idempotency import RequestState
from lamina.errors import AdapterError, Conflict
from lamina.ports.server_store import ServerStore
from lamina.testing.server_contract.material import ANSWER, NOW, PLACE, at, begin, token

__all__ = ["ConcurrencyContract"]

T = TypeVar("T")


class ConcurrencyContract:
    """Calls side by side, and from anywhere."""

    is_persistent: ClassVar[bool] = True

    async def test_of_many_who_begin_one_request_one_does(self, store: ServerStore) -> None:
        for now in (0, 60):  # anew, and taken over
            begun = await _together(*(begin(store, now=now) for _ in range(20)))
            assert [each.state for each in begun].count(RequestState.NEW) == 1
            assert [each.state for each in begun].count(RequestState.IN_PROGRESS) == 19

    async def test_of_many_who_finish_or_abandon_one_does(self, store: ServerStore) -> None:
        claim = (await begin(store)).claim
        assert claim is not None
        finishing = [store.finish(*PLACE, claim, response=ANSWER) for _ in range(10)]
        abandoning = [store.abandon(*PLACE, claim) for _ in range(10)]
        assert (await _together(*finishing, *abandoning)).count(True) == 1

    async def test_of_many_who_want_a_lease_one_has_it(self, store: ServerStore) -> None:
        for now in (0, 10):  # free, and run out
            calls = [store.acquire_lease("sweep", f"{now}-{n}", now=at(now), until=at(now + 10)) for n in range(20)]
            assert (await _together(*calls)).count(True) == 1

    async def test_of_many_who_revoke_or_note_a_use_one_does(self, store: ServerStore) -> None:
        await store.add_token(token())
        assert (await _together(*(store.revoke_token("t1", now=NOW) for _ in range(10)))).count(True) == 1
        assert (await _together(*(store.note_use("t1", now=NOW) for _ in range(10)))).count(True) == 1
        assert (await _together(*(store.note_tenant("acme", now=NOW) for _ in range(10)))).count(True) == 1

    async def test_of_many_who_add_one_token_one_does(self, store: ServerStore) -> None:
        calls = [store.add_token(token(label=str(n))) for n in range(10)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(each) for each in outcomes if each is not None] == [Conflict] * 9
        assert [each.label for each in await store.list_tokens()] == [str(outcomes.index(None))]

    async def test_two_stores_on_one_place_share_all_of_it(self, store: ServerStore, second_store: ServerStore) -> None:
        await store.add_token(token())
        assert await second_store.find_token(token_digest("t1")) == token()
        assert await second_store.revoke_token("t1", now=at(1))
        assert await store.list_tokens() == [token(revoked_at=at(1))]
        stores = [store, second_store]
        for number in range(10):
            place = ("acme", "c", f"k{number}")
            begun = await _together(*(begin(stores[n % 2], *place) for n in range(6)))
            claims = [each.claim for each in begun if each.claim is not None]
            assert len(claims) == 1
            assert await stores[number % 2].finish(*place, claims[0], response=ANSWER)
            assert [(await begin(each, *place)).response for each in stores] == [ANSWER, ANSWER]
            calls = [
                stores[n % 2].acquire_lease("sweep", f"{number}-{n}", now=at(number), until=at(number + 1))
                for n in range(6)
            ]
            assert (await _together(*calls)).count(True) == 1
        assert await store.note_tenant("new", now=NOW)
        assert await second_store.tenants() == ["acme", "new"]

    async def test_opening_and_closing_twice_is_no_different(self, store: ServerStore) -> None:
        await store.initialize()
        await store.add_token(token())
        await store.initialize()
        assert await store.list_tokens() == [token()]
        await store.close()
        await store.close()
        with pytest.raises(AdapterError, match="not open"):
            await store.list_tokens()

    async def test_what_was_acknowledged_is_there_after_opening_again(self, store: ServerStore) -> None:
        await store.add_token(token())
        claim = (await begin(store)).claim
        assert claim is not None
        await store.finish(*PLACE, claim, response=ANSWER)
        await store.acquire_lease("sweep", "one", now=NOW, until=at(60))
        await store.note_tenant("other", now=NOW)
        await store.close()
        await store.initialize()
        if not self.is_persistent:
            assert await store.tenants() == []
            return
        assert await store.list_tokens() == [token()]
        assert (await begin(store)).response == ANSWER
        assert not await store.acquire_lease("sweep", "two", now=at(1), until=at(60))
        assert await store.tenants() == ["acme", "other"]

    async def test_another_event_loop_may_use_it_too(self, store: ServerStore) -> None:
        await store.add_token(token())
        for number in (2, 3):  # the second of these loops comes after the first is closed
            await asyncio.to_thread(asyncio.run, store.add_token(token(f"t{number}")))
        assert [each.id for each in await store.list_tokens()] == ["t1", "t2", "t3"]


async def _together(*calls: Awaitable[T]) -> list[T]:
    return list(await asyncio.gather(*calls))
