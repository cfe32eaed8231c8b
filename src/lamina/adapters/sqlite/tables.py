"""A collection's tables: their names, all made from one checked prefix, and statements on them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lamina.adapters._shared.options import checked_table
from lamina.adapters.sqlite.kept_codes import Kept
from lamina.errors import ConfigError

__all__ = ["Collection", "Tables"]

_PARTS: Final = ("partitions", "text", "vectors", "blocks", "history", "meta", "counters")
_DERIVED: Final = {
    "memories_by_seq": "{memories}_by_seq",
    "memories_by_tenant_seq": "{memories}_by_tenant_seq",
    "memories_by_digest": "{memories}_by_digest",
    "memories_by_expiry": "{memories}_by_expiry",
    "memories_by_superseding": "{memories}_by_superseding",
    "memories_by_validity": "{memories}_by_validity",
    "memories_by_tags": "{memories}_by_tags",
    "partitions_with_vectors": "{partitions}_with_vectors",
    "vectors_loose": "{vectors}_loose",
    "text_config": "{text}_config",
    "text_content": "{text}_content",
    "text_data": "{text}_data",
    "text_docsize": "{text}_docsize",
    "text_idx": "{text}_idx",
}
"""Indexes, and what FTS5 makes beside the text index."""

_FRAGMENTS: Final = {
    "scoped": "{partitions} AS p CROSS JOIN {memories} AS m ON m.partition = p.id",
    "in_partition": "BETWEEN (p.id << 32) AND ((p.id << 32) | 4294967295)",
}


class Tables:
    """The tables of one collection. Only these names, quoted, are ever formatted into SQL; all else is bound."""

    def __init__(self, prefix: str) -> None:
        checked_table(prefix, letter_first=True)
        if prefix.lower().startswith("sqlite"):
            raise ConfigError("table", f"{prefix!r} begins as SQLite's own tables do", "Choose another name.")
        self.prefix = prefix
        self.names: Final = {"memories": prefix} | {part: f"{prefix}_{part}" for part in _PARTS}
        self.taken: Final = {*self.names.values(), *(each.format_map(self.names) for each in _DERIVED.values())}
        """All that the file must not hold yet when the collection is made. SQLite tells no case in names."""
        names = self.names | {name: each.format_map(self.names) for name, each in _DERIVED.items()}
        quoted = {name: f'"{each}"' for name, each in names.items()}
        self._words: Final = quoted | {name: each.format_map(quoted) for name, each in _FRAGMENTS.items()}
        self._made: Final[dict[str, str]] = {}
        """By template, those without parts: there are as many as stand in the code."""

    def sql(self, template: str, **parts: str) -> str:
        """The template with `{memories}`, `{text}` and so on as this collection's tables.

        `{vectors_loose}` and so on are its indexes, `{scoped}` is each memory `m` with its partition `p`,
        and `{in_partition}` the range of keys of `p`. `parts` are conditions that `where_sql` made.
        """
        if parts:
            return template.format_map(self._words | parts)
        if template not in self._made:
            self._made[template] = template.format_map(self._words)
        return self._made[template]


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection as one thread's connection sees it."""

    connection: sqlite3.Connection
    tables: Tables
    kept: Kept | None = None
    """What was read of partitions before, if it is kept."""

    def execute(self, template: str, parameters: Sequence[Any] = (), **parts: str) -> sqlite3.Cursor:
        """Run one statement; the template is as in `Tables.sql`."""
        return self.connection.execute(self.tables.sql(template, **parts), parameters)

    def execute_many(self, template: str, rows: Iterable[Sequence[Any]], **parts: str) -> None:
        """Run one statement for each row of parameters."""
        self.connection.executemany(self.tables.sql(template, **parts), rows)
