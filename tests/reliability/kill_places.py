"""Where the programs that are killed write: one SQLite file, or one database of a PostgreSQL. Read past Lamina."""

from __future__ import annotations

import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from lamina import ModelRouter
from lamina.testing import EchoModel, FrozenClock, HashingEmbedder

COLLECTIONS = ("lamina_memories", "lamina_chunks", "lamina_packs")
WINDOW = 6


def options(clock: FrozenClock) -> dict[str, Any]:
    """What a kernel is made with, beside the settings of the place."""
    return {"clock": clock, "model_router": ModelRouter(EchoModel(), embed=HashingEmbedder(32))}


def place_of(described: Mapping[str, str]) -> Place:
    """The place of a job: a folder, and the URL of a database or ''."""
    folder = Path(described["folder"])
    return PostgresPlace(folder, described["url"]) if described["url"] else SqlitePlace(folder)


class Place(ABC):
    """Both have a folder, where files of version 1 may lie."""

    url = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def described(self) -> dict[str, str]:
        return {"folder": str(self.folder), "url": self.url}

    def settings(self) -> dict[str, Any]:
        return {"data_dir": str(self.folder), "conversation": {"window": WINDOW}}

    @abstractmethod
    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """Run one statement on a connection of its own."""

    @abstractmethod
    def unsound(self) -> Iterator[str]:
        """What the database's own checks find."""

    @abstractmethod
    def counts(self, collection: str) -> tuple[int, int, int]:
        """Rows of the collection, entries of its text index, and vectors."""

    @abstractmethod
    def ids_of_pack_memories(self) -> list[str]:
        """Of all that there are, archived ones too."""

    def come_to_rest(self) -> None:  # noqa: B027 - a file is at rest
        """Wait until what a dead program sent has been done or dropped."""

    def age(self) -> None:  # noqa: B027 - PostgreSQL has had one layout
        """Make an older layout of what is there, as earlier versions wrote it, if there is an older one."""

    def write_earlier(self, name: str, rows: int) -> None:
        """A file of version 1 with so many memories."""
        unfinished = self.folder / f"{name}.unfinished"
        with closing(sqlite3.connect(unfinished)) as connection:
            connection.execute("CREATE TABLE agent_memories (id, content, layer, user_id, created_at)")
            given = [(f"{name}x{n}", f"{name}x{n}w1w lamp", "longterm", "mira", 1735787045 + n) for n in range(rows)]
            connection.executemany("INSERT INTO agent_memories VALUES (?, ?, ?, ?, ?)", given)
            connection.commit()
        unfinished.replace(self.folder / f"{name}.v1")

    def earlier_files(self) -> list[tuple[Path, dict[str, str]]]:
        """Each file of version 1 with the texts in it."""
        found = []
        for file in sorted(self.folder.glob("*.v1")):
            with closing(sqlite3.connect(file)) as connection:
                found.append((file, dict(connection.execute("SELECT id, content FROM agent_memories"))))
        return found


class SqlitePlace(Place):
    @property
    def file(self) -> Path:
        return self.folder / "lamina.db"

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.file, timeout=30)) as connection:
            rows = connection.execute(statement).fetchall()
            connection.commit()
            return rows

    def tables(self) -> set[str]:
        return {row[0] for row in self.run("SELECT name FROM sqlite_master")}

    def unsound(self) -> Iterator[str]:
        yield from (row[0] for row in self.run("PRAGMA integrity_check") if row[0] != "ok")
        for table in {f"{collection}_text" for collection in COLLECTIONS} & self.tables():
            try:
                self.run(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")  # noqa: S608 - our names
            except sqlite3.DatabaseError as error:
                yield f"{table}: {error}"

    def counts(self, collection: str) -> tuple[int, int, int]:
        if collection not in self.tables():
            return 0, 0, 0
        parts = (collection, f"{collection}_text", f"{collection}_vectors")
        rows, texts, vectors = (self.run(f"SELECT count(*) FROM {part}")[0][0] for part in parts)  # noqa: S608
        return rows, texts, vectors

    def ids_of_pack_memories(self) -> list[str]:
        return [id for (id,) in self.run("SELECT id FROM lamina_pack_memories")]

    def age(self) -> None:
        """The memories as of version 1 of their collection, and indexed by an earlier analyzer of words, at once."""
        if "lamina_memories_counters" not in self.tables():
            return
        columns = [row[0] for row in self.run("SELECT name FROM pragma_table_info('lamina_memories_partitions')")]
        forget_states = "ALTER TABLE lamina_memories_partitions DROP COLUMN state;" if "state" in columns else ""
        with closing(sqlite3.connect(self.file, timeout=30)) as connection:
            connection.executescript(
                f"""
                BEGIN IMMEDIATE;
                {forget_states}
                DROP INDEX IF EXISTS lamina_memories_by_superseding;
                DROP INDEX IF EXISTS lamina_memories_by_validity;
                DROP INDEX IF EXISTS lamina_memories_by_tags;
                UPDATE schema_version SET version = 1 WHERE component = 'lamina_memories';
                UPDATE lamina_memories_counters SET value = 0 WHERE name = 'analyzer';
                COMMIT;
                """  # noqa: S608 - our own words
            )


class PostgresPlace(Place):
    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self.url = url

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "memory": {"url": self.url}}

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def come_to_rest(self) -> None:
        others = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        until = time.monotonic() + 30
        while self.run(others)[0][0]:
            if time.monotonic() > until:
                raise TimeoutError("a connection of a dead program is still there")
            time.sleep(0.005)

    def unsound(self) -> Iterator[str]:
        """Every page is read, which checks its checksum, and each index must give as many rows as its table."""
        tables = self.run("SELECT tablename FROM pg_tables WHERE schemaname = 'lamina'")
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            for (table,) in tables:
                counted = []
                for by_index in ("off", "on"):
                    connection.execute(f"SET enable_indexscan = {by_index}".encode())
                    connection.execute(f"SET enable_indexonlyscan = {by_index}".encode())
                    connection.execute(f"SET enable_seqscan = {'off' if by_index == 'on' else 'on'}".encode())
                    connection.execute("SET enable_bitmapscan = off")
                    row = connection.execute(f"SELECT count(*) FROM lamina.{table} AS t".encode()).fetchone()  # noqa: S608
                    counted.append(row)
                if counted[0] != counted[1]:
                    yield f"{table} has {counted[0]} rows, and {counted[1]} by its index"

    def counts(self, collection: str) -> tuple[int, int, int]:
        if not self.run(f"SELECT to_regclass('lamina.{collection}') IS NOT NULL")[0][0]:
            return 0, 0, 0
        parts = (collection, f"{collection}_words", f"{collection}_vectors")
        rows, texts, vectors = (self.run(f"SELECT count(*) FROM lamina.{part}")[0][0] for part in parts)  # noqa: S608
        return rows, texts, vectors

    def ids_of_pack_memories(self) -> list[str]:
        return [id for (id,) in self.run("SELECT id FROM lamina.pack_memories")]
