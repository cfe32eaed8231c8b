"""What the pipeline reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = ["IngestFailure", "IngestProgress", "IngestReport", "RagStats"]

IngestProgress: TypeAlias = Callable[[int, int], None]
"""Told how many files are done, and of how many."""


@dataclass(frozen=True, slots=True)
class RagStats:
    """How many documents there are, and how many chunks they have together."""

    documents: int
    chunks: int


@dataclass(frozen=True, slots=True)
class IngestFailure:
    """A file that was not ingested, and why."""

    source: str
    reason: str


@dataclass(slots=True)
class IngestReport:
    """What came of each file of a folder, by source, in order of their paths.

    `removed` are documents whose file is gone.
    """

    ingested: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    failed: list[IngestFailure] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
