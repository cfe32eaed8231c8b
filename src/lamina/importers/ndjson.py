"""Memories out to NDJSON and in from it: one line each, nothing lost on the way.

Importing what was exported gives equal memories, and doing so twice changes nothing. For the format see
`lamina.importers.lines`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, Final, TextIO, TypeAlias

from lamina.domain.memory import MemoryEntry
from lamina.domain.text import is_clean
from lamina.errors import InvalidInput, InvalidType, LaminaError
from lamina.importers.lines import ExactMemory, NewMemory, read_line, write_line
from lamina.memory.engine import MemoryEngine
from lamina.memory.inputs import MemoryInput
from lamina.ports.embedder import Fingerprint

__all__ = ["BadLine", "BadLines", "ImportReport", "export_ndjson", "import_ndjson"]

BATCH: Final = 200
SHOWN: Final = 5
_BOM: Final = "\ufeff"

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many lines are done, and of how many."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that cannot be imported, counting from 1, and why."""

    number: int
    problem: str


class BadLines(LaminaError, ValueError):
    """Some lines cannot be imported; `written` memories had been written when that was found."""

    def __init__(self, lines: list[BadLine], *, count: int, written: int) -> None:
        super().__init__(lines, count, written)
        self.lines = lines
        self.count = count
        self.written = written

    def __str__(self) -> str:
        told = "; ".join(f"line {line.number}: {line.problem}" for line in self.lines[:SHOWN])
        more = f"; and {self.count - SHOWN} more" if self.count > SHOWN else ""
        wrote = f"{self.written} memories were written before" if self.written else "Nothing was written"
        bad = "1 bad line" if self.count == 1 else f"{self.count} bad lines"
        remedy = "Correct what is bad, or skip it (skip_bad_lines=True, --skip-bad-lines)."
        return f"{bad} ({told}{more}). {wrote}. {remedy}"


@dataclass(slots=True)
class ImportReport:
    """What an import did.

    `skipped` memories were there already, by their id; `confirmed` new ones said what a memory with another
    id said already, which is fresh again; `vetoed` ones the `on_before_store` hook refused;
    `without_vector` ones came with a vector of another model than the store's, which was left out.
    `erased` memories were stored before they were deleted or their owner was erased, and were left out.
    `bad` lines, if bad lines are skipped, are told one by one.
    """

    written: int = 0
    skipped: int = 0
    confirmed: int = 0
    vetoed: int = 0
    without_vector: int = 0
    erased: int = 0
    bad: list[BadLine] = field(default_factory=list)


async def export_ndjson(
    engine: MemoryEngine,
    target: TextIO,
    *,
    with_embeddings: bool = False,
    include_expired: bool = False,
    progress: Progress | None = None,
    **filters: Any,
) -> int:
    """Write the memories that the filters admit, in insertion order, and return how many.

    `filters` are those of `MemoryEngine.scan`. With embeddings, a vector travels with the fingerprint of
    the model that made it.
    """
    fingerprint = (await engine.stats()).fingerprint if with_embeddings else None
    total = await engine.count(**filters) if progress is not None else 0
    written = 0
    async for entry in engine.scan(
        include_expired=include_expired, include_embeddings=fingerprint is not None, **filters
    ):
        target.write(write_line(entry, fingerprint) + "\n")
        written += 1
        if progress is not None and written % BATCH == 0:
            progress(written, max(total, written))
    if progress is not None:
        progress(written, written)
    return written


async def import_ndjson(
    engine: MemoryEngine,
    source: str | PathLike[str] | Iterable[str],
    *,
    replace: bool = False,
    skip_bad_lines: bool = False,
    revive: bool = False,
    progress: Progress | None = None,
) -> ImportReport:
    """Import a file, or lines as they come; ids that exist are skipped, or overwritten with `replace`.

    What was deleted here by id or filter, or stored before its owner was erased, is left out, unless `revive` asks
    for it.

    Lines that `export_ndjson` wrote come back exactly, without hooks and without embedding anew. Other
    lines are stored as new memories (hooks run, they are embedded); one without an id gets one derived from
    what it says, so that it too is stored once. A file is read through before anything is written, so a bad
    line in it means that nothing was; other sources are imported up to the first bad line.

    Raises:
        BadLines: some lines cannot be imported, and `skip_bad_lines` is off.
        InvalidInput: the file cannot be read.
    """
    importer = _Importer(engine, replace=replace, skip_bad_lines=skip_bad_lines, revive=revive)
    if isinstance(source, str | PathLike):
        path = Path(source)
        total = _check_file(path, skip_bad_lines=skip_bad_lines)
        with _opened(path) as lines:
            await importer.run(lines, total, progress)
    else:
        await importer.run(source, 0, progress)
    return importer.report


