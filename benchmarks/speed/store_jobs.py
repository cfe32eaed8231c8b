"""What is measured of any system that keeps memories: writing, reading, the cold start, memory and disk."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from speed.dataset import Dataset, Item, Query
from speed.processes import bytes_on_disk, emptied, evict, resident_mib
from speed.records import Record, median_ms, percentile, tell
from speed.references import ExactSearch, PlainTable
from speed.systems import LAMINA, Lamina, System, system_named, with_vectors
from speed.timing import alternate, timed

BATCH: Final = 5_000
SINGLES: Final = 200
ADDERS: Final = 16
WARMED: Final = 20
AGREEMENT: Final = 40
"""Queries whose ten are compared with the exact ten."""

BY_SIMILARITY: Final = {
    "similarity_weight": 1,
    "recency_weight": 0,
    "frequency_weight": 0,
    "relevance_weight": 0,
}
"""So that the nearest ten are those of the product; everything else is measured with the default scoring."""


async def write(name: str, data: Dataset, folder: Path, seconds: float) -> None:
    """Fill the store in batches, in turn with plain SQLite; then add one by one, in turn with it."""
    plain_folder = emptied(folder.with_name(f"{folder.name}-plain"))
    plain = PlainTable(plain_folder / "plain.db")
    system = system_named(name)
    await system.open(emptied(folder))
    await _batches(name, data, system, plain)
    await system.close()
    tell(Record("disk over raw", name, data.count, bytes_on_disk(folder) / data.raw_bytes(), "x"))
    copy = folder.with_name(f"{folder.name}-added-to")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)  # so that the store stays as it was filled
    await _opened(system, data, copy)
    await _added(name, data, system, plain, seconds=seconds)
    await system.close()
    plain.close()
    shutil.rmtree(copy)
    shutil.rmtree(plain_folder)


async def _added(name: str, data: Dataset, system: System, plain: PlainTable, *, seconds: float) -> None:
    items = data.spare()
    with_vectors(system, items)
    ours, theirs = await alternate(items[:SINGLES], system.add, plain.add, seconds=seconds)
    added = _pair("durable add", name, data, (ours, theirs))
    tell(dataclasses.replace(added, note=f"{added.note}; {system.durability}"))
    if name == LAMINA:
        each = await _at_once(system, items[SINGLES:])
        tell(Record(f"{ADDERS} adders, per add", name, data.count, each, "ms", median_ms(theirs)))


async def _batches(name: str, data: Dataset, system: System, plain: PlainTable) -> None:
    ours = theirs = 0.0
    batch = data.count if system.fills_at_once else BATCH
    for first in range(0, data.count, batch):
        items = data.items(first, first + batch)
        with_vectors(system, items)
        began = time.perf_counter()
        plain.fill(items)
        theirs += time.perf_counter() - began
        ours += await timed(system.fill(items))
        if isinstance(system, Lamina):
            system.embedder.forget()
    tell(Record("batch add", name, data.count, data.count / ours, "rows/s", data.count / theirs))


async def _at_once(system: System, items: Sequence[Item]) -> float:
    """Milliseconds for each add, of so many who add without a pause."""

    async def adder(own: Sequence[Item]) -> None:
        for item in own:
            await system.add(item)

    shares = [items[number::ADDERS] for number in range(ADDERS)]
    seconds = await timed(asyncio.gather(*(adder(each) for each in shares)))
    return seconds * 1_000 / len(items)


async def read(name: str, data: Dataset, folder: Path, seconds: float) -> None:
    """Recall in every mode, of one owner and of all, in turn with the exact search."""
    exact = ExactSearch(data)
    queries = data.queries()
    system = system_named(name)
    with_vectors(system, queries)
    await _opened(system, data, folder)
    for scoped in system.scopes:
        for mode in system.modes:
            figures = await against_exact(system, exact, queries, mode=mode, scoped=scoped, seconds=seconds)
            tell(_pair(measure_of(mode, scoped=scoped), name, data, figures))
    if isinstance(system, Lamina):
        system.touch = True
        figures = await against_exact(system, exact, queries, mode="hybrid", scoped=True, seconds=seconds)
        tell(_pair("scoped hybrid, counted as accessed", name, data, figures))
    await system.close()
    if "vector" in system.modes:
        await _agreement(name, data, folder, exact)


def measure_of(mode: str, *, scoped: bool) -> str:
    return f"{'scoped' if scoped else 'unscoped'} {mode}"


async def against_exact(
    system: System, exact: ExactSearch, queries: Sequence[Query], *, mode: str, scoped: bool, seconds: float
) -> tuple[list[float], list[float]]:
    async def ask(query: Query) -> list[str]:
        return await system.search(query, mode, scoped=scoped)

    reference = exact.search if scoped else exact.search_all
    await alternate(queries[-WARMED:], ask, reference, seconds=seconds / 4)
    ours, theirs = await alternate(queries, ask, reference, seconds=seconds)
    return ours, theirs


async def _opened(system: System, data: Dataset, folder: Path) -> None:
    await system.open(folder)
    if not system.persistent:
        await system.fill(data.items())


async def _agreement(name: str, data: Dataset, folder: Path, exact: ExactSearch) -> None:
    """The share of the exact ten that is found."""
    system = Lamina(scoring=BY_SIMILARITY) if name == LAMINA else system_named(name)
    queries = data.queries()[:AGREEMENT]
    with_vectors(system, queries)
    await _opened(system, data, folder)
    texts = data.texts()
    for scoped in system.scopes:
        shares = []
        for query in queries:
            wanted = await (exact.search if scoped else exact.search_all)(query)
            found = set(await system.search(query, "vector", scoped=scoped))
            shares.append(share_found(wanted, texts, found))
        kind = "scoped" if scoped else "unscoped"
        tell(Record(f"recall@10 of {kind} vector", name, data.count, statistics.fmean(shares), ""))
    await system.close()


def share_found(wanted: Sequence[int], texts: Sequence[str], found: set[str]) -> float:
    """Of the wanted numbers, how many are found, by id or by text."""
    return sum(texts[number] in found or f"m{number:07}" in found for number in wanted) / len(wanted)


async def cold(name: str, data: Dataset, folder: Path, _seconds: float) -> None:
    """From opening to the first answer of one owner, the store's pages out of the cache, everything imported."""
    query = data.queries()[0]
    system = system_named(name)
    if not system.persistent:
        return
    with_vectors(system, [query])
    await _loaded(system, folder, query)
    note = "" if evict(folder) else "pages not evicted"
    mode = "hybrid" if "hybrid" in system.modes else system.modes[0]
    began = time.perf_counter()
    await system.open(folder)
    await system.search(query, mode, scoped=system.scopes[0])
    tell(Record("open to first answer", name, data.count, (time.perf_counter() - began) * 1_000, "ms", note=note))
    await system.close()


