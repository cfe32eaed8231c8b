"""Ctrl-C while a command waits for a person or a pipe.

Inside an event loop the first Ctrl-C only cancels the task, which a blocking read never notices.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["interruptible"]


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