class _Importer:
    """One import: reads, gathers neighbours of one kind into batches, and writes those."""

    def __init__(self, engine: MemoryEngine, *, replace: bool, skip_bad_lines: bool, revive: bool) -> None:
        self.report = ImportReport()
        self._engine = engine
        self._replace = replace
        self._skip_bad_lines = skip_bad_lines
        self._revive = revive

    async def run(self, lines: Iterable[str], total: int, progress: Progress | None) -> None:
        numbered = _numbered(lines)
        while chunk := list(islice(numbered, BATCH)):
            memories, bad = _read_all(chunk, stop_at_bad=not self._skip_bad_lines)
            await self._write(memories)
            if bad and not self._skip_bad_lines:
                raise BadLines(bad, count=1, written=self.report.written)
            self.report.bad.extend(bad)
            if progress is not None:
                progress(chunk[-1][0], max(chunk[-1][0], total))

    async def _write(self, memories: Iterable[ExactMemory | NewMemory]) -> None:
        exact: dict[str, ExactMemory] = {}
        new: dict[str, MemoryInput] = {}
        for memory in memories:
            if isinstance(memory, ExactMemory):
                if new or memory.entry.id in exact:
                    await self._flush(exact, new)
                exact[memory.entry.id] = memory
            else:
                id = str(memory.given.id)
                if exact or id in new:
                    await self._flush(exact, new)
                new[id] = memory.given
        await self._flush(exact, new)

    async def _flush(self, exact: dict[str, ExactMemory], new: dict[str, MemoryInput]) -> None:
        if exact:
            await self._restore(list(exact.values()))
        if new:
            await self._store(new)
        exact.clear()
        new.clear()

    async def _restore(self, memories: list[ExactMemory]) -> None:
        """Write the entries of each fingerprint together, since the engine takes one at a time."""
        by_fingerprint: dict[Fingerprint | None, list[MemoryEntry]] = {}
        for memory in memories:
            by_fingerprint.setdefault(memory.fingerprint, []).append(memory.entry)
        for fingerprint, entries in by_fingerprint.items():
            done = await self._engine.restore(
                entries, replace=self._replace, fingerprint=fingerprint, revive=self._revive
            )
            self.report.erased += done.erased
            self.report.written += done.written
            self.report.skipped += done.skipped
            self.report.without_vector += done.without_vector

    async def _store(self, new: dict[str, MemoryInput]) -> None:
        absent = [given for id, given in new.items() if await self._engine.get(id) is None]
        self.report.skipped += len(new) - len(absent)
        for given, id in zip(absent, await self._engine.store_many(absent), strict=True):
            if id is None:
                self.report.vetoed += 1
            elif id == given.id:
                self.report.written += 1
            else:
                self.report.confirmed += 1


def _check_file(path: Path, *, skip_bad_lines: bool) -> int:
    """The number of its lines, if none is bad or bad ones may be skipped."""
    total = count = 0
    first: list[BadLine] = []
    with _opened(path) as lines:
        for number, line in _numbered(lines):
            total = number
            if skip_bad_lines:
                continue
            _, bad = _read(number, line)
            if bad is not None:
                count += 1
                if len(first) < SHOWN:
                    first.append(bad)
    if count:
        raise BadLines(first, count=count, written=0)
    return total


def _numbered(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, start=1):
        text = line.removeprefix(_BOM) if number == 1 else line
        if text.strip():
            yield number, text


def _read_all(
    chunk: Iterable[tuple[int, str]], *, stop_at_bad: bool
) -> tuple[list[ExactMemory | NewMemory], list[BadLine]]:
    memories: list[ExactMemory | NewMemory] = []
    bad: list[BadLine] = []
    for number, line in chunk:
        memory, problem = _read(number, line)
        if memory is not None:
            memories.append(memory)
        elif problem is not None:
            bad.append(problem)
            if stop_at_bad:
                break
    return memories, bad


def _read(number: int, line: str) -> tuple[ExactMemory | NewMemory | None, BadLine | None]:
    if not is_clean(line):
        return None, BadLine(number, "is not UTF-8")
    try:
        return read_line(line), None
    except (InvalidInput, InvalidType) as error:
        return None, BadLine(number, f"{error.field}: {error.problem}")


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """The file; only a line feed ends a line of it, as JSON may hold the other line separators as they are."""
    try:
        with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            yield file
    except OSError as error:
        raise InvalidInput("source", f"{path} cannot be read ({error.strerror})", "Give a readable file.") from error
