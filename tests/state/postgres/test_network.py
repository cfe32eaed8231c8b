"""A connection that is cut at any place: nothing is lost, and what is repeated is not doubled."""

from __future__ import annotations

import asyncio

import pytest

from lamina.errors import AdapterUnavailable
from lamina.state.postgres import PostgresStateStore
from lamina.testing.state_contract.material import NOW, REF, begin, event, ids, indexes, summary

PAIR = ["a", "b"]


@pytest.fixture
async def through_proxy(postgres_proxy, postgres_schema):
    async with PostgresStateStore(postgres_proxy.url, schema=postgres_schema) as store:
        yield store


async def append_until_it_is_there(store, names=PAIR):
    """What a caller does: the same messages again, as long as the answer is that trying again may help."""
    failures = 0
    while True:
        try:
            return await store.append(REF, [event(name) for name in names], now=NOW), failures
        except AdapterUnavailable as error:
            assert "with the same message ids adds nothing twice" in str(error)  # noqa: PT017 - not all of them raise
            failures += 1


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_cut_around_the_commit_is_told_and_the_repeated_append_doubles_nothing(
    through_proxy, postgres_proxy, store, when
):
    await begin(through_proxy)

    def at_commit(data):
        return postgres_proxy.cuts == 0 and b"COMMIT\0" in data

    setattr(postgres_proxy, when, at_commit)
    with pytest.raises(AdapterUnavailable, match="cannot be reached"):
        await through_proxy.append(REF, [event(name) for name in PAIR], now=NOW)
    assert postgres_proxy.cuts == 1
    kept = {"before": [], "after": PAIR}[when]
    assert ids(await store.events(REF)) == kept
    added, failures = await append_until_it_is_there(through_proxy)
    assert failures == 0
    assert (ids(added), indexes(added)) == (PAIR, [1, 2])
    found = await store.events(REF)
    assert (ids(found), indexes(found)) == (PAIR, [1, 2])
    assert await store.live_size(REF) == (2, sum(each.tokens for each in found))


async def test_a_cut_after_any_message_of_the_client_neither_loses_nor_doubles(through_proxy, postgres_proxy, store):
    await begin(through_proxy)
    sent = 0

    def counting(limit):
        def rule(data):
            nonlocal sent
            sent += 1
            return sent == limit

        return rule

    expected = []
    cuts = []
    for number in range(40):  # an append sends fewer messages than that, so the last ones are not cut
        sent = 0
        setattr(postgres_proxy, ("before", "after")[number % 2], counting(number // 2 + 1))
        before = postgres_proxy.cuts
        names = [f"{number}-{part}" for part in PAIR]
        await append_until_it_is_there(through_proxy, names)
        cuts.append(postgres_proxy.cuts - before)
        postgres_proxy.before = postgres_proxy.after = lambda _: False
        expected += names
    assert cuts[:8] == [1] * 8
    assert cuts[-1] == 0
    found = await store.events(REF)
    assert ids(found) == expected
    assert indexes(found) == list(range(1, len(expected) + 1))
    assert (await store.live_size(REF))[0] == len(expected)


async def test_a_cut_fold_either_happened_or_did_not_and_compare_and_set_settles_which(
    through_proxy, postgres_proxy, store
):
    await begin(through_proxy)
    await through_proxy.append(REF, [event(name) for name in PAIR], now=NOW)
    postgres_proxy.after = lambda data: postgres_proxy.cuts == 0 and b"COMMIT\0" in data
    with pytest.raises(AdapterUnavailable):
        await through_proxy.fold(REF, summary(1), expected_folded_through=0, now=NOW)
    assert await through_proxy.fold(REF, summary(1), expected_folded_through=0, now=NOW) is False
    assert len(await store.summaries(REF)) == 1
    assert (await store.get_thread(REF)).folded_through == 1


async def test_all_connections_cut_at_once_under_load_lose_nothing_that_was_acknowledged(
    through_proxy, postgres_proxy, store
):
    await begin(through_proxy)
    acknowledged = []

    async def add(number):
        await append_until_it_is_there(through_proxy, [f"m{number}"])
        acknowledged.append(f"m{number}")

    adding = [asyncio.create_task(add(number)) for number in range(100)]
    for _ in range(5):
        await asyncio.sleep(0.02)
        postgres_proxy.cut()
    await asyncio.gather(*adding)
    found = await store.events(REF)
    assert sorted(ids(found)) == sorted(acknowledged)
    assert len(acknowledged) == 100
    assert indexes(found) == list(range(1, 101))


async def test_a_restart_of_the_server_under_load_loses_and_doubles_nothing(store, postgres):
    await begin(store)
    adding = [asyncio.create_task(append_until_it_is_there(store, [f"m{number}"])) for number in range(200)]
    await asyncio.to_thread(postgres.halt)
    await asyncio.to_thread(postgres.start)
    await asyncio.gather(*adding)
    found = await store.events(REF)
    assert sorted(ids(found)) == sorted(f"m{number}" for number in range(200))
    assert indexes(found) == list(range(1, 201))
