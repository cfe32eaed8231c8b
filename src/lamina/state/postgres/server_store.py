"""The server store: each method of the port as one job for the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar, TypeVar

from lamina.databases.postgres.schema import Session
from lamina.domain.api_token import ApiToken
from lamina.domain.idempotency import Beginning, KeptResponse
from lamina.domain.storable_server import (
    check_digest,
    check_interval,
    check_names,
    check_token_listing,
    storable_response,
    storable_token,
)
from lamina.domain.validation import check_instant
from lamina.ports.server_store import ServerStore
from lamina.state.postgres import requests, tokens
from lamina.state.postgres.joined_store import JoinedStore

__all__ = ["PostgresServerStore"]

T = TypeVar("T")

STEPS = ("001_server_tables.sql",)


class PostgresServerStore(JoinedStore, ServerStore):
    """API tokens, requests, leases and tenants in one schema.

    The claims of requests and the leases begin when the database's clock says that they are asked for, and last as
    long as it is from `now` to their end, so that the processes' clocks need not agree.

    Args:
        url: As for `PostgresStateStore`, and so are the other options.
        callers_clocks: Let them begin at `now` instead, for tests that drive the clock.
    """

    _tables = "server"
    _fragments = tokens.FRAGMENTS | requests.FRAGMENTS
    _steps: ClassVar[Sequence[str]] = STEPS

    def __init__(self, url: str | None = None, *, callers_clocks: bool = False, **options: Any) -> None:
        super().__init__(url, **options)
        self._callers_clocks = callers_clocks

    async def size_bytes(self) -> int:
        return await self._read(_size_bytes)

    async def add_token(self, token: ApiToken) -> None:
        checked = storable_token(token)
        await self._write(lambda session: tokens.add_token(session, checked))

    async def find_token(self, digest: str) -> ApiToken | None:
        if not check_digest(digest):
            return None
        return await self._read(lambda session: tokens.find_token(session, digest))

    async def list_tokens(self, tenant: str | None = None, *, limit: int = 100, offset: int = 0) -> list[ApiToken]:
        check_token_listing(tenant, limit, offset)
        return await self._read(lambda session: tokens.list_tokens(session, tenant, limit=limit, offset=offset))

    async def revoke_token(self, id: str, *, now: datetime, tenant: str | None = None) -> bool:
        check_names(id=id)
        if tenant is not None:
            check_names(tenant=tenant)
        at = check_instant("now", now)
        return await self._write(lambda session: tokens.revoke_token(session, id, now=at, tenant=tenant))

    async def note_use(self, id: str, *, now: datetime) -> bool:
        check_names(id=id)
        at = check_instant("now", now)
        return await self._write(lambda session: tokens.note_use(session, id, now=at))

    async def purge_tokens(self, before: datetime) -> int:
        instant = check_instant("before", before)
        return await self._write(lambda session: tokens.purge_tokens(session, instant))

    async def begin(
        self, tenant: str, caller: str, key: str, fingerprint: str, *, now: datetime, lease_until: datetime
    ) -> Beginning:
        check_names(tenant=tenant, caller=caller, key=key, fingerprint=fingerprint)
        at, lasts = self._lease(now, lease_until, end_name="lease_until")
        place = (tenant, caller, key)
        return await self._write(lambda session: requests.begin(session, place, fingerprint, now=at, lasts=lasts))

    async def finish(self, tenant: str, caller: str, key: str, claim: str, *, response: KeptResponse) -> bool:
        check_names(tenant=tenant, caller=caller, key=key, claim=claim)
        checked, place = storable_response(response), (tenant, caller, key)
        return await self._write(lambda session: requests.finish(session, place, claim, checked))

    async def abandon(self, tenant: str, caller: str, key: str, claim: str) -> bool:
        check_names(tenant=tenant, caller=caller, key=key, claim=claim)
        place = (tenant, caller, key)
        return await self._write(lambda session: requests.abandon(session, place, claim))

    async def purge(self, before: datetime) -> int:
        instant = check_instant("before", before)
        return await self._write(lambda session: requests.purge(session, instant))

    async def acquire_lease(self, name: str, holder: str, *, now: datetime, until: datetime) -> bool:
        check_names(name=name, holder=holder)
        at, lasts = self._lease(now, until, end_name="until")
        return await self._write(lambda session: requests.acquire_lease(session, name, holder, now=at, lasts=lasts))

    async def release_lease(self, name: str, holder: str) -> bool:
        check_names(name=name, holder=holder)
        return await self._write(lambda session: requests.release_lease(session, name, holder))

    async def note_tenant(self, tenant: str, *, now: datetime) -> bool:
        check_names(tenant=tenant)
        at = check_instant("now", now)
        return await self._write(lambda session: tokens.note_tenant(session, tenant, now=at))

    async def tenants(self) -> list[str]:
        return await self._read(tokens.tenants)

    async def forget_tenant(self, tenant: str) -> bool:
        check_names(tenant=tenant)
        return await self._write(lambda session: tokens.forget_tenant(session, tenant))

    async def forget_owner(self, tenant: str, owner: str) -> tuple[int, int]:
        check_names(tenant=tenant, owner=owner)
        return await self._write(lambda session: tokens.forget_owner(session, tenant, owner))

    def _lease(self, now: datetime, until: datetime, *, end_name: str) -> tuple[datetime | None, timedelta]:
        """When it begins, if the database's clock does not say so, and how long it lasts."""
        at, end = check_interval(now, until, end_name=end_name)
        return at if self._callers_clocks else None, end - at

    async def _read(self, work: Callable[[Session], T]) -> T:
        return await self._opened().read(work)

    async def _write(self, work: Callable[[Session], T]) -> T:
        return await self._opened().write(work)


def _size_bytes(session: Session) -> int:
    ((size,),) = session.execute("SELECT pg_database_size(current_database())")
    return int(size)
