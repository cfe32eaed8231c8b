"""Reads of points: in order, by pages, and pools that are ranked exactly afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from qdrant_client import QdrantClient, models

from lamina.adapters._shared import relevance_order
from lamina.adapters.qdrant.conditions import instants, is_equal, within
from lamina.adapters.qdrant.failures import damaged
from lamina.adapters.qdrant.points import PAST, TERMS, entry_of, sparse
from lamina.domain.memory import MemoryEntry
from lamina.ports.memory_adapter import HISTORY_KEPT, ListOptions, SearchOptions

__all__ = [
    "PAGE",
    "WHOLE",
    "Point",
    "by_relevance",
    "by_seq",
    "fields_of",
    "first_by_id",
    "holding",
    "nearest",
    "past",
    "retrieve",
]

Point: TypeAlias = models.Record | models.ScoredPoint

PAGE: Final = 256
_EXACT_UP_TO: Final = 2_000
"""Candidates that are compared one by one: as quick as a walk through the graph, and nothing is missed."""
_MARGIN: Final = 32
_CLOSE: Final = 1e-6
"""Two cosines nearer than this may change places when they are computed in 64 bits."""
_MOST_TIES: Final = 4_096
_LAST: Final = 2**53
_LEAST_POOL: Final = 200
_PLAIN: Final = ["tenant", "id", "text", "seq", "write", "versions"]
WHOLE: Final = [*_PLAIN, "vector", "key", "value"]


def retrieve(client: QdrantClient, name: str, ids: Sequence[str]) -> list[models.Record]:
    """The points that are there, in the order of the ids, with embeddings."""
    found: dict[str, models.Record] = {}
    for start in range(0, len(ids), PAGE):
        for record in client.retrieve(name, ids[start : start + PAGE], with_payload=WHOLE):
            found[str(record.id)] = record
    return [found[id] for id in ids if id in found]


def by_seq(
    client: QdrantClient,
    name: str,
    filter: models.Filter,
    *,
    after: int = 0,
    skip: int = 0,
    limit: int | None = None,
    fields: Sequence[str] = _PLAIN,
) -> Iterator[models.Record]:
    """The points in the order of `seq`; those that are skipped are passed over without their payloads."""
    while after < _LAST and (limit is None or limit > 0):
        size = min(PAGE, skip or limit or PAGE)
        beyond = models.Filter(must=[filter, within("seq", gt=after)])
        payload = ["seq"] if skip else list(fields)
        records, _ = client.scroll(name, beyond, limit=size, order_by="seq", with_payload=payload)
        if skip:
            skip -= len(records)
        else:
            yield from records
            limit = None if limit is None else limit - len(records)
        if len(records) < size:
            return
        after = _field(records[-1], "seq", int)


def by_relevance(client: QdrantClient, name: str, filter: models.Filter, options: ListOptions) -> list[MemoryEntry]:
    """A page of the entries by relevance, then newest, then id."""
    wanted = options.offset + options.limit
    if wanted <= PAGE:
        entries = _most_relevant(client, name, filter, wanted, fields=fields_of(options))
        return sorted(entries, key=relevance_order.by_relevance)[options.offset : wanted]
    keys = list(by_seq(client, name, filter, fields=["id", "seq", "relevance", "created_at"]))
    keys.sort(key=lambda each: _field(each, "id", str))
    keys.sort(key=lambda each: _field(each, "created_at", str), reverse=True)
    keys.sort(key=lambda each: float(_field(each, "relevance", int | float)), reverse=True)
    page = retrieve(client, name, [str(each.id) for each in keys[options.offset : wanted]])
    entries = [entry_of(each) for each in page]
    return entries if options.include_embeddings else [each.replace(embedding=None) for each in entries]


def fields_of(options: ListOptions | SearchOptions) -> list[str]:
    """What of the payloads is read."""
    return [*_PLAIN, "vector"] if options.include_embeddings else _PLAIN


def first_by_id(client: QdrantClient, name: str, filter: models.Filter, limit: int) -> list[models.Record]:
    """The entries with the smallest ids, with embeddings."""
    keys = sorted(by_seq(client, name, filter, fields=["id", "seq"]), key=lambda each: _field(each, "id", str))
    return retrieve(client, name, [str(each.id) for each in keys[:limit]])


def nearest(
    client: QdrantClient,
    name: str,
    filter: models.Filter,
    query: Any,
    *,
    options: SearchOptions,
    using: str,
    tuned: bool,
) -> Sequence[Point]:
    """More of the closest than asked for, with embeddings, so that who ranks them exactly has the right ones.

    Args:
        client: Where.
        name: The collection.
        filter: What may be found.
        query: A vector of length one.
        options: How many.
        using: The named vector.
        tuned: Whether the collection lets a search say how thoroughly it looks.
    """
    there = client.count(name, filter, exact=True).count
    size = min(there, options.limit + _MARGIN)
    while size:
        thorough = models.SearchParams(exact=True) if there <= _EXACT_UP_TO else models.SearchParams(hnsw_ef=4 * size)
        found = client.query_points(
            name,
            query=query,
            using=using,
            query_filter=filter,
            limit=size,
            search_params=thorough if tuned else None,
            with_payload=[*_PLAIN, "vector"],
        ).points
        is_tied = len(found) > options.limit and found[options.limit - 1].score - found[-1].score < _CLOSE
        if not is_tied or size >= min(there, max(options.limit, _MOST_TIES)):
            return found
        size = min(there, 4 * size)
    return []


def holding(
    client: QdrantClient, name: str, filter: models.Filter, words: Sequence[str], *, options: SearchOptions
) -> Sequence[Point]:
    """More than asked for of those that hold most and the rarest of the words: a sum of inverse frequencies."""
    there = client.count(name, filter, exact=True).count
    size = min(there, options.limit + max(_LEAST_POOL, min(3 * options.limit, 1_000)))
    if not size:
        return []
    fields = fields_of(options)
    return client.query_points(
        name, query=sparse(words), using=TERMS, query_filter=filter, limit=size, with_payload=fields
    ).points


def past(client: QdrantClient, name: str, tenant: str, of: str) -> list[models.Record]:
    """The former versions of the memory whose point this is, oldest first."""
    versions = models.Filter(must=[is_equal("tenant", tenant), is_equal("kind", PAST), is_equal("of", of)])
    newest = models.OrderBy(key="revision", direction=models.Direction.DESC)
    records, _ = client.scroll(name, versions, limit=2 * HISTORY_KEPT, order_by=newest, with_payload=_PLAIN)
    return records[::-1]


def _most_relevant(
    client: QdrantClient, name: str, filter: models.Filter, wanted: int, *, fields: Sequence[str]
) -> list[MemoryEntry]:
    """The first so many, in any order: the server sorts by one field, so ties at the border are looked at again."""

    def top(among: models.Filter, key: str, size: int) -> list[MemoryEntry]:
        order = models.OrderBy(key=key, direction=models.Direction.DESC)
        records, _ = client.scroll(name, among, limit=size, order_by=order, with_payload=list(fields))
        return [entry_of(each) for each in records]

    found = top(filter, "relevance", wanted)
    if len(found) < wanted:
        return found
    border = found[-1].relevance
    better = [each for each in found if each.relevance > border]
    missing = wanted - len(better)
    alike = models.Filter(must=[filter, within("relevance", gte=border, lte=border)])
    tied = top(alike, "created_at", missing)
    if len(tied) < missing:
        return better + tied
    oldest = tied[-1].created_at
    newer = [each for each in tied if each.created_at > oldest]
    same = models.Filter(must=[alike, instants("created_at", gte=oldest, lte=oldest)])
    last = [entry_of(each) for each in first_by_id(client, name, same, missing - len(newer))]
    if "vector" not in fields:
        last = [each.replace(embedding=None) for each in last]
    return better + newer + last


def _field(record: models.Record, key: str, kind: Any) -> Any:
    value = (record.payload or {}).get(key)
    if not isinstance(value, kind):
        raise damaged(f"a point has no {key} that could be one of ours")
    return value
