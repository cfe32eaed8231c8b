"""Which names the server answers to, so that no web page can reach it by a name of its own."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from lamina.server.problems import Problem, send_problem

__all__ = ["LOOPBACK_NAMES", "Hosts"]

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


class Hosts:
    """Refuses requests to other names than `allowed` (None: takes any; `*.example.org`: any below).

    With `checks_origin` it also refuses what a web page sends that is not the server's own or in `origins`: where no
    token is asked for, a page in a browser on this machine must not be able to write.
    """

    def __init__(
        self, app: ASGIApp, *, allowed: Sequence[str] | None, origins: Sequence[str] = (), checks_origin: bool = False
    ) -> None:
        self._app = app
        self._allowed = None if allowed is None or "*" in allowed else [each.lower() for each in allowed]
        self._origins = {each.lower() for each in origins}
        self._checks_origin = checks_origin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = self._problem(Headers(scope=scope)) if scope["type"] in {"http", "websocket"} else None
        if problem is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await send_problem(problem, scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _problem(self, headers: Headers) -> Problem | None:
        given = headers.getlist("host")
        host = given[0].lower() if len(given) == 1 else ""
        if self._allowed is not None and not any(_matches(_name_of(host), each) for each in self._allowed):
            detail = "The server is not known by the name in the Host header; its setting allowed_hosts says which."
            return Problem(421, "wrong_host", "The request is for another server", detail)
        origin = headers.get("origin")
        if self._checks_origin and origin is not None and not self._is_own(origin.lower(), host):
            detail = "The server takes no requests from web pages of this origin; see its setting cors_origins."
            return Problem(403, "wrong_origin", "The request comes from a foreign web page", detail)
        return None

    def _is_own(self, origin: str, host: str) -> bool:
        try:
            return origin in self._origins or urlsplit(origin).netloc == host
        except ValueError:
            return False


def _name_of(host: str) -> str:
    """The host without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _matches(name: str, allowed: str) -> bool:
    bare = _name_of(allowed)
    return name.endswith(bare[1:]) if bare.startswith("*.") else name == bare
