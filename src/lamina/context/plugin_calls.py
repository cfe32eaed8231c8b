"""Calls into a plug-in engine: bounded in time, and unable to take the caller down with them."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any, Final

__all__ = ["EngineFailure", "call_engine"]

_GRACE: Final = 1.0
"""Seconds that a cancelled call gets to clean up; one that goes on is left to itself."""

log = logging.getLogger(__name__)


class EngineFailure(Exception):
    """A call into a plug-in engine failed; what it raised is the cause. It never leaves this package."""

    def __init__(self, engine: str, operation: str, kind: str) -> None:
        super().__init__(engine, operation, kind)
        self.engine = engine
        self.operation = operation
        self.kind = kind

    def __str__(self) -> str:
        return f"The context engine {self.engine!r} failed in {self.operation}: {self.kind}"


async def call_engine(
    engine: str,
    operation: str,
    call: Callable[[], Any],
    *,
    read: Callable[[Any], Any],
    timeout: float,  # noqa: ASYNC109
) -> Any:
    """What `read` makes of the call's result.

    The call runs in a task of its own, so that a CancelledError which it raises by itself is told from
    the caller's being cancelled. The latter cancels the call too and propagates.

    Raises:
        EngineFailure: the call raised, took longer than `timeout` seconds, or `read` refused its result.
    """
    task = asyncio.ensure_future(_awaited(call))
    try:
        done, _ = await asyncio.wait({task}, timeout=timeout)
    except asyncio.CancelledError:
        await _abandon(task)
        raise
    if not done:
        await _abandon(task)
        raise EngineFailure(engine, operation, "TimeoutError")
    if task.cancelled():
        raise EngineFailure(engine, operation, "CancelledError")
    error = task.exception()
    if error is not None:
        raise EngineFailure(engine, operation, type(error).__name__) from error
    try:
        return read(task.result())
    except Exception as refusal:  # a plug-in's object may do anything when it is looked at
        raise EngineFailure(engine, operation, type(refusal).__name__) from refusal


async def _awaited(call: Callable[[], Any]) -> Any:
    result = call()
    return await result if inspect.isawaitable(result) else result


async def _abandon(task: asyncio.Future[Any]) -> None:
    """Cancel the call, and wait a little for it to end."""
    task.cancel()
    task.add_done_callback(_take_outcome)
    await asyncio.wait({task}, timeout=_GRACE)
    if not task.done():
        log.warning("A call into a context engine goes on after it was cancelled")


def _take_outcome(task: asyncio.Future[Any]) -> None:
    """Look at the exception, so that nobody is told that it was never looked at."""
    if not task.cancelled():
        task.exception()
