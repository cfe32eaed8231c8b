"""Context Packs: knowledge in named containers, found in two phases, that fades when nobody needs it."""

from __future__ import annotations

import builtins
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from lamina import registry
from lamina.domain.memory import DEFAULT_NAME, UNSET, MemoryEntry, Unset
from lamina.domain.pack import (
    MemoryType,
    Pack,
    PackHit,
    PackMatch,
    PackMemory,
    PackMetadata,
    PackSource,
    PackStatus,
    PackSummary,
    PackType,
    Relationship,
)
from lamina.domain.pack_decay import Decay
from lamina.domain.recall import Results
from lamina.domain.text import check_name
from lamina.errors import MemoryNotFound
from lamina.memory.embedding import Progress, ReembedReport
from lamina.memory.factory import DEFAULT_EMBEDDER
from lamina.memory.inputs import read_tags
from lamina.packs.arguments import Arguments
from lamina.packs.bridging import ImportReport, entries_of, import_entries
from lamina.packs.changing import memory_changes, pack_changes, pinned, restored, unpinned
from lamina.packs.discovering import Discoverer
from lamina.packs.heads import PackHeads, summary_of
from lamina.packs.inputs import PackMemoryInput, read_decay, read_input, read_kind, read_metadata, read_text
from lamina.packs.pack_index import PackIndex
from lamina.packs.retrieving import Retriever
from lamina.packs.writing import Writer
from lamina.ports.clock import Clock, IdFactory, utc_now
from lamina.ports.embedder import Embedder
from lamina.ports.events import Emit
from lamina.ports.memory_adapter import MemoryAdapter
from lamina.ports.pack_store import FOUND_TIERS, PackStore
from lamina.settings.packs import PacksConfig

__all__ = ["ContextPacks", "new_pack_id"]


def new_pack_id() -> str:
    """A random UUID."""
    return str(uuid.uuid4())


