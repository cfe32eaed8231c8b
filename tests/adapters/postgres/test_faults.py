"""What goes wrong with the server or the network: a typed error, nothing half written, and it goes on afterwards."""

from __future__ import annotations

import asyncio
import traceback

import psycopg
import pytest

from lamina.adapters.postgres import PostgresAdapter
from lamina.domain.scope import Scope
from lamina.errors import AdapterError, AdapterUnavailable, EmbeddingDimensionError, StoreDamaged
from lamina.testing.memory_contract.material import LIVE, MINE, NOW, by_text, by_vector, ids, listed, memory, put

BATCH = [memory(f"b{number}", f"of the batch {number}", embedding=[1.0, 0.0]) for number in range(60)]


async def test_a_server_that_is_down_at_the_start_is_told_and_used_once_it_is_up(postgres, opened, url):
    postgres.halt()
    adapter = PostgresAdapter(url)
    try:
        with pytest.raises(AdapterUnavailable, match="cannot be reached"):
            await adapter.initialize()
        with pytest.raises(AdapterError, match="is not open"):
            await listed(adapter)
    finally:
        postgres.start()
    await adapter.initialize()
    await put(adapter, memory())
    await adapter.close()


async def test_a_server_that_is_killed_in_the_middle_of_a_write_has_all_of_it_or_nothing(postgres, adapter):
    await put(adapter, memory("before"))
    writing = [asyncio.create_task(adapter.store_many(MINE, BATCH)) for _ in range(3)]
    await asyncio.sleep(0.03)
    await asyncio.to_thread(postgres.kill)
    outcomes = await asyncio.gather(*writing, return_exceptions=True)
    assert all(outcome == [None] * 60 or isinstance(outcome, AdapterUnavailable) for outcome in outcomes)
    with pytest.raises(AdapterUnavailable):
        await listed(adapter)
    await asyncio.to_thread(postgres.start)
    left = ids(await listed(adapter))
    assert left in (["before"], ["before", *ids(BATCH)])
    await adapter.store_many(MINE, BATCH)
    assert ids(await listed(adapter)) == ["before", *ids(BATCH)]
    assert len(await by_text(adapter, "batch")) == len(await by_vector(adapter, [1.0, 0.0])) == 60


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_connection_cut_around_the_commit_is_told_and_the_same_id_settles_it(
    postgres, postgres_proxy, opened, url, adapter, when
):
    through = await opened(
        postgres_proxy.url.replace("postgres@", "lamina_app@").replace("/postgres?", f"/{_name(url)}?")
    )

    def at_commit(data):
        return postgres_proxy.cuts == 0 and b"COMMIT\0" in data

    setattr(postgres_proxy, when, at_commit)
    with pytest.raises(AdapterUnavailable, match="nor does a store with the same memory id"):
        await through.store_many(MINE, [memory("m1", embedding=[1.0, 0.0])], if_new=True)
    assert postgres_proxy.cuts == 1
    assert ids(await listed(adapter)) == {"before": [], "after": ["m1"]}[when]
    [twin] = await through.store_many(MINE, [memory("m1", embedding=[1.0, 0.0])], if_new=True)
    assert (twin is None) == (when == "before")
    [found] = await listed(adapter)
    assert (found.id, found.revision, await adapter.history(MINE, "m1")) == ("m1", 1, [])


async def test_a_cut_after_any_message_leaves_nothing_half_written(postgres_proxy, opened, url, adapter):
    through = await opened(
        postgres_proxy.url.replace("postgres@", "lamina_app@").replace("/postgres?", f"/{_name(url)}?")
    )
    sent = cuts = 0

    def rule(_):
        nonlocal sent
        sent += 1
        return sent == number + 1

    for number in range(16):
        sent = 0
        postgres_proxy.after = rule
        before = postgres_proxy.cuts
        while True:
            try:
                await through.store_many(MINE, [memory(f"m{number}", f"text {number}", embedding=[1.0, 0.0])])
            except AdapterUnavailable:
                continue
            break
        cuts += postgres_proxy.cuts - before
    postgres_proxy.after = lambda _: False
    names = [f"m{number}" for number in range(16)]
    assert cuts > 5
    assert ids(await listed(adapter)) == names
    assert (
        sorted(ids(await by_text(adapter, "text")))
        == sorted(ids(await by_vector(adapter, [1.0, 0.0])))
        == sorted(names)
    )


