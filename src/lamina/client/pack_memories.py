"""The memories of packs of a server: added, shown, changed, superseded and put away."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

from lamina.client.pack_reading import new_memory, pack_memory_of, sendable_memory
from lamina.client.resource import PAGE, Resource, if_match
from lamina.client.transport import Request
from lamina.domain.memory import UNSET, Unset
from lamina.domain.pack import MemoryType, PackMemory, PackSource, Relationship
from lamina.domain.storable_pack import check_pack_name
from lamina.domain.text import check_name
from lamina.domain.validation import check_whole_number
from lamina.errors import InvalidInput, MemoryNotFound, PackNotFound
from lamina.memory.inputs import read_tags
from lamina.packs.inputs import PackMemoryInput, read_flag, read_inputs

__all__ = ["MOST", "PACKS", "PackMemories"]

PACKS: Final = ("utils", "context-packs")
MOST: Final = 2**31 - 1
_MEMORIES: Final = ("utils", "memories")
_LAST_PAGE: Final = 1_000_000_000

T = TypeVar("T")


class PackMemories(Resource):
    """The part of `Packs` that is about single memories."""

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
        owner: str | None = None,
    ) -> PackMemory:
        """Add a memory, whose id the server makes; as it is then.

        Raises:
            PackNotFound: there is none that the owner sees.
            Conflict: the pack is archived, or a target is superseded by another memory.
            InvalidInput: an argument cannot be taken; nothing was written.
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
        )
        asked = self._of_pack("POST", pack, "memories", owner=owner, body=new_memory(given))
        return await self._ask(asked, _single)

    async def add_many(
        self, pack: str, items: Iterable[PackMemoryInput | Mapping[str, Any] | str], *, owner: str | None = None
    ) -> builtins.list[PackMemory]:
        """Add memories, all or none, in order; each is a text, a mapping of `add`'s arguments, or an input.

        At most 1,000 at a time.
        """
        body = {"memories": [new_memory(each) for each in read_inputs(items)]}
        asked = self._of_pack("POST", pack, "memories", "batch", owner=owner, body=body)
        if not body["memories"]:
            return []
        return await self._ask(asked, lambda answer: [pack_memory_of(each) for each in answer["data"]])

    async def memory(self, id: str, *, touch: bool = True, owner: str | None = None) -> PackMemory:
        """The memory of this id. One that is superseded or archived counts as no access.

        Raises:
            MemoryNotFound: there is none that the owner sees.
        """
        asked = self._of_memory("GET", id, owner=owner, query={"touch": read_flag("touch", touch)})
        return await self._ask(asked, _single)

    async def with_embeddings(
        self, memories: Iterable[PackMemory], *, owner: str | None = None
    ) -> builtins.list[PackMemory]:
        """The memories with their vectors, where they have one; a request for each."""
        found = []
        for each in memories:
            query = {"touch": False, "include": "embedding"}
            asked = self._of_memory("GET", each.id, owner=owner, query=query)
            try:
                embedding = (await self._ask(asked, _single)).embedding
            except MemoryNotFound:
                embedding = None
            found.append(each.replace(embedding=embedding))
        return found

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
        changes = {
            "content": content,
            "memory_type": memory_type,
            "name": name,
            "source": source,
            "confidence": confidence,
            "provenance": provenance,
            "tags": tags,
            "metadata": metadata,
            "relationships": relationships,
            "expires_at": expires_at,
        }
        body = sendable_memory(changes)
        asked = self._of_memory("PATCH", id, owner=owner, body=body, if_match=if_match(expected_revision))
        return await self._ask(asked, _single)

    async def supersede(self, old_id: str, *, by: str, owner: str | None = None) -> PackMemory:
        """Mark the old memory as superseded by the other one, on both sides; the old one, untouched.

        Raises:
            MemoryNotFound: the owner does not see one of them.
            Conflict: the old one is superseded by a third.
            InvalidInput: they are the same, or it would go round in a circle.
        """
        return await self._ask(self._of_memory("POST", old_id, "supersede", owner=owner, body={"by": by}), _single)

    async def pin(self, id: str, *, owner: str | None = None) -> PackMemory:
        """Never let the memory fade, until `unpin`; it still expires."""
        return await self._ask(self._of_memory("POST", id, "pin", owner=owner), _single)

    async def unpin(self, id: str, *, owner: str | None = None) -> PackMemory:
        """Let the memory fade again."""
        return await self._ask(self._of_memory("POST", id, "unpin", owner=owner), _single)

    async def archive(self, id: str, *, owner: str | None = None) -> PackMemory:
        """Put the memory into cold storage: it is not retrieved, and comes back only by `restore`."""
        return await self._ask(self._of_memory("POST", id, "archive", owner=owner), _single)

    async def restore(self, id: str, *, owner: str | None = None) -> PackMemory:
        """Bring an archived memory back to the full tier, as if it was read now."""
        return await self._ask(self._of_memory("POST", id, "restore", owner=owner), _single)

    async def delete_memory(
        self, id: str, *, permanent: bool = False, owner: str | None = None, expected_revision: int | None = None
    ) -> bool:
        """Delete the memory, with `permanent` for good; False if there is none that the owner sees.

        Raises:
            Conflict: it has another revision than the expected one; it stays.
        """
        expected = if_match(expected_revision)
        if read_flag("permanent", permanent):
            asked = self._of_memory("POST", id, "permanent-delete", owner=owner, if_match=expected)
        else:
            asked = self._of_memory("DELETE", id, owner=owner, if_match=expected)
        try:
            await self._transport.ask(asked)
        except MemoryNotFound:
            return False
        return True

    async def memories(
        self,
        pack: str,
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
        """A page of one pack's memories, oldest first. Those of the page, and no others, count as read, and are whole.

        Raises:
            PackNotFound: there is no such pack that the owner sees.
            InvalidInput: an argument is out of range.
        """
        query = {
            "memory_type": memory_type,
            "name": name,
            "tag": read_tags("tags", tags),
            "min_confidence": min_confidence,
            "include_superseded": read_flag("include_superseded", include_superseded),
            "include_archived": read_flag("include_archived", include_archived),
            "touch": read_flag("touch", touch),
        }
        check_whole_number("limit", limit, 1, MOST)
        asked = self._of_pack("GET", pack, "memories", owner=owner, query=query)
        return await self._numbered(asked, pack_memory_of, limit=limit, offset=offset)

    async def count_memories(
        self,
        pack: str,
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
        query = {
            "memory_type": memory_type,
            "name": name,
            "tag": read_tags("tags", tags),
            "min_confidence": min_confidence,
            "include_superseded": read_flag("include_superseded", include_superseded),
            "include_archived": read_flag("include_archived", include_archived),
            "touch": False,
            "page_size": 1,
        }
        return await self._ask(self._of_pack("GET", pack, "memories", owner=owner, query=query), _total)

    def _of_pack(
        self,
        method: str,
        name: str,
        *below: str,
        owner: str | None,
        query: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Request:
        """A request about the pack.

        Raises:
            PackNotFound: no pack can have this name.
        """
        check_name("pack", name)
        try:
            check_pack_name(name)
        except InvalidInput:
            raise PackNotFound(name) from None
        asked = {"owner": self._for(owner), **(query or {})}
        return Request(method=method, path=(*PACKS, name, *below), query=asked, **more)

    def _of_memory(
        self, method: str, id: str, *below: str, owner: str | None, query: Mapping[str, Any] | None = None, **more: Any
    ) -> Request:
        asked = {"owner": self._for(owner), **(query or {})}
        return Request(method=method, path=(*_MEMORIES, check_name("id", id), *below), query=asked, **more)

    async def _numbered(
        self, asked: Request, read: Callable[[Any], T], *, limit: int | None, offset: int
    ) -> builtins.list[T]:
        """The items from `offset` on, at most `limit`, in pages that hold no others: what is listed counts as read."""
        items: builtins.list[T] = []
        place, most = check_whole_number("offset", offset, 0, MOST), PAGE
        if place:  # how many the server gives at once must be known beforehand: told by a page that is empty
            most = max(1, (await self._page(asked, read, size=PAGE, number=_LAST_PAGE))[1])
        while limit is None or len(items) < limit:
            size = _tile(place, most if limit is None else min(most, limit - len(items)))
            page, given, total = await self._page(asked, read, size=size, number=place // size + 1)
            items += page
            place += len(page)
            most = min(most, max(given, 1))
            if not page or place >= total:
                break
        return items

    async def _page(
        self, asked: Request, read: Callable[[Any], T], *, size: int, number: int
    ) -> tuple[builtins.list[T], int, int]:
        """The items of the page, how many the server gives at once if that is fewer than the size, and their total."""
        query = {**(asked.query or {}), "page_size": size, "page": number}
        return await self._ask(
            Request(method=asked.method, path=asked.path, query=query),
            lambda answer: (
                [read(each) for each in answer["data"]],
                int(answer["pagination"]["limit"]),
                int(answer["pagination"]["total_items"]),
            ),
        )


def _tile(place: int, most: int) -> int:
    """The largest page, of at most so many items, that begins at this place."""
    return next(size for size in range(most, 0, -1) if place % size == 0)


def _single(answer: Mapping[str, Any]) -> PackMemory:
    return pack_memory_of(answer["data"])


def _total(answer: Mapping[str, Any]) -> int:
    return int(answer["pagination"]["total_items"])
