"""Engines on both adapters, with a driven clock, counted ids and a deterministic embedder."""

from __future__ import annotations

import pytest

from lamina.memory.factory import create_memory_engine
from lamina.testing import FrozenClock, HashingEmbedder, counting_ids


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture(params=["memory", "sqlite"])
def place(request, tmp_path):
    """Where the engine of a test keeps its memories; the same place again gives the same file."""
    return {"provider": "memory"} if request.param == "memory" else {"path": tmp_path / "lamina.db"}


@pytest.fixture
def embedder():
    """What embeds, below the cache and the circuit that every embedder gets."""
    return HashingEmbedder()


@pytest.fixture
async def open_engine(clock, embedder):
    """Opens engines with any settings, and closes them at the end."""
    engines = []
    new_id = counting_ids()

    async def open_one(**settings):
        defaults = {"clock": clock, "new_id": new_id, "embed": embedder}
        if "embedding" in settings:
            del defaults["embed"]
        engine = await create_memory_engine(**{**defaults, **settings})
        engines.append(engine)
        return engine

    yield open_one
    for engine in engines:
        await engine.close()


@pytest.fixture
async def engine(open_engine, place):
    return await open_engine(**place)
