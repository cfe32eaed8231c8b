"""The library's warnings, as remarks for the person at the terminal."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["warnings_shown"]


class _Once(logging.Handler):
    """Prints each warning once, however often it is given."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._told: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message to stderr."""
        from lamina.cli.output import note

        message = record.getMessage()
        if message not in self._told:
            self._told.add(message)
            note(message)


@contextmanager
def warnings_shown(*, shown: bool) -> Iterator[None]:
    """Show the warnings, or none, since the command itself tells what they are about."""
    handler = _Once() if shown else logging.NullHandler()
    log = logging.getLogger("lamina")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
