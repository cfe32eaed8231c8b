"""Memories without `await`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lamina import sync
from lamina.errors import InvalidInput, MemoryNotFound


@pytest.fixture
def engine() -> Iterator[sync.MemoryEngine]:
    with sync.create_memory_engine(provider="memory", embedding="none") as engine:
        yield engine


def test_what_is_stored_is_recalled_edited_and_forgotten(engine: sync.MemoryEngine) -> None:
    id = engine.store("The harbour lamp is green", tags=["place"])
    assert engine.recall("harbour lamp")[0].entry.id == id
    assert engine.update(id, content="The harbour lamp is red").revision == 2
    assert engine.get(id).content == "The harbour lamp is red"
    assert engine.count(tags=["place"]) == 1
    assert engine.stats().memories == 1
    assert engine.forget(id) is True
    assert engine.query() == []


def test_errors_come_through_unchanged(engine: sync.MemoryEngine) -> None:
    with pytest.raises(MemoryNotFound) as caught:
        engine.update("mem_none", content="x")
    assert caught.value.id == "mem_none"
    with pytest.raises(InvalidInput):
        engine.recall("  ")


def test_scanning_yields_everything_in_order_across_pages(engine: sync.MemoryEngine) -> None:
    ids = engine.store_many([f"note number {number}" for number in range(450)])
    assert [entry.id for entry in engine.scan()] == ids


def test_a_scan_that_is_left_early_leaves_the_engine_usable(engine: sync.MemoryEngine) -> None:
    engine.store_many([f"note number {number}" for number in range(450)])
    for _ in engine.scan():
        break
    assert engine.count() == 450


def test_plain_functions_serve_as_hooks() -> None:
    seen = []

    def guard(entry: object) -> None:
        seen.append(entry.content)

    with sync.create_memory_engine(provider="memory", embedding="none", hooks={"on_before_store": guard}) as engine:
        assert engine.store("vetoed by the hook") is None
    assert seen == ["vetoed by the hook"]


def test_plain_functions_serve_as_embedders() -> None:
    def embed(text: str) -> list[float]:
        return [float("lamp" in text), float("train" in text), 0.1]

    with sync.create_memory_engine(provider="memory", embed=embed) as engine:
        engine.store("the lamp in the hall")
        engine.store("the train to the coast")
        assert engine.recall("lamp", mode="vector")[0].entry.content == "the lamp in the hall"


def test_closing_twice_is_closing_once(engine: sync.MemoryEngine) -> None:
    engine.close()
    engine.close()


def test_the_working_store_is_the_engine_s_own(engine: sync.MemoryEngine) -> None:
    engine.working.set("task", 7)
    assert engine.asynchronous.working.get("task") == 7
