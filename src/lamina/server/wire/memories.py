"""Memories on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel

from lamina.domain.memory import Layer, MemoryEntry, Trust

__all__ = ["Memory"]


class Memory(BaseModel):
    """A memory. Times are in UTC; `revision` grows with each edit."""

    id: str
    content: str
    layer: Layer
    owner: str
    namespace: str
    tags: list[str]
    metadata: dict[str, Any]
    relevance: float
    confidence: float
    ttl: float | None
    expires_at: datetime | None
    created_at: datetime
    updated_at: datetime
    last_accessed_at: datetime | None
    access_count: int
    revision: int
    occurred_at: datetime | None
    valid_until: datetime | None
    superseded_by: str | None
    source: str | None
    trust: Trust
    derived_from: list[str]

    @classmethod
    def of(cls, entry: MemoryEntry) -> Self:
        """The memory without what is only ours: tenant, vector, order."""
        return cls(**{name: getattr(entry, name) for name in cls.model_fields})
