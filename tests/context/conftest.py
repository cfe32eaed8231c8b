"""A real memory engine over a real SQLite file; threads, documents and packs are small sources of the tests' own."""

from __future__ import annotations

import logging

import pytest

from lamina.context.engine import ContextEngine
from lamina.domain.document import RagChunk
from lamina.domain.recall import Results
from lamina.domain.thread import ThreadContext
from lamina.errors import ScopeError, ThreadNotFound
from lamina.memory.factory import create_memory_engine
from lamina.settings.context import ContextConfig
from lamina.testing import FrozenClock, HashingEmbedder, counting_ids


class Threads:
    """Threads by id: owner and context."""

    def __init__(self):
        self.threads = {}

    def put(self, id, owner, messages, summary=None):
        self.threads[id] = (owner, ThreadContext(summary=summary, messages=list(messages), thread_id=id))

    async def get_thread_context(self, thread_id, *, owner=None, max_messages=None):
        if thread_id not in self.threads:
            raise ThreadNotFound(thread_id)
        of, context = self.threads[thread_id]
        if of != owner:
            raise ScopeError("The thread belongs to another owner.")
        return context


class Documents:
    """Chunks by owner; None is shared."""

    def __init__(self):
        self.chunks = []
        self.degraded = ()

    def put(self, owner, *contents, source="guide.md", scores=None, **metadata):
        for place, content in enumerate(contents):
            score = scores[place] if scores else 0.9 - place / 100
            chunk = RagChunk(
                f"{source}#{place}", content, source, score, source, place, 0, len(content), dict(metadata)
            )
            self.chunks.append((owner, chunk))

    async def retrieve(self, query, *, top_k=5, owner=None, min_score=0.0, neighbors=0):
        seen = [chunk for of, chunk in self.chunks if of in {None, owner} and chunk.score >= min_score]
        return Results(sorted(seen, key=lambda chunk: -chunk.score)[:top_k], degraded=self.degraded)


@pytest.fixture(autouse=True)
def _no_quiet_logging(caplog):
    caplog.set_level(logging.DEBUG)


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
def embedder():
    return HashingEmbedder()


@pytest.fixture
async def memory(clock, tmp_path, embedder):
    engine = await create_memory_engine(path=tmp_path / "lamina.db", embed=embedder, clock=clock, new_id=counting_ids())
    yield engine
    await engine.close()


@pytest.fixture
def threads():
    return Threads()


@pytest.fixture
def documents():
    return Documents()


@pytest.fixture
def events():
    return []


@pytest.fixture
def make(memory, threads, documents, clock, events):
    """Makes context engines over the sources of the test; settings are those of `ContextConfig`."""

    def make_one(*, config=None, **options):
        given = {"conversation": threads, "rag": documents, "clock": clock, "emit": events.append, **options}
        return ContextEngine(memory, config=ContextConfig(**(config or {})), **given)

    return make_one


@pytest.fixture
def compute(make):
    """Computes for the owner `ana`, with the settings of `config`."""

    async def compute_one(goal="When do releases go out?", *, config=None, options=None, **fields):
        engine = make(config=config, **(options or {}))
        return await engine.compute(**{"intent_id": "intent_1", "goal": goal, "owner_id": "ana", **fields})

    return compute_one