async def test_a_lock_that_another_holds_is_waited_for_and_no_longer_than_a_statement_may_take(opened, url, adapter):
    await put(adapter, memory())
    patient = await opened(url)
    hasty = await opened(url, statement_timeout=0.2)
    with psycopg.connect(url) as other:
        other.execute("SELECT set_config('lamina.tenant', 'acme', true)")
        other.execute("SELECT FROM lamina.lamina_memories_tenants FOR UPDATE")
        with pytest.raises(AdapterUnavailable, match="took too long"):
            await hasty.update(MINE, "m1", {"content": "hasty"})
        waiting = asyncio.create_task(patient.update(MINE, "m1", {"content": "patient"}))
        assert [each.content for each in await listed(hasty)] == ["the harbour lamp is lit"]  # readers do not wait
        other.rollback()
        assert await waiting
    assert [each.content for each in await listed(adapter)] == ["patient"]


async def test_writers_of_one_tenant_do_not_hold_up_another_tenants(opened, url):
    adapter = await opened(url, connections=2)
    await put(adapter, memory(), memory(tenant="other"))
    with psycopg.connect(url) as holding:
        holding.execute("SELECT set_config('lamina.tenant', 'acme', true)")
        holding.execute("SELECT FROM lamina.lamina_memories_tenants FOR UPDATE")
        waiting = [asyncio.create_task(adapter.update(MINE, "m1", {"tags": [str(n)]})) for n in range(20)]
        await adapter.update(Scope("other"), "m1", {"content": "theirs"})
        assert not any(call.done() for call in waiting)
        holding.rollback()
    assert await asyncio.gather(*waiting) == [True] * 20


@pytest.mark.parametrize("what", ["user", "database"])
async def test_wrong_credentials_are_no_passing_failure_and_are_not_shown(postgres, url, what):
    wrong = url.replace("lamina_app@", "nobody_here:hunter2@") if what == "user" else url.replace("?", "x?")
    adapter = PostgresAdapter(wrong)
    with pytest.raises(AdapterError, match="refused the login") as raised:
        await adapter.initialize()
    assert not isinstance(raised.value, AdapterUnavailable)
    assert "hunter2" not in f"{adapter!r}{''.join(traceback.format_exception(raised.value))}"


async def test_a_wrong_length_is_refused_between_processes_too(opened, url, adapter):
    other = await opened(url)
    calls = [
        (adapter, memory(f"m{n}", f"text {n}", embedding=[1.0, 0.0] if n % 2 else [1.0, 0.0, 0.0])) for n in range(20)
    ]
    outcomes = await asyncio.gather(
        *((adapter, other)[n % 3 > 0].store(MINE, entry) for n, (_, entry) in enumerate(calls)), return_exceptions=True
    )
    refused = [isinstance(each, EmbeddingDimensionError) for each in outcomes]
    assert refused.count(False) == 10
    lengths = {len(each.embedding) for each in await listed(adapter, include_embeddings=True)}
    assert len(lengths) == 1


@pytest.mark.parametrize(
    "damage",
    [
        "layer = 'upper'",
        "trust = 'yes'",
        "metadata_text = '{\"secret'",
    ],
)
async def test_a_row_that_cannot_be_read_is_damage_and_is_not_repeated(adapter, aside, damage):
    await put(adapter, memory(content="a secret"))
    aside(f"UPDATE lamina.lamina_memories SET {damage}")  # noqa: S608 - the test's own
    with pytest.raises(StoreDamaged, match="the row of the memory 'm1' cannot be read") as raised:
        await listed(adapter)
    assert "secret" not in "".join(traceback.format_exception(raised.value))


async def test_tables_that_are_gone_are_damage(adapter, aside):
    aside("DROP TABLE lamina.lamina_memories_words")
    with pytest.raises(StoreDamaged, match="lacks what Lamina made there"):
        await put(adapter, memory())


async def test_a_server_that_takes_no_writes_is_told(opened, url, adapter):
    await put(adapter, memory())
    reading = await opened(f"{url}&options=-c%20default_transaction_read_only%3Don")
    assert ids(await listed(reading)) == ["m1"]
    with pytest.raises(AdapterError, match="takes no writes"):
        await put(reading, memory("m2"))


async def test_after_a_restart_the_next_call_works(postgres, adapter):
    await put(adapter, memory())
    await asyncio.to_thread(postgres.halt)
    await asyncio.to_thread(postgres.start)
    assert ids(await by_text(adapter, "harbour")) == ["m1"]
    await adapter.touch(MINE, ["m1"], NOW)
    assert await adapter.count(MINE, LIVE) == 1


def _name(url):
    return url.partition("?")[0].rpartition("/")[2]
