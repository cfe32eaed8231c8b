"""What the contract's tests are made of: instants, scopes, entries, and short ways to read a store."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from lamina.domain.filters import Filter, MemoryFilter
from lamina.domain.memory import MemoryEntry, Vector
from lamina.domain.scope import Scope
from lamina.ports.memory_adapter import Capability, ListOptions, MemoryAdapter, Order, SearchHit, SearchOptions

__all__ = [
    "HOSTILE",
    "LIVE",
    "MINE",
    "NOW",
    "by_text",
    "by_vector",
    "fields_of",
    "ids",
    "listed",
    "memory",
    "needs",
    "put",
    "second",
    "typed",
    "where",
]

NOW: Final = datetime(2099, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
"""So far ahead that a backend with native expiry keeps what expires about this instant."""

MINE: Final = Scope("acme", "ada", "notes")
LIVE: Final = MemoryFilter(now=NOW)

HOSTILE: Final = (
    "a",
    "a_",
    "a%",
    "A",
    "a ",
    " a",
    "ａ",
    "a:1",
    "a:10",
    "a/1",
    "a*",
    "a\\",
    "a'",
    'a"',
    "a' OR '1'='1",
    "é",
    "e\u0301",
    "ß",
    "ss",
    "SS",
    "K",
    "\u212a",
    "null",
    "None",
    "0",
    "00",
    "default",
    "6f0c1c1e-22aa-4b1e-9d7e-0a1b2c3d4e5f",
    "a\u200b",
    "a\nb",
    "x" * 511,
    "x" * 512,
    "会",
    "👩‍👧",
)
"""Names of which some would be one under LIKE, GLOB, case folding, normalisation, trimming, prefixes or numbers."""


def second(number: float) -> datetime:
    """The instant this many seconds after `NOW`."""
    return NOW + timedelta(seconds=number)


def memory(id: str = "m1", content: str = "the harbour lamp is lit", **fields: Any) -> MemoryEntry:
    """An entry in `MINE`, unless the fields say otherwise."""
    defaults = {"created_at": NOW, "updated_at": NOW, "tenant": "acme", "owner": "ada", "namespace": "notes"}
    return MemoryEntry(id=id, content=content, **{**defaults, **fields})


async def put(adapter: MemoryAdapter, *entries: MemoryEntry) -> None:
    """Store each entry as its own owner, in turn."""
    for entry in entries:
        await adapter.store(Scope(entry.tenant, entry.owner, entry.namespace), entry)


async def listed(
    adapter: MemoryAdapter,
    scope: Scope = MINE,
    filter: MemoryFilter = LIVE,
    *,
    limit: int = 1_000,
    offset: int = 0,
    after: int | None = None,
    order: Order = Order.INSERTION,
    include_embeddings: bool = False,
) -> list[MemoryEntry]:
    """What `list` returns."""
    options = ListOptions(
        scope=scope,
        filter=filter,
        limit=limit,
        offset=offset,
        after=after,
        order=order,
        include_embeddings=include_embeddings,
    )
    return await adapter.list(options)


async def by_vector(
    adapter: MemoryAdapter,
    vector: Vector,
    scope: Scope = MINE,
    filter: MemoryFilter = LIVE,
    *,
    limit: int = 100,
    include_embeddings: bool = False,
) -> list[SearchHit]:
    """What `search_by_vector` finds."""
    options = SearchOptions(scope=scope, filter=filter, limit=limit, include_embeddings=include_embeddings)
    return await adapter.search_by_vector(vector, options)


async def by_text(
    adapter: MemoryAdapter,
    query: str,
    scope: Scope = MINE,
    filter: MemoryFilter = LIVE,
    *,
    limit: int = 100,
    include_embeddings: bool = False,
) -> list[SearchHit]:
    """What `search_by_text` finds."""
    options = SearchOptions(scope=scope, filter=filter, limit=limit, include_embeddings=include_embeddings)
    return await adapter.search_by_text(query, options)


def ids(found: Iterable[MemoryEntry | SearchHit]) -> list[str]:
    """The ids of entries or hits, in order."""
    return [each.entry.id if isinstance(each, SearchHit) else each.id for each in found]


def where(filter: Filter, **conditions: Any) -> MemoryFilter:
    """The filter as a condition on live entries."""
    return MemoryFilter(now=NOW, where=filter, **conditions)


def needs(adapter: MemoryAdapter, *capabilities: Capability) -> None:
    """Skip the test of what the adapter does not declare; that it refuses it is tested instead."""
    for capability in capabilities:
        if capability not in adapter.capabilities:
            pytest.skip(f"{adapter.name} does not declare {capability}")


def typed(value: Any) -> Any:
    """The value with its types, for a comparison in which 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    if isinstance(value, dict):
        return {key: typed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [typed(each) for each in value]
    return type(value), repr(value)


def fields_of(entry: MemoryEntry, *but: str) -> dict[str, Any]:
    """A copy of every field but these and `seq`, with vectors as rounded lists and metadata with types."""
    fields = {name: copy(getattr(entry, name)) for name in MemoryEntry.__slots__ if name not in {"seq", *but}}
    if "metadata" in fields:
        fields["metadata"] = typed(entry.metadata)
    if fields.get("embedding") is not None:
        fields["embedding"] = [round(each, 6) for each in fields["embedding"]]
    return fields
