"""What an engine stands on: the stores and the models, which engines of several tenants may share."""

from __future__ import annotations

from dataclasses import dataclass

from lamina.memory.reranking import Rerankers
from lamina.ports.embedder import Embedder
from lamina.ports.memory_adapter import MemoryAdapter

__all__ = ["MemoryBackend"]


@dataclass(frozen=True, slots=True)
class MemoryBackend:
    """The stores, the embedder and the rerankers. Nothing in it belongs to one tenant.

    `overlay` is the store in this process's memory that holds the working layer, or None if the
    adapter holds that too.
    """

    adapter: MemoryAdapter
    overlay: MemoryAdapter | None
    embedder: Embedder | None
    rerankers: Rerankers

    async def initialize(self) -> None:
        """Open the stores. Idempotent."""
        for store in self.stores():
            await store.initialize()

    async def close(self) -> None:
        """Let go of the stores and the models. Idempotent."""
        for store in self.stores():
            await store.close()
        if self.embedder is not None:
            await self.embedder.close()
        await self.rerankers.close()

    def stores(self) -> list[MemoryAdapter]:
        """Where entries live, the lasting store first."""
        return [self.adapter] if self.overlay is None else [self.adapter, self.overlay]
