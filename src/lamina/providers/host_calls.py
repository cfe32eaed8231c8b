"""Calls to functions of a host, sync or async, none of which holds up the event loop."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from anyio import to_thread

__all__ = ["call_host", "is_async"]


async def call_host(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What the function returns, awaited if it can be; a sync one runs in a worker thread.

    When the caller is cancelled or times out, the thread is left to end by itself.
    """
    call = functools.partial(function, *arguments, **options)
    result = call() if is_async(function) else await to_thread.run_sync(call, abandon_on_cancel=True)
    return await result if inspect.isawaitable(result) else result


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it returns at once: a coroutine function, an async generator function, or an object of such."""
    return any(
        inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each)
        for each in (function, getattr(function, "__call__", None))  # noqa: B004 - the method, not whether there is one
    )
