"""Walking through all that an engine's stores hold."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from lamina.domain.filters import MemoryFilter
from lamina.domain.memory import Layer, MemoryEntry
from lamina.domain.scope import Scope
from lamina.memory.reading import pages
from lamina.memory.runtime import Runtime

__all__ = ["walk"]


async def walk(
    runtime: Runtime,
    scope: Scope,
    filter: MemoryFilter,
    *,
    include_embeddings: bool = False,
    after: tuple[Layer, int] | None = None,
) -> AsyncGenerator[list[MemoryEntry], None]:
    """Everything that the scope and the filter admit in the runtime's stores, one after the other, as `pages` has it.

    `after` goes on behind a memory, given by its layer, which says in what store it is, and its `seq`.
    """
    stores = runtime.stores(filter.layers)
    if after is not None:
        stores = stores[stores.index(runtime.store_of(after[0])) :]
    for store in stores:
        start = after[1] if after is not None and store is runtime.store_of(after[0]) else 0
        async for page in pages(store, scope, filter, include_embeddings=include_embeddings, after=start):
            yield page
