"""Who asks: found out once for each request, before anything is done for it."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from lamina.errors import LaminaError
from lamina.server.authentication import PRINCIPAL, REFUSED, principal_from
from lamina.server.principal import Authenticate
from lamina.server.problems import Problem, problem_of

__all__ = ["Authenticating"]

_KINDS: Final = frozenset({"http", "websocket"})


class Authenticating:
    """Notes the principal in the scope, or why there is none; a route that needs one refuses then.

    `authenticate` gives what tells whom a token stands for, now. Where it gives None, everybody is the anonymous
    principal, who may do everything.
    """

    def __init__(self, app: ASGIApp, *, authenticate: Callable[[], Authenticate | None]) -> None:
        self._app = app
        self._authenticate = authenticate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in _KINDS:
            await self._note(scope)
        await self._app(scope, receive, send)

    async def _note(self, scope: MutableMapping[str, Any]) -> None:
        try:
            scope[PRINCIPAL] = await principal_from(Headers(scope=scope), self._authenticate())
        except Problem as error:
            scope[REFUSED] = error
        except LaminaError as error:
            scope[REFUSED] = problem_of(error)
