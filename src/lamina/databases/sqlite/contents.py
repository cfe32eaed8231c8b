"""What is in a database, told shortly enough to compare two: rows and a digest of every table."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lamina.databases.sqlite.failures import damaged

__all__ = ["TableContents", "check_sound", "contents_of", "standing_in_rows", "text_indexes"]


@dataclass(frozen=True, slots=True)
class TableContents:
    """How many rows a table has, and the SHA-256 of them all, in hexadecimal digits."""

    rows: int
    digest: str


def contents_of(connection: sqlite3.Connection) -> dict[str, TableContents]:
    """Each table's contents, those that the text indexes are kept in included. Reads everything, one row at a time."""
    query = (
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
        "AND sql NOT LIKE 'CREATE VIRTUAL TABLE%' ORDER BY name"
    )
    names = [name for (name,) in connection.execute(query).fetchall()]
    connection.text_factory = bytes  # text that is no UTF-8 is compared too
    try:
        return {name: _contents(connection, name) for name in names}
    finally:
        connection.text_factory = str


def standing_in_rows(file: Path, texts: Collection[bytes]) -> set[bytes]:
    """Those of the texts that a row of some table holds; what a text index keeps for itself does not count."""
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
        indexes = tuple(f"{name[1:-1]}_" for name in text_indexes(connection))
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL TABLE%'"
        names = [name for (name,) in connection.execute(query).fetchall() if not name.startswith(indexes or ("\0",))]
        connection.text_factory = bytes
        found: set[bytes] = set()
        for name in names:
            for row in connection.execute(f"SELECT * FROM {_quoted(name)}"):  # noqa: S608 - a name of the schema
                for value in row:
                    if isinstance(value, bytes):
                        found |= {text for text in texts if text in value}
    return found


def text_indexes(connection: sqlite3.Connection) -> list[str]:
    """The quoted names of the text indexes."""
    query = "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE % USING fts5%' ORDER BY name"
    return [_quoted(name) for (name,) in connection.execute(query).fetchall()]


def check_sound(connection: sqlite3.Connection, place: str) -> None:
    """Let SQLite look every page, reference and text index over; the connection may write, and changes nothing.

    Raises:
        StoreDamaged: something is wrong.
    """
    (finding,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if finding != "ok":
        raise damaged(f"{place} is damaged: {finding}")
    if connection.execute("PRAGMA foreign_key_check").fetchone():
        raise damaged(f"{place} holds a reference that leads nowhere")
    for index in text_indexes(connection):
        try:
            connection.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)")  # noqa: S608
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
                raise
            raise damaged(f"{place} has a text index that contradicts its own texts: {index}") from error


def _contents(connection: sqlite3.Connection, name: str) -> TableContents:
    rows, hasher = 0, hashlib.sha256()
    for row in connection.execute(f"SELECT * FROM {_quoted(name)}"):  # noqa: S608 - a name of the schema
        rows += 1
        for value in row:
            hasher.update(_told(value))
    return TableContents(rows, hasher.hexdigest())


def _told(value: Any) -> bytes:
    """The value so that no two tell the same."""
    if isinstance(value, bytes):
        return b"b%d:%b" % (len(value), value)
    return f"{value!r};".encode()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
