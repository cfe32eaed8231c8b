"""Memories as a resource."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import StringConstraints

from lamina.errors import MemoryNotFound
from lamina.server.caller import Reader
from lamina.server.wire.memories import Memory

__all__ = ["router"]

router = APIRouter(prefix="/v1/memories", tags=["memories"])

Name = Annotated[str, StringConstraints(min_length=1, max_length=512)]


@router.get("/{id}", summary="One memory")
async def get_memory(caller: Reader, response: Response, id: Name, owner: Name | None = None) -> Memory:
    """The memory as it is now; its `ETag` is its revision, for a later change with `If-Match`."""
    found = await caller.kernel.memory_engine.get(id, owner=caller.owner(owner))
    if found is None:
        raise MemoryNotFound(id)
    response.headers["ETag"] = f'"{found.revision}"'
    return Memory.of(found)
