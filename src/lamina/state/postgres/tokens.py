"""API tokens and the tenants that were served."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, LiteralString

from lamina.databases.postgres.failures import damaged
from lamina.databases.postgres.schema import Session
from lamina.domain.api_token import USE_NOTED_EVERY, ApiToken, TokenScope
from lamina.errors import Conflict

__all__ = [
    "FRAGMENTS",
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
]

FRAGMENTS: Final[dict[str, LiteralString]] = {
    "token": "id, tenant, owner, scopes, digest, label, created_at, expires_at, revoked_at, last_used_at",
}
"""The columns that make a token."""


def add_token(session: Session, token: ApiToken) -> None:
    """As `ServerStore.add_token`, with a token that passed `storable_token`."""
    insert = (
        "INSERT INTO {schema}.server_tokens ({token})"
        " VALUES (%(id)s, %(tenant)s, %(owner)s, %(scopes)s, %(digest)s, %(label)s,"
        " %(created_at)s, %(expires_at)s, %(revoked_at)s, %(last_used_at)s) ON CONFLICT DO NOTHING"
    )
    parameters = {
        "id": token.id,
        "tenant": token.tenant,
        "owner": token.owner,
        "scopes": sorted(each.value for each in token.scopes),
        "digest": token.digest,
        "label": token.label,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
        "last_used_at": token.last_used_at,
    }
    if not session.execute(insert, parameters).rowcount:
        raise Conflict(f"The token {token.id!r}", "has an id or a digest that is taken", "Make another one.")


def find_token(session: Session, digest: str) -> ApiToken | None:
    """As `ServerStore.find_token`."""
    query = "SELECT {token} FROM {schema}.server_tokens WHERE digest = %s"
    row = session.execute(query, (digest,)).fetchone()
    return None if row is None else _token_of(row)


def list_tokens(session: Session, tenant: str | None, *, limit: int, offset: int) -> list[ApiToken]:
    """As `ServerStore.list_tokens`."""
    query = "SELECT {token} FROM {schema}.server_tokens"
    if tenant is not None:
        query += " WHERE tenant = %(tenant)s"
    query += " ORDER BY created_at DESC, id LIMIT %(limit)s OFFSET %(offset)s"
    rows = session.execute(query, {"tenant": tenant, "limit": limit, "offset": offset})
    return [_token_of(row) for row in rows]


def revoke_token(session: Session, id: str, *, now: datetime, tenant: str | None) -> bool:
    """As `ServerStore.revoke_token`."""
    change = (
        "UPDATE {schema}.server_tokens SET revoked_at = %s"
        " WHERE id = %s AND revoked_at IS NULL AND tenant = coalesce(%s, tenant)"
    )
    return session.execute(change, (now, id, tenant)).rowcount > 0


def note_use(session: Session, id: str, *, now: datetime) -> bool:
    """As `ServerStore.note_use`."""
    change = (
        "UPDATE {schema}.server_tokens SET last_used_at = %(now)s"
        " WHERE id = %(id)s AND (last_used_at IS NULL OR last_used_at <= %(now)s - %(gap)s)"
    )
    return session.execute(change, {"now": now, "id": id, "gap": USE_NOTED_EVERY}).rowcount > 0


def purge_tokens(session: Session, before: datetime) -> int:
    """As `ServerStore.purge_tokens`."""
    removal = (
        "DELETE FROM {schema}.server_tokens WHERE least(expires_at, revoked_at) < %s"
        " AND id <> (SELECT id FROM {schema}.server_tokens ORDER BY created_at DESC, id LIMIT 1)"
    )
    return session.execute(removal, (before,)).rowcount


def note_tenant(session: Session, tenant: str, *, now: datetime) -> bool:
    """As `ServerStore.note_tenant`."""
    insert = "INSERT INTO {schema}.server_tenants (name, since) VALUES (%s, %s) ON CONFLICT DO NOTHING"
    return session.execute(insert, (tenant, now)).rowcount > 0


def tenants(session: Session) -> list[str]:
    """As `ServerStore.tenants`."""
    query = "SELECT name FROM {schema}.server_tenants UNION SELECT tenant FROM {schema}.server_tokens ORDER BY 1"
    return [name for (name,) in session.execute(query)]


def forget_tenant(session: Session, tenant: str) -> bool:
    """As `ServerStore.forget_tenant`."""
    removals: tuple[LiteralString, ...] = (
        "DELETE FROM {schema}.server_tokens WHERE tenant = %s",
        "DELETE FROM {schema}.server_requests WHERE tenant = %s",
        "DELETE FROM {schema}.server_tenants WHERE name = %s",
    )
    return sum(session.execute(each, (tenant,)).rowcount for each in removals) > 0


def forget_owner(session: Session, tenant: str, owner: str) -> tuple[int, int]:
    """As `ServerStore.forget_owner`."""
    removal: LiteralString = "DELETE FROM {schema}.server_tokens WHERE tenant = %s AND owner = %s"
    removed = session.execute(removal, (tenant, owner)).rowcount
    removal = "DELETE FROM {schema}.server_requests WHERE tenant = %s AND status IS NOT NULL"
    return removed, session.execute(removal, (tenant,)).rowcount


def _token_of(row: Sequence[Any]) -> ApiToken:
    id, tenant, owner, scopes, digest, label, created_at, *times = row
    try:
        expires_at, revoked_at, last_used_at = (None if each is None else each.astimezone(UTC) for each in times)
        return ApiToken(
            id=id,
            tenant=tenant,
            owner=owner,
            scopes=frozenset(TokenScope(each) for each in scopes),
            digest=digest,
            label=label,
            created_at=created_at.astimezone(UTC),
            expires_at=expires_at,
            revoked_at=revoked_at,
            last_used_at=last_used_at,
        )
    except (ValueError, TypeError, AttributeError, OverflowError):
        raise damaged(f"the row of the token {id!r} cannot be read") from None
