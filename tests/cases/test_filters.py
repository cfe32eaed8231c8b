"""Filters and metadata: one rule on every store, keys are values, and the owner holds whatever they say."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from lamina.domain.filters import Where
from lamina.errors import LaminaError

EVERYWHERE = pytest.mark.parametrize("place", ["memory", "sqlite", "postgres"], indirect=True)


async def matching(engine, where):
    return sorted([entry.content for entry in await engine.query(where=where)])


@pytest.mark.case("B50")
@EVERYWHERE
async def test_an_owner_holds_in_both_legs_and_in_what_is_made_of_them(engine):
    mine = await engine.store("the boat is in the shed by the mill", owner="mira", tags=["boat"])
    await engine.store_many([{"content": f"where is the boat? {n}", "owner": "tomas"} for n in range(30)])
    for mode in ("hybrid", "vector", "text"):
        for given in ({"owner": "mira"}, {"tags": ["boat"]}, {"owner": "mira", "where": Where("x").exists(False)}):
            assert [hit.entry.id for hit in await engine.recall("where is the boat?", mode=mode, **given)] == [mine]


NUMBERS = {"nine": 9, "ten": 10, "nine and a half": 9.5, "minus": -10, "thousand": 1e3, "text": "10", "flag": True}


@pytest.mark.case("B52")
@EVERYWHERE
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (Where("p").gt(9), ["nine and a half", "ten", "thousand"]),
        (Where("p").gt(9.5), ["ten", "thousand"]),
        (Where("p").lt(0), ["minus"]),
        (Where("p").eq(10.0), ["ten"]),
        (Where("p").eq(1000), ["thousand"]),
        (Where("p").gte("1"), ["text"]),
        (Where("p").eq(1), []),
        (Where("p").is_in([True]), ["flag"]),
        ({"p": {"gt": 9, "lt": 1e2}}, ["nine and a half", "ten"]),
    ],
)
async def test_numbers_are_compared_as_numbers_and_only_with_numbers(engine, where, expected):
    await engine.store_many([{"content": name, "metadata": {"p": value}} for name, value in NUMBERS.items()])
    assert await matching(engine, where) == sorted(expected)


@pytest.mark.case("B53")
@EVERYWHERE
async def test_a_field_that_is_not_there_meets_no_condition_but_that(engine):
    metadata = {"due": {"due": 7}, "null": {"due": None}, "none": {}, "text": {"due": "7"}}
    await engine.store_many([{"content": name, "metadata": value} for name, value in metadata.items()])
    assert await matching(engine, Where("due").gt(5)) == ["due"]
    assert await matching(engine, Where("due").ne(5)) == ["due", "null", "text"]
    assert await matching(engine, Where("due").not_in([5])) == ["due", "null", "text"]
    assert await matching(engine, Where("due").exists(False)) == ["none"]
    assert await matching(engine, Where("due").eq(None)) == ["null"]


@pytest.mark.case("B55")
@EVERYWHERE
async def test_a_dot_in_a_text_is_a_path_and_a_tuple_reaches_the_name(engine):
    await engine.store("path", metadata={"geo": {"city": "Izmir"}})
    await engine.store("name", metadata={"geo.city": "Bursa"})
    assert await matching(engine, Where("geo.city").eq("Izmir")) == ["path"]
    assert await matching(engine, Where(("geo.city",)).eq("Bursa")) == ["name"]
    assert await matching(engine, {"geo.city": "Bursa"}) == []
    assert await matching(engine, Where("geo.city").exists()) == ["path"]


KEPT = {"list": [1, [2, "x"], None], "deep": {"a": {"b": [True, 1.5]}}, "null": None, "big": 2**63 - 1, "small": 1e-300}
REFUSED = {
    "day": datetime(2026, 3, 1, tzinfo=UTC),
    "huge": 2**70,
    "nan": float("nan"),
    "infinite": float("-inf"),
    "decimal": Decimal("1.10"),
    "bytes": b"x",
    "set": {1},
}


@pytest.mark.case("B56")
@EVERYWHERE
async def test_a_value_comes_back_exactly_or_is_refused_by_its_place(engine):
    id = await engine.store("kept", metadata=KEPT)
    back = (await engine.get(id)).metadata
    assert back == KEPT
    assert json.dumps(back, allow_nan=False, sort_keys=True) == json.dumps(KEPT, allow_nan=False, sort_keys=True)
    for name, value in REFUSED.items():
        for wrapped in ({name: value}, {"a": [{name: value}]}):
            with pytest.raises(LaminaError, match="metadata"):
                await engine.store("refused", metadata=wrapped)
    assert await engine.count() == 1


HOSTILE = [
    "a') = 1 OR ('1",
    "a' OR '1'='1' --",
    'a" /* ',
    "a'}' OR TRUE --",
    "$.a",
    "$[*]",
    "a[0]",
    "a; DROP TABLE lamina_memories; --",
    "owner",
    "%",
    "?1",
    ":x",
    "\\",
    "x" * 400,
]


@pytest.mark.case("B58", "B59")
@EVERYWHERE
@pytest.mark.parametrize("key", HOSTILE)
async def test_a_key_of_any_letters_is_a_value_and_reaches_no_other_owner(engine, key):
    await engine.store("mine", owner="tomas", metadata={"a": 1})
    await engine.store("theirs", owner="mira", metadata={"a": 1, "owner": "mira"})
    for where in (Where((key,)).eq("mira"), Where((key, key)).gt(0), Where((key,)).contains("x")):
        assert await engine.query(where=where, owner="tomas") == []
        assert await engine.recall("mine theirs", where=where, owner="tomas") == []
        assert await engine.forget_where(where=where, owner="tomas") == 0
    assert [entry.content for entry in await engine.query(owner="tomas")] == ["mine"]
    await engine.store("named", owner="tomas", metadata={key: "mira"})
    assert [entry.content for entry in await engine.query(where=Where((key,)).eq("mira"), owner="tomas")] == ["named"]


@pytest.mark.case("B58", "B59")
async def test_a_filter_of_any_letters_is_a_value_through_every_interface(http, tools, kernel):
    await kernel.memory_engine.store("theirs", owner="mira", metadata={"a": 1})
    await kernel.memory_engine.store("mine", owner="ann", metadata={"a": 1})
    await kernel.rag.ingest("theirs", "x.md", owner="mira", a=1)
    async with tools() as call:
        for key in HOSTILE:
            body = {"query": "theirs", "owner": "ann", "where": {key: 1}}
            for route in ("memories/recall", "documents/retrieve"):
                answer = await http.post(f"/v1/{route}", json=body)
                assert answer.status_code in (200, 422), answer.text
                assert answer.status_code == 422 or answer.json()["data"] == []
            answer = await http.post("/v1/memories/forget", json={"owner": "ann", "where": {key: 1}})
            assert answer.status_code == 422 or answer.json()["count"] == 0
            found = await call("search_memories", query="theirs", filters={"where": {key: 1}})
            assert found["results"] == []
    assert await kernel.memory_engine.count() == 2
