"""Serving over streamable HTTP: an ASGI app to be mounted, whose requests bring their binding."""

from __future__ import annotations

import hashlib
import hmac
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from lamina.errors import NotStarted
from lamina.mcp.binding import Binding
from lamina.mcp.server import BINDING

__all__ = ["MAX_BODY_BYTES", "BindingOf", "McpApp", "bearer", "mcp_app"]

MAX_BODY_BYTES: Final = 16 * 1024 * 1024
"""Of a request: the longest text that a tool takes, in the longest way to write it as JSON."""

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")

BindingOf: TypeAlias = Callable[[Scope], Awaitable[Binding | None] | Binding | None]
"""Takes the ASGI scope of a request (headers, `state`, `user`); gives whose memories it reaches. None refuses it."""


def mcp_app(
    server: Server[Any],
    *,
    binding_of: BindingOf | None = None,
    stateless_http: bool = True,
    json_response: bool = True,
    allowed_hosts: Sequence[str] | None = None,
    rebinding_protection: bool = True,
    max_body_bytes: int = MAX_BODY_BYTES,
) -> McpApp:
    """The server as an ASGI app, for `Route("/mcp", endpoint=mcp_app(...))`.

    Its `lifespan` must be entered around the serving; it may be entered again afterwards. `binding_of` is called for
    every request, never for a session; without it the server's own binding holds. Without state any number of
    processes can serve side by side, and a GET, which would wait for what never comes, is refused. `allowed_hosts`
    are the names (without port) that requests may call the server by, by default those of the loopback address;
    `rebinding_protection` is for switching that check off where another one stands before it.
    """
    return McpApp(
        server,
        binding_of=binding_of,
        stateless=stateless_http,
        json_response=json_response,
        security=_security(LOOPBACK if allowed_hosts is None else allowed_hosts, enabled=rebinding_protection),
        max_body_bytes=max_body_bytes,
    )


class McpApp:
    """An ASGI app; see `mcp_app`."""

    def __init__(
        self,
        server: Server[Any],
        *,
        binding_of: BindingOf | None,
        stateless: bool,
        json_response: bool,
        security: TransportSecuritySettings,
        max_body_bytes: int,
    ) -> None:
        self._server = server
        self._binding_of = binding_of
        self._stateless = stateless
        self._json_response = json_response
        self._security = security
        self._max_body_bytes = max_body_bytes
        self._sessions: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Serve inside the block; running requests end with it."""
        sessions = StreamableHTTPSessionManager(
            app=self._server,
            json_response=self._json_response,
            stateless=self._stateless,
            security_settings=self._security,
            max_request_body_size=self._max_body_bytes,
        )
        async with sessions.run():
            self._sessions = sessions
            try:
                yield
            finally:
                self._sessions = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request.

        Raises:
            NotStarted: the lifespan is not entered.
        """
        if self._sessions is None:
            raise NotStarted("The MCP app", "Enter `async with app.lifespan():` around the serving.")
        if self._stateless and scope["method"] not in {"POST", "OPTIONS"}:
            headers = {"Allow": "POST"}
            return await _refused(HTTPStatus.METHOD_NOT_ALLOWED, headers)(scope, receive, send)
        if self._binding_of is not None:
            found = self._binding_of(scope)
            binding = await found if inspect.isawaitable(found) else found
            if binding is None:
                headers = {"WWW-Authenticate": "Bearer"}
                return await _refused(HTTPStatus.UNAUTHORIZED, headers)(scope, receive, send)
            scope = {**scope, BINDING: binding, "user": _user(binding)}
        await self._sessions.asgi_app(scope, receive, send)
        return None


def bearer(token: str, binding: Binding) -> BindingOf:
    """Gives the binding to requests that bear this token. Only its digest is kept, and compared in constant time."""
    wanted = hashlib.sha256(token.encode()).digest()

    def binding_of(scope: Scope) -> Binding | None:
        brought = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
        if len(brought) != 1:
            return None
        scheme, _, given = brought[0].partition(b" ")
        is_right = hmac.compare_digest(hashlib.sha256(given.strip(b" ")).digest(), wanted)
        return binding if is_right and scheme.lower() == b"bearer" else None

    return binding_of


def _user(binding: Binding) -> AuthenticatedUser:
    """What a session, where there are sessions, is held to: no other binding can use it."""
    subject = json.dumps([binding.tenant, binding.owner, binding.namespace, binding.read_only])
    return AuthenticatedUser(AccessToken(token="", client_id="lamina", scopes=[], subject=subject))


def _refused(status: HTTPStatus, headers: dict[str, str]) -> JSONResponse:
    return JSONResponse({"error": status.phrase}, status, headers=headers)


def _security(hosts: Sequence[str], *, enabled: bool) -> TransportSecuritySettings:
    names = [name for host in hosts for name in (host, f"{host}:*")]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=enabled,
        allowed_hosts=names,
        allowed_origins=[f"{scheme}://{name}" for scheme in ("http", "https") for name in names],
    )
