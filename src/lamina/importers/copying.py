"""Moving memories from one backend to another: every field, every vector, checked at the end."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.memory import MemoryEntry
from lamina.domain.scope import Scope
from lamina.errors import AdapterError, Conflict, EmbeddingFingerprintError
from lamina.importers.lines import write_line
from lamina.memory.embedding import META_KEY
from lamina.memory.tombstones import Tombstones
from lamina.ports.clock import utc_now
from lamina.ports.embedder import Fingerprint
from lamina.ports.memory_adapter import ListOptions, MemoryAdapter

__all__ = ["CopyReport", "copy_memories"]

PAGE: Final = 500
_ALL: Final = MemoryFilter(now=datetime(1970, 1, 1, tzinfo=UTC), expiry=Expiry.ANY)
_ANY_MODEL: Final = Fingerprint(provider="", model="", dimensions=1)
"""For a line with its vector, whichever model made it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyReport:
    """What a copy did."""

    written: int
    present: int
    """Were there already, the same in every field."""
    erased: int
    """Were stored before the target forgot them or erased their owner, and were left out."""
    checksum: str
    """Of all the memories copied or present, as both backends have them."""


async def copy_memories(
    source: MemoryAdapter,
    target: MemoryAdapter,
    tenant: str,
    *,
    overwrite: bool = False,
    revive: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> CopyReport:
    """Copy all memories of a tenant, expired ones too, in their order, with ids, times, counts and vectors.

    A copy that was broken off goes on when it is started again: what is there already is compared and passed over.
    Former versions (`history`) are not copied, nor what the target forgot since it was stored, unless `revive` asks for
    it. Both adapters are initialised; what else the target holds stays. `progress` is told how many memories are done,
    of how many.

    Raises:
        Conflict: the target has a memory of the same id that differs, and `overwrite` is False.
        EmbeddingFingerprintError: the target's vectors are another model's.
        AdapterError: what the target holds afterwards is not what was read.
    """
    scope = Scope(tenant)
    await _copy_fingerprint(source, target, scope)
    total = await source.count(scope, _ALL)
    marks: dict[str, bytes] = {}
    tombstones = Tombstones(target, tenant)
    written = erased = 0
    async for every in _pages(source, scope):
        gone = set() if revive else await tombstones.erased(every)
        page = [entry for entry in every if entry.id not in gone]
        erased += len(gone)
        marks |= {entry.id: _mark(entry) for entry in page}
        written += await _copy_page(target, scope, page, marks, overwrite=overwrite)
        progress(len(marks) + erased, max(total, len(marks) + erased))
    await _verify(target, scope, marks)
    return CopyReport(written=written, present=len(marks) - written, erased=erased, checksum=_checksum(marks.values()))


async def _copy_fingerprint(source: MemoryAdapter, target: MemoryAdapter, scope: Scope) -> None:
    ours, theirs = await source.load_meta(scope, META_KEY), await target.load_meta(scope, META_KEY)
    if ours is None or ours == theirs:
        return
    if theirs is not None:
        raise EmbeddingFingerprintError(theirs, ours)
    await target.save_meta(scope, META_KEY, ours, utc_now(), expected=None)


async def _copy_page(
    target: MemoryAdapter, scope: Scope, page: Sequence[MemoryEntry], marks: dict[str, bytes], *, overwrite: bool
) -> int:
    there = await _already_there(target, scope, page)
    missing = [entry for entry in page if entry.id not in there]
    differing = [entry for entry in page if entry.id in there and _mark(there[entry.id]) != marks[entry.id]]
    if differing and not overwrite:
        remedy = "Copy to another collection, or let the source win with overwrite=True (`--overwrite`)."
        problem = f"the target has another memory of this id, and of {len(differing) - 1} more on this page"
        raise Conflict(f"The memory {differing[0].id!r}", problem, remedy)
    if differing:  # not replaced: the revision would grow
        await target.delete_many(scope, [entry.id for entry in differing])
    await target.store_many(scope, [*missing, *differing])
    return len(missing) + len(differing)


async def _already_there(target: MemoryAdapter, scope: Scope, page: Sequence[MemoryEntry]) -> dict[str, MemoryEntry]:
    twins = await target.find_twins(scope, page)
    there = {twin.id: twin for entry, twin in zip(page, twins, strict=True) if twin is not None and twin.id == entry.id}
    for entry in page:
        if entry.is_expired(entry.created_at):  # no twin, since it was absent from the start
            found = await target.get(scope, entry.id)
            if found is not None:
                there[entry.id] = found
    return there


async def _verify(target: MemoryAdapter, scope: Scope, marks: dict[str, bytes]) -> None:
    found = {entry.id: _mark(entry) async for page in _pages(target, scope) for entry in page if entry.id in marks}
    lost = len(marks) - len(found)
    changed = sum(found[id] != marks[id] for id in found)
    if lost or changed:
        problem = f"of {len(marks)} memories that were copied, {lost} are not there and {changed} differ"
        remedy = "If somebody wrote to it meanwhile, copy again; else report it: the backend changes what it is given."
        raise AdapterError(target.name, problem, remedy)


async def _pages(adapter: MemoryAdapter, scope: Scope) -> AsyncIterator[list[MemoryEntry]]:
    after = 0
    while page := await adapter.list(
        ListOptions(scope=scope, filter=_ALL, limit=PAGE, after=after, include_embeddings=True)
    ):
        yield page
        after = page[-1].seq


def _mark(entry: MemoryEntry) -> bytes:
    """What two entries have in common that are the same in every field and in every bit of their vectors."""
    return hashlib.sha256(write_line(entry, _ANY_MODEL).encode()).digest()


def _checksum(marks: Iterable[bytes]) -> str:
    """The same whatever the order."""
    total = sum(int.from_bytes(mark) for mark in marks)
    return f"{total % 2**128:032x}"
