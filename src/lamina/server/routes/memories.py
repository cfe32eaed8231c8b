"""Memories as a resource."""

from __future__ import annotations

from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response, status

from lamina.domain.memory import Layer, MemoryEntry
from lamina.errors import InvalidInput, MemoryNotFound
from lamina.server.caller import Caller, Reader, Writer
from lamina.server.paging import Page, Paging, Position
from lamina.server.preconditions import OptionalPrecondition, Precondition, set_etag
from lamina.server.routes.segments import SegmentRoute
from lamina.server.wire.memories import (
    AllQuarantined,
    Counted,
    Forget,
    Memory,
    MemoryChanges,
    NewMemories,
    NewMemory,
    OfSource,
    Quarantined,
    Recall,
    Recalled,
    Released,
    SourceToForget,
    Stored,
    StoredMany,
    Superseding,
    ToRelease,
    recalled_json,
)
from lamina.server.wire.strict import Name, Tag

__all__ = ["router"]

router = APIRouter(prefix="/v1/memories", tags=["memories"], route_class=SegmentRoute)


@router.post("", status_code=status.HTTP_201_CREATED, summary="Remember a text")
async def store_memory(caller: Writer, body: NewMemory) -> Stored:
    """Durable when it is answered. What is remembered already is confirmed, and keeps its id."""
    given = body.given(caller.owner(body.owner))
    return Stored(id=await caller.kernel.memory_engine.store(given))


@router.post("/batch", status_code=status.HTTP_201_CREATED, summary="Remember many texts")
async def store_memories(caller: Writer, body: NewMemories) -> StoredMany:
    """All of them or, where one cannot be stored, none."""
    given = [each.given(caller.owner(each.owner)) for each in body.memories]
    return StoredMany(ids=await caller.kernel.memory_engine.store_many(given))


@router.get("", summary="List memories")
async def list_memories(
    caller: Reader,
    paging: Paging,
    *,
    owner: Name | None = None,
    namespace: Name | None = None,
    layer: Annotated[list[Layer] | None, Query(max_length=5)] = None,
    tag: Annotated[list[Tag] | None, Query(max_length=100, description="Each must be there.")] = None,
) -> Page[Memory]:
    """In the order of remembering. Pages tile: what is added meanwhile comes last, and nothing is shown twice."""
    filters: dict[str, Any] = {
        "owner": caller.owner(owner),
        "namespace": namespace,
        "layers": layer,
        "tags": tag or (),
    }
    scan = caller.kernel.memory_engine.scan(after=_place(paging.after), **filters)
    rows: list[MemoryEntry] = []
    async with aclosing(scan) as entries:  # type: ignore[type-var]
        async for entry in entries:
            rows.append(entry)
            if len(rows) > paging.limit:
                break
    return paging.sorted(rows, Memory.of, lambda entry: (entry.layer.value, entry.seq))


@router.post("/recall", summary="Find memories", response_model=Recalled)
async def recall_memories(caller: Reader, body: Recall) -> Response:
    """The memories that answer the query best. They count as accessed, unless `touch` is off."""
    found = await caller.kernel.memory_engine.recall(**body.arguments(caller.owner(body.owner)))
    return Response(recalled_json(found), media_type="application/json")


@router.post("/forget", summary="Forget memories")
async def forget_memories(caller: Writer, body: Forget) -> Counted:
    """Every memory that meets all conditions; with `dry_run` they are only counted."""
    if not body.has_condition():
        raise InvalidInput("body", "has no condition", "Give at least one, if need be the owner.")
    conditions = body.conditions(caller.owner(body.owner))
    forgotten = await caller.kernel.memory_engine.forget_where(
        **conditions, older_than=body.older_than, dry_run=body.dry_run
    )
    return Counted(count=forgotten, dry_run=body.dry_run)


@router.post("/quarantine", summary="Take a source out of recall")
async def quarantine_source(caller: Writer, body: OfSource) -> Quarantined:
    """With all that was made from it. Nothing is deleted: the release of its `id` undoes it."""
    given = {"source": body.source, "prefix": body.prefix, "owner": caller.owner(body.owner)}
    return Quarantined.of(await caller.kernel.quarantine(**given))


