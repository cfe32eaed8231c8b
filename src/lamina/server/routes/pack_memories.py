"""The memories of packs as a resource: listing and reading them brings them back whole, and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Response, status
from pydantic import StringConstraints

from lamina.domain.pack import MemoryType, PackHit, PackMemory
from lamina.errors import InvalidInput, MemoryNotFound
from lamina.server.numbered_pages import Found, Many, NumberedPage, Single
from lamina.server.pack_callers import PackCaller, PackReader, PackWriter
from lamina.server.preconditions import OptionalPrecondition, set_etag
from lamina.server.routes.segments import SegmentRoute
from lamina.server.wire.memories import Weakness
from lamina.server.wire.pack_memories import (
    MemoryChanges,
    NewPackMemories,
    NewPackMemory,
    PackMemoryShown,
    Retrieve,
    Supersede,
)
from lamina.server.wire.packs import PackName
from lamina.server.wire.strict import VISIBLE, Flag, Name, Tag, Unit

__all__ = ["router"]

router = APIRouter(prefix="/utils", tags=["memories of packs"], route_class=SegmentRoute)

Include = Annotated[
    list[Literal["embedding"]] | None, Query(max_length=1, description="What is left out unless it is asked for.")
]
Question = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=VISIBLE)]
"""A query that is part of a URL; longer ones go into a body, to `/utils/search/retrieve`."""
_NO_HITS: Final[Mapping[str, PackHit]] = MappingProxyType({})


@router.get("/context-packs/{pack_name}/memories", response_model_exclude_unset=True, summary="Memories of a pack")
async def list_memories(
    caller: PackReader,
    asked_page: NumberedPage,
    pack_name: PackName,
    *,
    query: Question | None = None,
    memory_type: MemoryType | None = None,
    name: Annotated[Name | None, Query(description="The label of a memory: it is there at most once.")] = None,
    tag: Annotated[list[Tag] | None, Query(max_length=100, description="Each must be there.")] = None,
    min_confidence: Unit = 0.0,
    include_superseded: Flag = False,
    include_archived: Flag = False,
    touch: Flag = True,
    include: Include = None,
    owner: Name | None = None,
) -> Found[PackMemoryShown]:
    """Oldest first, or with a `query` the best first, of which no page goes beyond the best 100.

    That bound is the server's `max_results`, if it is lower; a page behind it is refused.

    Being listed is being read: those of the page, and no others, come back whole and count one access, unless `touch`
    is off; then they are shown as their tiers have left them. Archived ones, which no `query` finds, are listed where
    they are asked for, without their text, and do not come back by that.
    """
    page = asked_page.at_most(caller.max_results)
    asked: dict[str, Any] = {
        "memory_type": memory_type,
        "name": name,
        "tags": tag or (),
        "min_confidence": min_confidence,
        "include_superseded": include_superseded,
        "owner": caller.owner(owner),
    }
    if query is not None:
        if include_archived:
            raise InvalidInput("include_archived", "goes with no query", "List without one: nothing archived is found.")
        return await _best(caller, pack_name, page, query=query, asked=asked, touch=touch, include=include)
    asked["include_archived"] = include_archived
    total = await caller.packs.count_memories(pack_name, **asked)
    memories = await caller.packs.memories(pack_name, **asked, touch=touch, limit=page.limit, offset=page.offset)
    return Found(data=await _shown(caller, memories, include), pagination=page.of(total))


@router.post(
    "/context-packs/{pack_name}/memories",
    status_code=status.HTTP_201_CREATED,
    response_model_exclude_unset=True,
    summary="Add a memory",
)
async def add_memory(
    caller: PackWriter, response: Response, *, pack_name: PackName, body: NewPackMemory, owner: Name | None = None
) -> Single[PackMemoryShown]:
    """Durable when it is answered. The vector is made here; if that fails, the memory is found by words until later."""
    memory = await caller.packs.add(pack_name, **body.given(), owner=caller.owner(owner))
    response.headers["Location"] = f"/utils/memories/{memory.id}"
    return _single(response, memory)


@router.post(
    "/context-packs/{pack_name}/memories/batch",
    status_code=status.HTTP_201_CREATED,
    response_model_exclude_unset=True,
    summary="Add memories",
)
async def add_memories(
    caller: PackWriter, *, pack_name: PackName, body: NewPackMemories, owner: Name | None = None
) -> Many[PackMemoryShown]:
    """All or none, and in this order; each as if it was added alone."""
    added = await caller.packs.add_many(pack_name, [each.given() for each in body.memories], owner=caller.owner(owner))
    return Many(data=[PackMemoryShown.of(each) for each in added])


@router.post("/search/retrieve", response_model_exclude_unset=True, summary="Find memories in packs")
async def retrieve_memories(caller: PackReader, body: Retrieve) -> Found[PackMemoryShown]:
    """Phase two: the best memories of packs that are named by their ids, merged by score. They count as read."""
    limit = min(body.limit, caller.max_results)
    hits = await caller.packs.retrieve(
        body.pack_ids, **body.arguments(), limit=limit, by="id", owner=caller.owner(body.owner)
    )
    return Found[PackMemoryShown].best([PackMemoryShown.of(hit.memory, hit=hit) for hit in hits], limit, hits.degraded)


@router.get("/memories/{id}", response_model_exclude_unset=True, summary="One memory of a pack")
async def get_memory(
    caller: PackReader,
    response: Response,
    *,
    id: Name,
    touch: Flag = True,
    include: Include = None,
    owner: Name | None = None,
) -> Single[PackMemoryShown]:
    """Whole, and counted as read; superseded ones are not counted, and of archived ones nothing is shown."""
    memory = await caller.packs.memory(id, touch=touch, owner=caller.owner(owner))
    set_etag(response, memory.revision)
    return Single(data=(await _shown(caller, [memory], include))[0])


@router.patch("/memories/{id}", response_model_exclude_unset=True, summary="Change a memory of a pack")
async def change_memory(
    caller: PackWriter,
    precondition: OptionalPrecondition,
    response: Response,
    *,
    id: Name,
    body: MemoryChanges,
    owner: Name | None = None,
) -> Single[PackMemoryShown]:
    """The fields that are given, over whatever else was changed meanwhile; with `If-Match`, over that revision only."""
    whose = caller.owner(owner)
    expected = precondition.check((await caller.packs.memory(id, touch=False, owner=whose)).revision)
    with precondition.held():
        memory = await caller.packs.update_memory(id, **body.given(), owner=whose, expected_revision=expected)
    return _single(response, memory)


@router.delete("/memories/{id}", status_code=status.HTTP_204_NO_CONTENT, summary="Delete a memory of a pack")
async def delete_memory(
    caller: PackWriter, precondition: OptionalPrecondition, id: Name, owner: Name | None = None
) -> None:
    """Nobody finds it any more; it is kept, hidden, until it is deleted for good."""
    whose = caller.owner(owner)
    expected = precondition.check((await caller.packs.memory(id, touch=False, owner=whose)).revision)
    with precondition.held():
        gone = await caller.packs.delete_memory(id, owner=whose, expected_revision=expected)
    if not gone:
        raise MemoryNotFound(id)


@router.post(
    "/memories/{id}/permanent-delete",
    status_code=status.HTTP_204_NO_CONTENT,
    summary="Delete a memory of a pack for good",
)
async def delete_memory_for_good(
    caller: PackWriter, precondition: OptionalPrecondition, id: Name, owner: Name | None = None
) -> None:
    """With its original and its vector, even if it was deleted before; with `If-Match`, only one that was not."""
    whose, expected = caller.owner(owner), None
    if not precondition.is_any:
        expected = precondition.check((await caller.packs.memory(id, touch=False, owner=whose)).revision)
    with precondition.held():
        gone = await caller.packs.delete_memory(id, permanent=True, owner=whose, expected_revision=expected)
    if not gone:
        raise MemoryNotFound(id)


@router.post("/memories/{id}/pin", response_model_exclude_unset=True, summary="Keep a memory from fading")
async def pin_memory(
    caller: PackWriter, response: Response, id: Name, owner: Name | None = None
) -> Single[PackMemoryShown]:
    """It still expires."""
    return _single(response, await caller.packs.pin(id, owner=caller.owner(owner)))


@router.post("/memories/{id}/unpin", response_model_exclude_unset=True, summary="Let a memory fade again")
async def unpin_memory(
    caller: PackWriter, response: Response, id: Name, owner: Name | None = None
) -> Single[PackMemoryShown]:
    """How long it was idle counts from its last access, as if it was never pinned."""
    return _single(response, await caller.packs.unpin(id, owner=caller.owner(owner)))


@router.post("/memories/{id}/archive", response_model_exclude_unset=True, summary="Put a memory away")
async def archive_memory(
    caller: PackWriter, response: Response, id: Name, owner: Name | None = None
) -> Single[PackMemoryShown]:
    """Into cold storage: nothing retrieves it, and only `restore` brings it back."""
    return _single(response, await caller.packs.archive(id, owner=caller.owner(owner)))


@router.post("/memories/{id}/restore", response_model_exclude_unset=True, summary="Bring an archived memory back")
async def restore_memory(
    caller: PackWriter, response: Response, id: Name, owner: Name | None = None
) -> Single[PackMemoryShown]:
    """Whole, as if it was read now. Does nothing where it is not archived."""
    return _single(response, await caller.packs.restore(id, owner=caller.owner(owner)))


@router.post("/memories/{id}/supersede", response_model_exclude_unset=True, summary="Replace a memory by another")
async def supersede_memory(
    caller: PackWriter, response: Response, *, id: Name, body: Supersede, owner: Name | None = None
) -> Single[PackMemoryShown]:
    """Both say so from then on, and the old one is no longer retrieved. Answers with the old one."""
    return _single(response, await caller.packs.supersede(id, by=body.by, owner=caller.owner(owner)))


async def _best(
    caller: PackCaller,
    pack: str,
    page: NumberedPage,
    *,
    query: str,
    asked: dict[str, Any],
    touch: bool,
    include: Include,
) -> Found[PackMemoryShown]:
    """A page of a ranking; what is on other pages is not read.

    Raises:
        InvalidInput: the page begins behind the last one that a ranking has.
    """
    if page.offset >= caller.max_results:
        problem = f"begins behind the best {caller.max_results}, which are all that a query gives"
        raise InvalidInput("page", problem, "Ask for an earlier page, or say in the query more of what is wanted.")
    ranked = await caller.packs.rank(pack, query, **asked, limit=caller.max_results)
    hits = {hit.memory.id: hit for hit in ranked[page.offset : page.offset + page.limit]}
    memories = await caller.packs.read(hits, touch=touch, owner=asked["owner"]) if hits else []
    return Found(
        data=await _shown(caller, memories, include, hits),
        pagination=page.of(len(ranked)),
        degraded=[Weakness.of(each) for each in ranked.degraded],
    )


async def _shown(
    caller: PackCaller,
    memories: Sequence[PackMemory],
    include: Include,
    hits: Mapping[str, PackHit] = _NO_HITS,
) -> list[PackMemoryShown]:
    has_embedding = bool(include)
    wanted = await caller.packs.with_embeddings(memories) if has_embedding else memories
    return [PackMemoryShown.of(each, has_embedding=has_embedding, hit=hits.get(each.id)) for each in wanted]


def _single(response: Response, memory: PackMemory) -> Single[PackMemoryShown]:
    set_etag(response, memory.revision)
    return Single(data=PackMemoryShown.of(memory))
