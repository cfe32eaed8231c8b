"""How large a database is."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path

__all__ = ["size_bytes"]


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
