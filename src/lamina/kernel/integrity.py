"""Everything that is kept, read and compared: what contradicts itself, and what of it can be mended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.scope import Scope
from lamina.kernel.parts import Parts
from lamina.memory.reading import pages
from lamina.memory.self_checks import ask_store, can_look
from lamina.ports.clock import Clock
from lamina.rag.chunk_rows import read_row as read_chunk
from lamina.rag.heads import edition_of

__all__ = ["IntegrityReport", "Problem", "check_integrity"]

SHOWN: Final = 5
"""Most links of one kind that are told."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and with what: `memories`, `documents`, `threads` or `packs`."""

    part: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrityReport:
    """What is wrong now, what was mended before that, and which parts have no check of their own."""

    problems: list[Problem]
    repaired: list[Problem]
    unchecked: list[str]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


async def check_integrity(parts: Parts, *, clock: Clock, repair: bool) -> IntegrityReport:
    """Let the stores look themselves over, and compare what they say of each other; with `repair`, mend first.

    Mended is what can be made anew from the rows: nothing that can be read is dropped.

    Raises:
        AdapterError: a store failed, or is so damaged that it cannot be opened or mended.
    """
    tenant = parts.memory.tenant
    stores: dict[str, Any] = {
        "memories": parts.memory.adapter,
        "documents": parts.chunks,
        "threads": parts.state,
        "packs": parts.packs,
    }
    repaired = await _each(stores, "repair", tenant) if repair else []
    problems = await _each(stores, "check", tenant)
    problems += [Problem("memories", each) for each in await _links(parts, clock)]
    problems += [Problem("documents", each) for each in await _chunks(parts, clock)]
    unchecked = [part for part, store in stores.items() if not can_look(store)]
    return IntegrityReport(problems=problems, repaired=repaired, unchecked=unchecked)


async def _each(stores: Mapping[str, Any], deed: Literal["check", "repair"], tenant: str) -> list[Problem]:
    """What each store says; what two in one file say alike is told once."""
    told: dict[str, str] = {}
    for part, store in stores.items():
        for found in await ask_store(store, deed, tenant):
            told.setdefault(found, part)
    return [Problem(part, found) for found, part in told.items()]


async def _links(parts: Parts, clock: Clock) -> list[str]:
    """Memories that are superseded by themselves, over whatever many others: none of them would ever be found."""
    above: dict[str, str] = {}
    async for page in pages(parts.memory.adapter, *_everything(parts, clock)):
        above |= {entry.id: entry.superseded_by for entry in page if entry.superseded_by is not None}
    settled: set[str] = set()
    circles: list[str] = []
    for start in above:
        path: dict[str, None] = {}
        at: str | None = start
        while at is not None and at not in settled and at not in path:
            path[at] = None
            at = above.get(at)
        if at is not None and at in path:
            circles.append(f"the memory {at!r} is superseded by itself")
        settled |= path.keys()
    return circles[:SHOWN]


async def _chunks(parts: Parts, clock: Clock) -> list[str]:
    """Documents with fewer or more chunks than they say. Those of no document are not shown, and swept by upkeep."""
    counts: Counter[str] = Counter()
    async for page in pages(parts.chunks, *_everything(parts, clock)):
        for entry in page:
            row = read_chunk(entry, parts.chunks.name)
            counts[f"{row.document}\0{row.edition}"] += 1
    found = []
    for head in await parts.rag.list_documents():
        kept = counts[f"{head.id}\0{edition_of(head)}"]
        if kept != head.chunks:
            found.append(f"the document {head.id!r} has {kept} of its {head.chunks} chunks: ingest it again")
    return found[:SHOWN]


def _everything(parts: Parts, clock: Clock) -> tuple[Scope, MemoryFilter]:
    return Scope(parts.memory.tenant), MemoryFilter(now=clock(), expiry=Expiry.ANY)
