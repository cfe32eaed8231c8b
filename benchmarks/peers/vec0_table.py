"""sqlite-vec: one table of the kind vec0, partitioned by owner, exact cosine; over apsw, which can load extensions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from peers.peer import Mode, Peer, Row, Vector


class SqliteVec(Peer):
    """Vectors only: a search for words would be another table, and the fusion one's own."""

    durability: ClassVar[str] = "an SQLite commit, WAL, synchronous FULL"

    @classmethod
    def load(cls) -> None:
        import apsw  # noqa: F401
        import sqlite_vec  # noqa: F401

    def open(self, folder: Path, dimensions: int) -> None:
        import apsw
        import sqlite_vec

        self._connection = apsw.Connection(str(folder / "vectors.db"))
        self._connection.enable_load_extension(True)  # noqa: FBT003
        self._connection.load_extension(sqlite_vec.loadable_path())
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS memories USING vec0(owner TEXT PARTITION KEY,"
            f" vector FLOAT[{int(dimensions)}] DISTANCE_METRIC=cosine, +id TEXT, +body TEXT)"
        )

    def fill(self, rows: Sequence[Row]) -> None:
        with self._connection:
            self._connection.executemany(
                "INSERT INTO memories (owner, vector, id, body) VALUES (?, ?, ?, ?)",
                ((row.owner, row.vector.tobytes(), row.id, row.text) for row in rows),
            )

    def add(self, row: Row) -> None:
        self.fill([row])

    def found(self, vector: Vector, text: str, *, owner: str | None, limit: int, mode: Mode) -> list[str]:  # noqa: ARG002
        query = "SELECT id, body FROM memories WHERE vector MATCH ? AND k = ?"
        values: list[bytes | int | str] = [vector.tobytes(), limit]
        if owner is not None:
            query += " AND owner = ?"
            values.append(owner)
        return [id for id, _body in self._connection.execute(query + " ORDER BY distance", values)]

    def close(self) -> None:
        self._connection.close()
