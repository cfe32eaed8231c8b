"""The pack store: each method of the port as one job for the threads that own the connections."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from lamina.databases.sqlite.components import Component, Step
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
from lamina.errors import StoreDamaged
from lamina.ports.pack_store import PackStore
from lamina.state.sqlite import pack_changes, pack_due, pack_heads, pack_reading
from lamina.state.sqlite.joined_store import JoinedStore
from lamina.state.sqlite.pack_checking import find_contradictions_of_packs
from lamina.state.sqlite.pack_tables import PACK_STEPS, pack_tables
from lamina.state.sqlite.repairing import repair_packs

__all__ = ["SqlitePackStore"]


class SqlitePackStore(JoinedStore, PackStore):
    """Context Packs, their memories and the compressed originals, in one SQLite file.

    Args:
        path: The file, made with its folders if there is none; a relative one is taken from where
            the process is now. `:memory:` keeps all in this process's memory, until `close`.
        database: In place of `path` and what follows: a database that others use too, such as
            `SqliteStateStore`. It stays open as long as one of its users does.
        busy_timeout: How long, in seconds, a call waits for another process that is writing.
        readers: How many threads read beside the one that writes; with 0 that one does both.
        backup: Whether the file is copied beside itself before a newer Lamina changes its layout.
    """

    _steps: ClassVar[tuple[Step, ...]] = PACK_STEPS

    def _component(self) -> Component:
        return pack_tables(self._steps)

    async def create_pack(self, pack: Pack) -> None:
        checked = storable_pack(pack)
        await self._write(lambda connection: pack_heads.create_pack(connection, checked))

    async def get_packs(self, tenant: str, ids: Sequence[str]) -> list[Pack]:
        check_name("tenant", tenant)
        possible = distinct_ids(ids)
        return await self._read(lambda connection: pack_heads.get_packs(connection, tenant, possible))

    async def find_pack(self, tenant: str, name: str, *, owner: str | None) -> Pack | None:
        check_pack_look_up(tenant, name, owner)
        return await self._read(lambda connection: pack_heads.find_pack(connection, tenant, name, owner))

    async def list_packs(self, query: PackQuery, *, limit: int | None = None, offset: int = 0) -> list[Pack]:
        checked = storable_pack_query(query)
        check_paging(limit, offset)
        return await self._read(
            lambda connection: pack_heads.list_packs(connection, checked, limit=limit, offset=offset)
        )

    async def pack_faces(self, query: PackQuery, *, limit: int, after: str | None = None) -> list[PackFace]:
        checked = storable_pack_query(query)
        check_walk(limit, after)
        return await self._read(lambda connection: pack_heads.pack_faces(connection, checked, limit, after))

    async def count_packs(self, query: PackQuery) -> int:
        checked = storable_pack_query(query)
        return await self._read(lambda connection: pack_heads.count_packs(connection, checked))

    async def save_pack(self, pack: Pack, *, expected_revision: int) -> bool:
        checked = storable_pack(pack)
        check_revision("expected_revision", expected_revision)
        return await self._write(lambda connection: pack_heads.save_pack(connection, checked, expected_revision))

    async def purge_pack(self, tenant: str, id: str) -> bool:
        check_memory_id(tenant, id)
        return await self._write(lambda connection: pack_changes.purge_pack(connection, tenant, id))

    async def add_memories(self, memories: Sequence[PackMemory], *, now: datetime) -> None:
        checked = storable_pack_memories(memories)
        instant = check_instant("now", now)
        if checked:
            tenant = checked[0].tenant
            await self._write(lambda connection: pack_changes.add_memories(connection, tenant, checked, instant))

    async def get_memories(self, tenant: str, ids: Sequence[str], *, with_content: bool = True) -> list[PackMemory]:
        check_name("tenant", tenant)
        possible = distinct_ids(ids)
        found = await self._read(
            lambda connection: pack_reading.get_memories(connection, tenant, possible, with_content=with_content)
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
            lambda connection: pack_reading.find_memories(
                connection, checked, order=order, limit=limit, offset=offset, with_content=with_content
            )
        )

    async def count_memories(self, query: PackMemoryQuery) -> int:
        checked = storable_memory_query(query)
        return await self._read(lambda connection: pack_reading.count_memories(connection, checked))

    async def statistics(self, tenant: str, pack_id: str) -> PackMetadata:
        check_memory_id(tenant, pack_id)
        return await self._read(lambda connection: pack_reading.statistics(connection, tenant, pack_id))

    async def save_memory(self, memory: PackMemory, *, expected_revision: int, now: datetime) -> bool:
        checked = storable_pack_memory(memory, keeps_content=True)
        check_revision("expected_revision", expected_revision)
        instant = check_instant("now", now)
        return await self._write(
            lambda connection: pack_changes.save_memory(connection, checked, expected_revision, instant)
        )

    async def supersede(self, tenant: str, old_id: str, *, by: str, now: datetime) -> None:
        check_memory_id(tenant, old_id)
        check_name("by", by)
        instant = check_instant("now", now)
        await self._write(lambda connection: pack_changes.supersede(connection, tenant, old_id, by, now=instant))

    async def delete_memory(self, tenant: str, id: str) -> bool:
        check_memory_id(tenant, id)
        return await self._write(lambda connection: pack_changes.delete_memory(connection, tenant, id))

    async def touch(self, tenant: str, ids: Sequence[str], *, now: datetime) -> dict[str, Tier]:
        check_name("tenant", tenant)
        possible = distinct_ids(ids)
        instant = check_instant("now", now)
        return await self._write(lambda connection: pack_due.touch(connection, tenant, possible, instant))

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
            lambda connection: pack_due.due(
                connection, tenant, until=instant, limit=limit, after=after, pack_id=pack_id
            )
        )

    async def set_tier(
        self, tenant: str, id: str, tier: Tier, *, expected_revision: int, now: datetime, only_if_due: bool = False
    ) -> bool:
        check_memory_id(tenant, id)
        check_kind("tier", tier, Tier)
        check_revision("expected_revision", expected_revision)
        instant = check_instant("now", now)
        return await self._write(
            lambda connection: pack_due.set_tier(
                connection,
                tenant,
                id,
                tier,
                expected_revision=expected_revision,
                now=instant,
                only_if_due=only_if_due,
            )
        )

    async def unprojected(self, tenant: str, *, limit: int) -> list[PackMemory]:
        check_name("tenant", tenant)
        check_limit(limit)
        return await self._read(lambda connection: pack_due.unprojected(connection, tenant, limit))

    async def mark_projected(self, tenant: str, revisions: dict[str, int]) -> None:
        check_name("tenant", tenant)
        checked = storable_revisions(revisions)
        await self._write(lambda connection: pack_due.mark_projected(connection, tenant, checked))

    async def tenants(self) -> list[str]:
        return await self._read(pack_heads.tenants)

    async def check(self) -> list[str]:
        """Look the packs over; what is wrong, in plain words. Empty if they are sound. Reads everything."""
        try:
            return await self._read(find_contradictions_of_packs)
        except StoreDamaged as error:
            return [error.problem]

    async def repair(self) -> list[str]:
        """Mend what the rows themselves tell, such as what is counted; what was done. No row is dropped."""
        return await self._write(repair_packs)
