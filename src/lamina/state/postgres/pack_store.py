"""The pack store: each method of the port as one job for the database."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import ClassVar, TypeVar

from lamina.databases.postgres.schema import Session
from lamina.domain.pack import Pack, PackFace, PackMemory, PackMetadata, PackOrder
from lamina.domain.pack_decay import Tier
from lamina.domain.pack_query import DuePlace, PackMemoryQuery, PackQuery
from lamina.domain.storable import check_kind, check_paging
from lamina.domain.storable_pack import (
    check_due,
    check_limit,
    check_listing_of_memories,
    check_memory_id,
    check_pack_look_up,
    check_revision,
    check_walk,
    distinct_ids,
    storable_memory_query,
    storable_pack,
    storable_pack_memories,
    storable_pack_memory,
    storable_pack_query,
    storable_revisions,
)
from lamina.domain.text import check_name
from lamina.domain.validation import check_instant
from lamina.ports.pack_store import PackStore
from lamina.state.postgres import checking, pack_changes, pack_due, pack_heads, pack_reading
from lamina.state.postgres.joined_store import JoinedStore
from lamina.state.postgres.pack_rows import PACK_FRAGMENTS

__all__ = ["PostgresPackStore"]

T = TypeVar("T")

PACK_STEPS = ("packs_001_tables.sql",)


class PostgresPackStore(JoinedStore, PackStore):
    """Context Packs, their memories and the compressed originals, in one schema of a PostgreSQL database.

    Whoever changes packs, or which memories there are, is alone with the packs of the tenant for that moment;
    counting accesses and changing tiers go on side by side.

    Args:
        url: The database, as `PostgresDatabase` takes it.
        database: In place of `url` and of the limits: a database that others use too. It stays open as long as
            one of its users does.
        schema: Holds the tables; it is made if there is none.
        connections: How many connections may be open at the same time; calls beyond that wait.
        connect_timeout: How long, in seconds, to wait for the server when one is made.
        statement_timeout: How long, in seconds, a statement may take, waiting for locks included.
    """

    _tables = "packs"
    _fragments = PACK_FRAGMENTS
    _steps: ClassVar[Sequence[str]] = PACK_STEPS

    async def create_pack(self, pack: Pack) -> None:
        checked = storable_pack(pack)
        await self._change(checked.tenant, lambda session: pack_heads.create_pack(session, checked))

    async def get_packs(self, tenant: str, ids: Sequence[str]) -> list[Pack]:
        check_name("tenant", tenant)
        possible = distinct_ids(ids)
        return await self._read(tenant, lambda session: pack_heads.get_packs(session, tenant, possible))

    async def find_pack(self, tenant: str, name: str, *, owner: str | None) -> Pack | None:
        check_pack_look_up(tenant, name, owner)
        return await self._read(tenant, lambda session: pack_heads.find_pack(session, tenant, name, owner))

    async def list_packs(self, query: PackQuery, *, limit: int | None = None, offset: int = 0) -> list[Pack]:
        checked = storable_pack_query(query)
        check_paging(limit, offset)
        return await self._read(
            checked.tenant, lambda session: pack_heads.list_packs(session, checked, limit=limit, offset=offset)
        )

    async def pack_faces(self, query: PackQuery, *, limit: int, after: str | None = None) -> list[PackFace]:
        checked = storable_pack_query(query)
        check_walk(limit, after)
        return await self._read(checked.tenant, lambda session: pack_heads.pack_faces(session, checked, limit, after))

    async def count_packs(self, query: PackQuery) -> int:
        checked = storable_pack_query(query)
        return await self._read(checked.tenant, lambda session: pack_heads.count_packs(session, checked))

    async def save_pack(self, pack: Pack, *, expected_revision: int) -> bool:
        checked = storable_pack(pack)
        check_revision("expected_revision", expected_revision)
        return await self._change(
            checked.tenant, lambda session: pack_heads.save_pack(session, checked, expected_revision)
        )

    async def purge_pack(self, tenant: str, id: str) -> bool:
        check_memory_id(tenant, id)
        return await self._change(tenant, lambda session: pack_changes.purge_pack(session, tenant, id))

    async def add_memories(self, memories: Sequence[PackMemory], *, now: datetime) -> None:
        checked = storable_pack_memories(memories)
        instant = check_instant("now", now)
        if checked:
            tenant = checked[0].tenant
            await self._change(tenant, lambda session: pack_changes.add_memories(session, tenant, checked, instant))

    async def get_memories(self, tenant: str, ids: Sequence[str], *, with_content: bool = True) -> list[PackMemory]:
        check_name("tenant", tenant)
        possible = distinct_ids(ids)
        found = await self._read(
            tenant, lambda session: pack_reading.get_memories(session, tenant, possible, with_content=with_content)
        )
        return [memory for _, memory in found]

    async def find_memories(
        self,
        query: PackMemoryQuery,
        *,
        order: PackOrder = "oldest",
        limit: int | None = None,
        offset: int = 0,
        with_content: bool = True,
    ) -> list[PackMemory]:
        checked = storable_memory_query(query)
        check_listing_of_memories(order, limit, offset)
        return await self._read(
            checked.tenant,
            lambda session: pack_reading.find_memories(
                session, checked, order=order, limit=limit, offset=offset, with_content=with_content
            ),
        )

    async def count_memories(self, query: PackMemoryQuery) -> int:
        checked = storable_memory_query(query)
        return await self._read(checked.tenant, lambda session: pack_reading.count_memories(session, checked))

    async def statistics(self, tenant: str, pack_id: str) -> PackMetadata:
        check_memory_id(tenant, pack_id)
        return await self._read(tenant, lambda session: pack_reading.statistics(session, tenant, pack_id))

    async def save_memory(self, memory: PackMemory, *, expected_revision: int, now: datetime) -> bool:
        checked = storable_pack_memory(memory, keeps_content=True)
        check_revision("expected_revision", expected_revision)
        instant = check_instant("now", now)
        return await self._change(
            checked.tenant, lambda session: pack_changes.save_memory(session, checked, expected_revision, instant)
        )

    async def supersede(self, tenant: str, old_id: str, *, by: str, now: datetime) -> None:
        check_memory_id(tenant, old_id)
        check_name("by", by)
        instant = check_instant("now", now)
        await self._change(tenant, lambda session: pack_changes.supersede(session, tenant, old_id, by, now=instant))

    async def delete_memory(self, tenant: str, id: str) -> bool:
        check_memory_id(tenant, id)
        return await self._change(tenant, lambda session: pack_changes.delete_memory(session, tenant, id))

    async def touch(self, tenant: str, ids: Sequence[str], *, now: datetime) -> dict[str, Tier]:
        check_name("tenant", tenant)
        possible = distinct_ids(ids)
        instant = check_instant("now", now)
        return await self._touch(tenant, lambda session: pack_due.touch(session, tenant, possible, instant))

    async def due(
        self,
        tenant: str,
        *,
        until: datetime,
        limit: int,
        after: DuePlace | None = None,
        pack_id: str | None = None,
    ) -> list[tuple[datetime, PackMemory]]:
        instant = check_due(tenant, until, limit, after=after, pack_id=pack_id)
        return await self._read(
            tenant,
            lambda session: pack_due.due(session, tenant, until=instant, limit=limit, after=after, pack_id=pack_id),
        )

    async def set_tier(
        self, tenant: str, id: str, tier: Tier, *, expected_revision: int, now: datetime, only_if_due: bool = False
    ) -> bool:
        check_memory_id(tenant, id)
        check_kind("tier", tier, Tier)
        check_revision("expected_revision", expected_revision)
        instant = check_instant("now", now)
        return await self._touch(
            tenant,
            lambda session: pack_due.set_tier(
                session,
                tenant,
                id,
                tier,
                expected_revision=expected_revision,
                now=instant,
                only_if_due=only_if_due,
            ),
        )

    async def unprojected(self, tenant: str, *, limit: int) -> list[PackMemory]:
        check_name("tenant", tenant)
        check_limit(limit)
        return await self._read(tenant, lambda session: pack_due.unprojected(session, tenant, limit))

    async def mark_projected(self, tenant: str, revisions: dict[str, int]) -> None:
        check_name("tenant", tenant)
        checked = storable_revisions(revisions)
        await self._touch(tenant, lambda session: pack_due.mark_projected(session, tenant, checked))

    async def tenants(self) -> list[str]:
        return await self._opened().read(pack_heads.tenants, settings={"lamina.all_tenants": "yes"})

    async def check(self) -> list[str]:
        """Look the packs of all tenants over; what is wrong, in plain words. Empty if they are sound. Reads all."""
        found = [await self._read(tenant, checking.find_contradictions_of_packs) for tenant in await self.tenants()]
        return [finding for each in found for finding in each]

    async def repair(self) -> list[str]:
        """Mend what the rows themselves tell, such as when a memory is due; what was done. No row is dropped."""
        done = [await self._change(tenant, checking.repair_packs) for tenant in await self.tenants()]
        return [each for of_tenant in done for each in of_tenant]

    async def _read(self, tenant: str, work: Callable[[Session], T]) -> T:
        return await self._opened().read(work, settings={"lamina.tenant": tenant})

    async def _change(self, tenant: str, work: Callable[[Session], T]) -> T:
        """Do it while nobody else changes or touches packs of the tenant."""

        def alone(session: Session) -> T:
            session.execute("SELECT pg_advisory_xact_lock(%s)", (self._lock_of(tenant),))
            return work(session)

        return await self._opened().write(alone, tenant, settings={"lamina.tenant": tenant})

    async def _touch(self, tenant: str, work: Callable[[Session], T]) -> T:
        """Do it while nobody changes packs of the tenant; others may touch other memories."""

        def beside(session: Session) -> T:
            session.execute("SELECT pg_advisory_xact_lock_shared(%s)", (self._lock_of(tenant),))
            return work(session)

        return await self._opened().write(beside, settings={"lamina.tenant": tenant})

    def _lock_of(self, tenant: str) -> int:
        digest = hashlib.sha256(f"lamina packs {self._component.schema.name} {tenant}".encode()).digest()
        return int.from_bytes(digest[:8], signed=True)
