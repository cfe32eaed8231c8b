"""What runs statements on a libSQL database, wherever that is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeAlias

from lamina.adapters._shared.where_sql import Sql

__all__ = ["STALE", "Row", "Runner"]

Row: TypeAlias = tuple[Any, ...]

STALE = "malformed JSON"
"""How a guard fails: it hands `json()` an empty text when it finds what it must not."""


class Runner(Protocol):
    """Statements on one database. Any number of threads may call it side by side."""

    place: str
    """Where the database is, for messages: no token and no user."""

    def open(self) -> None:
        """Be ready to reach the database; nothing need be asked of it yet."""

    def close(self) -> None:
        """Let go of it. Idempotent."""

    def read(self, sql: Sql) -> list[Row]:
        """What one statement finds.

        Raises:
            Failed: the database refuses it.
        """

    def write(self, changes: Sequence[Sql], guard: Sql | None = None) -> list[list[Row]]:
        """Run all of them in one transaction that nobody else's writes come between; what each one returns.

        Raises:
            Stale: the guard failed with `STALE`; nothing was written.
            Failed: the database refuses one; nothing was written.
        """

    def fresh(self) -> AbstractContextManager[None]:
        """Inside, reads of this thread see all that anybody wrote."""
        return nullcontext()
