"""How many memories stores hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.memory import Layer
from lamina.domain.scope import Scope
from lamina.memory.reading import count
from lamina.ports.memory_adapter import MemoryAdapter

__all__ = ["MemoryCounts", "count_memories"]


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """How many there are, of one tenant or of many; expired ones are not among those of the layers."""

    by_layer: dict[str, int] = field(default_factory=lambda: dict.fromkeys(map(str, Layer), 0))
    expired: int = 0

    def __add__(self, other: MemoryCounts) -> MemoryCounts:
        by_layer = {layer: number + other.by_layer[layer] for layer, number in self.by_layer.items()}
        return MemoryCounts(by_layer, self.expired + other.expired)


async def count_memories(stores: Iterable[MemoryAdapter], scope: Scope, now: datetime) -> MemoryCounts:
    """What the stores together hold in the scope."""
    everything = MemoryFilter(now=now)
    total = MemoryCounts()
    for store in stores:
        by_layer = {
            layer.value: await count(store, scope, replace(everything, layers=frozenset({layer}))) for layer in Layer
        }
        total += MemoryCounts(by_layer, await count(store, scope, replace(everything, expiry=Expiry.EXPIRED)))
    return total
