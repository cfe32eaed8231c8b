"""Reads and writes of the objects of one collection, tenant by tenant."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import weaviate
from weaviate.classes.config import ConsistencyLevel
from weaviate.classes.data import DataObject
from weaviate.classes.query import Filter as Native
from weaviate.classes.query import MetadataQuery, Sort
from weaviate.exceptions import WeaviateQueryError

from lamina.adapters._shared.clock_sequence import SLOTS
from lamina.adapters.weaviate.conditions import Condition, after, all_of
from lamina.adapters.weaviate.failures import NAME, is_too_large
from lamina.adapters.weaviate.layout import Vectors, opened_collection, vector_name
from lamina.adapters.weaviate.rows import Row
from lamina.errors import AdapterError, AdapterUnavailable

__all__ = ["LATEST", "MAX_RESULTS", "RELEVANCE", "Objects", "Properties", "Scored"]

Properties: TypeAlias = Mapping[str, Any]
Scored: TypeAlias = tuple[uuid.UUID, float]

MAX_RESULTS: Final = 10_000
"""The most that a request reaches, the objects before it included: Weaviate's QUERY_MAXIMUM_RESULTS."""

PAGE: Final = 200
"""Objects of one answer."""

WRITTEN_BYTES: Final = 8_000_000
"""About what one request to write may weigh."""

INSERTION: Final = Sort.by_property("order").by_property("place")
RELEVANCE: Final = (
    Sort.by_property("relevance", ascending=False)
    .by_property("created_s", ascending=False)
    .by_property("created_us", ascending=False)
    .by_property("id_hex")
)

LATEST: Final = Sort.by_property("revision", ascending=False)
"""Of former versions."""


