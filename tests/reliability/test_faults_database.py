"""Whichever statement of a deed fails: no half state, an error of ours, and asking again does it.

Each deed is done again and again, each time for another owner, and each time a later statement fails, until it ends
without having come to that one.
"""

from __future__ import annotations

import os
from datetime import timedelta
from itertools import count
from typing import Any, Final

import pytest
from faults_injected import SQL_FAILURES, NthCall, SteadyModel, fail_statements
from faults_world import DEEDS, World, after_doing, do_failing

from lamina.domain.filters import Expiry, MemoryFilter
from lamina.errors import AdapterError, AdapterUnavailable
from lamina.kernel import Kernel, ModelRouter
from lamina.testing import FrozenClock, HashingEmbedder

SOAK: Final = bool(os.environ.get("LAMINA_SOAK"))
"""The long form: every failure at every statement. The short one takes one failure in turn, and of a deed with many
statements every ninth after the first eight."""

SETTINGS: Final[dict[str, Any]] = {
    "memory": {"auto_save": True},
    "conversation": {"compaction": {"threshold": 20, "keep_recent": 2}},
}


@pytest.fixture
def nth():
    return NthCall()


@pytest.fixture
async def world(tmp_path, monkeypatch, nth):
    fail_statements(monkeypatch, nth)
    monkeypatch.setattr("lamina.rag.chunk_index.BATCH", 2)  # so that six chunks are three batches
    clock = FrozenClock()
    router = ModelRouter(complete=SteadyModel(), embed=HashingEmbedder(64))
    async with Kernel({**SETTINGS, "data_dir": tmp_path}, model_router=router, clock=clock) as kernel:
        yield World(kernel, clock)


@pytest.mark.parametrize("name", DEEDS)
async def test_a_deed_is_done_whole_or_not_at_all_whichever_statement_fails(world, nth, name):
    after = await after_doing(DEEDS[name], world)
    failed = 0
    for at in count(1) if SOAK else statements_in_short():
        kinds = list(SQL_FAILURES) if SOAK else [list(SQL_FAILURES)[at % len(SQL_FAILURES)]]
        for kind in kinds:
            await do_failing(DEEDS[name], world, nth, at=at, kind=kind, after=after, errors=AdapterError)
            failed += nth.fired
        if not nth.fired:
            break
    assert failed >= 5
    await check_that_the_parts_agree(world)


def statements_in_short():
    yield from range(1, 9)
    yield from count(9, 9)


async def check_that_the_parts_agree(world):
    kernel = world.kernel
    world.clock.advance(timedelta(hours=2))  # rows that are younger may be those of an ingestion under way
    await kernel.rag.purge_orphans()
    heads, index = await kernel.rag.list_documents(), kernel.rag._index
    rows = await index.adapter.count(index.scope, MemoryFilter(now=world.clock(), expiry=Expiry.ANY))
    assert rows == sum(head.chunks for head in heads), "rows of no document were left for good"
    assert await index.adapter.check() == []
    assert await kernel.memory_engine.adapter.check() == []
    assert await kernel.packs.check() == []


async def test_a_file_that_may_not_grow_refuses_what_has_no_room_and_goes_on_once_there_is(tmp_path):
    router = ModelRouter(complete=SteadyModel(), embed=HashingEmbedder(64))
    async with Kernel({"data_dir": tmp_path}, model_router=router) as kernel:
        await kernel.memory_engine.store("The lamp of the harbour is red", owner="mira", id="before")
        long = "\n\n".join(f"The crane number {number} is inspected every spring." for number in range(700))
        deeds = {
            "store": lambda: kernel.memory_engine.store_many([long[n : n + 20_000] for n in range(5)]),
            "add": lambda: kernel.conversation.add_messages("t", [{"role": "user", "content": long}] * 5),
            "ingest": lambda: kernel.rag.ingest(long, "cranes.md"),
            "pack": lambda: kernel.packs.add("port", long),
        }
        await kernel.packs.create("port", "domain")
        for name, deed in deeds.items():
            await limit_pages(kernel, "page_count")
            with pytest.raises(AdapterUnavailable, match="no space left"):
                await deed()
            (hit,) = await kernel.memory_engine.recall("lamp of the harbour", owner="mira")
            assert hit.entry.id == "before", f"what was there is read while {name} has no room"
            await limit_pages(kernel, "4294967294")
            assert await deed()
        assert await kernel.memory_engine.adapter.check() == []
        assert len(await kernel.conversation.history("t")) == 5
        assert [head.source for head in await kernel.rag.list_documents()] == ["cranes.md"]
        assert len(await kernel.packs.memories("port")) == 1


async def limit_pages(kernel, most):
    """The file may have as many pages as it has, or so many."""

    def limit(connection):
        (count,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {count if most == 'page_count' else most}").fetchone()

    await kernel.memory_engine.adapter._opened().alone(limit)
