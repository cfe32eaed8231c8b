"""Who may call the server: tokens, known by a digest of their secret."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

__all__ = ["USE_NOTED_EVERY", "ApiToken", "TokenScope", "token_digest"]

USE_NOTED_EVERY: Final = timedelta(minutes=1)
"""How exact `last_used_at` is: a write for each call would cost more than the call."""


class TokenScope(StrEnum):
    """What a token is good for. None implies another."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiToken:
    """What is kept of a token. Its secret is not: it is shown once, when the token is made."""

    id: str
    tenant: str
    owner: str | None = None
    """None: the token speaks for every owner of the tenant."""
    scopes: frozenset[TokenScope]
    digest: str
    """As `token_digest` makes it."""
    label: str = ""
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    """To the minute."""

    def is_valid_at(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired; at its `expires_at` it is."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def is_use_noted_at(self, now: datetime) -> bool:
        """Whether `last_used_at` is less than a minute old, so that nothing need be written."""
        return self.last_used_at is not None and now < self.last_used_at + USE_NOTED_EVERY

    def replace(self, **changes: Any) -> ApiToken:
        """A copy with these fields changed."""
        return dataclasses.replace(self, **changes)


def token_digest(secret: str) -> str:
    """SHA-256 of the secret, in hex. Fast on purpose: a random secret of 256 bits cannot be guessed."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
