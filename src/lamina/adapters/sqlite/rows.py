"""Rows of the file as memory entries, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from lamina.adapters._shared.entry_text import UNREADABLE, unpack
from lamina.databases.sqlite.failures import BACKEND, RESTORE
from lamina.domain.instants import from_micros, to_micros
from lamina.domain.memory import Layer, MemoryEntry, Trust, Vector
from lamina.errors import StoreDamaged

__all__ = ["ID", "STORED", "StoredEntry", "entry_of", "selected", "values_of", "version_of", "written"]

STORED: Final = tuple(
    (
        "seq tenant id revision digest created_at updated_at expires_at last_accessed_at occurred_at valid_until "
        "access_count relevance base_relevance confidence ttl trust source superseded_by tags derived_from metadata "
        "content"
    ).split()
)
"""The columns that hold an entry, beside `key` and `partition`, in the order of `values_of`."""

_PLAIN: Final = (
    "seq tenant id revision access_count relevance base_relevance confidence ttl source superseded_by content".split()
)
_INSTANTS: Final = "created_at updated_at expires_at last_accessed_at occurred_at valid_until".split()
_JSON: Final = "tags derived_from metadata".split()
_EMPTY: Final = {"tags": "[]", "derived_from": "[]", "metadata": "{}"}
_READ: Final = (*_PLAIN, *_INSTANTS, *_JSON, "trust")
_PLACE: Final = ("owner", "namespace", "layer")

ID: Final = _READ.index("id")
"""Where the id stands in a row of `selected()`."""


def selected() -> str:
    """What `entry_of` reads: of a memory `m` in the partition `p`."""
    return ", ".join([*(f"m.{name}" for name in _READ), *(f"p.{name}" for name in _PLACE)])


def entry_of(row: Sequence[Any], embedding: bytes | None = None) -> MemoryEntry:
    """The entry in a row of `selected()`; what follows in the row is passed over.

    Raises:
        StoreDamaged: the row does not hold what was written.
    """
    try:
        return _entry(row, embedding)
    except UNREADABLE:
        raise StoreDamaged(
            BACKEND, f"the row of the memory {row[2]!r} cannot be read", RESTORE
        ) from None  # which would repeat it


class StoredEntry:
    """As `PoolEntry`: a row of `selected()`, made an entry when somebody wants the whole of it."""

    __slots__ = (
        "_embedding",
        "_metadata",
        "_row",
        "access_count",
        "content",
        "id",
        "namespace",
        "owner",
        "relevance",
        "seq",
        "source",
        "tenant",
    )

    def __init__(self, row: Sequence[Any], embedding: bytes | None = None) -> None:
        self._row = row
        self._embedding = embedding
        self._metadata: dict[str, Any] | None = None
        self.seq, self.tenant, self.id, _, self.access_count, self.relevance = row[:6]
        self.source, _, self.content = row[9:12]
        self.owner, self.namespace = row[22:24]

    @property
    def metadata(self) -> dict[str, Any]:
        """The caller's own."""
        if self._metadata is None:
            text = self._row[20]
            self._metadata = {} if text == "{}" else self.whole().metadata
        return self._metadata

    @property
    def last_changed_at(self) -> datetime:
        """When it was created, changed or confirmed last, in UTC."""
        return from_micros(max(self._row[12], self._row[13]))

    @property
    def occurred_at(self) -> datetime | None:
        """As `MemoryEntry.occurred_at`."""
        return None if self._row[16] is None else from_micros(self._row[16])

    @property
    def embedding(self) -> Vector | None:
        """The vector, if it was asked for."""
        return None if self._embedding is None else unpack(self._embedding)

    def whole(self) -> MemoryEntry:
        """A new entry, without its vector.

        Raises:
            StoreDamaged: the row does not hold what was written.
        """
        return entry_of(self._row)


def values_of(entry: MemoryEntry, seq: int, revision: int, digest: str) -> tuple[Any, ...]:
    """The entry, whose digest this is, as values for `STORED`, with this seq and revision."""
    created = to_micros(entry.created_at)
    return (
        seq,
        entry.tenant,
        entry.id,
        revision,
        bytes.fromhex(digest),
        created,
        created if entry.updated_at is entry.created_at else to_micros(entry.updated_at),
        _micros(entry.expires_at),
        _micros(entry.last_accessed_at),
        _micros(entry.occurred_at),
        _micros(entry.valid_until),
        entry.access_count,
        entry.relevance,
        entry.base_relevance,
        entry.confidence,
        entry.ttl,
        entry.trust.value,
        entry.source,
        entry.superseded_by,
        json.dumps(entry.tags, ensure_ascii=False) if entry.tags else "[]",
        json.dumps(entry.derived_from, ensure_ascii=False) if entry.derived_from else "[]",
        json.dumps(entry.metadata, ensure_ascii=False) if entry.metadata else "{}",
        entry.content,
    )


def written(entry: MemoryEntry) -> dict[str, Any]:
    """The entry's fields as SQLite and JSON take them, without its embedding."""
    fields: dict[str, Any] = {name: getattr(entry, name) for name in _PLAIN}
    for name in _INSTANTS:
        fields[name] = _micros(getattr(entry, name))
    for name in _JSON:
        value = getattr(entry, name)
        fields[name] = json.dumps(value, ensure_ascii=False) if value else _EMPTY[name]
    return fields | {
        "trust": entry.trust.value,
        "owner": entry.owner,
        "namespace": entry.namespace,
        "layer": entry.layer.value,
    }


def version_of(text: str) -> MemoryEntry:
    """A former version of an entry, from the JSON of what `written` gave."""
    try:
        fields = json.loads(text)
        return _entry([fields[name] for name in (*_READ, *_PLACE)], None)
    except UNREADABLE:
        raise StoreDamaged(BACKEND, "a former version in the history cannot be read", RESTORE) from None


def _entry(row: Sequence[Any], embedding: bytes | None) -> MemoryEntry:
    seq, tenant, id, revision, access_count, relevance, base_relevance, confidence, ttl = row[:9]
    source, superseded_by, content, *instants = row[9:18]
    tags, derived_from, metadata, trust, owner, namespace, layer = row[18:25]
    created, updated, expires, accessed, occurred, valid = (
        None if micros is None else from_micros(micros) for micros in instants
    )
    if created is None or updated is None:
        raise ValueError("no time of creation")
    return MemoryEntry(
        id=id,
        content=content,
        created_at=created,
        updated_at=updated,
        layer=Layer(layer),
        tenant=tenant,
        owner=owner,
        namespace=namespace,
        tags=[] if tags == "[]" else json.loads(tags),
        metadata={} if metadata == "{}" else json.loads(metadata),
        relevance=relevance,
        base_relevance=base_relevance,
        confidence=confidence,
        ttl=ttl,
        expires_at=expires,
        embedding=None if embedding is None else unpack(embedding),
        last_accessed_at=accessed,
        access_count=access_count,
        seq=seq,
        revision=revision,
        occurred_at=occurred,
        valid_until=valid,
        superseded_by=superseded_by,
        source=source,
        trust=Trust(trust),
        derived_from=[] if derived_from == "[]" else json.loads(derived_from),
    )


def _micros(instant: datetime | None) -> int | None:
    return None if instant is None else to_micros(instant)
