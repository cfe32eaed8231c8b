"""How much a request may send, and that what it calls JSON is JSON."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import anyio
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lamina.server.problems import Problem, send_problem
from lamina.server.strict_json import check_json

__all__ = ["BODY", "Bodies", "Body", "body_of", "is_json", "problem_of_http"]

BODY: Final = "lamina.body"
_KINDS: Final = {
    400: ("malformed_request", "The request cannot be read"),
    404: ("not_found", "There is no such thing here"),
    405: ("method_not_allowed", "The method is not for this resource"),
    413: ("too_large", "The body is too long"),
}
_LONGEST_LENGTH: Final = 15
_DISCARDED: Final = 64 * 1024 * 1024
_DISCARDING_SECONDS: Final = 5.0


class Body:
    """The body of one request: counted as it comes, and kept where it is to be looked at before the route is."""

    def __init__(self, scope: Scope, receive: Receive, *, limit: int, stream_limit: int) -> None:
        headers = Headers(scope=scope)
        self.limit = limit
        self.is_cut_off = False
        self.is_streamed = not is_json(headers.get("content-type", ""))
        self.announced = _length(headers)
        self._scope = scope
        self._receive = receive
        self._stream_limit = stream_limit
        self._size = 0
        self._kept: bytes | None = None
        self._given = False

    async def whole(self) -> bytes:
        """All of it; a route reads it once more.

        Raises:
            HTTPException: 413, it is longer than the limit; 400, the client went away before its end.
        """
        if self._kept is None:
            parts = []
            while True:
                message = await self._counted()
                if message["type"] != "http.request":
                    raise HTTPException(HTTPStatus.BAD_REQUEST, "The body ended too early.")
                parts.append(message.get("body", b""))
                if not message.get("more_body", False):
                    break
            self._kept = b"".join(parts)
            self._given = False
        return self._kept

    async def receive(self) -> Message:
        """For the route: the body as it comes, or in one piece if it is here already."""
        if self._kept is None:
            return await self._counted()
        if self._given:
            return await self._receive()
        self._given = True
        return {"type": "http.request", "body": self._kept, "more_body": False}

    async def as_stream(self) -> Message:
        """As it comes, for whoever keeps nothing of it: of any length that a body may have at all."""
        self.limit = max(self.limit, self._stream_limit)
        return await self._counted()

    async def _counted(self) -> Message:
        route = self._scope.get("route")
        if self.is_streamed and isinstance(route, APIRoute) and route.body_field is None:
            self.limit = max(self.limit, self._stream_limit)  # it reads piece by piece, and has a limit of its own
        if self.announced is not None and self.announced > self.limit:
            # The server below lets a body of known length run out while the answer is on its way.
            raise self._too_large(closes=self.announced > self.limit + _DISCARDED)
        message = await self._receive()
        self._size += len(message.get("body", b"")) if message["type"] == "http.request" else 0
        if self._size > self.limit:
            raise self._too_large(closes=message.get("more_body", False))
        return message

    async def run_out(self) -> None:
        """Let what is still coming come, and forget it: for some seconds, and up to a size."""
        with anyio.move_on_after(_DISCARDING_SECONDS):
            discarded = 0
            while discarded <= _DISCARDED:
                message = await self._receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
                discarded += len(message.get("body", b""))

    def _too_large(self, *, closes: bool) -> HTTPException:
        self.is_cut_off = closes
        detail = f"The body is longer than {self.limit} bytes, which is as much as this server takes here."
        headers = {"Connection": "close"} if closes else {}
        return HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail, headers)


class Bodies:
    """Bounds every body, and reads those that call themselves JSON before the route does.

    A body has at most `limit` bytes; one of lines or a file, for a route that reads it piece by piece, `stream_limit`.
    """

    def __init__(self, app: ASGIApp, *, limit: int, stream_limit: int) -> None:
        self._app = app
        self._limits = {"limit": limit, "stream_limit": stream_limit}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            scope[BODY] = body = Body(scope, receive, **self._limits)
            if is_json(headers.get("content-type", "")) and scope["method"] not in {"GET", "HEAD"}:
                read = await body.whole()
                if read:
                    check_json(read)
        except HTTPException as error:
            await send_problem(problem_of_http(error), scope, receive, send)
        except Problem as error:
            await send_problem(error, scope, receive, send)
        else:
            await self._app(scope, body.receive, send)


def body_of(scope: Scope) -> Body:
    """The body of the request."""
    body: Body = scope[BODY]
    return body


def is_json(content_type: str) -> bool:
    """Whether the media type is JSON, as FastAPI has it."""
    media_type = content_type.partition(";")[0].strip().lower()
    main, _, sub = media_type.partition("/")
    return main == "application" and (sub == "json" or sub.endswith("+json"))


def problem_of_http(error: HTTPException) -> Problem:
    """What the client is told of an error of the framework's kind."""
    code, title = _KINDS.get(error.status_code, ("http_error", error.detail))
    return Problem(error.status_code, code, title, error.detail, headers=dict(error.headers or {}))


def _length(headers: Headers) -> int | None:
    given = headers.getlist("content-length")
    if not given:
        return None
    if len(given) > 1 or not given[0].isascii() or not given[0].isdigit() or len(given[0]) > _LONGEST_LENGTH:
        raise HTTPException(HTTPStatus.BAD_REQUEST, "Content-Length must be one number of bytes.")
    return int(given[0])
