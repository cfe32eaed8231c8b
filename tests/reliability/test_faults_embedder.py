"""Whichever call of the embedder fails, and however: what is stored is kept and found, and is whole once it works.

First an embedder of this process fails, then the way to one behind HTTP.
"""

from __future__ import annotations

import asyncio
import os
import select
from itertools import count
from typing import Final
from urllib.parse import urlsplit

import pytest
from cutting_proxy import CuttingProxy, await_answer
from faults_injected import EMBEDDER_FAILURES, NEVER, FailingEmbedder, NthCall, SteadyModel
from faults_world import DEEDS, Deed, World, after_doing, do_failing, seen

from lamina.errors import ProviderError
from lamina.kernel import Kernel, ModelRouter
from lamina.providers.openai_compatible import OpenAICompatibleEmbedder
from lamina.testing import FrozenClock, HashingEmbedder

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
    await has_all_vectors(world)
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


@pytest.mark.parametrize("told", ["told to be done", "a half state", "asking again does not do it"])
async def test_a_deed_that_does_otherwise_when_it_fails_is_found(world, nth, told):
    tried = []

    async def run(world, owner):
        engine = world.kernel.memory_engine
        failed, is_asked_again = nth.due(), owner in tried
        tried.append(owner)
        if is_asked_again:
            return
        if failed and told.startswith("asking"):
            raise ProviderError("The embedder", "as planted")
        await engine.store("Ropes are tarred in May", owner=owner, id=f"{owner}-first")
        if failed and told == "a half state":
            raise ProviderError("The embedder", "as planted")
        if not failed:
            await engine.store("Gulls nest on the crane", owner=owner, id=f"{owner}-second")

    deed = Deed(DEEDS["store_many"].prepare, run)
    after = await after_doing(deed, world)
    with pytest.raises(AssertionError, match=told):
        await do_failing(deed, world, nth, at=1, kind="refused", after=after)


# An embedder behind HTTP, and what may become of one request to it

PATIENCE: Final = 0.5
WAYS_TO_BREAK: Final = {
    "the request is cut": None,
    "nothing is answered": 0,
    "the headers are cut": 20,
    "the body is cut": 400,
    "it is answered too late": None,
}
"""How many bytes of the answer come."""


class BreakingProxy(CuttingProxy):
    """Before a server that answers each request in one piece; one of them, when it is due, breaks in a way."""

    def __init__(self, target: int, nth: NthCall, port: int = 0) -> None:
        super().__init__(target, port)
        self._nth = nth

    def is_cut_at(self, data, client, server):
        way = self._nth.due() if data.startswith(b"POST ") else None
        if way is None:
            return super().is_cut_at(data, client, server)
        if way != "the request is cut":
            server.sendall(data)
            await_answer(client, server)
            if way == "it is answered too late":
                select.select([client], [], [], 10 * PATIENCE)  # until who asked has gone
            else:
                client.sendall(server.recv(65536)[: WAYS_TO_BREAK[way]])
        self.cuts += 1
        return True


@pytest.fixture
async def proxy(server, nth):
    vectors = HashingEmbedder(64)
    server.plays(server.embeds(lambda text: vectors._embed(text).tolist()))
    proxy = BreakingProxy(urlsplit(server.url).port, nth)
    yield proxy
    proxy.close()


@pytest.fixture
async def far_world(tmp_path, proxy):
    url = f"http://127.0.0.1:{proxy.port}/v1"
    embedder = OpenAICompatibleEmbedder("m", base_url=url, dimensions=64, max_retries=0, timeout=PATIENCE)
    settings, clock = {"data_dir": tmp_path, "memory": {"auto_save": True}}, FrozenClock()
    async with Kernel(settings, model_router=ModelRouter(SteadyModel(), embed=embedder), clock=clock) as kernel:
        yield World(kernel, clock)
    await embedder.close()


@pytest.mark.usefixtures("uncached")
@pytest.mark.parametrize("name", DEEDS_THAT_EMBED if SOAK else ("store", "recall", "ingest"))
async def test_a_deed_is_done_though_a_request_to_the_embedding_server_breaks(far_world, nth, proxy, name):
    after, cuts, failed = await after_doing(DEEDS[name], far_world), proxy.cuts, 0
    for at in count(1) if SOAK else (1,):
        for way in WAYS_TO_BREAK:
            await do_failing(DEEDS[name], far_world, nth, at=at, kind=way, after=after, errors=ProviderError)
            failed += nth.fired
        if not nth.fired:
            break
    assert failed == proxy.cuts - cuts >= len(WAYS_TO_BREAK)
    await has_all_vectors(far_world)


async def test_what_is_stored_while_no_embedding_server_listens_is_found_and_gets_its_vector_later(
    far_world, server, nth, proxy
):
    engine = far_world.kernel.memory_engine
    proxy.close()
    await engine.store("The lamp of the harbour is red", owner="mira", id="kept")
    found = await engine.recall("harbour lamp", owner="mira")
    assert ([each.entry.id for each in found], bool(found.degraded)) == (["kept"], True)
    again = BreakingProxy(urlsplit(server.url).port, nth, proxy.port)
    try:
        assert (await engine.reembed_missing()).embedded == 1
        assert (await engine.recall("harbour lamp", owner="mira")).degraded == ()
    finally:
        again.close()


async def has_all_vectors(world):
    kernel = world.kernel
    for part in (kernel.memory_engine, kernel.rag, kernel.packs):
        await part.reembed_missing()
    stats = await kernel.memory_engine.stats()
    assert (stats.without_embedding, stats.reembed_needed) == (0, False)
