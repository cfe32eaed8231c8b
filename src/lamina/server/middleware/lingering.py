"""The end of a connection whose other end is still sending: it shall see the answer first."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lamina.server.middleware.bodies import BODY

__all__ = ["Lingering"]


class Lingering:
    """Lets a body that was refused run out for a while between the answer and the end of the connection.

    Closed at once, the connection would be reset, and the answer lost on its way.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def lingering(message: Message) -> None:
            body = scope.get(BODY)
            is_last = message["type"] == "http.response.body" and not message.get("more_body", False)
            if is_last and body is not None and body.is_cut_off:
                await send({**message, "more_body": True})
                await body.run_out()
                message = {"type": "http.response.body", "body": b""}
            await send(message)

        await self._app(scope, receive, lingering if scope["type"] == "http" else send)
