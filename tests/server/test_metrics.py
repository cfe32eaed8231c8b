"""What is told to Prometheus of memories, contexts and embeddings, over a socket."""

from __future__ import annotations

import asyncio
import re

import httpx2
import pytest
from served import listening

from lamina.errors import AdapterUnavailable, ProviderUnavailable
from lamina.kernel import ModelRouter
from lamina.kernel.tenants import TenantKernels
from lamina.memory.counting import MemoryCounts
from lamina.server import Principal, create_app, inventory
from lamina.server.inventory import COUNTED_EVERY, RETRIED_AFTER, Inventory
from lamina.server.metrics import Metrics
from lamina.testing import EchoModel, HashingEmbedder

TENANTS = ("acme", "umbrella")


class Embedder(HashingEmbedder):
    """Can be made to be down."""

    is_down = False

    async def embed_query(self, text):
        if self.is_down:
            raise ProviderUnavailable("testing", "it is down")
        return await super().embed_query(text)


async def authenticate(token):
    return Principal(tenant=token, id=f"laptop-of-{token}") if token in TENANTS else None


def figures(text):
    """The samples by name and labels."""
    return {name: float(value) for name, value in re.findall(r"^([^# ]\S*) (\S+)$", text, re.MULTILINE)}


async def test_memories_bytes_contexts_and_embeddings_are_told_and_nobodys_name(tmp_path):
    embedder = Embedder()
    async with (
        TenantKernels(data_dir=tmp_path, model_router=ModelRouter(EchoModel(), embed=embedder)) as kernels,
        listening(create_app(kernels, auth=authenticate, store=kernels.server)) as (host, port, _),
        httpx2.AsyncClient(base_url=f"http://{host}:{port}", timeout=20) as http,
    ):

        async def post(tenant, path, **body):
            answer = await http.post(path, json=body, headers={"Authorization": f"Bearer {tenant}"})
            assert answer.status_code in {200, 201}, answer.text
            return answer.json()

        async def scraped():
            answer = await http.get("/metrics", headers={"Authorization": "Bearer acme"})
            assert answer.status_code == 200
            for hidden in (*TENANTS, "mira", "laptop", "tea"):
                assert hidden not in answer.text
            return figures(answer.text)

        for tenant, layer in [("acme", "longterm"), ("acme", "session"), ("umbrella", "longterm")]:
            await post(tenant, "/v1/memories", content=f"Mira likes tea, {layer}.", owner="mira", layer=layer)
        context = await post("acme", "/v1/context", goal="What does Mira drink?", owner="mira", token_budget=60)
        assert context["dropped"]
        embedder.is_down = True
        await post("acme", "/v1/memories/recall", query="something else", owner="mira")

        told = await scraped()
        by_layer = {name: told[name] for name in told if name.startswith("lamina_memories{") and told[name]}
        assert by_layer == {'lamina_memories{layer="longterm"}': 2, 'lamina_memories{layer="session"}': 1}
        assert told["lamina_memories_expired"] == 0
        assert told["lamina_db_size_bytes"] >= (tmp_path / "lamina.db").stat().st_size > 0
        for decision, tokens in [
            ("included", context["estimated_tokens"]),
            ("dropped", sum(each["tokens"] for each in context["dropped"])),
        ]:
            assert told[f'lamina_context_tokens_count{{decision="{decision}"}}'] == 1
            assert told[f'lamina_context_tokens_sum{{decision="{decision}"}}'] == tokens > 0
        assert told['lamina_embedding_requests_total{outcome="ok",provider="testing"}'] >= 3
        assert told['lamina_embedding_requests_total{outcome="error",provider="testing"}'] == 1

        # Counted when it is time to, and not at each scrape.
        await post("acme", "/v1/memories", content="Mira likes milk.", owner="mira")
        assert (await scraped())['lamina_memories{layer="longterm"}'] == 2


class Stores:
    """Stands in for kernels and their store: counts how often it is counted, waits and fails when told to."""

    def __init__(self):
        self.counts = 0
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.fails = False
        self.now = 1000.0

    async def count_memories(self):
        self.counts += 1
        await self.may_go_on.wait()
        if self.fails:
            raise AdapterUnavailable("sqlite", "it is locked")
        return MemoryCounts(expired=self.counts)

    async def size_bytes(self):
        return 7


async def test_it_is_counted_seldom_by_one_at_a_time_and_never_told_when_it_is_not_known(monkeypatch):
    monkeypatch.setattr(inventory, "_WAITED", 0.01)
    stores, metrics = Stores(), Metrics()
    counted = Inventory(stores, stores, metrics, monotonic=lambda: stores.now)

    async def told():
        await counted.refresh()
        return figures(metrics.exposition().decode()).get("lamina_memories_expired")

    assert await told() == 1
    stores.now += COUNTED_EVERY - 1
    assert await told() == 1
    stores.now += 1
    stores.may_go_on.clear()
    assert [await told() for _ in range(3)] == [1, 1, 1]  # a slow count keeps nobody waiting, and goes on
    stores.now += 60
    stores.may_go_on.set()
    assert (await told(), stores.counts) == (2, 2)
    stores.now += COUNTED_EVERY
    assert await told() == 2  # it took a minute, so it is done every ten
    stores.now += COUNTED_EVERY
    stores.fails = True
    for pause in (RETRIED_AFTER, 2 * RETRIED_AFTER):  # what fails is tried again, but not at each scrape
        assert await told() is None
        counts, stores.now = stores.counts, stores.now + pause - 1
        assert (await told(), stores.counts) == (None, counts)
        stores.now += 1
    stores.fails = False
    assert await told() == stores.counts == 5
    stores.now += COUNTED_EVERY
    stores.may_go_on.clear()
    await told()
    await counted.close()


@pytest.mark.parametrize("kernels", [None, object()])
async def test_without_a_store_nothing_of_it_is_told(kernels):
    metrics = Metrics()
    await Inventory(kernels, None, metrics).refresh()
    assert not [name for name in figures(metrics.exposition().decode()) if name.startswith(("lamina_mem", "lamina_db"))]


async def test_a_server_over_one_kernel_tells_its_memories_too(kernel, http):
    await kernel.memory_engine.store("Mira likes tea.")
    told = figures((await http.get("/metrics")).text)
    assert (told['lamina_memories{layer="longterm"}'], told["lamina_memories_expired"]) == (1, 0)
    assert "lamina_db_size_bytes" not in told
