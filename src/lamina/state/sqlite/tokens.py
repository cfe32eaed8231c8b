"""API tokens and the tenants that were served, inside the transaction of one job."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from lamina.databases.sqlite.failures import damaged
from lamina.domain.api_token import USE_NOTED_EVERY, ApiToken, TokenScope
from lamina.domain.instants import from_micros, to_micros
from lamina.errors import Conflict

__all__ = [
    "add_token",
    "find_token",
    "forget_owner",
    "forget_tenant",
    "list_tokens",
    "note_tenant",
    "note_use",
    "purge_tokens",
    "revoke_token",
    "tenants",
    "token_of",
]

COLUMNS: Final = "id, tenant, owner, scopes, digest, label, created_at, expires_at, revoked_at, last_used_at"


def token_of(row: Sequence[Any]) -> ApiToken:
    """The token in a row of `COLUMNS`."""
    id, tenant, owner, scopes, digest, label, created_at, *times = row
    try:
        expires_at, revoked_at, last_used_at = (None if each is None else from_micros(each) for each in times)
        return ApiToken(
            id=id,
            tenant=tenant,
            owner=owner,
            scopes=frozenset(TokenScope(each) for each in json.loads(scopes)),
            digest=digest,
            label=label,
            created_at=from_micros(created_at),
            expires_at=expires_at,
            revoked_at=revoked_at,
            last_used_at=last_used_at,
        )
    except (ValueError, TypeError, OverflowError):
        raise damaged(f"the row of the token {id!r} cannot be read") from None


def add_token(connection: sqlite3.Connection, token: ApiToken) -> None:
    """As `ServerStore.add_token`, with a token that passed `storable_token`."""
    insert = (
        f"INSERT INTO lamina_server_tokens ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "  # noqa: S608 - our columns
        "ON CONFLICT DO NOTHING"
    )
    times = (token.created_at, token.expires_at, token.revoked_at, token.last_used_at)
    values = (token.id, token.tenant, token.owner, json.dumps(sorted(token.scopes)), token.digest, token.label)
    micros = (None if each is None else to_micros(each) for each in times)
    if not connection.execute(insert, (*values, *micros)).rowcount:
        raise Conflict(f"The token {token.id!r}", "has an id or a digest that is taken", "Make another one.")


def find_token(connection: sqlite3.Connection, digest: str) -> ApiToken | None:
    """As `ServerStore.find_token`."""
    query = f"SELECT {COLUMNS} FROM lamina_server_tokens WHERE digest = ?"  # noqa: S608 - our columns
    row = connection.execute(query, (digest,)).fetchone()
    return None if row is None else token_of(row)


def list_tokens(connection: sqlite3.Connection, tenant: str | None, *, limit: int, offset: int) -> list[ApiToken]:
    """As `ServerStore.list_tokens`."""
    where, parameters = ("", ()) if tenant is None else (" WHERE tenant = ?", (tenant,))
    query = (
        f"SELECT {COLUMNS} FROM lamina_server_tokens{where} "  # noqa: S608 - our columns
        "ORDER BY created_at DESC, id LIMIT ? OFFSET ?"
    )
    return [token_of(row) for row in connection.execute(query, (*parameters, limit, offset))]


def revoke_token(connection: sqlite3.Connection, id: str, *, now: datetime, tenant: str | None) -> bool:
    """As `ServerStore.revoke_token`."""
    query = (
        "UPDATE lamina_server_tokens SET revoked_at = ? "
        "WHERE id = ? AND revoked_at IS NULL AND tenant = ifnull(?, tenant)"
    )
    return connection.execute(query, (to_micros(now), id, tenant)).rowcount > 0


def note_use(connection: sqlite3.Connection, id: str, *, now: datetime) -> bool:
    """As `ServerStore.note_use`."""
    query = (
        "UPDATE lamina_server_tokens SET last_used_at = ?1 "
        "WHERE id = ?2 AND (last_used_at IS NULL OR last_used_at <= ?1 - ?3)"
    )
    gap = round(USE_NOTED_EVERY.total_seconds() * 1_000_000)
    return connection.execute(query, (to_micros(now), id, gap)).rowcount > 0


def purge_tokens(connection: sqlite3.Connection, before: datetime) -> int:
    """As `ServerStore.purge_tokens`."""
    removal = (
        "DELETE FROM lamina_server_tokens "
        "WHERE min(ifnull(expires_at, revoked_at), ifnull(revoked_at, expires_at)) < ? "
        "AND id <> (SELECT id FROM lamina_server_tokens ORDER BY created_at DESC, id LIMIT 1)"
    )
    return connection.execute(removal, (to_micros(before),)).rowcount


def note_tenant(connection: sqlite3.Connection, tenant: str, *, now: datetime) -> bool:
    """As `ServerStore.note_tenant`."""
    insert = "INSERT INTO lamina_server_tenants (name, since) VALUES (?, ?) ON CONFLICT DO NOTHING"
    return connection.execute(insert, (tenant, to_micros(now))).rowcount > 0


def tenants(connection: sqlite3.Connection) -> list[str]:
    """As `ServerStore.tenants`."""
    query = "SELECT name FROM lamina_server_tenants UNION SELECT tenant FROM lamina_server_tokens ORDER BY 1"
    return [name for (name,) in connection.execute(query)]


def forget_tenant(connection: sqlite3.Connection, tenant: str) -> bool:
    """As `ServerStore.forget_tenant`."""
    removals = (
        "DELETE FROM lamina_server_tokens WHERE tenant = ?",
        "DELETE FROM lamina_server_requests WHERE tenant = ?",
        "DELETE FROM lamina_server_tenants WHERE name = ?",
    )
    return sum(connection.execute(each, (tenant,)).rowcount for each in removals) > 0


def forget_owner(connection: sqlite3.Connection, tenant: str, owner: str) -> tuple[int, int]:
    """As `ServerStore.forget_owner`."""
    removal = "DELETE FROM lamina_server_tokens WHERE tenant = ? AND owner = ?"
    removed = connection.execute(removal, (tenant, owner)).rowcount
    removal = "DELETE FROM lamina_server_requests WHERE tenant = ? AND status IS NOT NULL"
    return removed, connection.execute(removal, (tenant,)).rowcount
