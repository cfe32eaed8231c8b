"""Maintenance in the background: for all tenants, once for all processes, taken over from one that died."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

import lamina
from lamina.domain.api_token import TokenScope
from lamina.domain.idempotency import KeptResponse
from lamina.errors import AdapterUnavailable
from lamina.kernel import Kernel, ModelRouter
from lamina.kernel.api_tokens import issue_token
from lamina.kernel.tenants import TenantKernels
from lamina.server.upkeep import LEASE, LEASE_NAME, TOKENS_KEPT_FOR, Upkeep
from lamina.testing import FrozenClock, HashingEmbedder

SCRIPT = Path(__file__).parents[1] / "support" / "keep_up.py"
HOUR = timedelta(hours=1)


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
async def open_kernels(tmp_path, clock):
    """Each call is as another process over the same file."""
    opened = []

    async def open_some(kind=TenantKernels, **memory):
        router = ModelRouter(embed=HashingEmbedder())
        config = {"memory": {"path": tmp_path / "lamina.db", **memory}}
        kernels = kind(config, model_router=router, clock=clock)
        opened.append(kernels)
        await kernels.start()
        return kernels

    yield open_some
    for each in opened:
        await each.stop()


class Watched(TenantKernels):
    """Tells whose maintenance is run; may be made to wait in it, or to fail."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.maintained = []
        self.begun = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.fails_for = None

    async def run_maintenance(self, tenant, *, decay=False):
        self.begun.set()
        await self.may_go_on.wait()
        if tenant == self.fails_for:
            raise AdapterUnavailable("sqlite", "it is down")
        self.maintained.append(tenant)
        return await super().run_maintenance(tenant, decay=decay)


