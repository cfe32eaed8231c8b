"""A collection's tables: their names, all made from one checked prefix, and statements on them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lamina.errors import ConfigError

__all__ = ["Collection", "Tables"]

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
_PARTS: Final = ("partitions", "text", "vectors", "blocks", "history", "meta", "counters")
_FRAGMENTS: Final = {
    "scoped": "{partitions} AS p CROSS JOIN {memories} AS m ON m.partition = p.id",
    "in_partition": "BETWEEN (p.id << 32) AND ((p.id << 32) | 4294967295)",
}


class Tables:
    """The tables of one collection. Only these names are ever formatted into SQL; all else is bound."""

    def __init__(self, prefix: str) -> None:
        if not _NAME.fullmatch(prefix) or prefix.lower().startswith("sqlite"):
            remedy = "Use ASCII letters, digits and underscores, at most 63, starting with a letter."
            raise ConfigError("table", f"{prefix!r} cannot name a table", remedy)
        self.prefix = prefix
        self.names: Final = {"memories": prefix} | {part: f"{prefix}_{part}" for part in _PARTS}
        self._words: Final = self.names | {name: each.format_map(self.names) for name, each in _FRAGMENTS.items()}

    def sql(self, template: str, **parts: str) -> str:
        """The template with `{memories}`, `{text}` and so on as this collection's tables.

        `{scoped}` is each memory `m` with its partition `p`, and `{in_partition}` the range of keys
        of `p`. `parts` are conditions that `where_sql` made.
        """
        return template.format_map(self._words | parts)


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection as one thread's connection sees it."""

    connection: sqlite3.Connection
    tables: Tables

    def execute(self, template: str, parameters: Sequence[Any] = (), **parts: str) -> sqlite3.Cursor:
        """Run one statement; the template is as in `Tables.sql`."""
        return self.connection.execute(self.tables.sql(template, **parts), parameters)

    def execute_many(self, template: str, rows: Iterable[Sequence[Any]], **parts: str) -> None:
        """Run one statement for each row of parameters."""
        self.connection.executemany(self.tables.sql(template, **parts), rows)
