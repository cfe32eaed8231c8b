"""A collection's tables: their names, made from one checked prefix, and how they are made."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any, Final

from lamina.adapters._shared.options import checked_table
from lamina.adapters._shared.where_sql import Sql
from lamina.domain.lexical import ANALYZER_VERSION
from lamina.domain.memory import SHARED_LAYERS
from lamina.errors import ConfigError

__all__ = ["SCHEMA_VERSION", "Tables"]

SCHEMA_VERSION: Final = 1

_LONG: Final = 128
"""From this length on, the signs of a vector's numbers are enough for its neighbours in the index to be told apart."""
_PARTS: Final = ("text", "history", "controls", "counters")

_SHARED: Final = "layer IN ({})".format(", ".join(sorted(f"'{layer.value}'" for layer in SHARED_LAYERS)))
"""In the same words where the index is made and where it is used, or SQLite would not know it again."""


class Tables:
    """The tables of one collection. Only these names, quoted, are ever formatted into SQL; all else is bound."""

    def __init__(self, prefix: str) -> None:
        checked_table(prefix, letter_first=True)
        if prefix.lower().startswith("sqlite"):
            raise ConfigError("table", f"{prefix!r} begins as SQLite's own tables do", "Choose another name.")
        self.prefix = prefix
        self.counters: Final = f"{prefix}_counters"
        names = {"memories": prefix} | {part: f"{prefix}_{part}" for part in _PARTS}
        self.taken: Final = frozenset(names.values())
        indexes = {
            name: f"{prefix}_{name}" for name in ("by_place", "by_tenant", "by_shared", "by_digest", "history_by_seq")
        }
        quoted = {name: f'"{each}"' for name, each in (names | indexes).items()}
        self._words: Final = quoted | {"shared": _SHARED}

    def sql(self, template: str, *parameters: Any, **parts: str) -> Sql:
        """The template with `{memories}`, `{text}` and so on as this collection's tables; `parts` are conditions.

        `{by_place}` and so on are its indexes, `{shared}` is the condition of one.
        """
        return Sql(template.format_map(self._words | parts), parameters)

    def vectors(self, length: int) -> str:
        """The table of the vectors of this length: the type of a vector's column says how long it is."""
        return f'"{self.prefix}_vectors_{length:d}"'

    def vector_index(self, length: int) -> str:
        """The name of that table's index, without quotes."""
        return f"{self.prefix}_vectors_{length:d}_nearest"

    def create(self) -> Iterator[Sql]:
        """Statements that make the tables."""
        text = files("lamina.adapters.turso").joinpath("001_tables.sql").read_text("utf-8")
        for statement in text.split(";\n"):
            if statement.strip():
                yield self.sql(statement)
        counters = (
            "INSERT INTO {counters} (name, value) VALUES ('schema', ?), ('analyzer', ?), ('seq', 0), ('writes', 0)"
        )
        yield self.sql(counters, SCHEMA_VERSION, ANALYZER_VERSION)

    def create_vectors(self, length: int, *, indexed: bool) -> Iterator[Sql]:
        """Statements that make the table of the vectors of this length, where there is none."""
        table = self.vectors(length)
        yield Sql(
            f"CREATE TABLE IF NOT EXISTS {table} (seq INTEGER PRIMARY KEY, direction F32_BLOB({length:d}) NOT NULL)"
        )
        if indexed:
            near = "float1bit" if length >= _LONG else "float32"
            yield Sql(
                f'CREATE INDEX IF NOT EXISTS "{self.vector_index(length)}" ON {table} '
                f"(libsql_vector_idx(direction, 'metric=cosine', 'compress_neighbors={near}'))"
            )
