"""The collection: made with its indexes, checked, widened for vectors of another length, and counted."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Iterable
from typing import Any, Final

from qdrant_client import QdrantClient, models

from lamina.adapters._shared.layout_version import made_by_newer
from lamina.adapters.qdrant.conditions import is_equal
from lamina.adapters.qdrant.connection import Connection
from lamina.adapters.qdrant.failures import BACKEND, damaged, was_refused_as
from lamina.adapters.qdrant.points import HEAD, TERMS, point_id, vector_name
from lamina.errors import AdapterError, AdapterUnavailable

__all__ = ["STRONG", "Collection", "check_done"]

STRONG: Final = models.WriteOrdering.STRONG
LAYOUT: Final = 1
"""Grows when points are written in another way; an adapter refuses a collection of a newer one."""

_HEAD: Final = point_id(HEAD)
_ATTEMPTS: Final = 1_000
_KEYWORD: Final = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD)
_INDEXES: Final[dict[str, Any]] = {
    "tenant": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    **dict.fromkeys(
        ["kind", "owner", "namespace", "layer", "digest", "tags", "leaves", TERMS, "of", "write"], _KEYWORD
    ),
    **dict.fromkeys(["seq", "revision", "dimensions"], models.PayloadSchemaType.INTEGER),
    **dict.fromkeys(["created_at", "updated_at", "expires_at", "current_until"], models.PayloadSchemaType.DATETIME),
    **dict.fromkeys(["relevance", "confidence", "numbers[].is"], models.PayloadSchemaType.FLOAT),
    **dict.fromkeys(["numbers[].at", "texts[].at"], _KEYWORD),
}
"""A scope that is a tenant is kept together; the rest makes each condition one look into an index."""
_PARTS: Final = (1, 20)
"""The server's version from which on it finds parts of texts."""


