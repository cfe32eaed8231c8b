"""Writes that may be repeated: under one `Idempotency-Key` a request is done once, and answered as often as asked."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import time
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Final

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lamina.domain.idempotency import KeptResponse, RequestState
from lamina.errors import LaminaError
from lamina.ports.clock import Clock
from lamina.server.authentication import PRINCIPAL
from lamina.server.middleware.bodies import Body, body_of, problem_of_http
from lamina.server.middleware.stream_digest import StreamDigest
from lamina.server.principal import Principal
from lamina.server.problems import PROBLEM, Problem, problem_of, problem_response, send_problem
from lamina.server.requests import Requests

__all__ = ["KEPT_FOR", "MAX_KEPT_BYTES", "Idempotency"]

KEPT_FOR: Final = timedelta(hours=24)
MAX_KEPT_BYTES: Final = 64 * 1024
_PURGED_EVERY: Final = 600.0
_METHODS: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_KEY: Final = re.compile("[\x21-\x7e]{1,255}")
_NOT_KEPT: Final = frozenset({"content-length", "transfer-encoding", "connection", "date", "set-cookie"})
_MARK: Final = "lamina-request-body"
"""What was read of the request's body (`StreamDigest.mark`), kept among the headers of its answer and never sent."""
_STREAMS: Final = ("text/event-stream", "application/x-ndjson")

log = logging.getLogger(__name__)


class Idempotency:
    """Keeps the answers to writes that have a key, and gives them again.

    A request is done by whoever claims it in the store, for at most `lease`; if that process dies, the next to ask
    takes over from then on. The answer goes out when it is kept.
    """

    def __init__(self, app: ASGIApp, *, requests: Requests, clock: Clock, lease: timedelta) -> None:
        self._app = app
        self._requests = requests
        self._clock = clock
        self._lease = lease
        self._purged = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = scope.get(PRINCIPAL)
        keys = Headers(scope=scope).getlist("idempotency-key") if scope["type"] == "http" else []
        if not keys or principal is None or scope["method"] not in _METHODS:
            await self._app(scope, receive, send)
            return
        try:
            request = _Request(principal, _key_of(keys), scope, await _kept_body(scope))
            await self._purge_now_and_then()
            await self._once(request, scope, receive, send)
        except Problem as error:
            await send_problem(error, scope, receive, send)
        except HTTPException as error:
            await send_problem(problem_of_http(error), scope, receive, send)
        except LaminaError as error:
            await send_problem(problem_of(error), scope, receive, send)

    async def _once(self, request: _Request, scope: Scope, receive: Receive, send: Send) -> None:
        now = self._clock()
        place = (request.tenant, request.caller, request.key)
        begun = await self._requests.begin(*place, request.fingerprint, now=now, lease_until=now + self._lease)
        if begun.state is RequestState.MISMATCH:
            raise _reused()
        if begun.state is RequestState.IN_PROGRESS:
            detail = "A request with this key is being done. Ask again a little later."
            raise Problem(409, "in_progress", "The request is under way", detail, headers={"Retry-After": "1"})
        body = body_of(scope)
        if begun.response is not None:
            if body.is_streamed and not await _is_alike(begun.response, body):
                raise _reused()
            await _replay(begun.response, send)
            return
        claim = begun.claim or ""
        answer, read = _Answer(send), StreamDigest(receive)
        try:
            await self._app(scope, read.receive if body.is_streamed else receive, answer.send)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._requests.abandon(*place, claim)
            raise
        with anyio.CancelScope(shield=True):  # what was done is kept, though nobody waits any more
            if answer.is_final:
                marked = ((_MARK, read.mark),) if body.is_streamed else ()
                await self._requests.finish(*place, claim, response=answer.kept(scope["path"], marked))
            else:
                await self._requests.abandon(*place, claim)
        await answer.release()

    async def _purge_now_and_then(self) -> None:
        if time.monotonic() - self._purged < _PURGED_EVERY:
            return
        self._purged = time.monotonic()
        try:
            await self._requests.purge(self._clock() - KEPT_FOR)
        except LaminaError as error:  # the request that this comes before has nothing to do with it
            log.warning("Old requests could not be removed: %s", type(error).__name__)


