"""What an engine holds, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lamina.domain.filters import MemoryFilter
from lamina.memory.counting import count_memories
from lamina.memory.reading import count
from lamina.memory.runtime import Runtime
from lamina.ports.embedder import Fingerprint

__all__ = ["EngineStats", "engine_stats"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStats:
    """What an engine holds, of its tenant."""

    memories: int
    expired: int
    by_layer: dict[str, int]
    without_embedding: int
    adapter: str
    capabilities: tuple[str, ...]
    fingerprint: Fingerprint | None
    """Of the model that made the stored vectors; None before the first one."""
    embedder: str | None
    """`provider:model` of the configured embedder, or None."""
    reembed_needed: bool


async def engine_stats(runtime: Runtime) -> EngineStats:
    """Counts, and the state of the vectors, of the runtime's tenant."""
    everything = MemoryFilter(now=runtime.clock())
    counts = await count_memories(runtime.stores(), runtime.tenant_scope, everything.now)
    await runtime.space.refresh()
    embedder = runtime.space.embedder

    async def number(filter: MemoryFilter) -> int:
        return sum([await count(store, runtime.tenant_scope, filter) for store in runtime.stores()])

    return EngineStats(
        memories=await number(everything),
        expired=counts.expired,
        by_layer=counts.by_layer,
        without_embedding=await number(replace(everything, has_embedding=False)),
        adapter=runtime.adapter.name,
        capabilities=tuple(sorted(capability.value for capability in runtime.adapter.capabilities)),
        fingerprint=runtime.space.fingerprint,
        embedder=None if embedder is None else f"{embedder.provider}:{embedder.model}",
        reembed_needed=runtime.space.needs_reembed,
    )
