"""What the file holds, version by version: numbered steps, forward only.

`docs/file-format.md` tells why each table is as it is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Final, TypeAlias

from lamina.adapters._shared.where_sql import json_list
from lamina.adapters.sqlite.connection import Location, connect, create_private
from lamina.adapters.sqlite.failures import ADAPTER, translated
from lamina.adapters.sqlite.tables import Collection
from lamina.domain.lexical import ANALYZER_VERSION, index_terms
from lamina.errors import ConfigError, StoreDamaged

__all__ = ["MIGRATIONS", "Migration", "check_version", "migrate", "refuse_newer"]

Migration: TypeAlias = Callable[[Collection], None]

_SECURE_FTS: Final = (3, 42, 0)
_SECURE_FTS_FORMAT: Final = 5
_UPGRADE: Final = "Use the newest Lamina with this file; it was not changed."

_VERSIONS: Final = """
CREATE TABLE IF NOT EXISTS schema_version (
    component TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) STRICT, WITHOUT ROWID
"""


def _create_tables(collection: Collection) -> None:
    names = json_list(sorted(collection.tables.taken))
    query = "SELECT name FROM sqlite_master WHERE name COLLATE NOCASE IN (SELECT value FROM json_each(?))"
    taken = collection.execute(query, (names,)).fetchone()
    if taken:
        raise ConfigError("table", f"the file has {taken[0]} for something else", "Choose another name.")
    for statement in _statements("001_tables.sql"):
        collection.execute(statement)
    _create_text_index(collection)


MIGRATIONS: Final[tuple[Migration, ...]] = (_create_tables,)
"""Step n makes version n out of version n - 1. A step that was released is never changed."""


def migrate(location: Location, collection: Collection, migrations: Sequence[Migration], *, backup: bool) -> None:
    """Bring the collection to the newest version, each step in a transaction that decides anew what is to do.

    Before the first step that changes an existing collection, the file is copied beside itself,
    unless `backup` is off.

    Raises:
        StoreDamaged: the collection was written by a newer Lamina; nothing was changed.
    """
    connection = collection.connection
    is_saved = not backup
    while True:
        refuse_newer(collection, len(migrations))
        version = _version(collection)
        if _is_current(collection, version, len(migrations)):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _version(collection) != version or _is_current(collection, version, len(migrations)):
                continue  # another process was faster
            if version and not is_saved:
                _save_copy(location, collection, version)
            is_saved = True  # or it is being made here, and there is nothing to save
            if version < len(migrations):
                _take_step(collection, version, migrations[version])
            else:
                _rebuild_text_index(collection)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def refuse_newer(collection: Collection, target: int) -> None:
    """Raise if this code is too old for the collection, or its SQLite for the text index."""
    version = _version(collection)
    if version > target:
        problem = f"{collection.tables.prefix} has the version {version}, and this Lamina knows {target}"
        raise StoreDamaged(ADAPTER, problem, _UPGRADE)
    if version and sqlite3.sqlite_version_info < _SECURE_FTS:
        (text_format,) = collection.execute("SELECT v FROM {text_config} WHERE k = 'version'").fetchone()
        if text_format >= _SECURE_FTS_FORMAT:
            remedy = "Use a Python with SQLite 3.42 or newer."
            raise StoreDamaged(ADAPTER, "the text index was written by a newer SQLite", remedy)


def check_version(collection: Collection, target: int) -> None:
    """Raise if another process has migrated the collection since it was opened here: old code must not write."""
    version = _version(collection)
    if version != target:
        problem = f"{collection.tables.prefix} has the version {version} now, and this Lamina knows {target}"
        raise StoreDamaged(ADAPTER, problem, _UPGRADE)


def _version(collection: Collection) -> int:
    """The collection's version; 0 if it is not there."""
    if not collection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_version'").fetchone():
        return 0
    query = "SELECT version FROM schema_version WHERE component = ?"
    row = collection.execute(query, (collection.tables.prefix,)).fetchone()
    return row[0] if row else 0


def _is_current(collection: Collection, version: int, target: int) -> bool:
    if version != target:
        return False
    (analyzer,) = collection.execute("SELECT value FROM {counters} WHERE name = 'analyzer'").fetchone()
    return bool(analyzer == ANALYZER_VERSION)


def _take_step(collection: Collection, version: int, step: Migration) -> None:
    collection.execute(_VERSIONS)
    step(collection)
    row = (collection.tables.prefix, version + 1)
    collection.execute("INSERT OR REPLACE INTO schema_version (component, version) VALUES (?, ?)", row)


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


def _rebuild_text_index(collection: Collection) -> None:
    """Index all contents anew, because this version of the analyzer gives other terms."""
    collection.execute("DROP TABLE {text}")
    _create_text_index(collection)
    contents = collection.execute("SELECT key, content FROM {memories} ORDER BY key")
    rows = ((key, " ".join(index_terms(content))) for key, content in contents)
    collection.execute_many("INSERT INTO {text} (rowid, terms) VALUES (?, ?)", rows)


def _save_copy(location: Location, collection: Collection, version: int) -> None:
    """Copy the file as it is, whole or not at all, while the caller's lock keeps others from writing."""
    if location.path is None:
        return
    copy = Path(f"{location.path}.{collection.tables.prefix}-v{version}.backup")
    unfinished = Path(f"{copy}.part")
    unfinished.unlink(missing_ok=True)
    create_private(unfinished)
    with (
        translated(str(copy)),
        closing(connect(location, writes=False)) as source,
        closing(sqlite3.connect(unfinished)) as target,
    ):
        source.backup(target)
    unfinished.replace(copy)
