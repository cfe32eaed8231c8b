"""Messages read from rows of whichever store: a row that cannot be read hides no other, and is told."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, TypeVar

from lamina.domain.thread import Events, ThreadEvent
from lamina.errors import StoreDamaged

__all__ = ["read_events"]

Row = TypeVar("Row", bound=Any)

log = logging.getLogger(__name__)


def read_events(
    rows: Iterable[Row], read: Callable[[Row], ThreadEvent], index: Callable[[Row], int], limit: int | None = None
) -> Events:
    """The messages of the rows as they come, at most `limit`; those that cannot be read are told by their index."""
    unreadable: list[int] = []

    def readable() -> Iterable[ThreadEvent]:
        for row in rows:
            try:
                yield read(row)
            except StoreDamaged:
                unreadable.append(index(row))

    events = Events(islice(readable(), limit))
    if unreadable:
        events.unreadable = sorted(unreadable)
        log.warning("%d messages of a thread cannot be read and are left out; run `lamina check`", len(unreadable))
    return events
