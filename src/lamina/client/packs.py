"""Context Packs of a server."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from lamina.client.pack_memories import MOST, PACKS, PackMemories
from lamina.client.pack_reading import (
    hits_of,
    matches_of,
    pack_metadata_of,
    pack_of,
    sendable_decay,
    step_of,
    summary_of,
)
from lamina.client.resource import if_match, sendable
from lamina.client.transport import Request
from lamina.domain.memory import UNSET, Unset
from lamina.domain.pack import MemoryType, Pack, PackHit, PackMatch, PackMetadata, PackStatus, PackSummary, PackType
from lamina.domain.pack_decay import Decay
from lamina.domain.recall import Cutoff, Results, SearchMode
from lamina.domain.storable_pack import check_pack_name
from lamina.domain.validation import check_whole_number
from lamina.errors import PackNotFound
from lamina.memory.inputs import read_tags
from lamina.packs.changing import pack_changes
from lamina.packs.fading import FadingStep
from lamina.packs.inputs import read_by, read_decay, read_flag, read_kind, read_metadata, read_names, read_text

__all__ = ["Packs"]

_AT_ONCE = 100
"""What a server gives of a search at most."""


class Packs(PackMemories):
    """The verbs of `lamina.ContextPacks`, which says what they mean.

    Without an owner, of the client or of a call, they mean the shared packs.
    """

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

        Raises:
            PackExists: the owner, or nobody, has one of this name already.
            InvalidInput: an argument cannot be taken; nothing was written.
        """
        body = {
            "name": check_pack_name(name),
            "type": read_kind("type", type, PackType),
            "description": read_text("description", description),
            "tags": read_tags("tags", tags),
            "owner": self._for(owner),
            "metadata": read_metadata(metadata),
            "decay": sendable_decay(read_decay(decay)),
        }
        return await self._ask(Request(method="POST", path=PACKS, body=sendable(body)), _whole)

    async def get(self, name: str, *, owner: str | None = None) -> Pack:
        """The pack, without its vector.

        Raises:
            PackNotFound: there is none that the owner sees.
        """
        return await self._ask(self._of_pack("GET", name, owner=owner), _whole)

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
        if limit is not None:
            check_whole_number("limit", limit, 0, MOST)
        query = {"type": type, "tag": tag, "status": status, "owner": self._for(owner)}
        asked = Request(method="GET", path=PACKS, query=query)
        return await self._numbered(asked, summary_of, limit=limit, offset=offset)

    async def count(
        self,
        *,
        type: PackType | str | None = None,
        tag: str | None = None,
        status: PackStatus | str = PackStatus.ACTIVE,
        owner: str | None = None,
    ) -> int:
        """How many packs `list` would give without a limit."""
        query = {"type": type, "tag": tag, "status": status, "owner": self._for(owner), "page_size": 1}
        asked = Request(method="GET", path=PACKS, query=query)
        return await self._ask(asked, lambda answer: int(answer["pagination"]["total_items"]))

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
        """Change what is given; the pack as it is then.

        Raises:
            PackNotFound: there is none that the owner sees.
            Conflict: it has another revision than the expected one.
            PackExists: the new name is taken.
        """
        body = pack_changes(
            name=new_name,
            type=type,
            description=description,
            tags=tags,
            metadata=metadata,
            decay=decay,
            status=status,
        )
        if "decay" in body:
            body["decay"] = sendable_decay(body["decay"])
        asked = self._of_pack("PATCH", name, owner=owner, body=body, if_match=if_match(expected_revision))
        return await self._ask(asked, _whole)

    async def archive_pack(self, name: str, *, owner: str | None = None) -> Pack:
        """Let the pack be found no more and take no memories; its own can still be read by its name."""
        return await self.update(name, status=PackStatus.ARCHIVED, owner=owner)

    async def activate(self, name: str, *, owner: str | None = None) -> Pack:
        """Undo `archive_pack`."""
        return await self.update(name, status=PackStatus.ACTIVE, owner=owner)

    async def delete(
        self,
        name: str,
        *,
        permanent: bool = False,
        owner: str | None = None,
        expected_revision: int | None = None,
    ) -> bool:
        """Delete the pack with its memories, with `permanent` for good; False if there is none that the owner sees.

        Raises:
            Conflict: it has another revision than the expected one; it stays.
        """
        expected = if_match(expected_revision)
        try:
            if read_flag("permanent", permanent):
                asked = self._of_pack("POST", name, "permanent-delete", owner=owner, if_match=expected)
            else:
                asked = self._of_pack("DELETE", name, owner=owner, if_match=expected)
            await self._transport.ask(asked)
        except PackNotFound:
            return False
        return True

    async def summary(self, name: str, *, owner: str | None = None) -> PackSummary:
        """The first layer: what the pack is about."""
        return await self._ask(self._of_pack("GET", name, owner=owner), lambda answer: summary_of(answer["data"]))

    async def metadata(self, name: str, *, owner: str | None = None) -> PackMetadata:
        """The second layer: what the pack holds, counted; counts as no access."""
        return await self._ask(self._of_pack("GET", name, owner=owner), lambda answer: pack_metadata_of(answer["data"]))

    async def preview(
        self, until: datetime | None = None, *, limit: int = 100, pack: str, owner: str | None = None
    ) -> builtins.list[FadingStep]:
        """What fades next in the pack, and when, the first first. Changes nothing, and counts as no access.

        Raises:
            PackNotFound: there is no such pack.
        """
        query = {"limit": limit, "until": None if until is None else until.isoformat()}
        asked = self._of_pack("GET", pack, "fading", owner=owner, query=query)
        return await self._ask(asked, lambda answer: [step_of(each, pack) for each in answer["data"]])

    async def discover(
        self,
        query: str,
        *,
        type: PackType | str | None = None,
        tags: Iterable[str] = (),
        limit: int = 5,
        min_score: Cutoff = 0.0,
        owner: str | None = None,
    ) -> Results[PackMatch]:
        """Phase one: the packs that the query is about, best first, told from their summaries alone.

        Raises:
            InvalidInput: the query is blank, or an argument is out of range.
        """
        body = {
            "query": query,
            "type": type,
            "tags": read_tags("tags", tags),
            "limit": limit,
            "min_score": min_score,
            "owner": self._for(owner),
        }
        asked = Request(method="POST", path=(*PACKS, "discover"), body=sendable(body), reads=True)
        return await self._ask(asked, matches_of)

    async def retrieve(
        self,
        pack: str | Iterable[str],
        query: str | None = None,
        *,
        memory_type: MemoryType | str | None = None,
        name: str | None = None,
        tags: Iterable[str] = (),
        min_confidence: float = 0.0,
        include_superseded: bool = False,
        limit: int | None = None,
        min_score: float | None = None,
        mode: SearchMode | str | None = None,
        touch: bool = True,
        by: Literal["name", "id"] = "name",
        owner: str | None = None,
    ) -> Results[PackHit]:
        """Phase two: the memories of one or several packs that answer the query best, best first.

        By name, a request for each pack goes before it; at most 20 packs.

        Raises:
            PackNotFound: there is no such pack that the owner sees.
            InvalidInput: the query is blank, or an argument is out of range.
        """
        packs = read_names("pack", pack)
        if read_by(by) == "name":
            packs = [(await self.get(each, owner=owner)).id for each in packs]
        body = {
            "pack_ids": packs,
            "query": query,
            "memory_type": memory_type,
            "name": name,
            "tags": read_tags("tags", tags),
            "min_confidence": min_confidence,
            "include_superseded": read_flag("include_superseded", include_superseded),
            "limit": limit,
            "min_score": min_score,
            "mode": mode,
            "touch": read_flag("touch", touch),
            "owner": self._for(owner),
        }
        asked = Request(method="POST", path=("utils", "search", "retrieve"), body=sendable(body), reads=True)
        return await self._ask(asked, hits_of)

    async def search(
        self,
        query: str,
        *,
        packs: int = 2,
        per_pack: int = 5,
        type: PackType | str | None = None,
        min_pack_score: Cutoff = 0.0,
        min_score: float | None = None,
        touch: bool = True,
        owner: str | None = None,
    ) -> Results[PackHit]:
        """Both phases: the best memories of the packs that match best, at most `per_pack` of each, by score.

        A request for the packs, and one for each that was found.

        Raises:
            InvalidInput: the query is blank, or an argument is out of range.
        """
        check_whole_number("packs", packs, 1, _AT_ONCE)
        check_whole_number("per_pack", per_pack, 1, _AT_ONCE)
        matches = await self.discover(query, type=type, limit=packs, min_score=min_pack_score, owner=owner)
        hits: builtins.list[PackHit] = []
        degraded = dict.fromkeys(matches.degraded)
        for match in matches:
            id = match.pack.id
            try:
                found = await self.retrieve(
                    id, query, limit=per_pack, min_score=min_score, touch=touch, by="id", owner=owner
                )
            except PackNotFound:  # deleted meanwhile
                continue
            hits += found
            degraded.update(dict.fromkeys(found.degraded))
        hits.sort(key=lambda hit: (-(hit.score or 0.0), hit.memory.id))
        return Results(hits, degraded=tuple(degraded))


def _whole(answer: Mapping[str, Any]) -> Pack:
    return pack_of(answer["data"])