@router.get("/quarantine", summary="What is in quarantine")
async def list_quarantined(caller: Reader, owner: Name | None = None) -> AllQuarantined:
    """By the act that put it there, the first first."""
    acts = await caller.kernel.quarantined(owner=caller.owner(owner))
    return AllQuarantined(data=[Quarantined.of(each) for each in acts])


@router.post("/release", summary="Undo a quarantine")
async def release_source(caller: Writer, body: ToRelease) -> Released:
    """What it took out is recalled again."""
    return Released(ids=await caller.kernel.release(body.id, owner=caller.owner(body.owner)))


@router.post("/forget-source", summary="Forget a source")
async def forget_from_source(caller: Writer, body: SourceToForget) -> Counted:
    """Delete what a quarantine would take out, for good; with `dry_run` it is only counted."""
    owner = caller.owner(body.owner)
    count = await caller.kernel.forget_source(source=body.source, prefix=body.prefix, owner=owner, dry_run=body.dry_run)
    return Counted(count=count, dry_run=body.dry_run)


@router.get("/{id}", summary="One memory")
async def get_memory(caller: Reader, response: Response, id: Name, owner: Name | None = None) -> Memory:
    """The memory as it is now; its `ETag` is its revision, for a later change with `If-Match`."""
    found = await _found(caller, id, owner)
    set_etag(response, found.revision)
    return Memory.of(found)


@router.patch("/{id}", summary="Edit a memory")
async def edit_memory(
    caller: Writer,
    precondition: Precondition,
    response: Response,
    *,
    id: Name,
    body: MemoryChanges,
    owner: Name | None = None,
) -> Memory:
    """Change fields of the memory as it was read: `If-Match` is required, and loses nobody's edit."""
    found = await _found(caller, id, owner)
    expected = precondition.check(found.revision)
    changes = body.model_dump(exclude_unset=True)
    with precondition.held():
        changed = await caller.kernel.memory_engine.update(
            id, owner=caller.owner(owner), expected_revision=expected, **changes
        )
    set_etag(response, changed.revision)
    return Memory.of(changed)


@router.delete("/{id}", status_code=status.HTTP_204_NO_CONTENT, summary="Forget a memory")
async def forget_memory(
    caller: Writer, precondition: OptionalPrecondition, id: Name, owner: Name | None = None
) -> None:
    """With its text index, vector and history."""
    found = await _found(caller, id, owner)
    expected = precondition.check(found.revision)
    with precondition.held():
        gone = await caller.kernel.memory_engine.forget(id, owner=caller.owner(owner), expected_revision=expected)
    if not gone:
        raise MemoryNotFound(id)


@router.post("/{id}/supersede", summary="Replace a memory by another")
async def supersede_memory(
    caller: Writer, response: Response, *, id: Name, body: Superseding, owner: Name | None = None
) -> Memory:
    """Both say so from then on, and the old one is no longer recalled. Answers with the old one."""
    old = await caller.kernel.memory_engine.supersede(id, by=body.by, reason=body.reason, owner=caller.owner(owner))
    set_etag(response, old.revision)
    return Memory.of(old)


@router.get("/{id}/history", summary="What a memory was before")
async def memory_history(caller: Reader, paging: Paging, id: Name, owner: Name | None = None) -> Page[Memory]:
    """Its earlier versions, the oldest first, without the present one."""
    await _found(caller, id, owner)
    versions = await caller.kernel.memory_engine.history(id, owner=caller.owner(owner))
    rows = [each for each in versions if each.revision > paging.number]
    return paging.sorted(rows[: paging.limit + 1], Memory.of, lambda version: (version.revision,))


async def _found(caller: Caller, id: str, owner: str | None) -> MemoryEntry:
    found = await caller.kernel.memory_engine.get(id, owner=caller.owner(owner))
    if found is None:
        raise MemoryNotFound(id)
    return found


def _place(after: Position | None) -> tuple[Layer, int] | None:
    """Where a page of memories begins: behind this layer and `seq`."""
    match after:
        case (str(layer), int(seq)) if layer in set(Layer):
            return Layer(layer), seq
        case _:
            return None
