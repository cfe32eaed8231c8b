"""How often one token may ask."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from lamina.server.authentication import PRINCIPAL
from lamina.server.problems import Problem, send_problem
from lamina.settings import RateLimit

__all__ = ["RateLimits"]

_MOST: Final = 10_000


class RateLimits:
    """A token bucket for each principal, in this process: with several workers each has its own.

    Whoever sends wrong tokens has one too, by address. `limit` gives the limit that holds now, or None for none.
    """

    def __init__(
        self, app: ASGIApp, *, limit: Callable[[], RateLimit | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._app = app
        self._limit = limit
        self._clock = clock
        self._buckets: OrderedDict[tuple[str, ...], tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = self._limit() if scope["type"] == "http" else None
        key = None if limit is None else _key(scope)
        wait = 0.0 if limit is None or key is None else self._wait(key, limit)
        if wait > 0:
            detail = "The token asks more often than it may. Wait as long as Retry-After says, in seconds."
            headers = {"Retry-After": str(math.ceil(wait))}
            problem = Problem(429, "rate_limited", "Too many requests", detail, headers=headers)
            await send_problem(problem, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _wait(self, key: tuple[str, ...], limit: RateLimit) -> float:
        """Take one; else seconds until there is one."""
        now = self._clock()
        left, since = self._buckets.pop(key, (float(limit.burst), now))
        left = min(float(limit.burst), left + (now - since) * limit.per_second)
        taken = left >= 1
        self._buckets[key] = (left - 1 if taken else left, now)
        if len(self._buckets) > _MOST:
            self._buckets.popitem(last=False)
        return 0.0 if taken else (1 - left) / limit.per_second


def _key(scope: Scope) -> tuple[str, ...] | None:
    principal = scope.get(PRINCIPAL)
    if principal is not None:
        return ("principal", principal.tenant, principal.id)
    if "authorization" not in Headers(scope=scope):
        return None  # nothing is done for it: a route that needs a token refuses it
    return ("client", (scope.get("client") or ("",))[0])
