"""Pipelines on real SQLite files, with a driven clock, counted ids and a deterministic embedder."""

from __future__ import annotations

import pytest

from lamina.adapters.in_memory import InMemoryAdapter
from lamina.adapters.sqlite import SqliteAdapter
from lamina.databases.sqlite import SqliteDatabase
from lamina.rag.pipeline import RagPipeline
from lamina.settings.rag import RagConfig
from lamina.state.sqlite import SqliteStateStore
from lamina.testing import FrozenClock, HashingEmbedder, counting_ids


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
def embedder():
    return HashingEmbedder()


@pytest.fixture
async def open_pipeline(tmp_path, clock, embedder):
    """Opens pipelines, all on one file unless told otherwise, and closes them at the end."""
    pipelines = []
    new_id = counting_ids()

    async def open_one(*, path=tmp_path / "lamina.db", adapter=None, store=None, **options):
        database = SqliteDatabase(path)
        adapter = adapter or SqliteAdapter(None, database=database, table="lamina_chunks")
        store = store or SqliteStateStore(None, database=database)
        config = RagConfig(chunk_size=40, chunk_overlap=8)
        defaults = {"embedder": embedder, "clock": clock, "new_id": new_id, "config": config}
        pipeline = RagPipeline(adapter, store, **{**defaults, **options})
        await pipeline.initialize()
        pipelines.append(pipeline)
        return pipeline

    yield open_one
    for pipeline in pipelines:
        await pipeline.close()


@pytest.fixture(params=["sqlite", "memory"])
async def rag(request, open_pipeline):
    """A pipeline whose chunks are in each kind of adapter in turn; the heads are always in SQLite."""
    return await open_pipeline(adapter=InMemoryAdapter() if request.param == "memory" else None)
