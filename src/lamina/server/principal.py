"""Who a request comes from, and what it may do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from lamina.domain.memory import DEFAULT_NAME

__all__ = ["ANYTHING", "Access", "Authenticate", "Principal"]


class Access(StrEnum):
    """What a token is good for; each is given on its own."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    """Maintenance, and what reaches beyond one owner: exports, imports, deleting everything."""


ANYTHING = frozenset(Access)


@dataclass(frozen=True, slots=True)
class Principal:
    """Whom a token stands for. It is bound to a tenant, and where `owner` is given to that owner.

    `id` names the token in rate limits and idempotency keys, never the secret.
    """

    tenant: str = DEFAULT_NAME
    owner: str | None = None
    access: frozenset[Access] = ANYTHING
    id: str = "anonymous"


Authenticate: TypeAlias = Callable[[str], Awaitable[Principal | None] | Principal | None]
"""Tells whom a bearer token stands for; None refuses it. It may be called with any text."""
