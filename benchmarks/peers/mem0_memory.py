"""mem0 with each of the vector stores that it can keep locally, `infer=False`, so that no language model takes part.

Its search ranks by the vector; its share of keywords needs models that have to be downloaded, and without them it
counts for nothing. It refuses a search that names nobody. Its embedder is replaced by one that has the vectors.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

from peers.peer import GivenVectors, Mode, Peer, Row, Vector

BATCH = 5_000
COLLECTION = "memories"
STORED_AT = "2026-01-01T00:00:00+00:00"


class _Mem0(Peer):
    unscoped: ClassVar[bool] = False
    provider: ClassVar[str]
    store: ClassVar[dict[str, Any]] = {}
    batch: ClassVar[int] = BATCH

    @classmethod
    def load(cls) -> None:
        os.environ.setdefault("MEM0_TELEMETRY", "False")
        # Read when it is imported; it would write into the home otherwise.
        os.environ.setdefault("MEM0_DIR", str(Path(tempfile.gettempdir()) / "lamina-peers-mem0"))
        import mem0  # noqa: F401

    def open(self, folder: Path, dimensions: int) -> None:
        from mem0 import Memory

        remote = {"provider": "openai", "config": {"api_key": "none"}}  # neither is ever called
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": self.provider, "config": self._store_config(folder, dimensions)},
                "history_db_path": str(folder / "history.db"),
                "llm": remote,
                "embedder": {**remote, "config": {"api_key": "none", "embedding_dims": dimensions}},
            }
        )
        self._vectors = GivenVectors()
        self._memory.embedding_model = _Embedder(self._memory.embedding_model.config, self._vectors)

    def _store_config(self, folder: Path, dimensions: int) -> dict[str, Any]:
        place = {"path": str(folder / "vectors"), "collection_name": COLLECTION, "embedding_model_dims": dimensions}
        return {**place, **self.store}

    def fill(self, rows: Sequence[Row]) -> None:
        """Straight into its vector store, with what `add` would write: it has no public way to store many."""
        for start in range(0, len(rows), self.batch):
            batch = rows[start : start + self.batch]
            self._memory.vector_store.insert(
                vectors=[row.vector.tolist() for row in batch],
                ids=[str(uuid4()) for _ in batch],
                payloads=[_payload(row) for row in batch],
            )

    def add(self, row: Row) -> None:
        self._vectors.know([(row.text, row.vector)])
        self._memory.add(row.text, user_id=row.owner, metadata={"row": row.id}, infer=False)

    def found(self, vector: Vector, text: str, *, owner: str | None, limit: int, mode: Mode) -> list[str]:  # noqa: ARG002
        self._vectors.know([(text, vector)])
        # Without a threshold: its default of 0.1 is meant for the scores of its own model.
        results = self._memory.search(text, top_k=limit, filters={"user_id": owner}, threshold=0.0)["results"]
        return [result["metadata"]["row"] for result in results]

    def close(self) -> None:
        self._memory.close()


class Mem0Qdrant(_Mem0):
    """Its default store, in a folder."""

    provider: ClassVar[str] = "qdrant"
    store: ClassVar[dict[str, Any]] = {"on_disk": True}
    durability: ClassVar[str] = "commits of two SQLite files"

    def close(self) -> None:
        super().close()
        self._memory.vector_store.client.close()


class Mem0Faiss(_Mem0):
    """Each insert writes the whole index anew, so `fill` is one. It searches first and then leaves out other owners."""

    provider: ClassVar[str] = "faiss"
    store: ClassVar[dict[str, Any]] = {"distance_strategy": "cosine"}
    durability: ClassVar[str] = "a commit of its history; the index is written without an fsync"
    batch: ClassVar[int] = 10_000_000


class Mem0Chroma(_Mem0):
    """Chroma in a folder."""

    provider: ClassVar[str] = "chroma"
    durability: ClassVar[str] = "commits of two SQLite files"

    def _store_config(self, folder: Path, dimensions: int) -> dict[str, Any]:  # noqa: ARG002 - the first vector tells it
        return {"path": str(folder / "vectors"), "collection_name": COLLECTION}


class _Embedder:
    """In place of mem0's own."""

    def __init__(self, config: Any, vectors: GivenVectors) -> None:
        self.config, self.embed, self.embed_batch = config, vectors.one, vectors.many


def _payload(row: Row) -> dict[str, str]:
    return {
        "user_id": row.owner,
        "row": row.id,
        "role": "user",
        "data": row.text,
        "hash": hashlib.md5(row.text.encode(), usedforsecurity=False).hexdigest(),
        "created_at": STORED_AT,
        "updated_at": STORED_AT,
        "text_lemmatized": row.text,
    }
