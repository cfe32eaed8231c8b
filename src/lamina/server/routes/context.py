"""Computed context."""

from __future__ import annotations

from fastapi import APIRouter

from lamina.errors import ThreadNotFound
from lamina.kernel.intents import new_intent_id
from lamina.server.caller import Reader
from lamina.server.foreign import foreign_as
from lamina.server.routes.threads import known_thread
from lamina.server.wire.context import ComputedContext, NewContext

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["context"])


@router.post("/context", summary="Compute a context")
async def compute_context(caller: Reader, body: NewContext) -> ComputedContext:
    """What an agent is to see for this goal: memories, documents and the thread, inside the budget, and explained."""
    owner = caller.owner(body.owner) or caller.kernel.config.memory.default_owner
    id = new_intent_id() if body.intent_id is None else body.intent_id
    if body.thread_id is not None:
        await known_thread(caller, body.thread_id, owner)
    with foreign_as(ThreadNotFound(body.thread_id or "")):
        context = await caller.kernel.context_engine.compute(body.arguments(owner, id))
    return ComputedContext.of(context, render=list(body.render))
