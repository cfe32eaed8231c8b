"""Whether the searchable rows of packs are those that the store says there should be."""

from __future__ import annotations

from dataclasses import dataclass

from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.pack import PackStatus
from lamina.domain.pack_query import PackMemoryQuery, PackQuery
from lamina.domain.scope import Scope
from lamina.memory.reading import pages
from lamina.packs.pack_index import PackIndex
from lamina.packs.pack_rows import read_row
from lamina.ports.clock import Clock
from lamina.ports.pack_store import PackStore

__all__ = ["Drift", "find_drift"]

LIMIT = 10_000
"""Most memories that wait to be projected, which are no drift."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Rows of memories that there are not, and memories that should have a row."""

    orphans: list[str]
    missing: list[str]

    def told(self) -> list[str]:
        """In plain words."""
        found = []
        if self.orphans:
            found.append(f"{len(self.orphans)} rows of the packs' index belong to no memory")
        if self.missing:
            found.append(f"{len(self.missing)} memories of packs have no row in the index")
        return found


async def find_drift(index: PackIndex, store: PackStore, *, tenant: str, clock: Clock) -> Drift:
    """Compare all rows with all memories, texts left aside. What is still to be projected is left out."""
    everything = MemoryFilter(now=clock(), expiry=Expiry.ANY)
    rows = {
        read_row(entry, index.adapter.name).id
        async for page in pages(index.adapter, Scope(tenant), everything)
        for entry in page
    }
    query = PackQuery(tenant=tenant, any_owner=True, statuses=frozenset(PackStatus) - {PackStatus.DELETED})
    wanted: set[str] = set()
    for pack in await store.list_packs(query):
        asked = PackMemoryQuery(tenant=tenant, pack_ids=(pack.id,), include_superseded=True)
        wanted |= {each.id for each in await store.find_memories(asked, with_content=False)}
    gone = sorted(rows - wanted)
    known = {each.id for each in await store.get_memories(tenant, gone, with_content=False)} if gone else set()
    waiting = {each.id for each in await store.unprojected(tenant, limit=LIMIT)}
    return Drift([id for id in gone if id not in known], sorted(wanted - rows - waiting))
