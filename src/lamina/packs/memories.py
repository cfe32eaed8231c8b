"""The memories of packs: added, shown, changed, superseded and put away."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from lamina.domain.memory import UNSET, Unset
from lamina.domain.pack import MemoryType, PackMemory, PackSource, Relationship
from lamina.errors import MemoryNotFound
from lamina.packs.catalogue import PackCatalogue
from lamina.packs.changing import archived, memory_changes, pinned, restored, unpinned
from lamina.packs.inputs import PackMemoryInput, read_flag, read_inputs, read_names
from lamina.ports.pack_store import FOUND_TIERS

__all__ = ["PackMemories"]


class PackMemories(PackCatalogue):
    """The part of `ContextPacks` that is about single memories."""

    async def add(
        self,
        pack: str,
        content: str,
        memory_type: MemoryType | str = MemoryType.FACT,
        *,
        name: str | None = None,
        source: PackSource | str = PackSource.CONVERSATION,
        confidence: float = 1.0,
        provenance: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        relationships: Sequence[Relationship | Mapping[str, str]] = (),
        expires_at: datetime | str | None = None,
        id: str | None = None,
        owner: str | None = None,
    ) -> PackMemory:
        """Add a memory, which should be understood by itself; as it is then.

        `name` is a label for direct retrieval: a memory of the pack that has it is superseded. A relationship
        `supersedes` does the same to its target, and `related_to` and others only relate. At `expires_at` it
        is archived. If the embedder fails, the memory is kept and found by words: see `reembed_missing`.

        Raises:
            PackNotFound: there is none that the owner sees.
            Conflict: the pack is archived, the id is taken, or a target is superseded by another memory.
            InvalidInput: an argument cannot be taken; nothing was written.
            InvalidType: likewise, for its type.
        """
        given = PackMemoryInput(
            content=content,
            memory_type=memory_type,
            name=name,
            source=source,
            confidence=confidence,
            provenance=provenance,
            tags=tags,
            metadata=metadata,
            relationships=relationships,
            expires_at=expires_at,
            id=id,
        )
        (added,) = await self._writer.add(await self._heads.find_to_change(pack, owner), [given])
        return added

    async def add_many(
        self, pack: str, items: Iterable[PackMemoryInput | Mapping[str, Any] | str], *, owner: str | None = None
    ) -> builtins.list[PackMemory]:
        """Add memories, all or none, in order; each is a text, a mapping of `add`'s arguments, or an input."""
        found = await self._heads.find_to_change(pack, owner)
        return await self._writer.add(found, read_inputs(items))

    async def memory(self, id: str, *, touch: bool = True, owner: str | None = None) -> PackMemory:
        """The memory of this id. One that is superseded or archived counts as no access.

        Raises:
            MemoryNotFound: there is none that the owner sees.
        """
        wants_touch = read_flag("touch", touch)
        memory = await self._writer.find(id, owner)
        is_read = wants_touch and memory.tier in FOUND_TIERS and memory.superseded_by is None
        shown = await self._retriever.shown([memory], touch=is_read)
        if not shown:
            raise MemoryNotFound(id)
        return shown[0]

    async def read(
        self, ids: Iterable[str], *, touch: bool = True, owner: str | None = None
    ) -> builtins.list[PackMemory]:
        """The memories of these ids, in their order, as a retrieval shows them; superseded ones count as read too.

        Those that the owner does not see, that are deleted, or archived, are left out.
        """
        wanted = read_names("ids", ids)
        found = {each.id: each for each in await self._store.get_memories(self.tenant, wanted, with_content=False)}
        packs = await self._heads.visible(sorted({each.pack_id for each in found.values()}), owner)
        visible = [
            found[id] for id in wanted if id in found and not found[id].is_deleted and found[id].pack_id in packs
        ]
        shown = await self._retriever.shown([each for each in visible if each.tier in FOUND_TIERS], touch=touch)
        return [each for each in shown if each.tier in FOUND_TIERS]  # none that was archived meanwhile

    async def with_embeddings(self, memories: Iterable[PackMemory]) -> builtins.list[PackMemory]:
        """The memories with their vectors, where they have one; archived ones have none."""
        given = list(memories)
        rows = await self._index.rows(each.id for each in given)
        return [each.replace(embedding=rows[each.id].entry.embedding if each.id in rows else None) for each in given]

    async def update_memory(
        self,
        id: str,
        *,
        content: str | Unset = UNSET,
        memory_type: MemoryType | str | Unset = UNSET,
        name: str | Unset | None = UNSET,
        source: PackSource | str | Unset = UNSET,
        confidence: float | Unset = UNSET,
        provenance: str | Unset | None = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        metadata: Mapping[str, Any] | Unset | None = UNSET,
        relationships: Sequence[Relationship | Mapping[str, str]] | Unset = UNSET,
        expires_at: datetime | str | Unset | None = UNSET,
        owner: str | None = None,
        expected_revision: int | None = None,
    ) -> PackMemory:
        """Change what is given; a new content is in the full tier. The memory as its tier shows it.

        Raises:
            MemoryNotFound: there is none that the owner sees.
            Conflict: it has another revision than the expected one, or its new name is another memory's.
        """
        change = memory_changes(
            content=content,
            memory_type=memory_type,
            name=name,
            source=source,
            confidence=confidence,
            provenance=provenance,
            tags=tags,
            metadata=metadata,
            relationships=relationships,
            expires_at=expires_at,
        )
        await self._writer.change(id, owner, change, expected_revision=expected_revision)
        return await self.memory(id, touch=False, owner=owner)

    async def supersede(self, old_id: str, *, by: str, owner: str | None = None) -> PackMemory:
        """Mark the old memory as superseded by the other one, on both sides; the old one, untouched.

        Raises:
            MemoryNotFound: the owner does not see one of them.
            Conflict: the old one is superseded by a third.
            InvalidInput: they are the same, or it would go round in a circle.
        """
        await self._writer.supersede(old_id, by, owner)
        return await self.memory(old_id, touch=False, owner=owner)

    async def pin(self, id: str, *, owner: str | None = None) -> PackMemory:
        """Never let the memory fade, until `unpin`; it still expires. Does nothing where it is pinned."""
        await self._writer.change(id, owner, pinned)
        return await self.memory(id, touch=False, owner=owner)

    async def unpin(self, id: str, *, owner: str | None = None) -> PackMemory:
        """Let the memory fade again; how long it was idle counts from its last access, as before."""
        await self._writer.change(id, owner, unpinned)
        return await self.memory(id, touch=False, owner=owner)

    async def archive(self, id: str, *, owner: str | None = None) -> PackMemory:
        """Put the memory into cold storage: it is not retrieved, and comes back only by `restore`."""
        await self._writer.change(id, owner, archived)
        return await self.memory(id, touch=False, owner=owner)

    async def restore(self, id: str, *, owner: str | None = None) -> PackMemory:
        """Bring an archived memory back to the full tier, as if it was read now; it does not expire any more.

        Does nothing where it is not archived.
        """
        await self._writer.change(id, owner, restored)
        return await self.memory(id, touch=False, owner=owner)

    async def delete_memory(
        self, id: str, *, permanent: bool = False, owner: str | None = None, expected_revision: int | None = None
    ) -> bool:
        """Delete the memory; False if there is none that the owner sees.

        With `permanent` it is removed for good, even one that was deleted before, and what it superseded is
        live again. If its row cannot be removed, that is raised, and nobody finds the memory meanwhile.

        Raises:
            Conflict: it has another revision than the expected one; it stays.
        """
        return await self._writer.delete(
            id, owner, permanent=read_flag("permanent", permanent), expected_revision=expected_revision
        )

    async def memories(
        self,
        pack: str | Iterable[str],
        *,
        memory_type: MemoryType | str | None = None,
        name: str | None = None,
        tags: Iterable[str] = (),
        min_confidence: float = 0.0,
        include_superseded: bool = False,
        include_archived: bool = False,
        touch: bool = True,
        limit: int = 100,
        offset: int = 0,
        owner: str | None = None,
    ) -> builtins.list[PackMemory]:
        """A page of the memories, oldest first. Listing is reading: those of the page count as read, and are whole.

        Archived ones, if they are asked for, are listed without content, and do not come back by that.

        Raises:
            PackNotFound: there is no such pack that the owner sees.
            InvalidInput: an argument is out of range.
        """
        wants_touch = read_flag("touch", touch)
        packs = await self._found(pack, owner)
        asked = self._arguments.memories(
            packs,
            memory_type=memory_type,
            name=name,
            tags=tags,
            min_confidence=min_confidence,
            include_superseded=include_superseded,
            include_archived=include_archived,
        )
        size = self._arguments.limit(limit)
        page = await self._store.find_memories(asked, limit=size, offset=offset, with_content=False)
        return await self._retriever.shown(page, touch=wants_touch)

    async def count_memories(
        self,
        pack: str | Iterable[str],
        *,
        memory_type: MemoryType | str | None = None,
        name: str | None = None,
        tags: Iterable[str] = (),
        min_confidence: float = 0.0,
        include_superseded: bool = False,
        include_archived: bool = False,
        owner: str | None = None,
    ) -> int:
        """How many memories `memories` lists in all; counts as no access."""
        asked = self._arguments.memories(
            await self._found(pack, owner),
            memory_type=memory_type,
            name=name,
            tags=tags,
            min_confidence=min_confidence,
            include_superseded=include_superseded,
            include_archived=include_archived,
        )
        return await self._store.count_memories(asked)
