"""What is stood against: an exact search by numpy, and plain SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from speed.dataset import Dataset, Item, Query

BEST: Final = 10


class ExactSearch:
    """A float32 product over vectors in memory, each owner's together, and the ten best of it in order."""

    def __init__(self, data: Dataset) -> None:
        matrix = data.matrix()
        order = np.argsort(np.arange(data.count) % data.owners, kind="stable")
        self._matrix = matrix[order]
        self._numbers = order
        starts = np.searchsorted(order % data.owners, np.arange(data.owners + 1))
        self._slices = {f"owner{owner}": (starts[owner], starts[owner + 1]) for owner in range(data.owners)}

    async def search(self, query: Query) -> list[int]:
        """The ten of the query's owner: their numbers."""
        begin, end = self._slices[query.owner]
        return self._best(begin, end, query.vector)

    async def search_all(self, query: Query) -> list[int]:
        """The ten of all."""
        return self._best(0, len(self._matrix), query.vector)

    @property
    def size(self) -> int:
        """How many vectors there are."""
        return len(self._matrix)

    def _best(self, begin: int, end: int, vector: Any) -> list[int]:
        scores = self._matrix[begin:end] @ vector
        count = min(BEST, end - begin)
        best = np.argpartition(scores, -count)[-count:]
        return self._numbers[begin + best[np.argsort(-scores[best])]].tolist()


class PlainTable:
    """A table of text and vector, written as plainly as can be: write-ahead log, and a sync for each commit."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        for statement in (
            "pragma journal_mode = wal",
            "pragma synchronous = full",
            "create table if not exists memory (id text primary key, owner text, content text, vector blob)",
        ):
            self._connection.execute(statement)

    async def add(self, item: Item) -> None:
        self._connection.execute("insert into memory values (?, ?, ?, ?)", _row(item))

    def fill(self, items: Sequence[Item]) -> None:
        self._connection.execute("begin")
        self._connection.executemany("insert into memory values (?, ?, ?, ?)", map(_row, items))
        self._connection.execute("commit")

    def close(self) -> None:
        self._connection.close()


def _row(item: Item) -> tuple[str, str, str, bytes]:
    return item.id, item.owner, item.text, item.vector.tobytes()
