"""Whichever call of the embedder fails, and however: what is stored is kept and found, and is whole once it works."""

from __future__ import annotations

import asyncio
import os
from itertools import count
from typing import Final

import pytest
from faults_injected import EMBEDDER_FAILURES, NEVER, FailingEmbedder, NthCall, SteadyModel
from faults_world import DEEDS, World, after_doing, do_failing, seen

from lamina.errors import ProviderError
from lamina.kernel import Kernel, ModelRouter
from lamina.testing import FrozenClock

SOAK: Final = bool(os.environ.get("LAMINA_SOAK"))
"""The long form: every failure at every call. The short one takes every third of them, each call others."""

DEEDS_THAT_EMBED: Final = (
    *("store", "store_many", "update", "recall", "ingest", "ingest again", "pack.add", "pack.update", "submit"),
)


@pytest.fixture
def nth():
    return NthCall()


@pytest.fixture
async def world(tmp_path, nth):
    clock = FrozenClock()
    router = ModelRouter(complete=SteadyModel(), embed=FailingEmbedder(nth))
    settings = {"data_dir": tmp_path, "memory": {"auto_save": True}}
    async with Kernel(settings, model_router=router, clock=clock) as kernel:
        yield World(kernel, clock)


@pytest.fixture
def uncached(monkeypatch):
    """Each text is asked for again, though another owner's was the same."""
    monkeypatch.setattr("lamina.providers.resilience.EmbeddingCache.get", lambda self, key: None)


@pytest.mark.usefixtures("uncached")
@pytest.mark.parametrize("name", DEEDS_THAT_EMBED)
async def test_a_deed_is_done_though_the_embedder_fails_and_all_has_its_vector_in_the_end(world, nth, name):
    after = await after_doing(DEEDS[name], world)
    failed = 0
    for at in count(1):
        kinds = list(EMBEDDER_FAILURES) if SOAK else list(EMBEDDER_FAILURES)[at % 3 :: 3]
        for kind in kinds:
            await do_failing(DEEDS[name], world, nth, at=at, kind=kind, after=after, errors=ProviderError)
            failed += nth.fired
        if not nth.fired:
            break
    assert failed >= 3
    await world.kernel.memory_engine.reembed_missing()
    await world.kernel.rag.reembed_missing()
    await world.kernel.packs.reembed_missing()
    stats = await world.kernel.memory_engine.stats()
    assert (stats.without_embedding, stats.reembed_needed) == (0, False)
    assert await seen(world, "before-after") == after


@pytest.mark.usefixtures("uncached")
@pytest.mark.parametrize("name", DEEDS_THAT_EMBED)
async def test_whoever_cannot_wait_for_the_embedder_leaves_nothing_half_done(world, nth, name):
    deed = DEEDS[name]
    after = await after_doing(deed, world)
    await deed.prepare(world, "impatient")
    before = await seen(world, "impatient")
    nth.arm(1, NEVER)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await deed.run(world, "impatient")
    assert nth.disarm()
    if await seen(world, "impatient") == before:
        await deed.run(world, "impatient")
    assert await seen(world, "impatient") == after


@pytest.mark.parametrize("kind", EMBEDDER_FAILURES)
async def test_what_a_wrong_vector_would_have_been_made_of_is_found_by_its_words_and_hides_no_other(world, nth, kind):
    engine = world.kernel.memory_engine
    await engine.store("The lamp of the harbour is red", owner="mira", id="right")
    nth.arm(1, kind)
    try:
        await engine.store("Ropes are tarred in May", owner="mira", id="wrong")
    except ProviderError:
        assert kind.startswith(("other dimension", "one dimension")), "only another length is refused"
        assert await engine.get("wrong", owner="mira") is None
        await engine.store("Ropes are tarred in May", owner="mira", id="wrong")
    assert nth.disarm()
    for query, id in (("lamp of the harbour", "right"), ("Ropes are tarred", "wrong")):
        results = await engine.recall(query, owner="mira", limit=2)
        assert results[0].entry.id == id
    without = (await engine.stats()).without_embedding
    if without:
        assert (await engine.recall("ropes", owner="mira")).degraded, "what has no vector is told"
    assert (await engine.reembed_missing()).embedded == without
    assert (await engine.recall("ropes", owner="mira")).degraded == ()
