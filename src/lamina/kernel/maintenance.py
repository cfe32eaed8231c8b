"""What a kernel does now and then: only when it is told to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lamina.context.manager import ContextEngineManager
from lamina.domain.validation import check_ttl
from lamina.errors import InvalidInput, InvalidType
from lamina.kernel.parts import Parts
from lamina.memory.decay import DecayReport
from lamina.packs.fading import DegradationReport
from lamina.telemetry import place_of

__all__ = ["MaintenanceReport", "maintain", "read_interval", "repeated"]

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(slots=True)
class MaintenanceReport:
    """What one pass did. `failures` names the steps that failed and the error's class; the others were done."""

    purged: int = 0
    decay: DecayReport | None = None
    chunks_removed: int = 0
    packs: DegradationReport | None = None
    """What the sweep over the context packs did."""
    pack_rows_removed: int = 0
    engines: dict[str, bool] = field(default_factory=dict)
    """For each plug-in engine, whether its `maintain` succeeded."""
    failures: dict[str, str] = field(default_factory=dict)


async def maintain(parts: Parts, engines: ContextEngineManager, *, decay: bool) -> MaintenanceReport:
    """Purge what expired, fade packs, and memories if asked to, remove what belongs to nothing, let engines maintain.

    A step that fails does not keep the others from being done.
    """
    report = MaintenanceReport()
    report.purged = await _step(report, "purge", parts.memory.purge_expired) or 0
    if decay:
        report.decay = await _step(report, "decay", parts.memory.decay)
    report.chunks_removed = await _step(report, "documents", parts.rag.purge_orphans) or 0
    report.packs = await _step(report, "packs", parts.packs.degrade)
    report.pack_rows_removed = await _step(report, "pack_rows", parts.packs.purge_orphans) or 0
    report.engines = await _step(report, "engines", engines.maintain) or {}
    return report


async def _step(report: MaintenanceReport, name: str, work: Callable[[], Awaitable[T]]) -> T | None:
    try:
        return await work()
    except Exception as error:  # noqa: BLE001 - hooks and plug-ins of a host run in these; the report tells what failed
        log.error("the maintenance step %s failed: %s", name, place_of(error))  # noqa: TRY400 - the message of an error may hold content
        report.failures[name] = type(error).__name__
        return None


def read_interval(interval: object) -> float:
    """Seconds between two passes, from seconds or a timedelta."""
    if interval is None:
        raise InvalidType("interval", "must be seconds or a timedelta", "Say how long to wait between passes.")
    try:
        seconds = check_ttl(interval)
    except (InvalidInput, InvalidType) as error:
        raise type(error)("interval", error.problem, "Give seconds, or a timedelta.") from error
    assert seconds is not None  # noqa: S101 - only None gives None
    return seconds


@asynccontextmanager
async def repeated(work: Callable[[], Awaitable[Any]], *, seconds: float) -> AsyncIterator[asyncio.Task[None]]:
    """Do the work again and again inside the block, first after so many seconds; cancelled at its end."""

    async def run() -> None:
        while True:
            await asyncio.sleep(seconds)
            await work()

    task = asyncio.get_running_loop().create_task(run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("maintenance ended with an error: %s", place_of(error))
