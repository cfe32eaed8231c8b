"""Erasing an owner: all memories of every layer and namespace, and what was derived from them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.memory import MemoryEntry
from lamina.domain.scope import Scope
from lamina.memory.reading import pages
from lamina.memory.runtime import Runtime
from lamina.memory.tombstones import Tombstones
from lamina.ports.events import EventName
from lamina.ports.hooks import ForgetReason
from lamina.ports.memory_adapter import Capability, MemoryAdapter

__all__ = ["Erased", "Samples", "erase", "erase_derived"]

SAMPLES: Final = 1_000
"""Most texts that are looked for afterwards."""
_LEAST: Final = 16
"""Bytes of a text below which it may stand anywhere by chance."""
_MOST: Final = 200
"""Bytes of a text that are looked for: all of it lies on one page of a database more often than not."""


@dataclass(slots=True)
class Samples:
    """Texts of what is erased, kept until it was seen that no file holds them; never shown."""

    texts: set[bytes] = field(default_factory=set, repr=False)

    def add(self, *texts: str) -> None:
        """Take these, unless they are too short to tell, or there are enough."""
        for text in texts:
            data = text.encode("utf-8", "replace")[:_MOST]
            if len(data) >= _LEAST and len(self.texts) < SAMPLES:
                self.texts.add(data)

    def add_entry(self, entry: MemoryEntry) -> None:
        """Take what the entry says, and what names it."""
        self.add(entry.content, entry.id)


@dataclass(slots=True)
class Erased:
    """What was deleted: how many memories of the owner, how many derived ones of others, and the ids of all."""

    mark: str
    own: int = 0
    derived: int = 0
    ids: set[str] = field(default_factory=set, repr=False)
    samples: Samples = field(default_factory=Samples, repr=False)


async def erase(runtime: Runtime, owner: str) -> Erased:
    """Mark the owner as erased, delete everything of the owner's, and what it was made into.

    The mark comes first, so that a crash in between leaves nothing that an import could bring back; done again, it
    goes on where it stopped.
    """
    now = runtime.clock()
    erased = Erased(await Tombstones(runtime.adapter, runtime.defaults.tenant).put("owner", owner, now))
    for store in runtime.stores():
        async for page in pages(store, Scope(runtime.defaults.tenant, owner), _everything(runtime)):
            for entry in page:
                erased.samples.add_entry(entry)
            await _read_versions(store, page, erased)
            erased.own += await _delete(runtime, store, page, erased)
    erased.derived += await erase_derived(runtime, erased)
    return erased


async def erase_derived(runtime: Runtime, erased: Erased, sources: Iterable[str] = ()) -> int:
    """Delete whatever was derived from what is erased, or from these sources too, and from that in turn."""
    erased.ids |= set(sources)
    marks = Tombstones(runtime.adapter, runtime.defaults.tenant)
    deleted, is_done = 0, False
    while not is_done:
        is_done = True
        for store in runtime.stores():
            async for page in pages(store, runtime.tenant_scope, _everything(runtime)):
                made = [entry for entry in page if not erased.ids.isdisjoint(entry.derived_from)]
                for entry in made:
                    erased.samples.add(entry.content)
                await marks.put_memories([entry.id for entry in made], runtime.clock())  # first: nothing of it stays
                is_done &= not made
                deleted += await _delete(runtime, store, made, erased)
    return deleted


def _everything(runtime: Runtime) -> MemoryFilter:
    return MemoryFilter(now=runtime.clock(), expiry=Expiry.ANY)


async def _read_versions(store: MemoryAdapter, page: Collection[MemoryEntry], erased: Erased) -> None:
    """Take the texts of former versions, of those that were edited and as long as some are wanted."""
    if Capability.HISTORY not in store.capabilities:
        return
    for entry in page:
        if entry.revision > 1 and len(erased.samples.texts) < SAMPLES:
            versions = await store.history(Scope(entry.tenant, entry.owner), entry.id)
            erased.samples.add(*(each.content for each in versions))


async def _delete(runtime: Runtime, store: MemoryAdapter, page: list[MemoryEntry], erased: Erased) -> int:
    ids = [entry.id for entry in page]
    if not ids:
        return 0
    gone = await store.delete_many(runtime.tenant_scope, ids)
    erased.ids |= set(ids)
    runtime.tell(EventName.MEMORY_FORGOTTEN, ids=ids, reason=ForgetReason.EXPLICIT.value)
    await runtime.hooks.on_forget(page, ForgetReason.EXPLICIT)
    return sum(gone)