class Objects:
    """The objects of a collection.

    Args:
        client: That has reached the service.
        name: Of the collection.
        option: What named it, for errors.
        patience: Seconds for which a search by vector waits for vectors that were written before.
    """

    def __init__(self, client: weaviate.WeaviateClient, name: str, option: str, *, patience: float) -> None:
        self._collection = opened_collection(client, name, option)
        self._written = self._collection.with_consistency_level(ConsistencyLevel.ALL)
        """Every replica has what was acknowledged, so that each read sees it."""
        self._vectors = Vectors(self._collection)
        self._patience = patience
        self._tenants: set[str] = set()
        """Known to be there."""
        self._unsettled: set[str] = set()
        """Tenants whose vectors were written to and may wait for their index."""

    def load(self, tenant: str, keys: Iterable[uuid.UUID], properties: Sequence[str]) -> dict[uuid.UUID, Properties]:
        """The objects that are there, by key."""
        found: dict[uuid.UUID, Properties] = {}
        if not self._is_there(tenant):
            return found
        for some in _pieces(list(dict.fromkeys(keys)), PAGE):
            condition = Native.by_id().contains_any(some)
            found.update(self._answered(tenant, condition, limit=len(some), properties=properties))
        return found

    def page(
        self,
        tenant: str,
        conditions: Iterable[Condition],
        sort: Any,
        *,
        offset: int = 0,
        limit: int,
        properties: Sequence[str],
    ) -> list[Properties]:
        """The objects that match, sorted; `offset` and `limit` together reach `MAX_RESULTS` at most."""
        if not self._is_there(tenant):
            return []
        condition = all_of(conditions)
        found: list[Properties] = []
        while len(found) < limit:
            size = min(PAGE, limit - len(found))
            start = offset + len(found)
            some = self._answered(tenant, condition, sort=sort, offset=start, limit=size, properties=properties)
            found += [each for _, each in some]
            if len(some) < size:
                break
        return found

    def walk(
        self,
        tenant: str,
        conditions: Sequence[Condition],
        *,
        offset: int = 0,
        limit: int = sys.maxsize,
        properties: Sequence[str],
    ) -> Iterator[Properties]:
        """Objects that match, in insertion order, however many; each page begins behind the one before."""
        needed = [*dict.fromkeys([*properties, "order", "place"])]
        begin: list[Condition] = []
        while True:
            skipped = min(offset, MAX_RESULTS)
            if skipped:  # only the last one that is passed over is fetched
                found = self.page(
                    tenant,
                    [*conditions, *begin],
                    INSERTION,
                    offset=skipped - 1,
                    limit=1,
                    properties=["order", "place"],
                )
            else:
                size = min(PAGE, limit)
                found = self.page(tenant, [*conditions, *begin], INSERTION, limit=size, properties=needed)
                yield from found
                limit -= len(found)
            if len(found) < (1 if skipped else PAGE):
                return
            offset -= skipped
            begin = [after(found[-1]["order"] * SLOTS + found[-1]["place"])]

    def count(self, tenant: str, conditions: Iterable[Condition]) -> int:
        """How many objects match."""
        if not self._is_there(tenant):
            return 0
        aggregate = self._collection.with_tenant(tenant).aggregate
        return aggregate.over_all(filters=all_of(conditions), total_count=True).total_count or 0

    def closest(self, tenant: str, unit: Sequence[float], conditions: Iterable[Condition], limit: int) -> list[Scored]:
        """What matches and has a vector of this length, with its similarity, closest first."""
        if not self._is_there(tenant) or not self._vectors.has(len(unit)):
            return []
        self._settle(tenant)
        answer = self._collection.with_tenant(tenant).query.near_vector(
            near_vector=list(unit),
            target_vector=vector_name(len(unit)),
            filters=all_of(conditions),
            limit=limit,
            return_metadata=MetadataQuery(distance=True),
            return_properties=["length"],
        )
        return [(each.uuid, 1 - _told(each.metadata.distance)) for each in answer.objects]

    def holding(self, tenant: str, words: Sequence[str], conditions: Iterable[Condition], limit: int) -> list[Scored]:
        """What matches and holds some of the words, by BM25, best first."""
        if not self._is_there(tenant):
            return []
        answer = self._collection.with_tenant(tenant).query.bm25(
            query=" ".join(words),
            query_properties=["words"],
            filters=all_of(conditions),
            limit=limit,
            return_metadata=MetadataQuery(score=True),
            return_properties=["length"],
        )
        return [(each.uuid, _told(each.metadata.score)) for each in answer.objects]

    def write(self, tenant: str, rows: Sequence[Row]) -> None:
        """Insert or replace; each object is written whole or not at all.

        Raises:
            AdapterError: some were not taken.
        """
        for length in {row.length for row in rows if row.unit is not None}:
            self._vectors.need(length)
            self._unsettled.add(tenant)
        data = self._written.with_tenant(tenant).data
        for some in _batches(rows):
            objects = [DataObject(properties=row.properties, uuid=row.key, vector=row.vectors) for row in some]
            answer = data.insert_many(objects)
            if answer.has_errors:
                problem = f"{len(answer.errors)} of {len(some)} objects of a batch were not taken"
                raise AdapterError(NAME, problem, "The others were written; storing them all again settles it.")
            self._tenants.add(tenant)

    def remove(self, tenant: str, condition: Condition) -> None:
        """Remove what matches.

        Raises:
            AdapterError: some of it could not be removed.
        """
        if not self._is_there(tenant):
            return
        matches = MAX_RESULTS
        while matches >= MAX_RESULTS:  # which is the most that one request removes
            answer = self._written.with_tenant(tenant).data.delete_many(where=condition)
            if answer.failed:
                problem = f"{answer.failed} of {answer.matches} objects were not removed"
                raise AdapterError(NAME, problem, "The others were; removing them all again settles it.")
            matches = answer.matches

    def _is_there(self, tenant: str) -> bool:
        """Whether anything was ever written for the tenant: Weaviate does not read of one that is not."""
        if tenant not in self._tenants and self._collection.tenants.exists(tenant):
            self._tenants.add(tenant)
        return tenant in self._tenants

    def _answered(
        self,
        tenant: str,
        condition: Condition | None,
        *,
        limit: int,
        properties: Sequence[str],
        sort: Any = None,
        offset: int = 0,
    ) -> list[tuple[uuid.UUID, Properties]]:
        """One page; in halves if it is larger than a message may be."""
        query = self._collection.with_tenant(tenant).query
        try:
            answer = query.fetch_objects(
                filters=condition, sort=sort, limit=limit, offset=offset, return_properties=list(properties)
            )
        except WeaviateQueryError as error:
            if limit == 1 or not is_too_large(error):
                raise
        else:
            return [(each.uuid, each.properties) for each in answer.objects]
        half = limit // 2
        again = partial(self._answered, tenant, condition, properties=properties, sort=sort or INSERTION)
        return again(limit=half, offset=offset) + again(limit=limit - half, offset=offset + half)

    def _settle(self, tenant: str) -> None:
        """Wait until vectors that were written before are in their index, which may follow (ASYNC_INDEXING)."""
        if tenant not in self._unsettled:
            return
        self._unsettled.discard(tenant)
        try:
            self._wait_for_index(tenant)
        except BaseException:
            self._unsettled.add(tenant)
            raise

    def _wait_for_index(self, tenant: str) -> None:
        config = self._collection.with_tenant(tenant).config
        until = time.monotonic() + self._patience
        wait = 0.02
        while any(shard.vector_queue_size for shard in config.get_shards()):
            if time.monotonic() > until:
                problem = f"for {self._patience:g} seconds the vector index did not come to what was written before"
                raise AdapterUnavailable(NAME, problem, "Try again.")
            time.sleep(wait)
            wait = min(2 * wait, 1.0)


def _told(number: float | None) -> float:
    if number is None:
        raise AdapterError(NAME, "a search does not tell how close its results are", "Check the service's version.")
    return number


def _pieces(keys: Sequence[uuid.UUID], size: int) -> Iterator[Sequence[uuid.UUID]]:
    return (keys[start : start + size] for start in range(0, len(keys), size))


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The rows in order, in lists that one request takes."""
    batch: list[Row] = []
    room = WRITTEN_BYTES
    for row in rows:
        if batch and row.size > room:
            yield batch
            batch, room = [], WRITTEN_BYTES
        batch.append(row)
        room -= row.size
    if batch:
        yield batch
