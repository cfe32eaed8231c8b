"""Requests that may be repeated: done once, answered again, taken over from who is gone; and leases."""

from __future__ import annotations

from typing import Any

import pytest

from lamina.domain.idempotency import Beginning, KeptResponse, RequestState
from lamina.errors import InvalidInput, InvalidType
from lamina.ports.server_store import ServerStore
from lamina.testing.server_contract.material import ANSWER, LOOKALIKES, NOW, PLACE, REFUSED_NAMES, at, begin

__all__ = ["LeaseContract", "RequestContract"]


async def begin_new(
    store: ServerStore, tenant: str = PLACE[0], caller: str = PLACE[1], key: str = PLACE[2], **options: Any
) -> str:
    """Begin it, and return the claim."""
    begun = await begin(store, tenant, caller, key, **options)
    assert begun.state is RequestState.NEW
    assert begun.response is None
    assert begun.claim is not None
    return begun.claim


async def begin_finished(store: ServerStore, tenant: str, caller: str, key: str, *, now: float = 0) -> None:
    """Begin it and finish it."""
    claim = await begin_new(store, tenant, caller, key, now=now)
    assert await store.finish(tenant, caller, key, claim, response=ANSWER)


class RequestContract:
    """Requests."""

    async def test_a_request_is_new_then_in_progress_then_finished(self, store: ServerStore) -> None:
        claim = await begin_new(store)
        assert await begin(store, now=59) == Beginning(RequestState.IN_PROGRESS)
        assert await store.finish(*PLACE, claim, response=ANSWER)
        for later in (1, 61, 10**8):
            assert await begin(store, now=later) == Beginning(RequestState.FINISHED, response=ANSWER)

    @pytest.mark.parametrize(
        "response", [ANSWER, KeptResponse(204), KeptResponse(599, (("a", ""),), bytes(range(256)) * 4000)]
    )
    async def test_every_field_of_an_answer_comes_back(self, store: ServerStore, response: KeptResponse) -> None:
        claim = await begin_new(store)
        await store.finish(*PLACE, claim, response=response)
        assert (await begin(store)).response == response

    async def test_another_request_under_the_same_key_is_told_apart(self, store: ServerStore) -> None:
        claim = await begin_new(store, fingerprint="one")
        for now in (1, 61):  # while it is in progress, and when whoever began it seems to be gone
            assert await begin(store, fingerprint="two", now=now) == Beginning(RequestState.MISMATCH)
        await store.finish(*PLACE, claim, response=ANSWER)
        assert await begin(store, fingerprint="two") == Beginning(RequestState.MISMATCH)
        assert (await begin(store, fingerprint="one")).response == ANSWER

    async def test_keys_of_look_alike_tenants_callers_and_names_are_kept_apart(self, store: ServerStore) -> None:
        places = [
            *[(name, "c", "k") for name in LOOKALIKES],
            *[("t", name, "k") for name in LOOKALIKES],
            *[("t", "c", name) for name in LOOKALIKES],
        ]
        claims = [await begin_new(store, *place) for place in places]
        assert len(set(claims)) == len(places)
        for place, claim in zip(places, claims, strict=True):
            answer = KeptResponse(200, (), "|".join(place).encode())
            assert await store.finish(*place, claim, response=answer)
        for place in places:
            assert (await begin(store, *place)).response == KeptResponse(200, (), "|".join(place).encode())

    async def test_one_that_is_abandoned_may_be_begun_anew(self, store: ServerStore) -> None:
        claim = await begin_new(store)
        assert await store.abandon(*PLACE, claim)
        assert not await store.abandon(*PLACE, claim)
        assert not await store.finish(*PLACE, claim, response=ANSWER)
        assert await begin_new(store, fingerprint="another") != claim

    async def test_one_whose_lease_ran_out_is_taken_over_and_the_former_claim_is_void(self, store: ServerStore) -> None:
        former = await begin_new(store, lease=60)
        assert (await begin(store, now=59.999)).state is RequestState.IN_PROGRESS
        claim = await begin_new(store, now=60, lease=60)
        assert claim != former
        assert (await begin(store, now=119)).state is RequestState.IN_PROGRESS
        assert not await store.finish(*PLACE, former, response=KeptResponse(500))
        assert not await store.abandon(*PLACE, former)
        assert await store.finish(*PLACE, claim, response=ANSWER)
        assert (await begin(store, now=999)).response == ANSWER

    async def test_a_claim_is_void_after_its_request_was_abandoned_and_begun_anew(self, store: ServerStore) -> None:
        former = await begin_new(store, lease=1)
        second = await begin_new(store, now=1)
        assert await store.abandon(*PLACE, second)
        third = await begin_new(store, now=2)
        for void in (former, second, "", "0"):
            if void:
                assert not await store.finish(*PLACE, void, response=KeptResponse(500))
        assert await store.finish(*PLACE, third, response=ANSWER)

    async def test_an_answer_is_kept_once_and_is_not_taken_back(self, store: ServerStore) -> None:
        claim = await begin_new(store)
        assert await store.finish(*PLACE, claim, response=ANSWER)
        assert not await store.finish(*PLACE, claim, response=KeptResponse(500))
        assert not await store.abandon(*PLACE, claim)
        assert (await begin(store)).response == ANSWER

    async def test_a_late_answer_counts_as_long_as_nobody_took_the_request_over(self, store: ServerStore) -> None:
        claim = await begin_new(store, lease=1)
        assert await store.finish(*PLACE, claim, response=ANSWER)
        assert (await begin(store, now=5)).response == ANSWER

    async def test_a_claim_holds_for_its_own_place_alone(self, store: ServerStore) -> None:
        claim = await begin_new(store)
        other = await begin_new(store, "acme", "token-1", "key-2")
        assert not await store.finish(*PLACE, other, response=ANSWER)
        assert not await store.abandon("acme", "token-2", "key-1", claim)
        assert (await begin(store)).state is RequestState.IN_PROGRESS

    async def test_purging_forgets_what_is_old_and_never_what_is_in_progress(self, store: ServerStore) -> None:
        await begin_finished(store, "acme", "c", "old", now=0)
        await begin_finished(store, "acme", "c", "new", now=100)
        await begin_new(store, "acme", "c", "gone", now=0, lease=50)
        await begin_new(store, "acme", "c", "long", now=0, lease=500)
        assert await store.purge(at(0)) == 0
        assert await store.purge(at(100)) == 2
        assert await store.purge(at(100)) == 0
        states = {key: (await begin(store, "acme", "c", key, now=100)).state for key in ("old", "new", "gone", "long")}
        assert states == {
            "old": RequestState.NEW,
            "new": RequestState.FINISHED,
            "gone": RequestState.NEW,
            "long": RequestState.IN_PROGRESS,
        }

    @pytest.mark.parametrize("name", REFUSED_NAMES)
    @pytest.mark.parametrize("place", range(4))
    async def test_what_no_request_is_called_is_refused(self, store: ServerStore, name: str, place: int) -> None:
        names = ["acme", "caller", "key", "fingerprint"]
        field = ("tenant", "caller", "key", "fingerprint")[place]
        names[place] = name
        with pytest.raises(InvalidInput, match=field):
            await begin(store, *names[:3], fingerprint=names[3])
        assert await store.purge(at(10**6)) == 0

    async def test_a_lease_that_ends_before_it_begins_is_refused(self, store: ServerStore) -> None:
        for lease in (0, -1):
            with pytest.raises(InvalidInput, match="lease_until"):
                await begin(store, lease=lease)
        assert (await begin(store)).state is RequestState.NEW

    @pytest.mark.parametrize(
        ("response", "error"),
        [
            (KeptResponse(99), InvalidInput),
            (KeptResponse(600), InvalidInput),
            (KeptResponse(200, (("a", "\x00"),)), InvalidInput),
            (KeptResponse(200, (), b"x" * (16 * 1024 * 1024 + 1)), InvalidInput),
            (KeptResponse(200, (("a", 1),)), InvalidType),  # type: ignore[arg-type]
            (KeptResponse(200, (), "text"), InvalidType),  # type: ignore[arg-type]
            (None, InvalidType),
        ],
    )
    async def test_an_answer_that_cannot_be_kept_is_refused(
        self, store: ServerStore, response: Any, error: type[Exception]
    ) -> None:
        claim = await begin_new(store)
        with pytest.raises(error):
            await store.finish(*PLACE, claim, response=response)
        assert (await begin(store)).state is RequestState.IN_PROGRESS


