"""The server store: each method of the port as one job for the threads that own the connections."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from lamina.databases.sqlite.components import Component, Step
from lamina.databases.sqlite.size import size_bytes
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
from lamina.state.sqlite import requests, tokens
from lamina.state.sqlite.joined_store import JoinedStore
from lamina.state.sqlite.server_tables import STEPS, server_tables

__all__ = ["SqliteServerStore"]


class SqliteServerStore(JoinedStore, ServerStore):
    """API tokens, requests, leases and tenants in one SQLite file; the arguments are those of `SqliteStateStore`."""

    _steps: ClassVar[tuple[Step, ...]] = STEPS

    def _component(self) -> Component:
        return server_tables(self._steps)

    async def size_bytes(self) -> int:
        return await self._read(size_bytes)

    async def add_token(self, token: ApiToken) -> None:
        checked = storable_token(token)
        await self._write(lambda connection: tokens.add_token(connection, checked))

    async def find_token(self, digest: str) -> ApiToken | None:
        if not check_digest(digest):
            return None
        return await self._read(lambda connection: tokens.find_token(connection, digest))

    async def list_tokens(self, tenant: str | None = None, *, limit: int = 100, offset: int = 0) -> list[ApiToken]:
        check_token_listing(tenant, limit, offset)
        return await self._read(lambda connection: tokens.list_tokens(connection, tenant, limit=limit, offset=offset))

    async def revoke_token(self, id: str, *, now: datetime, tenant: str | None = None) -> bool:
        check_names(id=id)
        if tenant is not None:
            check_names(tenant=tenant)
        at = check_instant("now", now)
        return await self._write(lambda connection: tokens.revoke_token(connection, id, now=at, tenant=tenant))

    async def note_use(self, id: str, *, now: datetime) -> bool:
        check_names(id=id)
        at = check_instant("now", now)
        return await self._write(lambda connection: tokens.note_use(connection, id, now=at))

    async def purge_tokens(self, before: datetime) -> int:
        instant = check_instant("before", before)
        return await self._write(lambda connection: tokens.purge_tokens(connection, instant))

    async def begin(
        self, tenant: str, caller: str, key: str, fingerprint: str, *, now: datetime, lease_until: datetime
    ) -> Beginning:
        check_names(tenant=tenant, caller=caller, key=key, fingerprint=fingerprint)
        at, until = check_interval(now, lease_until, end_name="lease_until")
        place = (tenant, caller, key)
        return await self._write(
            lambda connection: requests.begin(connection, place, fingerprint, now=at, lease_until=until)
        )

    async def finish(self, tenant: str, caller: str, key: str, claim: str, *, response: KeptResponse) -> bool:
        check_names(tenant=tenant, caller=caller, key=key, claim=claim)
        checked, place = storable_response(response), (tenant, caller, key)
        return await self._write(lambda connection: requests.finish(connection, place, claim, checked))

    async def abandon(self, tenant: str, caller: str, key: str, claim: str) -> bool:
        check_names(tenant=tenant, caller=caller, key=key, claim=claim)
        place = (tenant, caller, key)
        return await self._write(lambda connection: requests.abandon(connection, place, claim))

    async def purge(self, before: datetime) -> int:
        instant = check_instant("before", before)
        return await self._write(lambda connection: requests.purge(connection, instant))

    async def acquire_lease(self, name: str, holder: str, *, now: datetime, until: datetime) -> bool:
        check_names(name=name, holder=holder)
        at, end = check_interval(now, until, end_name="until")
        return await self._write(lambda connection: requests.acquire_lease(connection, name, holder, now=at, until=end))

    async def release_lease(self, name: str, holder: str) -> bool:
        check_names(name=name, holder=holder)
        return await self._write(lambda connection: requests.release_lease(connection, name, holder))

    async def note_tenant(self, tenant: str, *, now: datetime) -> bool:
        check_names(tenant=tenant)
        at = check_instant("now", now)
        return await self._write(lambda connection: tokens.note_tenant(connection, tenant, now=at))

    async def tenants(self) -> list[str]:
        return await self._read(tokens.tenants)

    async def forget_tenant(self, tenant: str) -> bool:
        check_names(tenant=tenant)
        return await self._write(lambda connection: tokens.forget_tenant(connection, tenant))

    async def forget_owner(self, tenant: str, owner: str) -> tuple[int, int]:
        check_names(tenant=tenant, owner=owner)
        return await self._write(lambda connection: tokens.forget_owner(connection, tenant, owner))
