"""Memories as a resource."""

from __future__ import annotations

from fastapi import APIRouter, Response

from lamina.errors import MemoryNotFound
from lamina.server.caller import Reader
from lamina.server.preconditions import set_etag
from lamina.server.wire.memories import Memory
from lamina.server.wire.strict import Name

__all__ = ["router"]

router = APIRouter(prefix="/v1/memories", tags=["memories"])


@router.get("/{id}", summary="One memory")
async def get_memory(caller: Reader, response: Response, id: Name, owner: Name | None = None) -> Memory:
    """The memory as it is now; its `ETag` is its revision, for a later change with `If-Match`."""
    found = await caller.kernel.memory_engine.get(id, owner=caller.owner(owner))
    if found is None:
        raise MemoryNotFound(id)
    set_etag(response, found.revision)
    return Memory.of(found)
