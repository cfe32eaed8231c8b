"""Ctrl-C while a command waits for a person, a pipe or a model.

Inside an event loop the first Ctrl-C only cancels the task, which a blocking read never notices.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["interruptible", "on_interrupt"]


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end a blocking read at once, by KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is interrupted, and only it may say how
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def on_interrupt(call: Callable[[], object]) -> Iterator[None]:
    """Let Ctrl-C make this call, on the running event loop, and nothing else."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    import asyncio

    loop = asyncio.get_running_loop()
    before = signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(call))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
