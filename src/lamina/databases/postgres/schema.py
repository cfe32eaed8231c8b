"""A schema of the database: its checked name, and statements on its tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, LiteralString

import psycopg
from psycopg.sql import SQL, Composable, Identifier

from lamina.databases.postgres.sessions import Connection, together
from lamina.errors import ConfigError

__all__ = ["Schema", "Session"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


class Schema:
    """The only texts that are ever formatted into SQL: names, checked and quoted, and fragments of the code's own.

    Args:
        name: The schema's.
        fragments: What stands for `{word}` in templates; each may use `{schema}`, the tables and those before it.
        tables: Names of tables, and what stands for them in templates.
        names: Names of indexes and the like, likewise, without the schema before them.

    Raises:
        ConfigError: the name cannot be a schema's.
    """

    def __init__(
        self,
        name: str,
        fragments: Mapping[str, LiteralString] | None = None,
        *,
        tables: Mapping[str, str] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        if not _NAME.fullmatch(name) or name.lower().startswith("pg_"):
            remedy = "Use ASCII letters, digits and underscores, at most 63, beginning with no digit and not with pg_."
            raise ConfigError("schema", f"{name!r:.100} cannot name a schema", remedy)
        self.name: Final = name
        self._words: dict[str, Composable] = {"schema": Identifier(name)}
        self._words |= {word: Identifier(name, table) for word, table in (tables or {}).items()}
        self._words |= {word: Identifier(each) for word, each in (names or {}).items()}
        for word, fragment in (fragments or {}).items():
            self._words[word] = SQL(fragment).format(**self._words)
        self._made: dict[str, bytes] = {}

    def sql(self, template: LiteralString, **parts: LiteralString | Composable) -> bytes:
        """The template with `{schema}` and the other words in it, `parts` among them.

        A part that is a text is a template itself. Without parts it is made once for each template.
        """
        if parts:
            return self.part(template, **parts).as_bytes()
        made = self._made.get(template)
        if made is None:
            made = self._made[template] = SQL(template).format(**self._words).as_bytes()
        return made

    def part(self, template: LiteralString, **parts: LiteralString | Composable) -> Composable:
        """A part of a statement, made as `sql` makes a statement."""
        return SQL(template).format(**self._words, **{word: self._composed(part) for word, part in parts.items()})

    def _composed(self, part: LiteralString | Composable) -> Composable:
        return part if isinstance(part, Composable) else SQL(part).format(**self._words)


@dataclass(frozen=True, slots=True)
class Session:
    """A schema as one connection sees it."""

    connection: Connection
    schema: Schema

    def execute(
        self,
        template: LiteralString,
        parameters: Sequence[Any] | Mapping[str, Any] | None = None,
        /,
        **parts: LiteralString | Composable,
    ) -> psycopg.Cursor[tuple[Any, ...]]:
        """Run one statement; the template is as in `Schema.sql`, with `%s` for each parameter."""
        return self.connection.execute(self.schema.sql(template, **parts), parameters)

    def together(self) -> AbstractContextManager[object]:
        """As `sessions.together`, for statements that need nothing of each other's results."""
        return together(self.connection)

    def execute_many(
        self, template: LiteralString, rows: Sequence[Sequence[Any]], **parts: LiteralString | Composable
    ) -> None:
        """Run one statement for each row of parameters, in few round trips."""
        if len(rows) < 2:  # noqa: PLR2004 - none, or one, which needs no more than one trip
            for row in rows:
                self.execute(template, row, **parts)
            return
        with self.connection.cursor() as cursor:
            cursor.executemany(self.schema.sql(template, **parts), rows)
