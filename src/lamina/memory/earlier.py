"""Memories of version 1: read beside ours while they are where they were, and copied over once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from lamina.domain.memory import MemoryEntry
from lamina.domain.scope import Scope
from lamina.errors import ConfigError, InvalidInput, InvalidType
from lamina.memory.earlier_rows import earlier_entry
from lamina.memory.inputs import EntryDefaults
from lamina.ports.earlier_store import EarlierStore, Row
from lamina.ports.memory_adapter import MemoryAdapter

__all__ = ["BadRow", "EarlierMemories", "MigrationReport", "mark_of"]

FALLBACK_TABLE: Final = "agent_memories"
"""The one table that a recall falls back on; others are only copied, and on request."""
MOST_ROWS: Final = 50_000
"""How many memories of version 1 a recall searches, at most: as many as any bounded scan of the engine."""
SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be taken over, counting from 1 in its table, and why; never what it says."""

    table: str
    number: int
    problem: str


@dataclass(slots=True)
class MigrationReport:
    """What a migration did.

    `skipped` memories were there already, by their id; `expired` ones were past their time. `bad` holds the
    first rows that could not be taken over, `bad_count` how many there were.
    """

    read: int = 0
    written: int = 0
    skipped: int = 0
    expired: int = 0
    bad_count: int = 0
    bad: list[BadRow] = field(default_factory=list)

    def entries_of(
        self, rows: Sequence[Row], table: str, start: int, *, defaults: EntryDefaults, now: datetime
    ) -> list[MemoryEntry]:
        """The memories of these rows that are live, the others counted; `start` is the first row's number."""
        entries: dict[str, MemoryEntry] = {}
        for number, row in enumerate(rows, start=start):
            self.read += 1
            try:
                entry = earlier_entry(row, table, defaults, now)
            except (InvalidInput, InvalidType) as error:
                self.bad_count += 1
                if len(self.bad) < SHOWN:
                    self.bad.append(BadRow(table, number, f"{error.field}: {error.problem}"))
                continue
            if entry.is_expired(now):
                self.expired += 1
            elif entry.id in entries:
                self.skipped += 1
            else:
                entries[entry.id] = entry
        return list(entries.values())


class EarlierMemories:
    """The rows of version 1 as a store that can be searched: loaded when first needed, and when they changed."""

    def __init__(self, source: EarlierStore, make_store: Callable[[], MemoryAdapter], defaults: EntryDefaults) -> None:
        self.source = source
        self._make_store = make_store
        self._defaults = defaults
        self._loaded: tuple[str, MemoryAdapter] | None = None

    async def check(self) -> None:
        """Refuse a file that cannot be read, or holds nothing of version 1.

        Raises:
            ConfigError: it holds no such table.
            AdapterError: it cannot be read.
        """
        if not await self.source.tables():
            problem = f"{self.source.place} holds no memories of version 1"
            raise ConfigError("v1_path", problem, "Give the file that version 1 wrote, or leave it out.")

    async def store(self, adapter: MemoryAdapter, now: datetime) -> MemoryAdapter | None:
        """A store that holds them and must not be written to; None if the `adapter` notes that they were migrated."""
        if await adapter.load_meta(Scope(self._defaults.tenant), mark_of(self.source)) is not None:
            return None
        stamp = await self.source.stamp()
        if self._loaded is None or self._loaded[0] != stamp:
            self._loaded = stamp, await self._load(now)
        return self._loaded[1]

    async def _load(self, now: datetime) -> MemoryAdapter:
        report = MigrationReport()
        entries: list[MemoryEntry] = []
        for table in await self.source.tables():
            if table.lower() == FALLBACK_TABLE:
                async for rows in self.source.rows(table):
                    entries += report.entries_of(rows, table, report.read + 1, defaults=self._defaults, now=now)
                    del entries[:-MOST_ROWS]  # the newest ones count
        store = self._make_store()
        await store.initialize()
        await store.store_many(Scope(self._defaults.tenant), entries, if_new=False)
        return store


def mark_of(source: EarlierStore) -> str:
    """The key under which a store notes that the source was migrated."""
    return f"v1_migrated:{hashlib.sha256(source.place.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
