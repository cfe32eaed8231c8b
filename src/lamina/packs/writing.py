"""The writing half of the packs: the store first, then the row that search runs over."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Self

from lamina.domain.pack import Pack, PackMemory
from lamina.domain.storable_pack import check_revision
from lamina.domain.text import check_name
from lamina.errors import Conflict, LaminaError, MemoryNotFound, PackNotFound
from lamina.packs.changing import Change
from lamina.packs.heads import ATTEMPTS, PackHeads
from lamina.packs.inputs import PackMemoryInput, build_memory
from lamina.packs.pack_index import PackIndex
from lamina.ports.clock import Clock, IdFactory
from lamina.ports.pack_store import PackStore
from lamina.telemetry import place_of

__all__ = ["Writer"]

log = logging.getLogger(__name__)

_SCREENED = ("content", "tags", "metadata", "provenance")
"""Fields with a caller's own words: a change of others, such as a deletion, never fails for what is there already."""


class Writer:
    """Adds, changes and removes memories. What a failure leaves between the two steps the next change mends."""

    def __init__(
        self, index: PackIndex, store: PackStore, heads: PackHeads, *, tenant: str, clock: Clock, new_id: IdFactory
    ) -> None:
        self._index = index
        self._store = store
        self._heads = heads
        self._tenant = tenant
        self._clock = clock
        self._new_id = new_id

    def over(self, heads: PackHeads) -> Self:
        """The same, allowed to change what these heads allow."""
        return type(self)(self._index, self._store, heads, tenant=self._tenant, clock=self._clock, new_id=self._new_id)

    async def find(self, id: str, owner: str | None) -> PackMemory:
        """The memory, without content, if it is in a pack that the owner sees.

        Raises:
            MemoryNotFound: it is not.
        """
        memory, _ = await self._find(id, owner)
        return memory

    async def _find_to_change(self, id: str, owner: str | None, *, even_deleted: bool = False) -> PackMemory:
        """As `find`, for a change of it. Raises as `PackHeads.check_change` too."""
        memory, pack = await self._find(id, owner, even_deleted=even_deleted)
        self._heads.check_change(pack)
        return memory

    async def _find(self, id: str, owner: str | None, *, even_deleted: bool = False) -> tuple[PackMemory, Pack]:
        check_name("id", id)
        found = await self._store.get_memories(self._tenant, [id], with_content=False)
        packs = await self._heads.visible([each.pack_id for each in found], owner)
        for memory in found:
            if memory.pack_id in packs and (even_deleted or not memory.is_deleted):
                return memory, packs[memory.pack_id]
        raise MemoryNotFound(id)

    async def add(self, pack: Pack, items: Sequence[PackMemoryInput]) -> list[PackMemory]:
        """Add the memories, all or none; as they are then, in order.

        If their rows cannot be written they are taken back, and what went wrong is raised.
        """
        now = self._clock()
        built = (build_memory(each, pack, self._new_id(), now) for each in items)
        memories = [self._heads.secrets.pack_memory(each) for each in built]
        if not memories:
            return []
        await self._store.add_memories(memories, now=now)
        try:
            await self._index.project(memories)
        except Exception:  # an embedder may be a host's own
            await self._take_back(memories)
            raise
        await self.reflect([])
        ids = [each.id for each in memories]
        kept = {each.id: each for each in await self._store.get_memories(self._tenant, ids)}
        return [kept[id] for id in ids if id in kept]

    async def change(
        self,
        id: str,
        owner: str | None,
        how: Change,
        *,
        expected_revision: int | None = None,
    ) -> None:
        """Make of the memory, which comes without content, what `how` makes of it; None means that it stays.

        Raises:
            MemoryNotFound: the owner sees no such memory.
            Conflict: it has another revision than the expected one, or kept changing; or as `PackStore.save_memory`.
        """
        if expected_revision is not None:
            check_revision("expected_revision", expected_revision)
        for _ in range(ATTEMPTS):
            memory = await self._find_to_change(id, owner)
            if expected_revision is not None and memory.revision != expected_revision:
                problem = f"it has revision {memory.revision}, not {expected_revision}"
                raise Conflict(f"The memory {id!r}", problem)
            now = self._clock()
            changed = how(memory, now)
            if changed is None:
                return
            changed = changed.replace(updated_at=max(now, memory.updated_at))
            if any(getattr(changed, field) != getattr(memory, field) for field in _SCREENED):
                changed = self._heads.secrets.pack_memory(changed)
            if await self._store.save_memory(changed, expected_revision=memory.revision, now=now):
                await self.reflect([id])
                return
        raise Conflict(f"The memory {id!r}", f"it changed {ATTEMPTS} times while it was being edited")

    async def supersede(self, old_id: str, by: str, owner: str | None) -> None:
        """Mark the old memory as superseded."""
        for id in (old_id, by):
            await self._find_to_change(id, owner)
        await self._store.supersede(self._tenant, old_id, by=by, now=self._clock())
        await self.reflect([old_id, by])

    async def delete(
        self, id: str, owner: str | None, *, permanent: bool, expected_revision: int | None = None
    ) -> bool:
        """Delete the memory; False if the owner sees none.

        For good, it is deleted softly first: so whatever fails, it is never found again.

        Raises:
            Conflict: it is not deleted, and has another revision than the expected one.
        """
        try:
            memory = await self._find_to_change(id, owner, even_deleted=permanent)
            if not memory.is_deleted:
                await self.change(
                    id, owner, lambda each, _: each.replace(is_deleted=True), expected_revision=expected_revision
                )
        except MemoryNotFound:
            return False
        if not permanent:
            return True
        await self._index.remove([id])
        was_there = await self._store.delete_memory(self._tenant, id)
        await self.reflect([])
        return was_there

    async def delete_pack(
        self, name: str, owner: str | None, *, permanent: bool, expected_revision: int | None = None
    ) -> bool:
        """Delete the pack with the rows of its memories; False if the owner sees none of this name.

        For good, it is deleted softly first: so whatever fails, it is never found again.

        Raises:
            Conflict: it is not deleted, and has another revision than the expected one.
        """
        try:
            packs = [await self._heads.delete(name, owner, expected_revision)]
        except PackNotFound:
            packs = await self._heads.deleted(name, owner) if permanent else []
            for pack in packs:
                self._heads.check_change(pack)
        for pack in packs:
            await (self._purge_pack(pack) if permanent else self._remove_rows(pack))
        return bool(packs)

    async def _remove_rows(self, pack: Pack) -> None:
        try:
            await self._index.remove_pack(pack.id)
        except LaminaError as error:
            log.warning("the pack %s is deleted, but not yet in the index: %s", pack.id, place_of(error))

    async def _purge_pack(self, pack: Pack) -> None:
        await self._index.remove_pack(pack.id)
        await self._store.purge_pack(self._tenant, pack.id)
        await self.reflect([])

    async def reflect(self, ids: Sequence[str]) -> None:
        """Make the rows what these memories are now, and mend what earlier failures left.

        A failure is logged and not raised: what was asked for is done, and the next change or sweep mends it.
        """
        try:
            if ids:
                await self._index.project(await self._store.get_memories(self._tenant, ids))
            await self._index.mend()
        except Exception as error:  # noqa: BLE001 - an embedder may be a host's own
            log.warning("the index of packs is behind the store: %s", place_of(error))

    async def _take_back(self, memories: Sequence[PackMemory]) -> None:
        try:
            for memory in memories:
                await self._store.delete_memory(self._tenant, memory.id)
            await self._index.remove([memory.id for memory in memories])
        except LaminaError as error:
            log.warning("could not take back %d memories without rows: %s", len(memories), place_of(error))
