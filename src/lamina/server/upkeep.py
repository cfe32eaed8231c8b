"""Maintenance in the background: for all tenants, by one of the server processes at a time, under a lease."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import Counter
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final, Self

import anyio

from lamina.errors import LaminaError
from lamina.kernel.maintenance import MaintenanceReport
from lamina.kernel.tenants import TenantKernels
from lamina.ports.clock import Clock, utc_now
from lamina.server.middleware.idempotency import KEPT_FOR
from lamina.telemetry import place_of

__all__ = ["LEASE", "LEASE_NAME", "TOKENS_KEPT_FOR", "Upkeep"]

LEASE: Final = timedelta(seconds=60)
"""How long the others wait for a process that died in the middle; one that lives renews it."""

LEASE_NAME: Final = "maintenance"
TOKENS_KEPT_FOR: Final = timedelta(days=90)
"""How long tokens are still listed after they have expired or were revoked."""

_LOOKS_EVERY: Final = 15.0
_RENEWALS: Final = 4
"""In the time of a lease: three may fail before it is lost."""
_RELEASES_WITHIN: Final = 2.0

log = logging.getLogger(__name__)


class Upkeep:
    """One pass every `interval` over all that the tenants have, however many processes run this.

    Use it as an async context manager: passes are made inside the block. Whoever has the lease makes the pass, and
    keeps the lease until the next one is due, so that nobody makes it again, a process that is started meanwhile
    neither. What a pass does may be done twice without harm; the lease saves the work.
    """

    def __init__(
        self, kernels: TenantKernels, *, interval: timedelta, lease: timedelta = LEASE, clock: Clock = utc_now
    ) -> None:
        self._kernels = kernels
        self._interval = interval
        self._lease = lease
        self._clock = clock
        self._holder = uuid.uuid4().hex
        self._due: datetime | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.get_running_loop().create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def stop(self) -> None:
        """Make no more passes, and end the one that is being made; it goes on in another process. From any thread."""
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    async def _run(self) -> None:
        pause = min(self._interval, self._lease).total_seconds()
        while True:
            await asyncio.sleep(min(pause, _LOOKS_EVERY))
            try:
                await self.look()
            except Exception as error:  # noqa: BLE001 - it must not end while the server serves; the next look may do better
                log.warning("maintenance failed: %s", place_of(error))

    async def look(self) -> bool:
        """Make the pass if it is due, and no other process is making it or has made it; whether it was made here.

        Raises:
            AdapterError: the store of the leases failed.
        """
        now = self._clock()
        if (self._due is not None and now < self._due) or not await self._take(now, now + self._lease):
            return False
        self._due = None
        try:
            is_made = await self._pass_under_lease(now + self._lease)
        except BaseException:
            await self._give_back()
            raise
        if is_made:
            await self._keep_until(now + self._interval)
        else:
            log.warning("maintenance was left to another process, which has its lease now")
        return is_made

    async def _pass_under_lease(self, until: datetime) -> bool:
        """The pass, for as long as the lease is held; whether it was made to its end."""
        tasks = [asyncio.ensure_future(each) for each in (self._pass(), self._renew(until))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.wait(tasks)
        if tasks[0].cancelled():
            return False
        tasks[0].result()
        return True

    async def _take(self, now: datetime, until: datetime) -> bool:
        return await self._kernels.server.acquire_lease(LEASE_NAME, self._holder, now=now, until=until)

    async def _renew(self, until: datetime) -> None:
        """Renew the lease again and again; returns when it is lost."""
        is_held = True
        while is_held:
            await asyncio.sleep(self._lease.total_seconds() / _RENEWALS)
            now = self._clock()
            try:
                is_held = await self._take(now, now + self._lease)
            except LaminaError as error:
                log.warning("the lease of maintenance could not be renewed: %s", type(error).__name__)
                is_held = now < until
            else:
                until = now + self._lease

    async def _keep_until(self, due: datetime) -> None:
        self._due = due
        now = self._clock()
        if now < due:
            await self._take(now, due)
        else:
            await self._give_back()

    async def _give_back(self) -> None:
        """So that another process may go on at once; if that does not succeed in time, it does when the lease ends."""
        with anyio.move_on_after(_RELEASES_WITHIN, shield=True), suppress(LaminaError):
            await self._kernels.server.release_lease(LEASE_NAME, self._holder)

    async def _pass(self) -> None:
        done: Counter[str] = Counter()
        for tenant in sorted({*await self._kernels.tenants(), self._kernels.config.memory.tenant}):
            try:
                report = await self._kernels.run_maintenance(tenant)
            except LaminaError as error:  # the others have their turn all the same
                log.warning("maintenance of the tenant %r failed: %s", tenant, type(error).__name__)
                done["failures"] += 1
            else:
                done.update(_counts(report))
            done["tenants"] += 1
        now = self._clock()
        done["requests"] += await self._kernels.server.purge(now - KEPT_FOR)
        done["tokens"] += await self._kernels.server.purge_tokens(now - TOKENS_KEPT_FOR)
        log.info("maintenance was done", extra={"facts": {"message": "maintenance was done", **done}})


def _counts(report: MaintenanceReport) -> dict[str, int]:
    moved = 0 if report.packs is None else sum(report.packs.moved.values())
    return {
        "purged": report.purged,
        "faded": moved,
        "chunks": report.chunks_removed,
        "pack_rows": report.pack_rows_removed,
        "failures": len(report.failures),
    }