class Collection:
    """One collection as all threads of an adapter see it."""

    def __init__(self, name: str, *, vector_size: int | None, replication_factor: int | None) -> None:
        self.name = name
        self.finds_parts = hasattr(models, "MatchSubstring")
        self.is_tuned = False
        """Whether a search may say how thoroughly it looks: not in strict mode, and the local engine sees all."""
        self._vector_size = vector_size
        self._replicas = replication_factor
        self._lengths: set[int] = set()
        self._seq = 0
        self._is_local = True
        self._counting = threading.Lock()

    def prepare(self, connection: Connection, client: QdrantClient) -> None:
        """Make what is not there, and refuse what is not ours.

        Raises:
            StoreDamaged: the collection is not one of ours, or of a newer Lamina.
            AdapterError: it is replicated so that a write is not read by the next call.
        """
        self._is_local = connection.is_local
        if not self._is_local:
            self.finds_parts = self.finds_parts and _version(client.info().version) >= _PARTS
        if not client.collection_exists(self.name):
            self._make(client)
        info = self._look(client)
        head = self._read_head(client)
        if head is None:
            if info.points_count:
                raise damaged(f"the collection {self.name} holds what is not Lamina's")
            if not self._is_local:  # where indexes are nothing but a warning
                self._make_indexes(client, info.payload_schema)
            self._make_head(client)
            head = self._read_head(client)
        self._check(head)

    def has_length(self, client: QdrantClient, dimensions: int) -> bool:
        """Whether vectors of this length can be there at all."""
        if dimensions not in self._lengths:
            self._look(client)
        return dimensions in self._lengths

    def widen(self, client: QdrantClient, lengths: Iterable[int]) -> None:
        """Make place for vectors of these lengths.

        Raises:
            AdapterError: the server is too old to add a vector to a collection.
        """
        for dimensions in sorted(lengths):
            if self.has_length(client, dimensions):
                continue
            dense = models.DenseVectorConfig(size=dimensions, distance=models.Distance.COSINE)
            config = models.DenseVectorNameConfig(dense=dense)
            try:
                done = client.create_vector_name(self.name, vector_name(dimensions), config, ordering=STRONG)
            except Exception as error:
                if not was_refused_as(error, 404, 405):
                    raise
                problem = f"the collection takes no vectors of {dimensions} dimensions, and this server cannot add them"
                remedy = "Use Qdrant 1.18 or newer, or give vector_size before the collection is made."
                raise AdapterError(BACKEND, problem, remedy) from error
            check_done([done])
            self._lengths.add(dimensions)

    def reserve(self, client: QdrantClient, number: int) -> int:
        """The first of so many numbers that nobody else gets, in this process or another.

        The head is changed only if it still has the number that was read, and keeps whose change it was.
        """
        with self._counting:
            for _ in range(_ATTEMPTS):
                token = uuid.uuid4().hex
                still = models.Filter(must=[models.HasIdCondition(has_id=[_HEAD]), is_equal("seq", self._seq)])
                payload = {"seq": self._seq + number, "write": token}
                check_done([client.set_payload(self.name, payload, points=still, ordering=STRONG)])
                head = self._read_head(client)
                last, self._seq = self._seq, self._check(head)
                if head is not None and (head.payload or {}).get("write") == token:
                    return last + 1
        problem = "others keep counting the collection's memories first"
        raise AdapterUnavailable(BACKEND, problem, "Nothing was written. Try again.")

    def _make(self, client: QdrantClient) -> None:
        size = self._vector_size
        vectors = {} if size is None else {vector_name(size): _vectors(size)}
        try:
            client.create_collection(
                self.name,
                vectors_config=vectors,
                sparse_vectors_config={TERMS: models.SparseVectorParams(modifier=models.Modifier.IDF)},
                replication_factor=self._replicas,
                write_consistency_factor=self._replicas,
            )
        except Exception:
            if not client.collection_exists(self.name):  # or another process was faster
                raise

    def _make_indexes(self, client: QdrantClient, existing: Any) -> None:
        indexes = dict(_INDEXES)
        if self.finds_parts:
            indexes["texts[].is"] = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, prefix=True)
        for field, schema in indexes.items():
            if field not in (existing or {}):
                check_done([client.create_payload_index(self.name, field, schema, ordering=STRONG)])

    def _make_head(self, client: QdrantClient) -> None:
        """Unless another process made it meanwhile: no head passes the filter, so none is replaced."""
        head = models.PointStruct(id=_HEAD, vector={}, payload={"kind": HEAD, "layout": LAYOUT, "seq": 0})
        none = models.Filter(must=[is_equal("kind", "")])
        check_done([client.upsert(self.name, [head], update_filter=none, ordering=STRONG)])

    def _read_head(self, client: QdrantClient) -> models.Record | None:
        return next(iter(client.retrieve(self.name, [_HEAD])), None)

    def _look(self, client: QdrantClient) -> models.CollectionInfo:
        info = client.get_collection(self.name)
        parameters = info.config.params
        vectors = parameters.vectors
        names = vectors if isinstance(vectors, dict) else {}
        sizes = {params.size for name, params in names.items() if name == vector_name(params.size)}
        self._lengths = sizes
        if TERMS not in (parameters.sparse_vectors or {}):
            raise damaged(f"the collection {self.name} is not Lamina's: it has no sparse vector named {TERMS}")
        if (parameters.replication_factor or 1) > (parameters.write_consistency_factor or 1):
            problem = f"a write to {self.name} may not be seen by the next read, which may ask another replica"
            raise AdapterError(BACKEND, problem, "Set write_consistency_factor to the collection's replication_factor.")
        strict = info.config.strict_mode_config
        self.is_tuned = not self._is_local and not (strict is not None and strict.enabled)
        return info

    def _check(self, head: models.Record | None) -> int:
        """The last number that was given away."""
        payload = {} if head is None else head.payload or {}
        layout, seq = payload.get("layout"), payload.get("seq")
        if not isinstance(layout, int) or not isinstance(seq, int):
            raise damaged(f"the head of the collection {self.name} is missing or cannot be read")
        if layout > LAYOUT:
            raise made_by_newer(BACKEND, f"the collection {self.name}", layout, LAYOUT)
        return seq


def check_done(results: Iterable[models.UpdateResult]) -> None:
    """Refuse to go on after a change that was accepted and is not there yet.

    Raises:
        AdapterUnavailable: one was not completed.
    """
    if any(result.status != models.UpdateStatus.COMPLETED for result in results):
        problem = "a change was accepted and is not made yet"
        raise AdapterUnavailable(BACKEND, problem, "Try again: it may be there by then.")


def _vectors(size: int) -> models.VectorParams:
    return models.VectorParams(size=size, distance=models.Distance.COSINE)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])
