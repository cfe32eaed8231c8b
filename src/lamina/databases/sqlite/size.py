"""How large a database is, and how it is made smaller."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Compaction", "compact", "size_bytes"]


@dataclass(frozen=True, slots=True)
class Compaction:
    """How many bytes the file and its log took before and after it."""

    before: int
    after: int


def size_bytes(connection: sqlite3.Connection) -> int:
    """Bytes of the file and of the log beside it; of the pages, if it is in memory."""
    file = next(path for _, name, path in connection.execute("PRAGMA database_list") if name == "main")
    if not file:
        pages, size = (connection.execute(f"PRAGMA {each}").fetchone()[0] for each in ("page_count", "page_size"))
        return int(pages * size)
    size = Path(file).stat().st_size
    with suppress(FileNotFoundError):
        size += Path(f"{file}-wal").stat().st_size
    return size


def compact(connection: sqlite3.Connection) -> None:
    """Merge the parts of every text index, and write the file anew without its free pages, into its log.

    In no transaction. The copy that SQLite makes meanwhile is a file that has no name, in the folder for temporary
    files: in memory, it would take as much of that as the database is large.
    """
    indexes = "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE % USING fts5%'"
    for (name,) in connection.execute(indexes).fetchall():
        quoted = '"' + name.replace('"', '""') + '"'
        connection.execute(f"INSERT INTO {quoted} ({quoted}) VALUES ('optimize')")  # noqa: S608 - a name of the schema
    (kept,) = connection.execute("PRAGMA temp_store").fetchone()
    connection.execute("PRAGMA temp_store = FILE")
    try:
        connection.execute("VACUUM")
    finally:
        connection.execute(f"PRAGMA temp_store = {kept}")
