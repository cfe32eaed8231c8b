"""Vectors kept on disk, so that an evaluation that is run again embeds nothing twice."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lamina.domain.memory import Vector
from lamina.errors import InvalidInput
from lamina.ports.embedder import Embedder, Fingerprint
from lamina.providers.resilience import BorrowedEmbedder

__all__ = ["DiskCachedEmbedder", "VectorCache"]


class VectorCache:
    """Vectors by the model that made them and the SHA-256 of their text, in an SQLite file; it holds no text.

    Raises:
        InvalidInput: the file cannot be used.
    """

    def __init__(self, path: str | Path = ":memory:") -> None:
        self._path = path
        with self._translated():
            self._connection = sqlite3.connect(path)
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS vectors (model TEXT, kind TEXT, digest BLOB, vector BLOB NOT NULL,"
                " PRIMARY KEY (model, kind, digest))"
            )

    def get(self, model: str, kind: str, text: str) -> array[float] | None:
        """The vector, or None."""
        with self._translated():
            row = self._connection.execute(
                "SELECT vector FROM vectors WHERE (model, kind, digest) = (?, ?, ?)", (model, kind, _digest(text))
            ).fetchone()
        return None if row is None else array("f", row[0])

    def put(self, model: str, kind: str, vectors: dict[str, Vector]) -> None:
        """Keep the vectors of these texts."""
        rows = [(model, kind, _digest(text), array("f", vector).tobytes()) for text, vector in vectors.items()]
        with self._translated(), self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._connection.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            problem = f"{self._path} cannot be used: {error}"
            raise InvalidInput("cache", problem, "Give the path of a file that is not there yet.") from error


class DiskCachedEmbedder(BorrowedEmbedder):
    """An embedder that makes no vector that the cache has; it closes neither the cache nor what it wraps."""

    def __init__(self, embedder: Embedder, cache: VectorCache) -> None:
        super().__init__(embedder)
        self._cache = cache
        self._fingerprint: str | None = None
        self._query_seconds = 0.0

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One vector per text, in order; each text that the cache lacks is embedded once."""
        model = await self._model()
        found: dict[str, Vector | None] = {text: self._cache.get(model, "document", text) for text in texts}
        missing = [text for text, vector in found.items() if vector is None]
        if missing:
            made = dict(zip(missing, await self._embedder.embed_documents(missing), strict=True))
            self._cache.put(model, "document", made)
            found |= made
        return [vector for text in texts if (vector := found[text]) is not None]

    async def embed_query(self, text: str) -> Vector:
        """The vector of a text to search with."""
        model = await self._model()
        cached = self._cache.get(model, "query", text)
        if cached is not None:
            return cached
        began = time.perf_counter()
        vector = await self._embedder.embed_query(text)
        self._query_seconds += time.perf_counter() - began
        self._cache.put(model, "query", {text: vector})
        return vector

    def take_query_seconds(self) -> float | None:
        """How long it took to embed queries since this was last asked; None if none had to be embedded."""
        taken, self._query_seconds = self._query_seconds, 0.0
        return taken or None

    async def _model(self) -> str:
        """The fingerprint; how many dimensions the vectors have, only one of them can tell."""
        if self._fingerprint is None:
            dimensions = len(await self._embedder.embed_query("dimensions"))
            self._fingerprint = str(Fingerprint(self.provider, self.model, dimensions))
        return self._fingerprint


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
