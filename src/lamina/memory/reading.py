"""Walking through an adapter's entries, whether or not it filters metadata itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Final

from lamina.domain.filters import MemoryFilter
from lamina.domain.instants import to_micros
from lamina.domain.memory import MemoryEntry
from lamina.domain.scope import Scope
from lamina.ports.memory_adapter import ListOptions, MemoryAdapter, Order

__all__ = ["count", "filters_natively", "listing", "pages"]

PAGE: Final = 500


async def pages(
    adapter: MemoryAdapter, scope: Scope, filter: MemoryFilter, *, include_embeddings: bool = False, after: int = 0
) -> AsyncGenerator[list[MemoryEntry], None]:
    """Everything behind the `seq` that the scope and the filter admit, in insertion order, in pages that are not empty.

    Entries added while walking come at the end; deleting what was seen loses nothing that was not.
    """
    native = filters_natively(adapter, filter)
    asked = filter if native else replace(filter, where=None)
    while page := await adapter.list(
        ListOptions(scope=scope, filter=asked, limit=PAGE, after=after, include_embeddings=include_embeddings)
    ):
        after = page[-1].seq
        admitted = page if native else [entry for entry in page if _passes(filter, entry)]
        if admitted:
            yield admitted


async def count(adapter: MemoryAdapter, scope: Scope, filter: MemoryFilter) -> int:
    """How many entries the scope and the filter admit."""
    if filters_natively(adapter, filter):
        return await adapter.count(scope, filter)
    return sum([len(page) async for page in pages(adapter, scope, filter)])


async def listing(
    stores: Sequence[MemoryAdapter], scope: Scope, filter: MemoryFilter, *, limit: int, offset: int
) -> list[MemoryEntry]:
    """A page of what the scope and the filter admit in these stores, in `Order.RELEVANCE`; nothing in quarantine."""
    wanted = limit + offset
    while True:
        raw = await _best(stores, scope, filter, wanted)
        found = [entry for entry in raw if not entry.is_quarantined]
        if len(raw) < wanted or len(found) >= limit + offset:
            return found[offset : offset + limit]
        wanted += max(limit + offset - len(found), PAGE)


async def _best(stores: Sequence[MemoryAdapter], scope: Scope, filter: MemoryFilter, some: int) -> list[MemoryEntry]:
    found: list[MemoryEntry] = []
    for store in stores:
        if filters_natively(store, filter):
            options = ListOptions(scope=scope, filter=filter, limit=some, order=Order.RELEVANCE)
            found += await store.list(options)
        else:
            found += [entry async for page in pages(store, scope, filter) for entry in page]
    found.sort(key=lambda entry: (-entry.relevance, -to_micros(entry.created_at), entry.id))
    return found[:some]


def filters_natively(adapter: MemoryAdapter, filter: MemoryFilter) -> bool:
    """Whether the backend itself evaluates all that the filter asks."""
    return filter.where is None or adapter.filter_gap(filter.where) is None


def _passes(filter: MemoryFilter, entry: MemoryEntry) -> bool:
    return filter.where is None or filter.where.matches(entry.metadata)
