"""Outermost: the id of a request, one line of log, the counts, and an answer whatever goes wrong inside."""

from __future__ import annotations

import logging
import re
import time
import uuid
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lamina.server.logs import request_id
from lamina.server.metrics import Metrics
from lamina.server.problems import Problem, send_problem
from lamina.telemetry import observed_by, place_of

__all__ = ["Observing", "route_of"]

log = logging.getLogger(__name__)
access = logging.getLogger("lamina.server.access")

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
UNMATCHED: Final = "unmatched"


class Observing:
    """Takes `X-Request-ID` from the client where it is one, else makes one; the answer has it in any case."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        answer = _Answer(id, send)
        began = time.perf_counter()
        token = request_id.set(id)
        try:
            with observed_by(self._metrics):
                await self._answered(scope, receive, answer)
        finally:
            self._note(scope, answer, time.perf_counter() - began)
            request_id.reset(token)

    async def _answered(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        try:
            await self._app(scope, receive, answer.send)
        except Exception as error:  # noqa: BLE001 - the edge: whatever it is, the client gets an answer
            log.error("A request failed: %s", place_of(error))  # noqa: TRY400 - the message of an error may hold content
            if answer.status is not None:
                # It has begun: only a broken connection tells the client that it is not whole.
                raise BrokenAnswer from None
            detail = f"The server failed; its log says more under the request id {answer.id}."
            await send_problem(Problem(500, "internal", "The server failed", detail), scope, receive, answer.send)

    def _note(self, scope: Scope, answer: _Answer, seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        route = route_of(scope)
        status = answer.status or 499  # nobody waited for an answer
        self._metrics.request(method=method, route=route, status=status, seconds=seconds)
        principal = scope.get("lamina.principal")
        facts = {
            "method": method,
            "route": route,
            "status": status,
            "milliseconds": round(seconds * 1000, 1),
            "bytes": answer.size,
            "principal": "-" if principal is None else principal.id,
            "client": (scope.get("client") or ("-",))[0],
        }
        access.info("%(method)s %(route)s %(status)s", facts, extra={"facts": facts})


class BrokenAnswer(Exception):
    """An answer could not be finished; why stands in the log, under the id of the request."""


class _Answer:
    """What goes out: its status and its size, and the id on it."""

    def __init__(self, id: str, send: Send) -> None:
        self.id = id
        self.status: int | None = None
        self.size = 0
        self._send = send

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message)["X-Request-ID"] = self.id
        elif message["type"] == "http.response.body":
            self.size += len(message.get("body", b""))
        await self._send(message)


def route_of(scope: Scope) -> str:
    """The template of the route, such as `/v1/memories/{id}`: no id or name is in it."""
    return getattr(scope.get("route"), "path", None) or UNMATCHED
