"""Real stores in a file: a kernel fills them, and the checks look at them afterwards, or while it runs."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

from lamina.kernel import Kernel, ModelRouter
from lamina.kernel.checks import examine
from lamina.settings import define_config
from lamina.testing import FrozenClock, HashingEmbedder


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lamina.db"


@pytest.fixture
def running(path, clock):
    """A kernel on the file while the block lasts."""

    @asynccontextmanager
    async def run(*, complete=None, embed=None, **settings):
        memory = {"path": path, **settings.pop("memory", {})}
        router = ModelRouter(complete=complete, embed=None if "embedding" in memory else embed or HashingEmbedder())
        async with Kernel(memory=memory, model_router=router, clock=clock, **settings) as kernel:
            yield kernel

    return run


@pytest.fixture
def found(path, clock):
    """What the check of this id finds under these settings."""

    async def look(id, **settings):
        memory = {"path": path, "embed": HashingEmbedder(), **settings.pop("memory", {})}
        findings = {
            each.id: each for each in await examine(lambda: define_config(memory=memory, **settings), clock=clock)
        }
        return findings[id]

    return look
