"""An intent's answer in pieces, and its result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import anyio

from lamina.domain.intent import Intent, IntentResult
from lamina.kernel.turns import TurnRunner

__all__ = ["streamed"]


async def streamed(turns: TurnRunner, intent: Intent) -> AsyncGenerator[str | IntentResult, None]:
    """The pieces as they come, and the result last.

    The turn runs in a task of its own, hand in hand with the reader: a piece is given only when it is asked for,
    and the exchange is kept only when what follows the last piece is. So a reader who stops leaves nothing.
    """
    give, take = anyio.create_memory_object_stream[str | None](0)

    async def complete() -> None:
        await give.send(None)

    def end(task: asyncio.Task[IntentResult]) -> None:
        give.close()
        if not task.cancelled():
            task.exception()  # so that one nobody waited for is not reported as forgotten

    task = asyncio.get_running_loop().create_task(turns.run(intent, on_piece=give.send, before_append=complete))
    task.add_done_callback(end)
    try:
        async for piece in take:
            if piece:
                yield piece
        yield await task
    finally:
        try:
            if task.cancel():
                await asyncio.wait([task])
        finally:
            take.close()
