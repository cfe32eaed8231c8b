"""Spans of memory operations."""

from __future__ import annotations

import json

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from lamina import telemetry
from lamina.errors import MemoryNotFound
from lamina.memory.factory import create_memory_engine
from lamina.telemetry import CAPTURE_CONTENT, memory_operation, observed_by
from lamina.testing import HashingEmbedder


@pytest.fixture
def spans(monkeypatch):
    """What is exported; the provider is of this test alone, since a program may set only one."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(telemetry, "_tracer", lambda: provider.get_tracer("lamina"))
    monkeypatch.delenv(CAPTURE_CONTENT, raising=False)
    return lambda: [
        (each.name, dict(each.attributes or {}), each.status.status_code.name) for each in exporter.get_finished_spans()
    ]


@pytest.fixture
async def engine(tmp_path):
    async with await create_memory_engine(path=tmp_path / "a.db", embed=HashingEmbedder(), tenant="acme") as opened:
        yield opened


async def test_each_operation_is_a_span_by_the_standard_names_without_content(engine, spans):
    id = await engine.store("Ann likes tea.", owner="ann")
    await engine.store_many(["One.", "Two."])
    await engine.update(id, owner="ann", tags=["drinks"])
    await engine.recall("What does Ann drink?", owner="ann", limit=2)
    await engine.forget(id, owner="ann")
    await engine.forget_where(owner="default")
    operation, store, record, count = (
        telemetry.OPERATION_NAME,
        telemetry.STORE_ID,
        telemetry.RECORD_ID,
        telemetry.RECORD_COUNT,
    )
    told = [
        (name, {key: value for key, value in facts.items() if key not in {operation, store}})
        for name, facts, _ in spans()
    ]
    assert told[:3] == [
        ("create_memory", {record: id, count: 1}),
        ("create_memory", {count: 2}),
        ("update_memory", {record: id}),
    ]
    assert told[3][0] == "search_memory"
    assert told[3][1][count] >= 1
    assert told[4:] == [("delete_memory", {record: id, count: 1}), ("delete_memory", {count: 2})]
    assert {(facts[operation] == name, facts[store]) for name, facts, _ in spans()} == {(True, "acme")}
    assert "tea" not in repr(spans())
    assert "ann" not in repr(spans())


async def test_texts_are_told_only_where_the_environment_allows_it(engine, spans, monkeypatch):
    monkeypatch.setenv(CAPTURE_CONTENT, "true")
    id = await engine.store("Ann likes tea.")
    await engine.recall("tea", limit=1)
    facts = spans()[-1][1]
    assert facts[telemetry.QUERY_TEXT] == "tea"
    assert json.loads(facts[telemetry.RECORDS]) == [{"id": id, "content": "Ann likes tea."}]


async def test_a_failure_is_told_by_its_kind_without_its_message(engine, spans):
    with pytest.raises(MemoryNotFound):
        await engine.update("SECRET-ID", tags=[])
    name, facts, status = spans()[-1]
    assert (name, facts[telemetry.ERROR_TYPE], status) == ("update_memory", "MemoryNotFound", "ERROR")


async def test_an_observer_is_told_of_each_operation_inside_its_block_alone(engine):
    seen, asked = [], []

    class Observer:
        def memory_operation(self, operation):
            seen.append(operation)

        def embedding_request(self, provider, *, error):
            asked.append((provider, error))

    with observed_by(Observer()):
        await engine.store("Ann likes tea.")
        with pytest.raises(MemoryNotFound):
            await engine.update("none", tags=[])
    await engine.store("Bob likes milk.")
    assert asked == [("testing", None)]
    assert [(each.name, each.error) for each in seen] == [("create_memory", None), ("update_memory", "MemoryNotFound")]
    assert all(each.seconds > 0 for each in seen)


def test_without_the_library_nothing_happens(monkeypatch):
    monkeypatch.setattr(telemetry, "_tracer", lambda: None)
    with memory_operation("search_memory", store="acme") as operation:
        operation.count = 3
    assert operation.seconds >= 0


def test_no_provider_is_ever_set_by_us():
    with memory_operation("search_memory", store="acme"):
        assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
