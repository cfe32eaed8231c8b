"""What is stored, in numbers: counted when somebody asks, and not each time that somebody does."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from lamina.ports.server_store import ServerStore
from lamina.server.metrics import Metrics
from lamina.telemetry import place_of

__all__ = ["COUNTED_EVERY", "RETRIED_AFTER", "Inventory"]

COUNTED_EVERY: Final = 300.0
RETRIED_AFTER: Final = 10.0
"""Seconds until the next try after a failure; twice as many after each further one, up to `COUNTED_EVERY`."""
_WAITED: Final = 2.0
_SHARE: Final = 10
"""Counting that takes long is done so much more rarely that it takes a tenth of the time at most."""

log = logging.getLogger(__name__)


class Inventory:
    """Counts memories and bytes, one count at a time and at most every five minutes, and tells the metrics.

    Memories are counted where the kernels can tell: those of all tenants that the server knows.
    """

    def __init__(
        self,
        kernels: Any,
        store: ServerStore | None,
        metrics: Metrics,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._count_memories = getattr(kernels, "count_memories", None)
        self._store = store
        self._metrics = metrics
        self._monotonic = monotonic
        self._due = monotonic()
        self._pause = RETRIED_AFTER
        self._counting: asyncio.Task[None] | None = None

    async def refresh(self) -> None:
        """Count anew if it is time to, and wait for that two seconds at most; what takes longer goes on."""
        is_counting = self._counting is not None and not self._counting.done()
        if not is_counting and self._monotonic() >= self._due:
            self._counting = asyncio.get_running_loop().create_task(self._count())
        if self._counting is not None:
            await asyncio.wait([self._counting], timeout=_WAITED)

    async def close(self) -> None:
        """End a count that is under way."""
        if self._counting is not None:
            self._counting.cancel()
            with suppress(asyncio.CancelledError):
                await self._counting

    async def _count(self) -> None:
        began = self._monotonic()
        try:
            memories = None if self._count_memories is None else await self._count_memories()
            size = None if self._store is None else await self._store.size_bytes()
        except Exception as error:  # noqa: BLE001 - requests are served on; no number is better than an old one that seems new
            log.warning("what is stored could not be counted: %s", place_of(error))
            self._metrics.stored(memories=None, size_bytes=None)
            pause, self._pause = self._pause, min(2 * self._pause, COUNTED_EVERY)
        else:
            self._metrics.stored(memories=memories, size_bytes=size)
            pause, self._pause = COUNTED_EVERY, RETRIED_AFTER
        now = self._monotonic()
        self._due = now + max(pause, (now - began) * _SHARE)