class _Request:
    """What tells a request from others: who makes it where, and what it asks for.

    A body of None is not known yet: it is streamed, and compared when the request comes again.
    """

    def __init__(self, principal: Principal, key: str, scope: Scope, body: bytes | None) -> None:
        headers = Headers(scope=scope)
        where = [principal.id, principal.owner, scope["method"], scope["path"]]
        what = [*where, scope["query_string"].decode("latin-1"), headers.get("content-type"), headers.get("if-match")]
        self.tenant = principal.tenant
        self.key = key
        self.caller = _digest(where)
        self.fingerprint = _digest([*what, None if body is None else hashlib.sha256(body).hexdigest()])


def _key_of(keys: list[str]) -> str:
    if len(keys) > 1 or _KEY.fullmatch(keys[0]) is None:
        problem = "must be given once, as 1 to 255 visible characters of ASCII"
        error = {"field": "header.idempotency-key", "problem": problem}
        raise Problem(422, "invalid_request", "The request cannot be taken", f"Idempotency-Key: {problem}.", (error,))
    return keys[0]


async def _kept_body(scope: Scope) -> bytes | None:
    """The body, or None for lines and files, which are streamed and may be more than fits into memory."""
    body = body_of(scope)
    return None if body.is_streamed else await body.whole()


async def _is_alike(response: KeptResponse, body: Body) -> bool:
    """Whether the body that comes now is the one that was answered so."""
    mark = next((value for name, value in response.headers if name == _MARK), "")
    return await StreamDigest(body.as_stream).repeats(mark)


def _reused() -> Problem:
    detail = "The key was used for another request. Make a new key for each request."
    return Problem(409, "idempotency_key_reused", "The key belongs to another request", detail)


def _digest(parts: list[Any]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


async def _replay(response: KeptResponse, send: Send) -> None:
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers if name != _MARK]
    headers.append((b"idempotency-replayed", b"true"))
    headers.append((b"content-length", str(len(response.body)).encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})


class _Answer:
    """The answer of the route, held back until it is kept; one too long or streamed goes out as it comes."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held: list[Message] = []
        self._size = 0
        self._passes = False

    async def send(self, message: Message) -> None:
        if self._passes:
            await self._send(message)
            return
        self._held.append(message)
        self._size += len(message.get("body", b""))
        if self._size > MAX_KEPT_BYTES or self._is_stream():
            self._passes = True
            for each in self._held:
                await self._send(each)
            del self._held[1:]

    @property
    def is_final(self) -> bool:
        """Whether it says what there is to say: a failure of the server may be another answer the next time."""
        status: int = self._held[0]["status"] if self._held else HTTPStatus.INTERNAL_SERVER_ERROR
        return status < HTTPStatus.INTERNAL_SERVER_ERROR

    def kept(self, path: str, marked: tuple[tuple[str, str], ...]) -> KeptResponse:
        """What is kept: the answer, or if it is too long, that the request was done; `marked` beside it."""
        if self._passes:
            return _too_long(path, marked)
        start = self._held[0]
        headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in start["headers"]]
        body = b"".join(each.get("body", b"") for each in self._held[1:])
        kept = (each for each in headers if each[0] not in _NOT_KEPT)
        return KeptResponse(start["status"], (*marked, *kept), body)

    async def release(self) -> None:
        """Send what was held back."""
        if not self._passes:
            for each in self._held:
                await self._send(each)

    def _is_stream(self) -> bool:
        headers = Headers(raw=self._held[0].get("headers", []))
        return headers.get("content-type", "").startswith(_STREAMS)


def _too_long(path: str, marked: tuple[tuple[str, str], ...]) -> KeptResponse:
    detail = "The request was done; its answer was too long to be kept. Read what it has changed."
    problem = Problem(409, "answer_not_kept", "The request was done before", detail)
    return KeptResponse(409, (*marked, ("content-type", PROBLEM)), bytes(problem_response(path, problem).body))
