"""LanceDB: one table, searched without a vector index (exactly), by its full-text index, or by both and its own RRF."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from peers.peer import Mode, Peer, Row, Vector

TABLE = "memories"


class LanceDB(Peer):
    """A bitmap index on the owner, a full-text index on the text; both are made anew after each `fill`."""

    modes: ClassVar[frozenset[Mode]] = frozenset({"vector", "keyword", "hybrid"})
    durability: ClassVar[str] = "a new version of the table, without an fsync"

    @classmethod
    def load(cls) -> None:
        os.environ.setdefault("LANCEDB_LOG", "error")  # or each search warns of what a later version will do
        import lancedb  # noqa: F401
        import pyarrow  # noqa: F401, ICN001

    def open(self, folder: Path, dimensions: int) -> None:
        import lancedb
        import pyarrow  # noqa: ICN001

        names = {name: pyarrow.string() for name in ("id", "owner", "text")}
        self._schema = pyarrow.schema({**names, "vector": pyarrow.list_(pyarrow.float32(), dimensions)})
        self._database = lancedb.connect(str(folder))
        self._table = self._database.create_table(TABLE, schema=self._schema, exist_ok=True)
        self._dimensions = dimensions

    def fill(self, rows: Sequence[Row]) -> None:
        from lancedb.index import FTS, Bitmap

        self._table.add(self._batch(rows))
        self._table.create_index("owner", config=Bitmap())
        self._table.create_index("text", config=FTS())
        self._table.optimize()

    def add(self, row: Row) -> None:
        self._table.add(self._batch([row]))

    def found(self, vector: Vector, text: str, *, owner: str | None, limit: int, mode: Mode) -> list[str]:
        from lancedb.query import MatchQuery

        words = MatchQuery(text, "text")  # a plain text would be read as a query, with quoted phrases
        if mode == "keyword":
            search = self._table.search(words, query_type="fts")
        elif mode == "hybrid":
            search = self._table.search(query_type="hybrid").vector(vector).text(words).distance_type("cosine")
        else:
            search = self._table.search(vector, vector_column_name="vector").distance_type("cosine")
        if owner is not None:
            search = search.where(f"owner = {_quoted(owner)}", prefilter=True)
        return [row["id"] for row in search.limit(limit).select(["id", "text"]).to_list()]

    def close(self) -> None:
        del self._table, self._database

    def _batch(self, rows: Sequence[Row]) -> Any:
        import pyarrow  # noqa: ICN001

        flat = pyarrow.array(np.concatenate([row.vector for row in rows]))
        vectors = pyarrow.FixedSizeListArray.from_arrays(flat, self._dimensions)
        texts = [pyarrow.array([getattr(row, name) for row in rows]) for name in ("id", "owner", "text")]
        return pyarrow.table([*texts, vectors], schema=self._schema)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
