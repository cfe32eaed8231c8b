"""How long a request may take to be answered."""

from __future__ import annotations

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lamina.server.problems import Problem, send_problem

__all__ = ["TimeLimits"]


class TimeLimits:
    """Cancels what has not begun to answer after so many seconds; an answer that has begun may take its time."""

    def __init__(self, app: ASGIApp, *, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with anyio.move_on_after(self._seconds) as limit:

            async def begun(message: Message) -> None:
                limit.deadline = float("inf")
                await send(message)

            await self._app(scope, receive, begun)
        if limit.cancelled_caught:
            detail = f"The request was not answered in {self._seconds:g} seconds, and was given up."
            problem = Problem(503, "too_slow", "The request took too long", detail, headers={"Retry-After": "5"})
            await send_problem(problem, scope, receive, send)
