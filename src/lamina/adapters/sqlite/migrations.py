"""What a collection's tables are, version by version.

`docs/file-format.md` tells why each table is as it is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files
from typing import Final, TypeAlias

from lamina.adapters._shared.where_sql import json_list
from lamina.adapters.sqlite.tables import Collection, Tables
from lamina.databases.sqlite.components import Component, Step
from lamina.databases.sqlite.failures import BACKEND
from lamina.domain.lexical import ANALYZER_VERSION, index_terms
from lamina.errors import ConfigError, StoreDamaged

__all__ = ["MIGRATIONS", "CollectionTables", "Migration", "index_anew"]

Migration: TypeAlias = Callable[[Collection], None]

_SECURE_FTS: Final = (3, 42, 0)
_SECURE_FTS_FORMAT: Final = 5


def _create_tables(collection: Collection) -> None:
    names = json_list(sorted(collection.tables.taken))
    query = "SELECT name FROM sqlite_master WHERE name COLLATE NOCASE IN (SELECT value FROM json_each(?))"
    taken = collection.execute(query, (names,)).fetchone()
    if taken:
        raise ConfigError("table", f"the file has {taken[0]} for something else", "Choose another name.")
    for statement in _statements("001_tables.sql"):
        collection.execute(statement)
    _create_text_index(collection)


def _index_validity(collection: Collection) -> None:
    for statement in _statements("002_validity.sql"):
        collection.execute(statement)


def _tell_states(collection: Collection) -> None:
    for statement in _statements("003_states.sql"):
        collection.execute(statement)


def _index_tags(collection: Collection) -> None:
    for statement in _statements("004_tags.sql"):
        collection.execute(statement)


MIGRATIONS: Final[tuple[Migration, ...]] = (_create_tables, _index_validity, _tell_states, _index_tags)
"""Step n makes version n out of version n - 1. A step that was released is never changed."""


class CollectionTables(Component):
    """The tables of one collection, whose text index follows the analyzer of this code."""

    def __init__(self, tables: Tables, migrations: Sequence[Migration]) -> None:
        super().__init__(tables.prefix, [_step(tables, migration) for migration in migrations])
        self._tables = tables

    def _check_present(self, connection: sqlite3.Connection) -> None:
        if sqlite3.sqlite_version_info < _SECURE_FTS:
            query = "SELECT v FROM {text_config} WHERE k = 'version'"
            (text_format,) = Collection(connection, self._tables).execute(query).fetchone()
            if text_format >= _SECURE_FTS_FORMAT:
                remedy = "Use a Python with SQLite 3.42 or newer."
                raise StoreDamaged(BACKEND, "the text index was written by a newer SQLite", remedy)

    def _is_fresh(self, connection: sqlite3.Connection) -> bool:
        query = "SELECT value FROM {counters} WHERE name = 'analyzer'"
        (analyzer,) = Collection(connection, self._tables).execute(query).fetchone()
        return bool(analyzer == ANALYZER_VERSION)

    def _refresh(self, connection: sqlite3.Connection) -> None:
        """Index all contents anew, because this version of the analyzer gives other terms."""
        index_anew(Collection(connection, self._tables))


def index_anew(collection: Collection) -> None:
    """Make the text index of the contents as they are; text that is no UTF-8 is indexed as far as it is."""
    collection.execute("DROP TABLE {text}")
    _create_text_index(collection)
    connection = collection.connection
    former, connection.text_factory = connection.text_factory, lambda data: data.decode("utf-8", "replace")
    try:
        contents = collection.execute("SELECT key, content FROM {memories} ORDER BY key")
        rows = ((key, " ".join(index_terms(content))) for key, content in contents)
        collection.execute_many("INSERT INTO {text} (rowid, terms) VALUES (?, ?)", rows)
    finally:
        connection.text_factory = former


def _step(tables: Tables, migration: Migration) -> Step:
    return partial(_migrate, tables, migration)


def _migrate(tables: Tables, migration: Migration, connection: sqlite3.Connection) -> None:
    migration(Collection(connection, tables))


def _statements(name: str) -> list[str]:
    """The statements of a packaged file."""
    text = files("lamina.adapters.sqlite").joinpath(name).read_text("utf-8")
    return [statement for statement in text.split(";\n") if statement.strip()]


def _create_text_index(collection: Collection) -> None:
    # The terms are made by `lamina.domain.lexical`; `ascii` splits them where they are joined, at the spaces.
    collection.execute("CREATE VIRTUAL TABLE {text} USING fts5 (terms, tokenize = 'ascii')")
    if sqlite3.sqlite_version_info >= _SECURE_FTS:
        collection.execute("INSERT INTO {text} ({text}, rank) VALUES ('secure-delete', 1)")
    collection.execute("UPDATE {counters} SET value = ? WHERE name = 'analyzer'", (ANALYZER_VERSION,))
