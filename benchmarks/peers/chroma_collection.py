"""Chroma's persistent client: one collection, cosine, the owner as metadata. It ranks by vector only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from peers.peer import Mode, Peer, Row, Vector


class Chroma(Peer):
    """An HNSW index beside SQLite."""

    durability: ClassVar[str] = "an SQLite commit of its log; the index follows"

    @classmethod
    def load(cls) -> None:
        import chromadb  # noqa: F401

    def open(self, folder: Path, dimensions: int) -> None:  # noqa: ARG002 - the first vector tells it
        import chromadb
        from chromadb.config import Settings

        self._client = chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))
        self._collection = self._client.get_or_create_collection(
            "memories", embedding_function=None, metadata={"hnsw:space": "cosine"}
        )

    def fill(self, rows: Sequence[Row]) -> None:
        most = self._client.get_max_batch_size()
        for start in range(0, len(rows), most):
            batch = rows[start : start + most]
            self._collection.add(
                ids=[row.id for row in batch],
                embeddings=[row.vector for row in batch],
                documents=[row.text for row in batch],
                metadatas=[{"owner": row.owner} for row in batch],
            )

    def add(self, row: Row) -> None:
        self.fill([row])

    def found(self, vector: Vector, text: str, *, owner: str | None, limit: int, mode: Mode) -> list[str]:  # noqa: ARG002
        where = None if owner is None else {"owner": owner}
        results = self._collection.query(query_embeddings=[vector], n_results=limit, where=where, include=["documents"])
        return results["ids"][0]

    def close(self) -> None:
        self._client.close()
