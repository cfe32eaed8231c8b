"""Seeing to it that what was deleted is nowhere in the files of several stores."""

from __future__ import annotations

from collections.abc import Iterable

from lamina.errors import Unsupported
from lamina.ports.memory_adapter import MemoryAdapter
from lamina.ports.pack_store import PackStore
from lamina.ports.state_store import StateStore

__all__ = ["scrub_all"]


async def scrub_all(stores: Iterable[MemoryAdapter | StateStore | PackStore]) -> None:
    """Scrub each of them that can.

    Raises:
        Unsupported: some cannot; the others have done it.
        AdapterUnavailable: another process reads on, so that a log could not be emptied.
    """
    unable: dict[str, None] = {}
    for each in stores:
        if hasattr(each, "scrub"):
            await each.scrub()
        else:
            unable[each.name] = None
    if unable:
        remedy = "It gives up room by upkeep of its own, such as PostgreSQL by VACUUM."
        raise Unsupported(f"The {' and the '.join(unable)} backend", "scrubbing", remedy)
