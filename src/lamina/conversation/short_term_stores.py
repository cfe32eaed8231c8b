"""Short-term memory by where it is kept."""

from __future__ import annotations

from os import PathLike
from typing import Any

from lamina.conversation.short_term import BaseMemory
from lamina.state.sqlite import SqliteStateStore

__all__ = ["InMemoryMemory", "PostgresMemory", "SQLiteMemory"]


class InMemoryMemory(BaseMemory):
    """Short-term memory in this process's memory; the arguments are those of `BaseMemory` without `store`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(SqliteStateStore(":memory:"), **options)


class SQLiteMemory(BaseMemory):
    """Short-term memory in an SQLite file, made if there is none; further arguments are those of `BaseMemory`."""

    def __init__(self, path: str | PathLike[str], **options: Any) -> None:
        super().__init__(SqliteStateStore(path), **options)


class PostgresMemory(BaseMemory):
    """Short-term memory in a schema of a PostgreSQL database; further arguments are those of `BaseMemory`.

    Raises:
        MissingExtra: the driver is not installed.
    """

    def __init__(self, url: str, *, schema: str = "lamina", **options: Any) -> None:
        from lamina.state.postgres import PostgresStateStore

        super().__init__(PostgresStateStore(url, schema=schema), **options)
