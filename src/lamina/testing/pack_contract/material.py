"""What the contract's tests are made of: instants, packs, memories, and short ways to fill and read a store."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from lamina.domain.pack import SUPERSEDES, Pack, PackMemory, PackType, Relationship
from lamina.domain.pack_query import DuePlace, PackMemoryQuery, PackQuery
from lamina.ports.pack_store import PackStore

__all__ = [
    "LOOKALIKES",
    "NOW",
    "TENANT",
    "add",
    "all_of",
    "days",
    "due_ids",
    "get",
    "ids",
    "memory",
    "named",
    "pack",
    "packs_of",
    "supersedes",
    "walk",
    "with_pack",
]

NOW: Final = datetime(2031, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
TENANT: Final = "acme"

LOOKALIKES: Final = ("a", "a_", "a%", "A", "a:1", "a:10", "ａ", "\u00e9", "e\u0301", "a ", "*", "a'--", "[a]")
"""Names that a comparison by prefix, pattern, case or normal form takes for one another."""


def days(number: float) -> datetime:
    """The instant this many days after `NOW`."""
    return NOW + timedelta(days=number)


def pack(id: str = "p1", **fields: Any) -> Pack:
    """A pack of a project, which is shared in the tenant; its memories fade by months."""
    given = {"tenant": TENANT, "name": f"pack-{id}".lower(), "type": PackType.PROJECT, "created_at": NOW}
    return Pack(**{"id": id, "updated_at": NOW, **given, **fields})


def memory(id: str, content: str = "", **fields: Any) -> PackMemory:
    """A memory that says its id, unless told otherwise."""
    given = {"tenant": TENANT, "pack_id": "p1", "content": content or f"says {id}", "created_at": NOW}
    return PackMemory(**{"id": id, "updated_at": NOW, **given, **fields})


def supersedes(*targets: str) -> list[Relationship]:
    """Relationships by which a memory supersedes these."""
    return [Relationship(SUPERSEDES, target) for target in targets]


async def with_pack(store: PackStore, *memories: PackMemory, **fields: Any) -> None:
    """Make the pack p1 with these memories."""
    await store.create_pack(pack(**fields))
    await add(store, *memories)


async def add(store: PackStore, *memories: PackMemory, now: datetime = NOW) -> None:
    """Add them all at once."""
    await store.add_memories(memories, now=now)


async def get(store: PackStore, id: str, tenant: str = TENANT) -> PackMemory:
    """The memory of this id, which must be there."""
    [found] = await store.get_memories(tenant, [id])
    return found


async def packs_of(store: PackStore, tenant: str = TENANT, **asked: Any) -> list[str]:
    """The ids of the packs that a query finds."""
    return [each.id for each in await store.list_packs(PackQuery(tenant=tenant, **asked))]


def all_of(*pack_ids: str, **asked: Any) -> PackMemoryQuery:
    """What asks for the memories of these packs, or of p1."""
    return PackMemoryQuery(**{"tenant": TENANT, "pack_ids": pack_ids or ("p1",), **asked})


async def named(store: PackStore, name: str, **asked: Any) -> list[str]:
    """The ids of the live memories of this name in p1."""
    return ids(await store.find_memories(all_of(name=name, **asked)))


def ids(memories: Iterable[PackMemory]) -> list[str]:
    """Their ids, in order."""
    return [each.id for each in memories]


async def due_ids(store: PackStore, until: datetime, tenant: str = TENANT) -> list[str]:
    """The ids of what is due by then, the longest due first."""
    return [found.id for _, found in await store.due(tenant, until=until, limit=1000)]


async def walk(store: PackStore, until: datetime, limit: int) -> list[list[tuple[datetime, str]]]:
    """The pages of a walk over what is due by then."""
    pages: list[list[tuple[datetime, str]]] = []
    after: DuePlace | None = None
    while page := await store.due(TENANT, until=until, limit=limit, after=after):
        pages.append([(instant, found.id) for instant, found in page])
        after = DuePlace(*pages[-1][-1])
    return pages
