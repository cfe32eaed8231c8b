"""Copying the memories of version 1 into the store, once."""

from __future__ import annotations

from os import PathLike

from lamina.errors import InvalidInput
from lamina.memory.earlier import FALLBACK_TABLE, MigrationReport, mark_of
from lamina.memory.runtime import Runtime
from lamina.memory.writing import Writer
from lamina.ports.earlier_store import EarlierStore

__all__ = ["migrate"]


async def migrate(runtime: Runtime, writer: Writer, path: str | PathLike[str] | None) -> MigrationReport:
    """Write what the file holds, with its ids, and note that it was done: see `MemoryEngine.migrate_v1`."""
    source = _source(runtime, path)
    now = runtime.clock()
    tables = await source.tables()
    if not tables:
        problem = f"{source.place} holds no table of memories of version 1"
        raise InvalidInput("path", problem, "Give the file, or the URL of the database, that version 1 wrote.")
    report = MigrationReport()
    for table in tables:
        number = 1
        async for rows in source.rows(table):
            entries = report.entries_of(rows, table, number, defaults=runtime.defaults, now=now)
            number += len(rows)
            done = await writer.restore(entries, replace=False, fingerprint=None, revive=False)
            report.written += done.written
            report.skipped += done.skipped + done.erased
    if any(table.lower() == FALLBACK_TABLE for table in tables):
        await runtime.adapter.save_meta(runtime.tenant_scope, mark_of(source), now.isoformat(), now)
    return report


def _source(runtime: Runtime, path: str | PathLike[str] | None) -> EarlierStore:
    if path is None and runtime.earlier is not None:
        return runtime.earlier.source
    if path is None or runtime.open_earlier is None:
        raise InvalidInput("path", "is not given, and neither is v1_path", "Give the file that version 1 wrote.")
    return runtime.open_earlier(path)
