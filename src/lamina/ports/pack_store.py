"""What keeps Context Packs: the truth about packs and their memories, and the originals of what has faded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, Self

from lamina.domain.pack import Pack, PackFace, PackMemory, PackMetadata, PackOrder
from lamina.domain.pack_decay import Tier
from lamina.domain.pack_query import FOUND_TIERS, DuePlace, PackMemoryQuery, PackQuery

__all__ = ["FOUND_TIERS", "DuePlace", "PackMemoryQuery", "PackQuery", "PackStore"]


class PackStore(ABC):
    """Packs, their memories and the originals, the same on every backend. What a method returns from is durable.

    Every method is atomic, and safe beside any other, from other tasks, threads and processes too. A tenant is
    part of every key and compared for equality, as every id and owner is. Texts are kept clean, and returned so;
    texts are ordered by code point. What is returned is the caller's own. The store decides nothing about fading
    but keeps, for each memory, the instant at which it is due next (`lamina.domain.pack_decay`).

    What search runs over, the text that a tier has left of a memory and its vector, is not here but in a
    memory adapter, as a projection. A memory whose projection is older than itself is `unprojected`.

    Raises:
        InvalidInput: an argument cannot be taken (see `lamina.domain.storable_pack`); nothing was written.
        InvalidType: likewise, for its type.
        AdapterUnavailable: it cannot be reached now; trying again may help.
        StoreDamaged: its data cannot be read as ours.
        AdapterError: anything else that went wrong in it.
    """

    name: ClassVar[str]

    @abstractmethod
    async def initialize(self) -> None:
        """Open it, and bring its layout up to date. Idempotent."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of it. Idempotent."""

    async def __aenter__(self) -> Self:
        """Open it."""
        await self.initialize()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of it."""
        await self.close()

    # Packs.

    @abstractmethod
    async def create_pack(self, pack: Pack) -> None:
        """Keep a new pack, of revision 1 whatever the given one says.

        Raises:
            PackExists: the owner has a pack of this name that is not deleted, or the tenant one of this id.
        """

    @abstractmethod
    async def get_packs(self, tenant: str, ids: Sequence[str]) -> list[Pack]:
        """The packs of these ids that there are, whatever their owner and status, by id; without embeddings."""

    @abstractmethod
    async def find_pack(self, tenant: str, name: str, *, owner: str | None) -> Pack | None:
        """The pack of this name that is not deleted: of exactly this owner, None being nobody's; without embedding."""

    @abstractmethod
    async def list_packs(self, query: PackQuery, *, limit: int | None = None, offset: int = 0) -> list[Pack]:
        """Packs by name, then by id; without embeddings. Reads nothing of their memories."""

    @abstractmethod
    async def pack_faces(self, query: PackQuery, *, limit: int, after: str | None = None) -> list[PackFace]:
        """What packs are found by, with embeddings, by id; `after` goes on behind an id. Reads no memories either."""

    @abstractmethod
    async def count_packs(self, query: PackQuery) -> int:
        """How many `list_packs` would return without a limit."""

    @abstractmethod
    async def save_pack(self, pack: Pack, *, expected_revision: int) -> bool:
        """Replace the pack, which gets the next revision.

        False, with nothing changed, if it has another revision than the expected one, or is gone. Its tenant,
        owner and `created_at` stay what they are. An `embedding` of None keeps the kept one if `fingerprint` is
        still that one's; otherwise the pack has none from then on. When its memories are due next is reckoned
        anew if it fades in another way, is deleted, or no longer is.

        Raises:
            PackExists: the owner has another pack of this name that is not deleted.
        """

    @abstractmethod
    async def purge_pack(self, tenant: str, id: str) -> bool:
        """Remove the pack for good, with its memories, their originals and relationships; False if there is none.

        What they superseded in other packs goes on as in `delete_memory`.
        """

    # Memories.

    @abstractmethod
    async def add_memories(self, memories: Sequence[PackMemory], *, now: datetime) -> None:
        """Keep new memories of one tenant with their originals, all or none.

        `tier`, `access_count`, `last_accessed`, `is_deleted` and `revision` begin anew.

        A relationship `supersedes` marks its target as superseded by the new one, and `superseded_by` gives the
        one that it names a relationship `supersedes`: both sides in one step. Targets may be in the same batch. One
        that is live after that supersedes the live one of its pack that has its name; of two in the batch, the
        later one does. Their packs' `updated_at` becomes `now`.

        Raises:
            PackNotFound: a pack is not there, or deleted.
            Conflict: an id is taken, a pack is archived, or a target is superseded by another memory already.
            InvalidInput: a target is not there, or deleted, or in a pack of another owner, or is the memory itself;
                or superseding would go round in a circle. What is in an owner's pack may relate to what is shared
                in the tenant, but not supersede it.
        """

    @abstractmethod
    async def get_memories(self, tenant: str, ids: Sequence[str], *, with_content: bool = True) -> list[PackMemory]:
        """The memories of these ids that there are, deleted ones too, by id; with their originals or with ''."""

    @abstractmethod
    async def find_memories(
        self,
        query: PackMemoryQuery,
        *,
        order: PackOrder = "oldest",
        limit: int | None = None,
        offset: int = 0,
        with_content: bool = True,
    ) -> list[PackMemory]:
        """Memories in the order asked for; pages tile as long as nothing is read or changed."""

    @abstractmethod
    async def count_memories(self, query: PackMemoryQuery) -> int:
        """How many `find_memories` would return without a limit."""

    @abstractmethod
    async def statistics(self, tenant: str, pack_id: str) -> PackMetadata:
        """The pack's memories counted, without those that are superseded or deleted; reads none of their texts."""

    @abstractmethod
    async def save_memory(self, memory: PackMemory, *, expected_revision: int, now: datetime) -> bool:
        """Replace the memory, with a new original if its `content` is not '', and count up its revision.

        False, with nothing changed, if it has another revision, or is gone. Its tenant, pack, `created_at`,
        `access_count` and `superseded_by` stay; `last_accessed` never goes back; `tier_since` is `now` if the tier
        is another one. Relationships are replaced; what a `supersedes` that is no longer among them had marked is
        live again, without its name if that is another's by now. When it is due next is reckoned anew. Its pack's
        `updated_at` becomes `now`.

        Raises:
            Conflict: its name is that of another live memory of the pack; or as in `add_memories`.
            InvalidInput: as in `add_memories`.
        """

    @abstractmethod
    async def supersede(self, tenant: str, old_id: str, *, by: str, now: datetime) -> None:
        """Mark one as superseded by the other, on both sides in one step. Does nothing where it is so already.

        Both count up their revision; their packs' `updated_at` becomes `now`.

        Raises:
            MemoryNotFound: one of them is not there, or deleted.
            Conflict: the old one is superseded by a third.
            InvalidInput: they are the same, of two owners' packs, or it would go round in a circle.
        """

    @abstractmethod
    async def delete_memory(self, tenant: str, id: str) -> bool:
        """Remove it for good, with its original and all relationships from and to it; False if there is none.

        What it superseded is superseded by what superseded it, or else live again, without its name if that is
        another's by now. Both sides count up their revision.
        """

    @abstractmethod
    async def touch(self, tenant: str, ids: Sequence[str], *, now: datetime) -> dict[str, Tier]:
        """Count one access of each, and put it back to the full tier; the tiers that they were in, by id.

        `last_accessed` becomes `now`, but never earlier than it was. Archived, deleted and unknown ones are
        passed over.
        """

    # Fading.

    @abstractmethod
    async def due(
        self,
        tenant: str,
        *,
        until: datetime,
        limit: int,
        after: DuePlace | None = None,
        pack_id: str | None = None,
    ) -> list[tuple[datetime, PackMemory]]:
        """The memories, without content, that are due for a lower tier by then, each with when; the longest due first.

        One that is pinned is due only when it expires; a deleted one, or one of a deleted pack, never. `after`
        goes on behind a place of the walk. With `pack_id`, of that pack alone.
        """

    @abstractmethod
    async def set_tier(
        self, tenant: str, id: str, tier: Tier, *, expected_revision: int, now: datetime, only_if_due: bool = False
    ) -> bool:
        """Put the memory into this tier, with the next revision.

        False, with nothing changed, if it has another revision, or is gone; with `only_if_due` also if it is not
        due by `now` any more: reading a memory that is in the full tier does not change its revision.
        """

    @abstractmethod
    async def unprojected(self, tenant: str, *, limit: int) -> list[PackMemory]:
        """Memories, deleted ones too, whose projection is older than themselves, with content; by id."""

    @abstractmethod
    async def mark_projected(self, tenant: str, revisions: dict[str, int]) -> None:
        """Note that the projection of each is of this revision. Never takes one back, nor beyond the memory's own.

        Unknown ids are passed over.
        """

    @abstractmethod
    async def tenants(self) -> list[str]:
        """The tenants that have packs, in order."""