class ContextPacks:
    """The packs of one tenant and their memories.

    With an `owner`, a call sees that owner's own packs and the shared ones of the tenant, and a name means the
    owner's own pack first; without, the shared ones alone. What is another's is as absent as what there is not.
    A memory that is retrieved or listed comes back whole, however far it had faded, and counts as read; with
    `touch` off it is shown as its tier has left it, and nothing changes. All coroutines may run side by side,
    in several processes too.

    Args:
        store: The truth about packs and their memories, such as `SqlitePackStore(path)`.
        adapter: What search runs over: a collection of their own, such as `SqliteAdapter(path, table="lamina_packs")`.
        tenant: Whose packs they are.
        embedder: What makes the vectors: by default the one that comes with Lamina; None for a search by words alone.
        config: Defaults and limits.
        clock: Where times come from.
        new_id: Where ids come from.
        emit: Told of memories that come back whole, and of those that fade.
    """

    def __init__(
        self,
        store: PackStore,
        adapter: MemoryAdapter,
        *,
        tenant: str = DEFAULT_NAME,
        embedder: Embedder | Unset | None = UNSET,
        config: PacksConfig | None = None,
        clock: Clock = utc_now,
        new_id: IdFactory = new_pack_id,
        emit: Emit | None = None,
    ) -> None:
        self.tenant = check_name("tenant", tenant)
        self.config = config or PacksConfig()
        made = registry.load_embedder(DEFAULT_EMBEDDER) if isinstance(embedder, Unset) else embedder
        self._store = store
        self._clock = clock
        self._new_id = new_id
        self._arguments = Arguments(self.tenant, self.config)
        self._index = PackIndex(adapter, store, tenant=tenant, embedder=made, clock=clock, new_id=new_id)
        self._heads = PackHeads(store, tenant=tenant, embedder=made, clock=clock)
        self._discoverer = Discoverer(store, tenant=tenant, embedder=made)
        self._retriever = Retriever(self._index, store, tenant=tenant, clock=clock, emit=emit)
        self._writer = Writer(self._index, store, self._heads, tenant=tenant, clock=clock, new_id=new_id)

    @property
    def embedder(self) -> Embedder | None:
        """What makes the vectors, if anything does."""
        return self._index.space.embedder

    async def initialize(self) -> None:
        """Open the store and the adapter, and mend what an earlier failure left between them. Idempotent."""
        await self._store.initialize()
        await self._index.adapter.initialize()
        await self._index.load()
        await self._writer.reflect([])

    async def close(self) -> None:
        """Let go of the store, the adapter and the embedder; not to be called where others use them. Idempotent."""
        await self._index.adapter.close()
        await self._store.close()
        if self.embedder is not None:
            await self.embedder.close()

    async def __aenter__(self) -> Self:
        await self.initialize()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Packs.

    async def create(
        self,
        name: str,
        type: PackType | str,
        *,
        description: str = "",
        tags: Iterable[str] = (),
        owner: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        decay: Decay | Mapping[str, Any] | None = None,
    ) -> Pack:
        """Make a pack. A `session` or `user` pack needs an owner; one of another type without is shared.

        `name` has 1 to 63 of a-z, 0-9, underscore and hyphen. The pack is found by its name, description and
        tags. `decay` says how its memories fade in place of its type's way.

        Raises:
            PackExists: the owner, or nobody, has one of this name already.
            InvalidInput: an argument cannot be taken; nothing was written.
            InvalidType: likewise, for its type.
        """
        now = self._clock()
        kind = read_kind("type", type, PackType)
        own = read_decay(decay)
        pack = Pack(
            id=self._new_id(),
            tenant=self.tenant,
            name=name,
            type=kind,
            created_at=now,
            updated_at=now,
            owner=owner,
            description=read_text("description", description),
            tags=read_tags("tags", tags),
            metadata=read_metadata(metadata),
            decay=self.config.decay_of(kind) if own is None else own,
        )
        return await self._heads.create(pack)

    async def get(self, name: str, *, owner: str | None = None) -> Pack:
        """The pack, without its vector.

        Raises:
            PackNotFound: there is none that the owner sees.
        """
        return await self._heads.find(name, owner)

    async def list(
        self,
        *,
        type: PackType | str | None = None,
        tag: str | None = None,
        status: PackStatus | str = PackStatus.ACTIVE,
        owner: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> builtins.list[PackSummary]:
        """The first layer of each pack, by name, then by id."""
        query = self._arguments.packs(type=type, tag=tag, status=status, owner=owner)
        return [summary_of(pack) for pack in await self._store.list_packs(query, limit=limit, offset=offset)]

    async def count(
        self,
        *,
        type: PackType | str | None = None,
        tag: str | None = None,
        status: PackStatus | str = PackStatus.ACTIVE,
        owner: str | None = None,
    ) -> int:
        """How many packs `list` would give without a limit."""
        return await self._store.count_packs(self._arguments.packs(type=type, tag=tag, status=status, owner=owner))

    async def update(
        self,
        name: str,
        *,
        new_name: str | Unset = UNSET,
        type: PackType | str | Unset = UNSET,
        description: str | Unset = UNSET,
        tags: Iterable[str] | Unset = UNSET,
        metadata: Mapping[str, Any] | Unset | None = UNSET,
        decay: Decay | Mapping[str, Any] | Unset | None = UNSET,
        owner: str | None = None,
        expected_revision: int | None = None,
    ) -> Pack:
        """Change what is given; the pack as it is then. With another decay its memories are due anew.

        Raises:
            PackNotFound: there is none that the owner sees.
            Conflict: it has another revision than the expected one.
            PackExists: the new name is taken.
        """
        changes = pack_changes(
            name=new_name, type=type, description=description, tags=tags, metadata=metadata, decay=decay
        )
        return await self._heads.change(name, owner, changes, expected_revision)

    async def archive_pack(self, name: str, *, owner: str | None = None) -> Pack:
        """Let the pack be found no more and take no memories; its own can still be read by its name."""
        return await self._heads.change(name, owner, {"status": PackStatus.ARCHIVED})

    async def activate(self, name: str, *, owner: str | None = None) -> Pack:
        """Undo `archive_pack`."""
        return await self._heads.change(name, owner, {"status": PackStatus.ACTIVE})

    async def delete(self, name: str, *, permanent: bool = False, owner: str | None = None) -> bool:
        """Delete the pack with its memories; False if there is none that the owner sees.

        Its name is free afterwards. With `permanent` it is removed for good; a pack that was deleted before
        is named by its id then.
        """
        return await self._writer.delete_pack(name, owner, permanent=permanent)

    async def summary(self, name: str, *, owner: str | None = None) -> PackSummary:
        """The first layer: what the pack is about. Reads nothing of its memories."""
        return summary_of(await self._heads.find(name, owner))

    async def metadata(self, name: str, *, owner: str | None = None) -> PackMetadata:
        """The second layer: what the pack holds, counted. Reads none of its texts, and counts as no access."""
        return await self._store.statistics(self.tenant, (await self._heads.find(name, owner)).id)

    # Memories.

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
        (added,) = await self._writer.add(await self._heads.find(pack, owner), [given])
        return added

    async def add_many(
        self, pack: str, items: Iterable[PackMemoryInput | Mapping[str, Any] | str], *, owner: str | None = None
    ) -> builtins.list[PackMemory]:
        """Add memories, all or none, in order; each is a text, a mapping of `add`'s arguments, or an input."""
        found = await self._heads.find(pack, owner)
        return await self._writer.add(found, [read_input(item) for item in items])

    async def memory(self, id: str, *, touch: bool = True, owner: str | None = None) -> PackMemory:
        """The memory of this id. One that is superseded or archived counts as no access.

        Raises:
            MemoryNotFound: there is none that the owner sees.
        """
        memory = await self._writer.find(id, owner)
        is_read = touch and memory.tier in FOUND_TIERS and memory.superseded_by is None
        shown = await self._retriever.shown([memory], touch=is_read)
        if not shown:
            raise MemoryNotFound(id)
        return shown[0]

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
