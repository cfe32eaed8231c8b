"""Libraries that keep vectors under numbers and nothing else: faiss, usearch and hnswlib.

Which row stands behind a number is kept beside the index, as their users have to. Index and rows are written to the
folder by `close`, so an `add` before that is not on the disk.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from peers.peer import Mode, Peer, Row, Vector


class _VectorIndex(Peer):
    durability: ClassVar[str] = "nothing before it is closed"

    def open(self, folder: Path, dimensions: int) -> None:
        self._rows, self._index_path = folder / "rows.json", folder / "vectors.index"
        self._ids: list[str] = []
        self._texts: list[str] = []
        self._owners: list[str] = []
        if self._rows.exists():
            self._ids, self._texts, self._owners = json.loads(self._rows.read_text(encoding="utf-8"))
        self._places: dict[str, list[int]] = defaultdict(list)
        for place, owner in enumerate(self._owners):
            self._places[owner].append(place)
        self._index = self._read() if self._index_path.exists() else self._new(dimensions)

    def fill(self, rows: Sequence[Row]) -> None:
        first = len(self._ids)
        for place, row in enumerate(rows, start=first):
            self._ids.append(row.id)
            self._texts.append(row.text)
            self._owners.append(row.owner)
            self._places[row.owner].append(place)
        self._insert(np.stack([row.vector for row in rows]), first)

    def add(self, row: Row) -> None:
        self.fill([row])

    def found(self, vector: Vector, text: str, *, owner: str | None, limit: int, mode: Mode) -> list[str]:  # noqa: ARG002
        places = None if owner is None else self._places.get(owner, [])
        limit = min(limit, len(self._ids) if places is None else len(places))
        return [self._ids[int(place)] for place in self._nearest(vector, places, limit)] if limit else []

    def close(self) -> None:
        self._rows.write_text(json.dumps([self._ids, self._texts, self._owners]), encoding="utf-8")
        self._write()

    @abstractmethod
    def _new(self, dimensions: int) -> Any: ...

    @abstractmethod
    def _read(self) -> Any: ...

    @abstractmethod
    def _write(self) -> None: ...

    @abstractmethod
    def _insert(self, vectors: Vector, first: int) -> None: ...

    @abstractmethod
    def _nearest(self, vector: Vector, places: list[int] | None, limit: int) -> Sequence[int]: ...


class FaissFlat(_VectorIndex):
    """`IndexFlatIP`: exact; of one owner by a selector of its numbers."""

    @classmethod
    def load(cls) -> None:
        import faiss  # noqa: F401

    def _new(self, dimensions: int) -> Any:
        import faiss

        return faiss.IndexFlatIP(dimensions)

    def _read(self) -> Any:
        import faiss

        return faiss.read_index(str(self._index_path))

    def _write(self) -> None:
        import faiss

        faiss.write_index(self._index, str(self._index_path))

    def _insert(self, vectors: Vector, first: int) -> None:  # noqa: ARG002 - numbers count up by themselves
        self._index.add(vectors)

    def _nearest(self, vector: Vector, places: list[int] | None, limit: int) -> Sequence[int]:
        import faiss

        options = None
        if places is not None:
            options = faiss.SearchParameters(sel=faiss.IDSelectorBatch(np.array(places, dtype=np.int64)))
        found: Sequence[int] = self._index.search(vector[None], limit, params=options)[1][0]
        return found


class Usearch(_VectorIndex):
    """Its HNSW graph at the defaults. From Python it has no filter."""

    scoped: ClassVar[bool] = False

    @classmethod
    def load(cls) -> None:
        import usearch.index  # noqa: F401

    def _new(self, dimensions: int) -> Any:
        from usearch.index import Index

        return Index(ndim=dimensions, metric="ip")

    def _read(self) -> Any:
        from usearch.index import Index

        return Index.restore(str(self._index_path))

    def _write(self) -> None:
        self._index.save(str(self._index_path))

    def _insert(self, vectors: Vector, first: int) -> None:
        self._index.add(np.arange(first, first + len(vectors)), vectors)

    def _nearest(self, vector: Vector, places: list[int] | None, limit: int) -> Sequence[int]:  # noqa: ARG002
        found: Sequence[int] = self._index.search(vector, limit).keys
        return found


class Hnswlib(_VectorIndex):
    """Its HNSW graph: M 16, ef 200 for building, at least 64 for searching; of one owner by its filter function."""

    ef: ClassVar[int] = 64

    @classmethod
    def load(cls) -> None:
        import hnswlib  # noqa: F401

    def _new(self, dimensions: int) -> Any:
        import hnswlib

        index = hnswlib.Index("ip", dimensions)
        index.init_index(max_elements=1, M=16, ef_construction=200)
        return index

    def _read(self) -> Any:
        import hnswlib

        dimensions = int(self._rows.with_suffix(".dimensions").read_text(encoding="ascii"))
        index = hnswlib.Index("ip", dimensions)
        index.load_index(str(self._index_path))
        return index

    def _write(self) -> None:
        self._rows.with_suffix(".dimensions").write_text(str(self._index.dim), encoding="ascii")
        self._index.save_index(str(self._index_path))

    def _insert(self, vectors: Vector, first: int) -> None:
        needed = first + len(vectors)
        if needed > self._index.get_max_elements():  # twice as many as are needed, or each add would copy it
            self._index.resize_index(2 * needed)
        self._index.add_items(vectors, np.arange(first, needed))

    def _nearest(self, vector: Vector, places: list[int] | None, limit: int) -> Sequence[int]:
        self._index.set_ef(max(self.ef, limit))
        allowed = None if places is None else set(places).__contains__
        while limit:
            try:
                found: Sequence[int] = self._index.knn_query(vector, limit, num_threads=1, filter=allowed)[0][0]
            except RuntimeError:  # it says nothing of the fewer that it found
                limit -= 1
            else:
                return found
        return []
