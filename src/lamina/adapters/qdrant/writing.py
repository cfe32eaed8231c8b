"""A commit as operations of Qdrant, in an order that leaves no memory with another one's history."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from qdrant_client import QdrantClient, models

from lamina.adapters._shared.records import Change, Commit
from lamina.adapters.qdrant.collection import STRONG, Collection, check_done
from lamina.adapters.qdrant.conditions import is_equal, within
from lamina.adapters.qdrant.points import (
    PAST,
    control_point,
    light_payload,
    memory_id,
    memory_point,
    past_point,
)
from lamina.errors import InvalidInput
from lamina.ports.memory_adapter import HISTORY_KEPT

__all__ = ["MAX_DIMENSIONS", "MAX_REQUEST", "write"]

MAX_DIMENSIONS: Final = 65_536

MAX_REQUEST: Final = 32 * 1024 * 1024
"""Bytes of a request, by the server's default (`service.max_request_size_mb`)."""

_ROOM: Final = MAX_REQUEST - 1024 * 1024
_SHARE: Final = 8 * 1024 * 1024
"""Bytes of points in one request, unless one alone has more."""
_PRUNED_AT: Final = 2 * HISTORY_KEPT


def write(client: QdrantClient, collection: Collection, commit: Commit, *, limited: bool) -> None:
    """Make the changes: histories that go, then points that come, then points that go.

    What changes neither a memory's words nor its vector is written into the point as it is, so that no
    index of vectors is touched; and only if the point is still the one that was read.

    Raises:
        InvalidInput: a memory is larger than a request may be, or a vector too long; nothing was written.
    """
    vectors = [each.new.embedding for each in commit.changes if each.new is not None]
    lengths = {len(vector) for vector in vectors if vector is not None}
    if max(lengths, default=0) > MAX_DIMENSIONS:
        problem = f"has {max(lengths)} dimensions, and Qdrant takes at most {MAX_DIMENSIONS}"
        raise InvalidInput("embedding", problem, "Use a model with shorter vectors.")
    points, operations = _points(commit), _light_changes(commit)
    batches = list(_batches(points, limited=limited))
    collection.widen(client, lengths)
    _forget(client, collection, [_id(commit, each) for each in commit.changes if each.forgets])
    for batch in batches:
        check_done([client.upsert(collection.name, batch, ordering=STRONG)])
    if operations:
        check_done(client.batch_update_points(collection.name, operations, ordering=STRONG))
    gone = [_id(commit, each) for each in commit.changes if each.new is None]
    if gone:
        check_done([client.delete(collection.name, models.PointIdsList(points=list(gone)), ordering=STRONG)])
    for each in commit.changes:
        if _versions_before(each) + len(each.past) > _PRUNED_AT:
            _prune(client, collection, _id(commit, each))


def _points(commit: Commit) -> list[models.PointStruct]:
    """Every point that is written whole."""
    points = []
    for each in commit.changes:
        points += [past_point(_id(commit, each), version) for version in each.past]
        if each.new is not None and not _is_light(each):
            points.append(memory_point(each.new, write=uuid.uuid4().hex, versions=_versions_after(each)))
    changed = [each for each in commit.controls if each.value is not None]
    return points + [control_point(commit.tenant, each.key, each.value or "") for each in changed]


def _light_changes(commit: Commit) -> list[Any]:
    operations = []
    for each in commit.changes:
        if each.new is None or each.old is None or not _is_light(each):
            continue
        still: list[Any] = [models.HasIdCondition(has_id=[_id(commit, each)]), is_equal("write", each.old.version[0])]
        payload = light_payload(each.new, write=uuid.uuid4().hex, versions=_versions_after(each))
        change = models.SetPayload(payload=payload, filter=models.Filter(must=still))
        operations.append(models.SetPayloadOperation(set_payload=change))
    return operations


def _is_light(change: Change) -> bool:
    old, new = change.old, change.new
    if old is None or new is None or change.forgets or old.version[0] is None:
        return False
    return new.content == old.entry.content and new.embedding is old.entry.embedding


def _versions_before(change: Change) -> int:
    return 0 if change.old is None or change.forgets else int(change.old.version[1])


def _versions_after(change: Change) -> int:
    versions = _versions_before(change) + len(change.past)
    return HISTORY_KEPT if versions > _PRUNED_AT else versions


def _id(commit: Commit, change: Change) -> str:
    return memory_id(commit.tenant, change.id)


def _forget(client: QdrantClient, collection: Collection, ids: Sequence[str]) -> None:
    if ids:
        past: list[Any] = [
            is_equal("kind", PAST),
            models.FieldCondition(key="of", match=models.MatchAny(any=list(ids))),
        ]
        selected = models.FilterSelector(filter=models.Filter(must=past))
        check_done([client.delete(collection.name, selected, ordering=STRONG)])


def _prune(client: QdrantClient, collection: Collection, id: str) -> None:
    """Keep the latest versions only."""
    past: list[Any] = [is_equal("kind", PAST), is_equal("of", id)]
    newest = models.OrderBy(key="revision", direction=models.Direction.DESC)
    kept, _ = client.scroll(
        collection.name, models.Filter(must=past), limit=HISTORY_KEPT, order_by=newest, with_payload=["revision"]
    )
    if len(kept) == HISTORY_KEPT:
        oldest = min((each.payload or {})["revision"] for each in kept)
        former = models.Filter(must=[*past, within("revision", lt=oldest)])
        check_done([client.delete(collection.name, models.FilterSelector(filter=former), ordering=STRONG)])


def _batches(points: Iterable[models.PointStruct], *, limited: bool) -> Iterator[list[models.PointStruct]]:
    """The points in requests that a server takes; all in one if they are few, as they nearly always are."""
    batch: list[models.PointStruct] = []
    size = 0
    for point in points:
        own = _size(point) if limited else 0
        if own > _ROOM:
            problem = f"its text and words take {own} bytes in a request, and Qdrant takes {MAX_REQUEST}"
            raise InvalidInput("content", problem, "Store it in parts, or ingest it as a document.")
        if batch and size + own > _SHARE:
            yield batch
            batch, size = [], 0
        batch.append(point)
        size += own
    if batch:
        yield batch


def _size(point: models.PointStruct) -> int:
    payload = len(json.dumps(point.payload, ensure_ascii=False).encode())
    vectors: dict[str, Any] = point.vector if isinstance(point.vector, dict) else {}
    sparse = sum(15 * len(each.indices) for each in vectors.values() if isinstance(each, models.SparseVector))
    dense = sum(24 * len(each) for each in vectors.values() if isinstance(each, list))
    return payload + sparse + dense
