"""What goes wrong between here and the project: a typed error, no half write, and on again without opening anew."""

import asyncio
import json
import subprocess
import sys

import pytest
from fake_postgrest import Fault, cuts, drips, replies, waits

from lamina.domain.memory import MemoryEntry
from lamina.domain.scope import Scope
from lamina.errors import AdapterError, AdapterUnavailable, StoreDamaged
from lamina.testing.memory_contract.material import LIVE, MINE, NOW, by_vector, ids, listed, memory, put

HTML = b"<html><body><h1>502 Bad Gateway</h1></body></html>"

PASSING = {
    "cut before it was read": Fault(before=cuts),
    "cut after it was done": Fault(after=cuts),
    "throttled": Fault(before=replies(429, b'{"message": "rate limit exceeded"}', retry_after="0")),
    "a page of the gateway": Fault(before=replies(502, HTML, content_type="text/html")),
    "a time-out of the gateway, after it was done": Fault(after=replies(504, HTML, content_type="text/html")),
    "half an answer": Fault(after=replies(200, b'[["{', announced=4_000)),
    "no connection left in the pool": Fault(
        before=replies(504, b'{"code": "PGRST003", "message": "Timed out", "details": null, "hint": null}')
    ),
    "the database restarts": Fault(
        before=replies(500, b'{"code": "57P01", "message": "terminating", "details": null, "hint": null}')
    ),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
@pytest.mark.parametrize("function", ["load", "commit", "reserve", "select", "index"])
async def test_what_passes_is_tried_again_and_nothing_is_written_twice(opened, supabase, fault, function):
    adapter = await opened()
    await put(adapter, memory("before"))
    supabase.faults[:] = [Fault(f"__{function}", before=fault.before, after=fault.after)]
    await put(adapter, memory(embedding=[1.0, 0.0]))
    await adapter.touch(MINE, ["m1"], NOW)
    assert [(each.id, each.revision, each.access_count) for each in await listed(adapter)] == [
        ("before", 1, 0),
        ("m1", 1, 1),
    ]
    assert supabase.faults == []
    assert await adapter.history(MINE, "m1") == []


async def test_a_read_that_is_cut_counts_once(opened, supabase):
    adapter = await opened()
    await put(adapter, memory())
    supabase.faults[:] = [Fault("__commit", after=cuts)]
    await adapter.touch(MINE, ["m1"], NOW)
    assert [each.access_count for each in await listed(adapter)] == [1]


FAILING = {
    "throttled": (Fault(before=replies(429, b"", retry_after="3600")), AdapterUnavailable),
    "cut": (Fault(before=cuts), AdapterUnavailable),
    "silent": (Fault(before=waits(1.5)), AdapterUnavailable),
    "endless": (Fault(before=drips), AdapterUnavailable),
    "paused": (Fault(before=replies(540, b'{"message": "Project paused"}')), AdapterUnavailable),
    "a page of the gateway": (Fault(before=replies(503, HTML, content_type="text/html")), AdapterUnavailable),
    "full": (Fault(before=replies(503, b'{"code": "53100", "message": "disk full"}')), AdapterUnavailable),
    "read-only": (Fault(before=replies(405, b'{"code": "25006", "message": "read-only"}')), AdapterUnavailable),
    "HTML as an answer": (Fault(before=replies(200, HTML, content_type="text/html")), AdapterError),
    "another shape": (Fault(before=replies(200, b'{"rows": 1}')), StoreDamaged),
    "another number": (Fault(before=replies(200, b"[[1, 2, 3]]")), StoreDamaged),
    "not found": (Fault(before=replies(404, HTML, content_type="text/html")), AdapterError),
    "too large": (Fault(before=replies(413, HTML, content_type="text/html")), AdapterError),
    "an odd refusal": (Fault(before=replies(400, b'["?"]')), AdapterError),
    "damaged pages": (Fault(before=replies(500, b'{"code": "XX001", "message": "bad page"}')), StoreDamaged),
}


@pytest.mark.parametrize(("fault", "error"), FAILING.values(), ids=FAILING)
async def test_what_stays_wrong_is_an_error_and_the_next_call_works(opened, supabase, fault, error):
    adapter = await opened(timeout=0.5, retries=0)
    supabase.faults[:] = [Fault("__select", before=fault.before)]
    with pytest.raises(error) as failure:
        await listed(adapter)
    assert failure.type is error
    supabase.faults[:] = [Fault("__commit", before=fault.before)]
    if error is not StoreDamaged:  # what a commit answers says nothing
        with pytest.raises(error):
            await put(adapter, memory())
    supabase.faults.clear()
    assert await listed(adapter) == []
    await put(adapter, memory())
    assert ids(await listed(adapter)) == ["m1"]


async def test_a_commit_whose_answer_never_came_may_be_called_again(opened, supabase):
    adapter = await opened(retries=0)
    supabase.faults[:] = [Fault("__commit", after=cuts)]
    with pytest.raises(AdapterUnavailable, match="not known"):
        await put(adapter, memory())
    await put(adapter, memory())
    assert ids(await listed(adapter)) == ["m1"]
    assert await adapter.store_many(MINE, [memory("m2")], if_new=True) != [None]


async def test_a_redirect_is_not_followed_because_the_keys_would_go_along(opened, supabase, unused_url):
    adapter = await opened()
    supabase.requests.clear()
    supabase.faults[:] = [Fault("__select", before=replies(307, location=f"{supabase.url}/rest/v1/rpc/stolen"))]
    with pytest.raises(AdapterError, match="redirects"):
        await listed(adapter)
    assert len(supabase.requests) == 1


async def test_who_is_not_there_at_the_start_may_come_later(opened, supabase, table):
    await opened()
    supabase.kill()
    try:
        with pytest.raises(AdapterUnavailable, match="cannot be reached"):
            await opened(retries=1)
    finally:
        supabase.start()
    adapter = await opened()
    await put(adapter, memory())


async def test_the_same_adapter_goes_on_after_everything_was_down(opened, supabase):
    adapter = await opened(retries=1)
    await put(adapter, memory("before"))
    supabase.kill()
    try:
        with pytest.raises(AdapterUnavailable):
            await put(adapter, memory("lost"))
    finally:
        supabase.start()
    supabase.stop_database()
    try:
        with pytest.raises(AdapterUnavailable):
            await put(adapter, memory("lost"))
    finally:
        supabase.start_database()
    await put(adapter, memory("after"))
    assert ids(await listed(adapter)) == ["before", "after"]


async def test_who_is_killed_in_mid_write_leaves_all_or_nothing(opened, supabase):
    adapter = await opened(retries=0)
    batch = [memory(f"m{number}", f"number {number}", embedding=[1.0, float(number)]) for number in range(300)]
    writing = asyncio.create_task(adapter.store_many(MINE, batch))
    await _until(lambda: any(name.endswith("__commit") for name, _ in supabase.requests))
    supabase.stop_database()
    supabase.start_database()
    await asyncio.gather(writing, return_exceptions=True)
    found = len(await listed(await opened()))
    assert found == (0 if isinstance(writing.exception(), AdapterUnavailable) else 300)
    await adapter.store_many(MINE, batch)
    assert len(await listed(adapter)) == 300


async def test_a_statement_that_takes_too_long_is_named_as_such(opened, supabase, table):
    adapter = await opened()
    await put(adapter, memory())
    supabase.run("ALTER ROLE service_role SET statement_timeout = '100ms'; NOTIFY pgrst, 'reload schema'")
    try:
        await _until(lambda: "service_role" in supabase._role_settings)
        supabase.run_on(table, 'ALTER FUNCTION "{table}__count"(jsonb) RENAME TO "{table}__counted"')
        slow = "LANGUAGE sql AS 'SELECT 1 FROM pg_sleep(5)'"
        create = f'CREATE FUNCTION "{{table}}__count"(p_query jsonb) RETURNS bigint {slow}'
        supabase.run_on(table, create, user="project_owner")
        with pytest.raises(AdapterUnavailable, match="took too long"):
            await adapter.count(MINE, LIVE)
    finally:
        supabase.run("ALTER ROLE service_role RESET statement_timeout; NOTIFY pgrst, 'reload schema'")
        await _until(lambda: "service_role" not in supabase._role_settings)


@pytest.mark.parametrize("spoiled", ['{"id":"m1"}', "null", '{"id":1}', "[]"])
async def test_rows_that_are_not_ours_are_damage_and_are_not_quoted(opened, supabase, table, spoiled):
    adapter = await opened()
    await put(adapter, memory())
    supabase.run_on(table, "UPDATE {table} SET entry = %s", spoiled)
    with pytest.raises(StoreDamaged) as failure:
        await listed(adapter)
    assert spoiled not in str(failure.value)


async def test_a_row_that_names_another_tenant_is_damage(opened, supabase, table):
    adapter = await opened()
    await put(adapter, memory())
    supabase.run_on(table, """UPDATE {table} SET entry = replace(entry, '"acme"', '"other"')""")
    with pytest.raises(StoreDamaged, match="another tenant"):
        await adapter.get(MINE, "m1")


@pytest.mark.parametrize(
    "said",
    [
        b'{"code": "23514", "message": "violates", "details": "Failing row contains (secret).", "hint": null}',
        b'{"message": "a gateway took offence at secret"}',
        b'{"code": "a secret", "message": "a secret"}',
    ],
    ids=["database", "gateway", "no code"],
)
async def test_values_that_are_refused_are_not_quoted(opened, supabase, said):
    adapter = await opened()
    supabase.faults[:] = [Fault("__commit", before=replies(400, said))]
    with pytest.raises(AdapterError) as failure:
        await put(adapter, memory())
    assert "secret" not in f"{failure.value} {failure.value.__cause__!r}"


TOUCH = """
import asyncio, json, sys
from datetime import UTC, datetime
from lamina.adapters.supabase import SupabaseAdapter
from lamina.domain.scope import Scope

async def main():
    url, key, table = json.loads(sys.argv[1])
    adapter = SupabaseAdapter(url, service_key=key, table=table)
    await adapter.initialize()
    for _ in range(10):
        await adapter.touch(Scope("acme"), ["m1"], datetime.now(UTC))
    await adapter.close()

asyncio.run(main())
"""


async def test_processes_that_change_the_same_memory_lose_nothing(opened, supabase, table):
    adapter = await opened()
    await put(adapter, memory())
    arguments = json.dumps([supabase.url, supabase.service_key, table])

    def run() -> subprocess.CompletedProcess:
        command = [sys.executable, "-c", TOUCH, arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    other = asyncio.create_task(asyncio.to_thread(run))
    for _ in range(10):
        await adapter.touch(MINE, ["m1"], NOW)
    assert (await other).stderr == ""
    assert [each.access_count for each in await listed(adapter)] == [20]


async def test_adapters_that_store_the_same_store_it_once(opened):
    adapters = [await opened() for _ in range(3)]

    async def store(number: int) -> MemoryEntry | None:
        [twin] = await adapters[number % 3].store_many(MINE, [memory(f"m{number}")], if_new=True)
        return twin

    answers = await asyncio.gather(*map(store, range(12)))
    assert answers.count(None) == 1
    assert len(await listed(adapters[0])) == 1


async def test_commits_of_long_ago_are_forgotten(opened, supabase, table):
    adapter = await opened()
    await put(adapter, memory("m1"), memory("m2"))
    supabase.run_on(table, "UPDATE {table}__commits SET at = at - interval '2 hours'")
    await put(adapter, memory("m3"))
    [(left,)] = supabase.run_on(table, "SELECT count(*) FROM {table}__commits")
    assert left == 1


async def test_more_than_a_set_may_have_comes_whole(opened):
    adapter = await opened()
    await adapter.store_many(MINE, [memory(f"m{number}", embedding=[1.0, number / 7]) for number in range(1_200)])
    assert len(await listed(adapter, limit=5_000)) == 1_200
    assert len(await by_vector(adapter, [1.0, 0.0], limit=5_000)) == 1_200


HOSTILE = ["a'b", 'a"b', "a%b", "a_b", "a\\b", "$1", "{a}", "a;--", "a\u2028b", "é", "e\u0301", "\U0001f600" * 512]


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name)[:12])
async def test_names_may_hold_anything(opened, name):
    adapter = await opened()
    scope = Scope(name, name, name)
    entry = memory(name, tenant=name, owner=name, namespace=name, tags=[name], metadata={name: {name: name}})
    await adapter.store(scope, entry)
    await adapter.save_meta(scope, name, name, NOW)
    [back] = await listed(adapter, scope)
    assert (back.id, back.tenant, back.metadata) == (name, name, {name: {name: name}})
    assert await adapter.load_meta(scope, name) == name
    assert await listed(adapter, Scope(name[:-1] or "x")) == []


