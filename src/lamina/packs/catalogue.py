"""The catalogue of packs: made, listed, changed and deleted, without a look at their memories."""

from __future__ import annotations

import builtins
import copy
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

from lamina import registry
from lamina.domain.memory import DEFAULT_NAME, UNSET, Unset
from lamina.domain.pack import Pack, PackMetadata, PackStatus, PackSummary, PackType
from lamina.domain.pack_decay import Decay
from lamina.domain.text import check_name
from lamina.memory.factory import DEFAULT_EMBEDDER
from lamina.memory.inputs import read_tags
from lamina.memory.secret_screen import SecretScreen
from lamina.packs.arguments import Arguments
from lamina.packs.changing import pack_changes
from lamina.packs.discovering import Discoverer
from lamina.packs.fading import Fading
from lamina.packs.heads import PackHeads, summary_of
from lamina.packs.inputs import read_by, read_decay, read_flag, read_kind, read_metadata, read_names, read_text
from lamina.packs.pack_index import PackIndex
from lamina.packs.reducers import Reducer
from lamina.packs.retrieving import Retriever
from lamina.packs.writing import Writer
from lamina.ports.clock import Clock, IdFactory, utc_now
from lamina.ports.embedder import Embedder
from lamina.ports.events import Emit
from lamina.ports.memory_adapter import MemoryAdapter
from lamina.ports.pack_store import PackStore
from lamina.settings.packs import PacksConfig

__all__ = ["PackCatalogue", "new_pack_id"]


def new_pack_id() -> str:
    """A random UUID."""
    return str(uuid.uuid4())


class PackCatalogue:
    """The half of `ContextPacks` that is about packs as a whole."""

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
        reducer: Reducer | None = None,
    ) -> None:
        self.tenant = check_name("tenant", tenant)
        self.config = config or PacksConfig()
        made = registry.load_embedder(DEFAULT_EMBEDDER) if isinstance(embedder, Unset) else embedder
        self._store = store
        self._clock = clock
        self._new_id = new_id
        self._arguments = Arguments(self.tenant, self.config, made)
        self._index = PackIndex(adapter, store, tenant=tenant, embedder=made, clock=clock, new_id=new_id)
        secrets = SecretScreen(self.config.secrets or "off", tenant=tenant, clock=clock, emit=emit)
        self._heads = PackHeads(store, tenant=tenant, embedder=made, clock=clock, secrets=secrets)
        self._discoverer = Discoverer(store, tenant=tenant, embedder=made)
        self._retriever = Retriever(self._index, store, tenant=tenant, clock=clock, emit=emit)
        self._fading = Fading(store, self._index, tenant=tenant, reducer=reducer, clock=clock, emit=emit)
        self._writer = Writer(self._index, store, self._heads, tenant=tenant, clock=clock, new_id=new_id)

    def without_shared_writes(self) -> Self:
        """The same packs for somebody who sees what is shared, but changes only what is an owner's own.

        Whatever would change a shared pack or what is in it raises `ScopeError`. Not to be closed by itself.
        """
        view, heads = copy.copy(self), self._heads.sparing_shared()
        view._heads, view._writer = heads, self._writer.over(heads)  # noqa: SLF001 - it is of this very class
        return view

    @property
    def embedder(self) -> Embedder | None:
        """What makes the vectors, if anything does."""
        return self._index.space.embedder

    async def initialize(self) -> None:
        """Open the store and the adapter, and mend what an earlier failure left between them. Idempotent."""
        await self._store.initialize()
        await self._index.load()
        await self._writer.reflect([])

    async def close(self) -> None:
        """Let go of the store, the adapter and the embedder; not to be called where others use them. Idempotent."""
        await self._index.close()
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
        status: PackStatus | str | Unset = UNSET,
        owner: str | None = None,
        expected_revision: int | None = None,
    ) -> Pack:
        """Change what is given; the pack as it is then. With another decay its memories are due anew.

        A `status` of `archived` is what `archive_pack` does, `active` undoes it.

        Raises:
            PackNotFound: there is none that the owner sees.
            Conflict: it has another revision than the expected one.
            PackExists: the new name is taken.
        """
        changes = pack_changes(
            name=new_name,
            type=type,
            description=description,
            tags=tags,
            metadata=metadata,
            decay=decay,
            status=status,
        )
        return await self._heads.change(name, owner, changes, expected_revision)

    async def archive_pack(self, name: str, *, owner: str | None = None) -> Pack:
        """Let the pack be found no more and take no memories; its own can still be read by its name."""
        return await self._heads.change(name, owner, {"status": PackStatus.ARCHIVED})

    async def activate(self, name: str, *, owner: str | None = None) -> Pack:
        """Undo `archive_pack`."""
        return await self._heads.change(name, owner, {"status": PackStatus.ACTIVE})

    async def delete(
        self,
        name: str,
        *,
        permanent: bool = False,
        owner: str | None = None,
        expected_revision: int | None = None,
    ) -> bool:
        """Delete the pack with its memories; False if there is none that the owner sees.

        Its name is free afterwards. With `permanent` it is removed for good, and if it is deleted already those
        that had its name, or its id, are: so what failed half-way can be done again. While an own pack of this name
        is deleted and not removed, the owner's call never means the shared one.

        Raises:
            Conflict: it has another revision than the expected one; it stays.
        """
        return await self._writer.delete_pack(
            name, owner, permanent=read_flag("permanent", permanent), expected_revision=expected_revision
        )

    async def summary(self, name: str, *, owner: str | None = None) -> PackSummary:
        """The first layer: what the pack is about. Reads nothing of its memories."""
        return summary_of(await self._heads.find(name, owner))

    async def metadata(self, name: str, *, owner: str | None = None) -> PackMetadata:
        """The second layer: what the pack holds, counted. Reads none of its texts, and counts as no access."""
        return await self._store.statistics(self.tenant, (await self._heads.find(name, owner)).id)

    async def _found(
        self, pack: str | Iterable[str], owner: str | None, by: Literal["name", "id"] = "name"
    ) -> builtins.list[str]:
        """The ids of the packs of this name, or these; or these ids, if the owner sees the packs."""
        if read_by(by) == "id":
            return [each.id for each in await self._heads.find_by_ids(read_names("pack", pack), owner)]
        return [(await self._heads.find(name, owner)).id for name in read_names("pack", pack)]
