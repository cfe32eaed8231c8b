"""What gives the memories of version 1: rows as they were left, to be read and never changed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

__all__ = ["EarlierStore", "Row"]

Row: TypeAlias = Mapping[str, Any]
"""Column names as they are written, and what SQLite holds: text, numbers, bytes or None."""


class EarlierStore(Protocol):
    """Another program's file with memories in it. Nothing here writes to it.

    Raises:
        AdapterError: it cannot be read.
        StoreDamaged: it is no database.
    """

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it is; the same store has the same place."""
        ...

    @abstractmethod
    async def tables(self) -> Sequence[str]:
        """The tables of memories that it has, of those that are known."""
        ...

    @abstractmethod
    async def stamp(self) -> str:
        """Changes whenever the rows may have changed."""
        ...

    @abstractmethod
    def rows(self, table: str) -> AsyncIterator[Sequence[Row]]:
        """All rows of one of the `tables`, in pages, oldest first as far as the file knows."""
        ...
