"""Adapters that a test opens and need not close."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

from lamina.ports.memory_adapter import MemoryAdapter

Adapter = TypeVar("Adapter", bound=MemoryAdapter)


@asynccontextmanager
async def opening(
    kind: Callable[..., Adapter], *place: Any, **usual: Any
) -> AsyncIterator[Callable[..., Awaitable[Adapter]]]:
    """What opens adapters of this kind, with these arguments unless told otherwise; at the end all are closed."""
    async with AsyncExitStack() as stack:

        async def open_one(*other_place: Any, **options: Any) -> Adapter:
            adapter = kind(*(other_place or place), **{**usual, **options})
            stack.push_async_callback(adapter.close)
            await adapter.initialize()
            return adapter

        yield open_one
