"""LangGraph's stores for long-term memory: in memory, and in SQLite with sqlite-vec. Both search by vector only.

The owner is part of the namespace. `SqliteStore` loads an extension, which the `sqlite3` of some Pythons cannot; it is
given a connection of pysqlite3, which can. Its documentation names the option `fields`, its code reads `text_fields`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from peers.peer import GivenVectors, Mode, Peer, Row, Vector

BATCH = 1_000
ROOT = "memories"


class _LangGraph(Peer):
    def __init__(self) -> None:
        self._vectors = GivenVectors()
        self._store: Any = None

    def fill(self, rows: Sequence[Row]) -> None:
        from langgraph.store.base import PutOp

        for batch in _batches(rows):
            self._vectors.know([(row.text, row.vector) for row in batch])
            self._store.batch([PutOp(_namespace(row.owner), row.id, {"text": row.text}) for row in batch])

    def add(self, row: Row) -> None:
        self._vectors.know([(row.text, row.vector)])
        self._store.put(_namespace(row.owner), row.id, {"text": row.text})

    def found(self, vector: Vector, text: str, *, owner: str | None, limit: int, mode: Mode) -> list[str]:  # noqa: ARG002
        self._vectors.know([(text, vector)])
        namespace = (ROOT,) if owner is None else _namespace(owner)
        return [item.key for item in self._store.search(namespace, query=text, limit=limit)]


class LangGraphMemory(_LangGraph):
    """`InMemoryStore`."""

    persistent: ClassVar[bool] = False
    durability: ClassVar[str] = "nothing"

    @classmethod
    def load(cls) -> None:
        import langgraph.store.memory  # noqa: F401

    def open(self, folder: Path, dimensions: int) -> None:  # noqa: ARG002 - it keeps nothing
        from langgraph.store.memory import InMemoryStore

        self._store = InMemoryStore(index={"dims": dimensions, "embed": self._vectors.many, "fields": ["text"]})

    def close(self) -> None:
        self._store = None


class LangGraphSqlite(_LangGraph):
    """`SqliteStore`."""

    durability: ClassVar[str] = "an SQLite commit, journal DELETE, synchronous FULL"

    @classmethod
    def load(cls) -> None:
        import langgraph.store.sqlite  # noqa: F401
        import pysqlite3  # noqa: F401

    def open(self, folder: Path, dimensions: int) -> None:
        import pysqlite3
        from langgraph.store.sqlite import SqliteStore

        self._connection = pysqlite3.connect(str(folder / "store.db"), check_same_thread=False, isolation_level=None)
        index: Any = {"dims": dimensions, "embed": self._vectors.many, "text_fields": ["text"]}
        self._store = SqliteStore(self._connection, index=index)
        self._store.setup()

    def close(self) -> None:
        self._connection.close()


def _namespace(owner: str) -> tuple[str, str]:
    """A label must not have a full stop in it."""
    return ROOT, quote(owner, safe="").replace(".", "%2E") or "%"


def _batches(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """In each batch every text once: `InMemoryStore` refuses a batch that repeats one."""
    batch: list[Row] = []
    texts: set[str] = set()
    for row in rows:
        if len(batch) == BATCH or row.text in texts:
            yield batch
            batch, texts = [], set()
        batch.append(row)
        texts.add(row.text)
    if batch:
        yield batch
