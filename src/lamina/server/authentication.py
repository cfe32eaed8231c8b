"""From a bearer token to a principal."""

from __future__ import annotations

import hashlib
import hmac
import inspect
from collections.abc import Collection

from fastapi import Request
from fastapi.security import HTTPBearer

from lamina.server.principal import Authenticate, Principal
from lamina.server.problems import Problem

__all__ = ["authenticated", "one_of"]

BEARER = HTTPBearer(auto_error=False, description="A token made by `lamina token create`.")


async def authenticated(request: Request) -> Principal:
    """Who this request comes from; where the server has no tokens, anybody on this machine.

    Raises:
        Problem: 401, there is no token, or none that is known.
    """
    authenticate: Authenticate | None = request.app.state.authenticate
    if authenticate is None:
        return Principal()
    given = request.headers.getlist("authorization")
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    if scheme.lower() == "bearer" and token.strip():
        found = authenticate(token.strip())
        principal = await found if inspect.isawaitable(found) else found
        if principal is not None:
            return principal
    detail = "Send exactly one Authorization header: Bearer and a valid token."
    headers = {"WWW-Authenticate": 'Bearer error="invalid_token"' if given else "Bearer"}
    raise Problem(401, "unauthenticated", "The request has no valid token", detail, headers=headers)


def one_of(tokens: Collection[str]) -> Authenticate:
    """Takes these tokens, each for everything in the tenant `default`; compared by digest, in constant time."""
    digests = [hashlib.sha256(each.encode()).digest() for each in tokens]

    def authenticate(token: str) -> Principal | None:
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        matches = [hmac.compare_digest(digest, each) for each in digests]
        return Principal(id=f"token-{matches.index(True)}") if any(matches) else None

    return authenticate
