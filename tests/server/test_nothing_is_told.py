"""Nothing of what is stored, asked or answered is in the logs, the spans, the metrics or the events."""

from __future__ import annotations

import logging

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from served import TOKEN, client_of

from lamina import telemetry
from lamina.kernel import Kernel, ModelRouter
from lamina.ports.events import EventName
from lamina.ports.hooks import MemoryHooks
from lamina.server import create_app
from lamina.telemetry import CAPTURE_CONTENT
from lamina.testing import HashingEmbedder

CANARY = "zimtkanarie"


class Embedder(HashingEmbedder):
    """Fails with the text in its message, from when it is told to."""

    fails = False

    async def embed_documents(self, texts):
        if self.fails:
            raise ValueError(f"cannot embed {list(texts)}")
        return await super().embed_documents(texts)

    async def embed_query(self, text):
        if self.fails:
            raise ValueError(f"cannot embed {text}")
        return await super().embed_query(text)


def model(messages):
    raise RuntimeError(f"cannot answer {messages}")


def hook(*given):
    raise RuntimeError(f"not today: {given}")


async def use(post, patch, http, said):
    """The main operations, with the word in every field that takes a caller's own."""
    meta = {said: [said]}
    stored = await post("/v1/memories", content=f"{said} one", owner="mira", tags=[said], metadata=meta, source=said)
    await post("/v1/memories/batch", memories=[{"content": f"{said} two"}, {"content": f"{said} three"}])
    await patch(f"/v1/memories/{stored.json()['id']}", content=f"{said} four", metadata=meta)
    await post("/v1/memories/recall", query=f"who has a {said}?", where={said: said})
    await post("/v1/memories/recall", query=f"who has a {said}?")
    await post("/v1/memories/forget", where={said: said}, owner="mira")
    await http.post("/v1/import", content=f'{{"content": "{said}"}}\n{{{said}\n')
    await post("/v1/documents", content=f"# {said}\n\n{said}", source="notes.md", metadata=meta)
    await post("/v1/documents/retrieve", query=said)
    await post("/v1/threads/t/messages", messages=[{"role": "user", "content": said, "metadata": meta}] * 3)
    await post("/v1/sessions/s/events", events=[{"message": {"role": "user", "content": said}}])
    await post("/v1/sessions/s/search", text=said)
    await post("/utils/context-packs", name="p", type="project", description=said, tags=[said], metadata=meta)
    await post("/utils/context-packs/p/memories", content=said, metadata=meta, provenance=said)
    await post("/utils/search/retrieve", query=said)
    await post("/v1/context", goal=f"find the {said}", owner="mira", token_budget=200)
    await post("/v1/intents", goal=f"find the {said}", owner="mira", thread_id="t")
    await post("/v1/memories", **{said: said})  # refused: the field is unknown
    await post("/v1/memories", content=said, layer=said)
    await http.get("/v1/memories", params={"query": said, said: said})
    await http.get(f"/v1/{said}")
    await post("/v1/maintenance", decay=True)


@pytest.fixture
def exporter(monkeypatch):
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(telemetry, "_tracer", lambda: provider.get_tracer("lamina"))
    monkeypatch.delenv(CAPTURE_CONTENT, raising=False)
    return exporter


async def test_a_word_in_every_field_is_in_no_log_span_metric_or_event(tmp_path, caplog, exporter):
    caplog.set_level(logging.DEBUG)
    embedder, told, statuses = Embedder(), [], []
    config = {"debug": True, "auto_save": True, "hooks": MemoryHooks(on_after_recall=hook, on_forget=hook)}
    router = ModelRouter(complete=model, embed=embedder)
    async with (
        Kernel({"data_dir": tmp_path, "memory": config}, model_router=router) as kernel,
        client_of(create_app(kernel, auth={TOKEN})) as http,
    ):
        for name in EventName:
            kernel.on(name, told.append)
            kernel.on(name, hook)

        async def post(path, **body):
            answer = await http.post(path, json=body)
            statuses.append(answer.status_code)
            return answer

        async def patch(path, **body):
            statuses.append((await http.patch(path, json=body, headers={"If-Match": "*"})).status_code)

        await use(post, patch, http, CANARY)
        embedder.fails = True
        await use(post, patch, http, f"{CANARY}2")
        metrics = (await http.get("/metrics")).text
    ours = [record for record in caplog.records if not record.name.startswith("httpx2")]  # the client of this test
    logs = "\n".join(logging.Formatter().format(record) for record in ours)
    spans = [each.to_json() for each in exporter.get_finished_spans()]
    assert statuses.count(201) + statuses.count(200) >= 25
    assert len(spans) >= 10
    assert len(told) >= 10
    assert "on_after_recall failed" in logs
    assert "the embedder failed" in logs
    assert "lamina_memories" in metrics
    for line in logs.splitlines() + spans + metrics.splitlines() + [repr(dict(event.facts)) for event in told]:
        assert CANARY not in line, line


@pytest.mark.parametrize("value", ["", "no", "TRUE "])
def test_content_is_captured_only_where_the_environment_says_so(monkeypatch, value):
    monkeypatch.setenv(CAPTURE_CONTENT, value)
    assert telemetry.captures_content() is (value.strip().lower() == "true")
