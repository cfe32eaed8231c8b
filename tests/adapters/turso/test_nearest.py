"""The index over vectors: that it is asked, that it agrees, and that a filter loses nothing."""

import numpy as np
import pytest

from lamina.adapters._shared.where_sql import Sql
from lamina.adapters.turso import nearest
from lamina.domain.conditions import Compare, Operator
from lamina.errors import InvalidInput
from lamina.testing.memory_contract.material import MINE, by_vector, ids, listed, memory, where

NUMBER, LENGTH = 600, 128


@pytest.fixture
def vectors() -> np.ndarray:
    random = np.random.default_rng(7)
    middles = random.normal(size=(20, LENGTH))
    return middles[random.integers(0, 20, NUMBER)] + random.normal(size=(NUMBER, LENGTH)) * 0.7


@pytest.fixture
async def indexed(tmp_path, opened, vectors, monkeypatch):
    """An adapter whose index is asked from 100 memories on, and the statements that it ran."""
    monkeypatch.setattr(nearest, "INDEXED_FROM", 100)
    adapter = await opened(path=tmp_path / "lamina.db", vector_index=True)
    entries = [
        memory(f"m{number}", f"lamp {number}", embedding=vector.tolist(), metadata={"rare": number % 200 == 0})
        for number, vector in enumerate(vectors)
    ]
    await adapter.store_many(MINE, entries)
    asked: list[str] = []
    read = adapter._runner.read

    def noted(sql: Sql) -> list[tuple]:
        asked.append(sql.text)
        return read(sql)

    adapter._runner.read = noted
    return adapter, asked


def closest(vectors: np.ndarray, query: np.ndarray, among: range) -> list[str]:
    near = vectors @ query / np.linalg.norm(vectors, axis=1)
    return [f"m{number}" for number in sorted(among, key=lambda each: -near[each])[:10]]


async def test_it_is_asked_and_agrees_with_comparing_all(indexed, vectors) -> None:
    adapter, asked = indexed
    agreed = 0
    for number in range(0, 200, 10):
        query = vectors[number] + 0.1
        found = await by_vector(adapter, query.tolist(), limit=10)
        agreed += len({*ids(found)} & {*closest(vectors, query, range(NUMBER))})
        cosines = [hit.similarity for hit in found]
        assert cosines == sorted(cosines, reverse=True)
    assert agreed / 200 >= 0.95
    assert sum("vector_top_k" in text for text in asked) == 20
    assert not any("MATERIALIZED" in text for text in asked)


async def test_a_filter_that_leaves_few_of_what_it_gives_loses_nothing(indexed, vectors) -> None:
    adapter, asked = indexed
    for number in (3, 77):
        found = await by_vector(
            adapter, vectors[number].tolist(), filter=where(Compare(("rare",), Operator.EQ, True)), limit=3
        )
        assert ids(found) == closest(vectors, vectors[number], range(0, NUMBER, 200))
    assert any("MATERIALIZED" in text for text in asked)


async def test_zero_vectors_are_found_though_no_index_holds_them(indexed) -> None:
    adapter, _ = indexed
    await adapter.store(MINE, memory("zero", "nothing", embedding=[0.0] * LENGTH))
    everything = await by_vector(adapter, [1.0] * LENGTH, limit=1_000)
    assert len(everything) == NUMBER + 1
    assert next(hit.similarity for hit in everything if hit.entry.id == "zero") == 0
    assert len(await by_vector(adapter, [0.0] * LENGTH, limit=1_000)) == NUMBER + 1


async def test_an_index_is_made_over_what_is_there(tmp_path, opened, vectors, monkeypatch) -> None:
    monkeypatch.setattr(nearest, "INDEXED_FROM", 20)
    plain = await opened(path=tmp_path / "lamina.db")
    some = [memory(f"m{number}", f"lamp {number}", embedding=vectors[number].tolist()) for number in range(50)]
    await plain.store_many(MINE, some)
    adapter = await opened(path=tmp_path / "lamina.db", vector_index=True)
    await plain.store(MINE, memory("m50", "lamp 50", embedding=vectors[50].tolist()))
    assert ids(await by_vector(adapter, vectors[50].tolist(), limit=10)) == closest(vectors, vectors[50], range(51))


async def test_a_vector_that_is_longer_than_libsql_takes_is_refused_by_name(tmp_path, opened):
    adapter = await opened(path=tmp_path / "lamina.db")
    with pytest.raises(InvalidInput, match="at most 65536") as refusal:
        await adapter.store_many(MINE, [memory("m1"), memory("m2", "a kite", embedding=[0.5] * 65_537)])
    assert refusal.value.field == "embedding"
    assert await listed(adapter) == []
