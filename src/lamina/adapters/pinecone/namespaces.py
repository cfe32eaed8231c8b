"""Reads and writes of the namespaces of one index, in which this adapter sees what it wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pinecone
from pinecone import errors

from lamina.adapters._shared.patience import attempts
from lamina.adapters.pinecone.conditions import Condition, both
from lamina.adapters.pinecone.failures import NAME
from lamina.adapters.pinecone.recent_writes import RecentWrites
from lamina.adapters.pinecone.rows import Record, marked, size_of
from lamina.errors import AdapterError, AdapterUnavailable

__all__ = ["MAX_TOP_K", "Closest", "Found", "Namespaces"]

MAX_TOP_K: Final = 10_000
"""The most matches that a query gives."""

FETCHED: Final = 100
"""Ids of one fetch; they stand in its address, which 1,000 would make too long for some proxies."""

WRITTEN: Final = 1_000
"""Records of one upsert, and ids of one deletion."""

WRITTEN_BYTES: Final = 2_000_000
"""Bytes of one upsert."""

PAGE_BYTES: Final = 4_000_000
"""About what a page of matching records may weigh."""

REMEMBERED: Final = 2_000
"""Writes that may wait for the index at the same time, before the next one waits itself."""

_DIGITS: Final = 26
"""The most characters that a 64-bit float takes in JSON, with its comma."""

_TICK: Final = "tick"
"""Written behind a deletion, whose own number in the log the client does not tell. It is in no scope."""


@dataclass(frozen=True, slots=True)
class Found:
    """What matches, as the index shows it, and what it need not show yet, which may match or not."""

    shown: Sequence[Record]
    recent: Sequence[Record]


@dataclass(frozen=True, slots=True)
class Closest:
    """Ids with their similarity, closest first, without those of `recent`."""

    matches: Sequence[tuple[str, float]]
    is_all: bool
    """Whether fewer matched than were asked for."""
    recent: Sequence[Record]


class Namespaces:
    """The namespaces of an index.

    Args:
        index: The client of the index.
        dimension: Of its vectors.
        recent: What was written through it; the same one for as long as the adapter lives.
        patience: Seconds for which a write waits for the index to come after earlier ones.
    """

    def __init__(self, index: pinecone.Index, dimension: int, recent: RecentWrites, *, patience: float) -> None:
        self._index = index
        self._dimension = dimension
        self._recent = recent
        self._patience = patience
        self._page = max(10, min(1_000, PAGE_BYTES // (2_000 + 11 * dimension)))

    def load(self, namespace: str, ids: Sequence[str]) -> dict[str, Record]:
        """The records that are there, by id."""
        recent = self._recent.of(namespace)
        if any(id in recent for id in ids):
            self._look(namespace)
            recent = self._recent.of(namespace)
        found = {id: record for id in ids if (record := recent.get(id)) is not None}
        for some in _pieces([id for id in dict.fromkeys(ids) if id not in recent], FETCHED):
            vectors = self._index.fetch(ids=list(some), namespace=namespace).vectors
            found.update((id, _record(id, vector)) for id, vector in vectors.items())
        return found

    def matching(self, namespace: str, conditions: Iterable[Condition]) -> Found:
        """All records that match, page by page."""
        recent = self._looked(namespace)
        found: dict[str, Record] = {}
        filter, token = both(conditions), None
        while True:
            page = self._index.fetch_by_metadata(
                filter=filter, namespace=namespace, limit=self._page, pagination_token=token
            )
            found.update((id, _record(id, vector)) for id, vector in page.vectors.items() if id not in recent)
            token = None if page.pagination is None else page.pagination.next
            if not token:
                return Found(list(found.values()), _present(recent))

    def closest(self, namespace: str, values: Sequence[float], conditions: Iterable[Condition], top_k: int) -> Closest:
        """The records that match and are closest, `top_k` at least, and none beyond `MAX_TOP_K`."""
        recent = self._recent.of(namespace)
        asked = min(MAX_TOP_K, top_k + len(recent))
        answer = self._index.query(vector=list(values), top_k=asked, filter=both(conditions), namespace=namespace)
        self._come_to(namespace, answer.response_info)
        matches = [(each.id, float(each.score)) for each in answer.matches if each.id not in recent]
        return Closest(matches, len(answer.matches) < asked, _present(recent))

    def write(self, namespace: str, records: Sequence[Record], removed: Sequence[str] = ()) -> None:
        """Remove, then write; each request is done whole or not at all.

        Raises:
            AdapterUnavailable: the index is too far behind; nothing was written.
        """
        self._wait_for_room()
        for some in _pieces(removed, WRITTEN):
            try:
                self._index.delete(ids=list(some), namespace=namespace)
            except errors.NotFoundError:  # nothing was ever written to this namespace
                continue
            self._recent.add(namespace, self._put(namespace, [marked(_TICK, self._dimension, {})]), (), some)
        for batch in _batches(records):
            self._recent.add(namespace, self._put(namespace, batch), batch)

    def _put(self, namespace: str, records: Sequence[Record]) -> int:
        vectors = [{"id": each.id, "values": each.values, "metadata": each.metadata} for each in records]
        answer = self._index.upsert(vectors=vectors, namespace=namespace)
        number = None if answer.response_info is None else answer.response_info.lsn_committed
        if number is None:
            problem = "the index does not tell the number of a write in its log"
            raise AdapterError(NAME, problem, "Use a serverless index: without it, nobody sees what he wrote.")
        return number

    def _looked(self, namespace: str) -> Mapping[str, Record | None]:
        """What the index need not show, after asking how far it has come."""
        if not self._recent.of(namespace):
            return {}
        self._look(namespace)
        return self._recent.of(namespace)

    def _look(self, namespace: str) -> None:
        answer = self._index.query(vector=[1.0, *[0.0] * (self._dimension - 1)], top_k=1, namespace=namespace)
        self._come_to(namespace, answer.response_info)

    def _come_to(self, namespace: str, info: pinecone.ResponseInfo | None) -> None:
        indexed = None if info is None else info.lsn_reconciled
        if indexed is not None:
            self._recent.forget(namespace, indexed)

    def _wait_for_room(self) -> None:
        for _ in attempts(self._patience, first=0.1, longest=2.0):
            while len(self._recent) > REMEMBERED and (namespace := self._recent.oldest()) is not None:
                self._look(namespace)
                if self._recent.oldest() == namespace:
                    break
            else:
                return
        problem = f"for {self._patience:g} seconds the index did not come to what was written before"
        raise AdapterUnavailable(NAME, problem, "Nothing was written. Try again.")


def _record(id: str, vector: Any) -> Record:
    return Record(id, vector.values, vector.metadata or {})


def _present(recent: Mapping[str, Record | None]) -> list[Record]:
    return [record for record in recent.values() if record is not None]


def _pieces(ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))


def _batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    """The records in order, in lists that one request takes."""
    batch: list[Record] = []
    room = WRITTEN_BYTES
    for record in records:
        size = size_of(record.metadata) + _DIGITS * sum(each != 0 for each in record.values) + 4 * len(record.values)
        size += len(record.id) + 100
        if batch and (size > room or len(batch) == WRITTEN):
            yield batch
            batch, room = [], WRITTEN_BYTES
        batch.append(record)
        room -= size
    if batch:
        yield batch
