"""From a bearer token to a principal."""

from __future__ import annotations

import hashlib
import hmac
import inspect
from collections.abc import Collection
from typing import Final

from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import Scope

from lamina.server.principal import Authenticate, Principal
from lamina.server.problems import Problem

__all__ = ["PRINCIPAL", "REFUSED", "authenticated", "one_of", "principal_from", "principal_of"]

PRINCIPAL: Final = "lamina.principal"
REFUSED: Final = "lamina.refused"
PROJECT_HEADER: Final = "X-Project-ID"
_LONGEST_TOKEN: Final = 16_384


async def authenticated(request: Request) -> Principal:
    """Who this request comes from; where the server has no tokens, anybody on this machine.

    Raises:
        Problem: 401, there is no token, or none that is known; 403, it does not reach the project it names.
    """
    return principal_of(request.scope)


def principal_of(scope: Scope) -> Principal:
    """As `authenticated`, for an app that is mounted in this one."""
    if REFUSED in scope:
        refused: Problem = scope[REFUSED]
        raise refused
    principal: Principal = scope[PRINCIPAL]
    return principal


async def principal_from(headers: Headers, authenticate: Authenticate | None) -> Principal:
    """Whom the headers stand for. Raises as `authenticated`."""
    if authenticate is None:
        return Principal()
    given = headers.getlist("authorization")
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    if scheme.lower() == "bearer" and 0 < len(token.strip()) <= _LONGEST_TOKEN:
        found = authenticate(token.strip())
        principal = await found if inspect.isawaitable(found) else found
        if principal is not None:
            return _in_project(principal, headers)
    detail = "Send exactly one Authorization header: Bearer and a valid token."
    challenge = {"WWW-Authenticate": 'Bearer error="invalid_token"' if given else "Bearer"}
    raise Problem(401, "unauthenticated", "The request has no valid token", detail, headers=challenge)


def one_of(tokens: Collection[str]) -> Authenticate:
    """Takes these tokens, each for everything in the tenant `default`; compared by digest, in constant time."""
    digests = [hashlib.sha256(each.encode()).digest() for each in tokens]

    def authenticate(token: str) -> Principal | None:
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        matches = [hmac.compare_digest(digest, each) for each in digests]
        return Principal(id=f"token-{matches.index(True)}") if any(matches) else None

    return authenticate


def _in_project(principal: Principal, headers: Headers) -> Principal:
    asked = headers.getlist(PROJECT_HEADER)
    if not asked:
        return principal
    chosen = principal.in_project(asked[0]) if len(asked) == 1 else None
    if chosen is None:
        detail = f"{PROJECT_HEADER} names no project that the token may choose; leave it out for the token's own."
        raise Problem(403, "forbidden", "The request reaches outside what its token may do", detail)
    return chosen
