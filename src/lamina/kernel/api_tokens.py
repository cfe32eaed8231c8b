"""Making API tokens: the one place where their secrets exist."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import datetime

from lamina.domain.api_token import ApiToken, TokenScope, token_digest
from lamina.domain.text import check_name
from lamina.errors import InvalidInput
from lamina.ports.memory_requests import META_TENANT
from lamina.ports.server_store import ServerStore

__all__ = ["issue_token"]

_PREFIX = "lamina_"
"""Tells people, and programs that look for secrets that got about, what they see."""

_BYTES = 32


async def issue_token(
    store: ServerStore,
    *,
    tenant: str,
    scopes: Iterable[TokenScope],
    now: datetime,
    owner: str | None = None,
    label: str = "",
    expires_at: datetime | None = None,
) -> tuple[ApiToken, str]:
    """A new token and its secret, 256 random bits, of which only the digest is kept: show it now, or never.

    Raises:
        InvalidInput: a field cannot be kept, or the tenant is reserved.
    """
    if check_name("tenant", tenant) == META_TENANT:
        raise InvalidInput("tenant", f"{META_TENANT!r} is reserved", "Choose another name.")
    secret = f"{_PREFIX}{secrets.token_urlsafe(_BYTES)}"
    token = ApiToken(
        id=f"tok_{secrets.token_hex(8)}",
        tenant=tenant,
        owner=owner,
        scopes=frozenset(scopes),
        digest=token_digest(secret),
        label=label,
        created_at=now,
        expires_at=expires_at,
    )
    await store.add_token(token)
    return token, secret
