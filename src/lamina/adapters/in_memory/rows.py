"""What is kept: the rows of each tenant, copied on their way in and out."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Final

from lamina.domain.lexical import TermCounts
from lamina.domain.memory import MemoryEntry, Vector
from lamina.errors import EmbeddingDimensionError

__all__ = ["Row", "Tenant", "copied"]

_INSTANTS: Final = ("created_at", "updated_at", "last_accessed_at", "expires_at", "occurred_at", "valid_until")


@dataclass(frozen=True, slots=True)
class Row:
    """A stored entry, which is never changed and never handed out, and what is derived from it."""

    entry: MemoryEntry
    digest: str
    terms: TermCounts
    past: tuple[MemoryEntry, ...]


class Tenant:
    """The rows of one tenant, in insertion order, and the ids behind each digest."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.same: dict[str, dict[str, None]] = {}
        self.vectors = 0
        self.dimensions = 0

    def put(self, row: Row) -> None:
        """Add the row, or replace the one with its id, in its place."""
        if row.entry.embedding is not None:
            self.check_dimensions(row.entry.embedding)
            self.dimensions = len(row.entry.embedding)
            self.vectors += 1
        self._forget(self.rows.get(row.entry.id))
        self.rows[row.entry.id] = row
        self.same.setdefault(row.digest, {})[row.entry.id] = None

    def remove(self, id: str) -> None:
        self._forget(self.rows.pop(id))

    def put_in_order(self) -> None:
        """Put rows that were removed and came back where they were."""
        self.rows = dict(sorted(self.rows.items(), key=lambda item: item[1].entry.seq))

    def check_dimensions(self, vector: Vector) -> None:
        if self.vectors and len(vector) != self.dimensions:
            raise EmbeddingDimensionError(self.dimensions, len(vector))

    def _forget(self, row: Row | None) -> None:
        if row is None:
            return
        self.vectors -= row.entry.embedding is not None
        same = self.same[row.digest]
        del same[row.entry.id]
        if not same:
            del self.same[row.digest]


def copied(entry: MemoryEntry, *, embedding: bool = True) -> MemoryEntry:
    """The entry with lists, metadata and vector of its own, and its times in UTC."""
    vector = entry.embedding if embedding else None
    times = {name: time.astimezone(UTC) for name in _INSTANTS if (time := getattr(entry, name)) is not None}
    return entry.replace(
        tags=list(entry.tags),
        derived_from=list(entry.derived_from),
        metadata=_copy_json(entry.metadata),
        embedding=None if vector is None else array("f", vector),
        **times,
    )


def _copy_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy_json(each) for key, each in value.items()}
    return [_copy_json(each) for each in value] if isinstance(value, list) else value
