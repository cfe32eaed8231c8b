"""Intents: a goal goes in, and an agent's answer comes out, whole or in pieces."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final

import anyio
from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from lamina.domain.intent import IntentResult
from lamina.errors import LaminaError, NoModelConfiguredError, ThreadNotFound
from lamina.server.caller import Reader, Writer
from lamina.server.foreign import foreign_as
from lamina.server.problems import problem_of
from lamina.server.wire.intents import NewIntent, Result
from lamina.telemetry import place_of

__all__ = ["router"]

log = logging.getLogger(__name__)

EVENTS: Final = "text/event-stream"
_AS_IT_COMES: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_EXAMPLE: Final = 'event: piece\ndata: {"text": "Green "}\n\nevent: result\ndata: {"intent_id": "...", ...}\n\n'

router = APIRouter(prefix="/v1/intents", tags=["intents"])

Pieces = AsyncGenerator[str | IntentResult, None]


class EventStream(StreamingResponse):
    """Server-sent events whose source is closed, and so ended, when the client has gone away."""

    media_type = EVENTS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            if isinstance(self.body_iterator, AsyncGenerator):
                with anyio.CancelScope(shield=True):
                    await self.body_iterator.aclose()


@router.post("", summary="Serve a goal")
async def submit_intent(caller: Writer, _: Reader, body: NewIntent) -> Result:
    """Compute the context of the goal, let an agent answer, and keep the exchange in its thread.

    What went wrong with the agent or a model is in the answer's `error`.
    """
    owner = caller.owner(body.owner)
    with foreign_as(ThreadNotFound(body.thread)):
        result = await caller.kernel.submit(**body.arguments(owner))
    return Result.of(_with_model(result), context=body.context)


@router.post(
    "/stream",
    summary="Serve a goal, and give the answer in pieces",
    response_class=EventStream,
    responses={200: {"content": {EVENTS: {"schema": {"type": "string"}, "example": _EXAMPLE}}}},
)
async def stream_intent(caller: Writer, _: Reader, body: NewIntent) -> EventStream:
    """As server-sent events: `piece` with a `text`, then `result`, or `error` with a problem.

    The exchange is kept when the last piece was taken: a client that goes away before leaves nothing.
    """
    owner = caller.owner(body.owner)
    pieces = caller.kernel.stream(**body.arguments(owner))
    with foreign_as(ThreadNotFound(body.thread)):
        first = await anext(pieces)  # what is wrong with the request is told by the status
    if isinstance(first, IntentResult):
        _with_model(first)
    return EventStream(_events(pieces, first, context=body.context), headers=_AS_IT_COMES)


async def _events(pieces: Pieces, first: str | IntentResult, *, context: bool) -> AsyncGenerator[str, None]:
    async with aclosing(pieces):
        yield _event(first, context=context)
        try:
            async for piece in pieces:
                yield _event(piece, context=context)
        except LaminaError as error:
            log.error("A stream failed: %s", place_of(error))  # noqa: TRY400 - the message of an error may hold content
            problem = problem_of(error)
            told = {"status": problem.status, "code": problem.code, "title": problem.title, "detail": problem.detail}
            yield _line("error", {**told, "errors": [dict(each) for each in problem.errors]})


def _event(piece: str | IntentResult, *, context: bool) -> str:
    if isinstance(piece, str):
        return _line("piece", {"text": piece})
    return _line("result", Result.of(piece, context=context).model_dump(mode="json"))


def _line(name: str, data: Mapping[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=True)}\n\n"


def _with_model(result: IntentResult) -> IntentResult:
    """The result, unless it is that nobody is there to answer.

    Raises:
        NoModelConfiguredError: so it is.
    """
    if result.error is not None and result.error.kind == NoModelConfiguredError.__name__:
        raise NoModelConfiguredError("An intent")
    return result