class LeaseContract:
    """Leases."""

    async def test_a_lease_has_one_holder_until_it_runs_out(self, store: ServerStore) -> None:
        assert await store.acquire_lease("sweep", "one", now=at(0), until=at(10))
        assert not await store.acquire_lease("sweep", "two", now=at(9.999), until=at(60))
        assert await store.acquire_lease("sweep", "two", now=at(10), until=at(20))
        assert not await store.acquire_lease("sweep", "one", now=at(19), until=at(60))

    async def test_its_holder_may_have_it_longer_or_shorter(self, store: ServerStore) -> None:
        assert await store.acquire_lease("sweep", "one", now=at(0), until=at(10))
        assert await store.acquire_lease("sweep", "one", now=at(5), until=at(100))
        assert not await store.acquire_lease("sweep", "two", now=at(99), until=at(200))
        assert await store.acquire_lease("sweep", "one", now=at(6), until=at(20))
        assert await store.acquire_lease("sweep", "two", now=at(20), until=at(30))

    async def test_who_was_refused_has_changed_nothing(self, store: ServerStore) -> None:
        assert await store.acquire_lease("sweep", "one", now=at(0), until=at(10))
        assert not await store.acquire_lease("sweep", "two", now=at(1), until=at(1000))
        assert await store.acquire_lease("sweep", "three", now=at(10), until=at(20))

    async def test_a_lease_is_given_back_by_its_holder_alone(self, store: ServerStore) -> None:
        assert await store.acquire_lease("sweep", "one", now=at(0), until=at(10))
        assert not await store.release_lease("sweep", "two")
        assert not await store.acquire_lease("sweep", "two", now=at(1), until=at(10))
        assert await store.release_lease("sweep", "one")
        assert not await store.release_lease("sweep", "one")
        assert await store.acquire_lease("sweep", "two", now=at(1), until=at(10))

    async def test_leases_with_look_alike_names_are_kept_apart(self, store: ServerStore) -> None:
        for name in LOOKALIKES:
            assert await store.acquire_lease(name, f"holder of {name}", now=NOW, until=at(10))
        for name in LOOKALIKES[1:]:
            assert await store.release_lease(name, f"holder of {name}")
        assert not await store.acquire_lease(LOOKALIKES[0], "another", now=NOW, until=at(10))

    @pytest.mark.parametrize("name", REFUSED_NAMES)
    async def test_what_no_lease_and_no_holder_is_called_is_refused(self, store: ServerStore, name: str) -> None:
        with pytest.raises(InvalidInput, match="name"):
            await store.acquire_lease(name, "one", now=NOW, until=at(1))
        with pytest.raises(InvalidInput, match="holder"):
            await store.acquire_lease("sweep", name, now=NOW, until=at(1))
        with pytest.raises(InvalidInput, match="until"):
            await store.acquire_lease("sweep", "one", now=NOW, until=NOW)
        assert await store.acquire_lease("sweep", "two", now=NOW, until=at(1))
