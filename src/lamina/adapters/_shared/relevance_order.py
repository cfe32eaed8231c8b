"""The order of a list by relevance, for backends that give no such order themselves."""

from __future__ import annotations

from lamina.domain.instants import to_micros
from lamina.domain.memory import MemoryEntry

__all__ = ["by_relevance"]


def by_relevance(entry: MemoryEntry) -> tuple[float, int, str]:
    """The key of `Order.RELEVANCE`: the most relevant first, of those the newest, then by id."""
    return -entry.relevance, -to_micros(entry.created_at), entry.id
