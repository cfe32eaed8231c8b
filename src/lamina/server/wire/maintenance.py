"""Maintenance on the wire."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Self

from pydantic import BaseModel

from lamina.importers.ndjson import ImportReport
from lamina.memory.statistics import EngineStats
from lamina.server.wire.strict import Flag, StrictBody

__all__ = ["Imported", "Maintained", "Maintenance", "Statistics"]


class Maintenance(StrictBody):
    """What a pass of maintenance shall do beside cleaning up. `decay` fades the relevance of what is not confirmed."""

    decay: Flag = False


class Maintained(BaseModel):
    """What a pass did. A step that failed is named in `failures`; the others were done."""

    report: dict[str, Any]
    failures: dict[str, str]


class Statistics(BaseModel):
    """What the storage of the tenant holds."""

    memories: int
    expired: int
    by_layer: dict[str, int]
    without_embedding: int
    adapter: str
    capabilities: list[str]
    embedder: str | None
    reembed_needed: bool

    @classmethod
    def of(cls, stats: EngineStats) -> Self:
        """The statistics on the wire."""
        fields = {name: getattr(stats, name) for name in cls.model_fields if name != "capabilities"}
        return cls(**fields, capabilities=list(stats.capabilities))


class BadLine(BaseModel):
    """A line that could not be imported, counting from 1, and why."""

    number: int
    problem: str


class Imported(BaseModel):
    """What an import did; see `POST /v1/import`."""

    written: int
    skipped: int
    confirmed: int
    vetoed: int
    without_vector: int
    erased: int
    bad: list[BadLine]

    @classmethod
    def of(cls, report: ImportReport) -> Self:
        """The report on the wire."""
        return cls(**asdict(report))
