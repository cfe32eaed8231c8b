"""What the checks look at: the settings, and what is in the stores, read once for all of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from lamina.domain.document import Document
from lamina.domain.thread import SummarySource, ThreadKind
from lamina.errors import LaminaError
from lamina.memory.statistics import EngineStats
from lamina.settings import LaminaConfig

__all__ = ["ChunkFacts", "MemoryFacts", "Stock", "Subject", "ThreadFacts"]


@dataclass(slots=True)
class MemoryFacts:
    """The live memories of the tenant, counted. Owners and namespaces are of the layers that are not shared."""

    owners: Counter[str] = field(default_factory=Counter)
    namespaces: Counter[str] = field(default_factory=Counter)
    longterm: int = 0
    faded: int = 0
    """Long-term ones whose relevance decay has brought down to its floor."""
    decayed: int = 0
    """Long-term ones that decay has touched since they were last confirmed."""
    old: int = 0
    """Long-term ones that were neither changed nor confirmed for long."""
    long: int = 0
    """Those with far more text than a fact has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadFacts:
    """A thread or a session that takes messages. `tokens` is what it costs to show it."""

    id: str
    kind: ThreadKind
    last_index: int
    tokens: int
    summary: SummarySource | None
    failures: int
    """How often in a row its summary could not be written."""
    problem: str
    unanswered: int
    """Calls of tools that the conversation went on from without a result."""
    unreadable: int
    """Compacted messages whose original cannot be brought back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkFacts:
    """The heads of the documents, and the state of their chunks' vectors."""

    documents: list[Document]
    without_vector: int
    made_by: str | None
    """The model that made the vectors, if it is not the configured one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """What is in the stores."""

    memories: MemoryFacts
    stats: EngineStats
    threads: list[ThreadFacts]
    chunks: ChunkFacts
    is_earlier_waiting: bool
    """Whether the settings name a file of version 1 that was not copied over."""
    damages: list[str]
    """What the stores themselves find wrong."""
    pack_damages: list[str]
    """What the packs' own store and index find wrong besides."""

    @property
    def embeddable(self) -> int:
        """How many texts a search by meaning could find."""
        return self.stats.memories + sum(each.chunks for each in self.chunks.documents)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is examined. `stock` is None where there is nothing yet, or it cannot be opened."""

    config: LaminaConfig
    now: datetime
    model: str | None = None
    """The name of the model that answers."""
    context_window: int | None = None
    file: Path | None = None
    """The database, if it is a file."""
    settings_problem: LaminaError | None = None
    model_problem: LaminaError | None = None
    store_problem: LaminaError | None = None
    stock: Stock | None = None

    @property
    def kept(self) -> Stock:
        """What is in the stores; for checks that need them."""
        assert self.stock is not None  # noqa: S101 - a check that needs the stores is asked only where they are open
        return self.stock
