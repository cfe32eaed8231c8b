"""Engrava: one SQLite file for everybody, the owner as metadata, with the pragmas that its own configuration sets."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from peers.peer import GivenVectors, Mode, Peer, Row, Vector

Result = TypeVar("Result")
PRAGMAS = ("journal_mode = WAL", "foreign_keys = ON", "synchronous = NORMAL", "busy_timeout = 5000")
ESSENCE_CHARS = 200
BATCH = 1_000
WEIGHTS: dict[Mode, dict[str, float]] = {
    "vector": {"fts_weight": 0.0, "vector_weight": 1.0, "recency_weight": 0.0},
    "hybrid": {},
}
"""Its hybrid search at its defaults, or without the words."""


class Engrava(Peer):
    """Its calls are coroutines, run one by one on a loop of its own. Its search for words alone knows no owners."""

    modes: ClassVar[frozenset[Mode]] = frozenset({"vector", "hybrid"})
    durability: ClassVar[str] = "an SQLite commit, WAL, synchronous NORMAL: no fsync"

    def __init__(self) -> None:
        self._vectors = GivenVectors()

    @classmethod
    def load(cls) -> None:
        import engrava  # noqa: F401

    def open(self, folder: Path, dimensions: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._run(self._open(folder / "thoughts.db", dimensions))

    async def _open(self, path: Path, dimensions: int) -> None:
        import aiosqlite
        from engrava import SqliteEngravaCore

        self._connection = await aiosqlite.connect(path)
        self._connection.row_factory = aiosqlite.Row
        for pragma in PRAGMAS:
            await self._connection.execute(f"PRAGMA {pragma}")
        provider = _Provider(dimensions, self._vectors)
        self._core: Any = SqliteEngravaCore(self._connection, embedding_provider=provider, auto_embed=True)
        await self._core.ensure_schema()

    def fill(self, rows: Sequence[Row]) -> None:
        for start in range(0, len(rows), BATCH):
            batch = rows[start : start + BATCH]
            self._vectors.know([(row.text, row.vector) for row in batch])
            self._run(self._core.bulk_store([_thought(row) for row in batch]))

    def add(self, row: Row) -> None:
        self._vectors.know([(row.text, row.vector)])
        self._run(self._core.create_thought(_thought(row)))

    def found(self, vector: Vector, text: str, *, owner: str | None, limit: int, mode: Mode) -> list[str]:
        if mode == "vector" and owner is None:
            return [id for id, _score in self._run(self._core.search_similar(vector.tolist(), top_k=limit))]
        searched = self._core.search_hybrid(
            "" if mode == "vector" else text,
            vector.tolist(),
            top_k=limit,
            filters=None if owner is None else _of(owner),
            **WEIGHTS[mode],
        )
        return [result[0] for result in self._run(searched).results]

    def close(self) -> None:
        self._run(self._connection.close())
        self._loop.close()

    def _run(self, doing: Coroutine[Any, Any, Result]) -> Result:
        return self._loop.run_until_complete(doing)


class _Provider:
    """In place of an embedding model."""

    model_name = "given"

    def __init__(self, dimensions: int, vectors: GivenVectors) -> None:
        self.dimension, self._vectors = dimensions, vectors

    async def embed(self, text: str) -> list[float]:
        return self._vectors.one(text)

    async def embed_batch(self, texts: Sequence[str]) -> list[list[float]]:
        return self._vectors.many(texts)


def _thought(row: Row) -> Any:
    from engrava import ThoughtRecord
    from engrava.domain.enums import LifecycleStatus, Priority, ThoughtType

    return ThoughtRecord(
        thought_id=row.id,
        thought_type=ThoughtType.NOTE,
        essence=row.text[:ESSENCE_CHARS],
        content=row.text,
        priority=Priority.P3,
        lifecycle_status=LifecycleStatus.ACTIVE,
        source="remember",
        metadata={"owner": row.owner},
    )


def _of(owner: str) -> Any:
    from engrava.domain.models.filters import FieldOp, FieldPredicate, MetadataFilter

    return MetadataFilter([FieldPredicate("$.owner", FieldOp.EQ, owner)])
