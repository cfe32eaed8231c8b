"""Maintenance on the wire."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field

from lamina.importers.ndjson import ImportReport
from lamina.kernel.erasing import ErasureReceipt
from lamina.kernel.integrity import IntegrityReport
from lamina.memory.statistics import EngineStats
from lamina.server.wire.strict import Flag, Name, StrictBody

__all__ = [
    "BackedUp",
    "Check",
    "Checked",
    "Erased",
    "Erasure",
    "Imported",
    "Maintained",
    "Maintenance",
    "NewBackup",
    "Statistics",
]

BackupName = Annotated[str, Field(strict=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,79}(\.(db|bak|backup))?$")]
"""The name of a file and no path, and of no file beside the database."""


class Maintenance(StrictBody):
    """What a pass of maintenance shall do beside cleaning up. `decay` fades the relevance of what is not confirmed."""

    decay: Flag = False


class Maintained(BaseModel):
    """What a pass did. A step that failed is named in `failures`; the others were done."""

    report: dict[str, Any]
    failures: dict[str, str]


class NewBackup(StrictBody):
    """A backup to make. Without a `name` it is called by the instant."""

    name: BackupName | None = None


class BackedUp(BaseModel):
    """The file in the server's folder, restored once and found the same."""

    name: str
    bytes: int


class Check(StrictBody):
    """Whether what can be made anew shall be."""

    repair: Flag = False


class Checked(BaseModel):
    """How much is wrong now and what was mended, by part: `memories`, `documents`, `threads`, `packs`.

    Parts in `unchecked` have no check of their own.
    """

    is_sound: bool
    problems: dict[str, int]
    repaired: dict[str, int]
    unchecked: list[str]

    @classmethod
    def of(cls, report: IntegrityReport) -> Self:
        """The report on the wire."""
        problems, repaired = (Counter(each.part for each in found) for found in (report.problems, report.repaired))
        return cls(is_sound=report.is_sound, problems=problems, repaired=repaired, unchecked=report.unchecked)


class Erasure(StrictBody):
    """Whose things are to be erased, and once more, so that no slip erases another's."""

    owner: Name
    confirm: Name


class Erased(BaseModel):
    """How much of each kind there was and is, as read anew; `mark` is a keyed hash that stands for the owner.

    `bytes_left` are texts that still stand in a file outside any row, null where there is no file to search.
    What is `pending`, such as a log that another process reads, was not done, and is when it is asked for again.
    """

    is_complete: bool
    mark: str
    erased_at: datetime
    before: dict[str, int]
    after: dict[str, int]
    derived: int
    cached_vectors: int
    looked_for: int
    bytes_left: int | None
    pending: int

    @classmethod
    def of(cls, receipt: ErasureReceipt) -> Self:
        """The receipt on the wire, without names of files."""
        told = {name: getattr(receipt, name) for name in cls.model_fields if name != "pending"}
        return cls(**told, pending=len(receipt.pending))


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