def kept_up(place: str, *, lease: float):
    environment = {**os.environ, "PYTHONPATH": str(Path(lamina.__file__).parents[1])}
    command = [sys.executable, str(SCRIPT), place, str(lease)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


async def test_a_pass_cleans_up_what_every_tenant_has(open_kernels, clock, caplog):
    kernels = await open_kernels()
    for tenant in ("a", "b", "a_"):
        async with kernels.using(tenant) as kernel:
            await kernel.memory_engine.store("gone soon", ttl=60)
            kept = await kernel.memory_engine.store("stays")
            await kernel.packs.create("notes", type="project")
            await kernel.packs.add("notes", "A text that nobody will read for a while, and so it is to fade away.")
    clock.advance(timedelta(days=40))
    with caplog.at_level(logging.INFO, "lamina.server.upkeep"):
        assert await Upkeep(kernels, interval=HOUR, clock=clock).look()
    (record,) = caplog.records
    facts = record.facts
    assert (facts["tenants"], facts["purged"], facts["faded"], facts["failures"]) == (4, 3, 3, 0)  # and `default`
    async with kernels.using("a_") as kernel:
        assert (await kernel.memory_engine.stats()).expired == 0
        assert await kernel.memory_engine.get(kept) is not None


async def test_a_pass_includes_the_tenant_of_the_settings_that_no_server_ever_served(open_kernels, clock, tmp_path):
    router = ModelRouter(embed=HashingEmbedder())
    config = {"memory": {"path": tmp_path / "lamina.db", "tenant": "own"}}
    async with Kernel(config, model_router=router, clock=clock) as kernel:
        await kernel.memory_engine.store("gone soon", ttl=60)
    clock.advance(120)
    kernels = await open_kernels(tenant="own")
    assert await Upkeep(kernels, interval=HOUR, clock=clock).look()
    async with kernels.using("own") as kernel:
        assert (await kernel.memory_engine.stats()).expired == 0


async def test_a_pass_forgets_old_requests_and_tokens_that_ran_out_long_ago(open_kernels, clock):
    kernels = await open_kernels()
    place = ("a", "caller", "key")
    begun = await kernels.server.begin(*place, "f", now=clock(), lease_until=clock() + HOUR)
    await kernels.server.finish(*place, begun.claim, response=KeptResponse(200))
    for days in (1, 200):
        clock.advance(timedelta(seconds=1))  # the newest token is kept whatever it says
        until = clock() + timedelta(days=days)
        await issue_token(kernels.server, tenant="a", scopes=[TokenScope.READ], now=clock(), expires_at=until)
    clock.advance(TOKENS_KEPT_FOR + timedelta(days=2))
    assert await Upkeep(kernels, interval=HOUR, clock=clock).look()
    again = await kernels.server.begin(*place, "f", now=clock(), lease_until=clock() + HOUR)
    assert again.response is None
    assert len(await kernels.server.list_tokens()) == 1


async def test_of_several_processes_one_makes_each_pass_and_one_that_starts_later_makes_none(open_kernels, clock):
    first, second = [Upkeep(await open_kernels(), interval=HOUR, clock=clock) for _ in range(2)]
    assert [await each.look() for each in (first, second, first, second)] == [True, False, False, False]
    clock.advance(HOUR / 2)
    late = Upkeep(await open_kernels(), interval=HOUR, clock=clock)
    assert [await each.look() for each in (late, second, first)] == [False, False, False]
    clock.advance(HOUR / 2)
    assert [await each.look() for each in (late, second, first)] == [True, False, False]


async def test_looks_at_the_same_moment_lead_to_one_pass(open_kernels, clock):
    many = [Upkeep(await open_kernels(), interval=HOUR, clock=clock) for _ in range(3)]
    assert sorted(await asyncio.gather(*(each.look() for each in many))) == [False, False, True]


async def test_a_tenant_whose_maintenance_fails_leaves_the_others_theirs(open_kernels, clock, caplog):
    kernels = await open_kernels(Watched)
    for tenant in ("a", "b", "c"):
        await kernels.server.note_tenant(tenant, now=clock())
    kernels.fails_for = "b"
    assert await Upkeep(kernels, interval=HOUR, clock=clock).look()
    assert kernels.maintained == ["a", "c", "default"]
    assert "maintenance of the tenant 'b' failed: AdapterUnavailable" in caplog.text


async def test_a_pass_that_is_stopped_is_free_for_another_process_at_once(open_kernels, clock):
    kernels, other = await open_kernels(Watched), await open_kernels()
    kernels.may_go_on.clear()
    looking = asyncio.create_task(Upkeep(kernels, interval=HOUR, clock=clock).look())
    await kernels.begun.wait()
    assert not await Upkeep(other, interval=HOUR, clock=clock).look()
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking
    assert await Upkeep(other, interval=HOUR, clock=clock).look()


async def test_a_pass_whose_lease_another_process_took_ends(open_kernels, clock, caplog):
    kernels = await open_kernels(Watched)
    kernels.may_go_on.clear()
    looking = asyncio.create_task(Upkeep(kernels, interval=HOUR, lease=timedelta(seconds=0.2), clock=clock).look())
    await kernels.begun.wait()
    clock.advance(LEASE)  # as if the process had been suspended for so long
    assert await kernels.server.acquire_lease(LEASE_NAME, "another", now=clock(), until=clock() + HOUR)
    assert await looking is False
    assert kernels.maintained == []
    assert "left to another process" in caplog.text
    assert not await kernels.server.acquire_lease(LEASE_NAME, "third", now=clock(), until=clock() + HOUR)


async def test_inside_the_block_passes_are_made_again_and_again_until_it_is_told_to_stop(open_kernels):
    kernels = await open_kernels(Watched)
    async with Upkeep(kernels, interval=timedelta(seconds=0.02)) as upkeep:
        while len(kernels.maintained) < 3:
            kernels.begun.clear()
            await kernels.begun.wait()
        kernels.may_go_on.clear()
        upkeep.stop()
    made = len(kernels.maintained)
    kernels.may_go_on.set()
    await asyncio.sleep(0.1)
    assert len(kernels.maintained) == made


async def test_a_store_that_fails_does_not_end_it(open_kernels, monkeypatch, caplog):
    kernels = await open_kernels(Watched)
    take = kernels.server.acquire_lease
    failures = []

    async def failing(*arguments, **options):
        if len(failures) < 2:
            failures.append(1)
            raise AdapterUnavailable("sqlite", "it is down")
        return await take(*arguments, **options)

    monkeypatch.setattr(kernels.server, "acquire_lease", failing)
    async with Upkeep(kernels, interval=timedelta(seconds=0.02)):
        await kernels.begun.wait()
    assert caplog.text.count("maintenance failed: AdapterUnavailable") == 2


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL here")
@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
async def test_a_process_that_was_killed_in_the_middle_is_succeeded_when_its_lease_has_run_out(
    backend, tmp_path, request
):
    place = str(tmp_path / "lamina.db")
    if backend == "postgres":
        place = request.getfixturevalue("postgres_database")
    memory = {"url": place} if backend == "postgres" else {"path": place}
    async with TenantKernels({"memory": memory}, model_router=ModelRouter(embed=HashingEmbedder())) as kernels:
        other = Upkeep(kernels, interval=HOUR)
        with kept_up(place, lease=2) as process:
            assert process.stdout is not None
            try:
                assert await asyncio.to_thread(process.stdout.readline) == "maintains\n"
                until = time.monotonic() + 5  # more than two leases: it renews its own
                while time.monotonic() < until:
                    assert not await other.look()
                    await asyncio.sleep(0.2)
            finally:
                process.kill()
        deadline = time.monotonic() + 30
        while not await other.look():
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)
