"""A schema of the database: its checked name, and statements on its tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, LiteralString

import psycopg
from psycopg import sql

from lamina.databases.postgres.sessions import Connection
from lamina.errors import ConfigError

__all__ = ["Schema", "Session"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


class Schema:
    """The only texts that are ever formatted into SQL: the schema's name, quoted, and fragments of the code's own.

    Args:
        name: The schema's.
        fragments: What stands for `{word}` in templates; each may use `{schema}` and those before it.

    Raises:
        ConfigError: the name cannot be a schema's.
    """

    def __init__(self, name: str, fragments: Mapping[str, LiteralString] | None = None) -> None:
        if not _NAME.fullmatch(name) or name.lower().startswith("pg_"):
            remedy = "Use ASCII letters, digits and underscores, at most 63, beginning with no digit and not with pg_."
            raise ConfigError("schema", f"{name!r:.100} cannot name a schema", remedy)
        self.name: Final = name
        self._words: dict[str, sql.Composable] = {"schema": sql.Identifier(name)}
        for word, fragment in (fragments or {}).items():
            self._words[word] = sql.SQL(fragment).format(**self._words)
        self._made: dict[str, bytes] = {}

    def sql(self, template: LiteralString) -> bytes:
        """The template with `{schema}` and the fragments in it; made once for each template."""
        made = self._made.get(template)
        if made is None:
            made = self._made[template] = sql.SQL(template).format(**self._words).as_bytes()
        return made


@dataclass(frozen=True, slots=True)
class Session:
    """A schema as one connection sees it."""

    connection: Connection
    schema: Schema

    def execute(
        self, template: LiteralString, parameters: Sequence[Any] | Mapping[str, Any] | None = None
    ) -> psycopg.Cursor[tuple[Any, ...]]:
        """Run one statement; the template is as in `Schema.sql`, with `%s` for each parameter."""
        return self.connection.execute(self.schema.sql(template), parameters)

    def execute_many(self, template: LiteralString, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each row of parameters, in few round trips."""
        with self.connection.cursor() as cursor:
            cursor.executemany(self.schema.sql(template), rows)