async def _until(is_so) -> None:
    async with asyncio.timeout(30):
        while not is_so():  # noqa: ASYNC110 - nobody there could set an event
            await asyncio.sleep(0.001)


async def test_controls_that_are_none_are_damage(opened, supabase):
    adapter = await opened()
    for odd in (b"[1]", b'{"name": 1}', b"null", b'[["name"]]'):
        supabase.faults[:] = [Fault("__load_controls", before=replies(200, odd))]
        with pytest.raises(StoreDamaged):
            await adapter.load_meta(MINE, "fingerprint")
        supabase.faults[:] = [Fault("__count", before=replies(200, odd))]
        with pytest.raises(StoreDamaged):
            await adapter.count(MINE, LIVE)


async def test_who_asks_to_wait_longer_than_a_call_may_take_is_not_waited_for(opened, supabase):
    adapter = await opened(timeout=5)
    supabase.faults[:] = [Fault("__count", before=replies(429, b"", retry_after="60"))]
    with pytest.raises(AdapterUnavailable, match="60 s"):
        await adapter.count(MINE, LIVE)


async def test_words_that_cannot_be_stored_stand_nowhere(opened):
    adapter = await opened()
    await put(adapter, memory())
    found = await adapter.term_statistics(MINE, ["lamp", "la\0mp", "\ud83d"], NOW)
    assert found.frequencies == {"lamp": 1, "la\0mp": 0, "\ud83d": 0}
