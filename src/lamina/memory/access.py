"""Counts accesses off the path of recall: buffered, and written within a second and at close."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from lamina.domain.recall import RecallResult
from lamina.domain.scope import Scope
from lamina.errors import LaminaError
from lamina.memory.runtime import Runtime
from lamina.ports.memory_adapter import MemoryAdapter
from lamina.telemetry import place_of

__all__ = ["AccessCounter", "AccessCounters"]

FLUSH_AFTER: Final = 1.0
"""Seconds; what a crash may lose of the counting."""

log = logging.getLogger(__name__)


class AccessCounter:
    """Buffers the accesses of one adapter."""

    def __init__(self, adapter: MemoryAdapter, scope: Scope) -> None:
        self._adapter = adapter
        self._scope = scope
        self._pending: list[str] = []
        self._latest: datetime | None = None
        self._flusher: asyncio.Task[None] | None = None

    def add(self, ids: Iterable[str], now: datetime) -> None:
        """Count one access for each id, soon."""
        self._pending.extend(ids)
        self._latest = now
        if self._pending and not self._is_flushing_here():
            self._flusher = asyncio.get_running_loop().create_task(self._flush_later())

    async def flush(self) -> None:
        """Write what is pending; a failure is logged, and the counts are kept for the next time."""
        ids, self._pending = self._pending, []
        if not ids or self._latest is None:
            return
        try:
            await self._adapter.touch(self._scope, ids, self._latest)
        except LaminaError as error:
            self._pending[:0] = ids
            log.warning("could not count %d accesses; trying again with the next: %s", len(ids), place_of(error))

    async def close(self) -> None:
        """Write what is pending and stop."""
        flusher, self._flusher = self._flusher, None
        if flusher is not None and flusher.get_loop() is asyncio.get_running_loop():
            flusher.cancel()
            await asyncio.gather(flusher, return_exceptions=True)
        await self.flush()

    async def _flush_later(self) -> None:
        await asyncio.sleep(FLUSH_AFTER)
        self._flusher = None  # from here on an access starts a new flusher
        await asyncio.shield(self.flush())

    def _is_flushing_here(self) -> bool:
        """Whether a flusher waits in this very loop; one of a loop that has ended never comes."""
        flusher = self._flusher
        return flusher is not None and not flusher.done() and flusher.get_loop() is asyncio.get_running_loop()


class AccessCounters:
    """One counter for each store of an engine."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._counters = [(store, AccessCounter(store, runtime.tenant_scope)) for store in runtime.stores()]

    def count(self, results: Iterable[RecallResult], now: datetime) -> None:
        """Count one access for each result, soon."""
        for store, counter in self._counters:
            ids = [each.entry.id for each in results if self._runtime.store_of(each.entry.layer) is store]
            counter.add(ids, now)

    async def flush(self) -> None:
        """Write what is pending."""
        for _, counter in self._counters:
            await counter.flush()

    async def close(self) -> None:
        """Write what is pending and stop."""
        for _, counter in self._counters:
            await counter.close()