async def memory(name: str, data: Dataset, folder: Path, _seconds: float) -> None:
    """What is resident above the imports: one owner asked for, then all of them."""
    queries = data.queries()
    system = system_named(name)
    if not system.persistent:
        return
    with_vectors(system, queries)
    await _loaded(system, folder, queries[0])
    mode = "hybrid" if "hybrid" in system.modes else system.modes[0]
    imported = resident_mib()
    await system.open(folder)
    own = [query for query in queries if query.owner == queries[0].owner]
    for query in own:
        await system.search(query, mode, scoped=system.scopes[0])
    _tell_of_memory("one scope", name, data, resident_mib() - imported)
    for query in queries:
        await system.search(query, mode, scoped=system.scopes[0])
    _tell_of_memory("all scopes", name, data, resident_mib() - imported)
    await system.close()


async def _loaded(system: System, folder: Path, query: Query) -> None:
    """Load every module that is needed, with a small store of its own, so that no page of the other is touched."""
    small = emptied(folder.with_name(f"{folder.name}-small"))
    await system.open(small)
    await system.fill([Item(f"w{number}", query.owner, f"{query.text} {number}", query.vector) for number in range(20)])
    for mode in system.modes:
        await system.search(query, mode, scoped=system.scopes[0])
    await system.close()
    shutil.rmtree(small, ignore_errors=True)


def _tell_of_memory(which: str, name: str, data: Dataset, mib: float) -> None:
    tell(Record(f"resident, {which}, per 100,000", name, data.count, mib * 100_000 / data.count, "MiB"))


def _pair(measure: str, name: str, data: Dataset, times: Any) -> Record:
    ours, theirs = times
    best = f"best over best {min(ours) / min(theirs):.3g}"  # what is left of the ratio on a busy machine
    note = f"p95 {percentile(ours, 0.95) * 1_000:.3g} ms, {len(ours)} times, {best}"
    return Record(measure, name, data.count, median_ms(ours), "ms", median_ms(theirs), note)
