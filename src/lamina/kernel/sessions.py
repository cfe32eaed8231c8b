"""The short-term memories of one tenant: one for each owner, made when it is first asked for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from lamina.conversation.short_term import BaseMemory

__all__ = ["MAX_KEPT", "SessionMemories"]

MAX_KEPT: Final = 1000
"""Owners whose short-term memory is kept at hand. What is let go of is made anew: its sessions are in the store."""


class SessionMemories:
    """Hands out the owners' short-term memories over one open store, which stays open."""

    def __init__(self, make: Callable[[str | None], BaseMemory]) -> None:
        self._make = make
        self._kept: OrderedDict[str | None, BaseMemory] = OrderedDict()

    def of(self, owner: str | None) -> BaseMemory:
        """The short-term memory bound to this owner; for None the one that reaches every session of the tenant.

        Raises:
            InvalidInput: no owner can have the name.
        """
        memory = self._kept.get(owner)
        if memory is None:
            memory = self._kept[owner] = self._make(owner)
            if len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(owner)
        return memory
