"""What the database ranks, and how it gets there: by the index where there are many, and exactly after all."""

import json
from random import Random

import psycopg
import pytest

from lamina.adapters.supabase.setup import setup_sql
from lamina.domain.closeness import cosines
from lamina.domain.filters import MemoryFilter, Where
from lamina.domain.scope import Scope
from lamina.errors import InvalidInput
from lamina.testing.memory_contract.material import MINE, NOW, by_text, by_vector, ids, listed, memory, put, where

RANDOM = Random(11)
VECTORS = [[RANDOM.gauss(0, 1) for _ in range(8)] for _ in range(400)]


def _vectored(number, **fields):
    return memory(f"m{number:03d}", embedding=VECTORS[number], metadata={"n": number}, **fields)


@pytest.fixture
async def indexed(opened, supabase, table):
    """An adapter whose database turns to the index beyond 50 vectors in reach, in place of 20,000."""
    adapter = await opened()
    sql = setup_sql(table, "public").replace("20001", "51").replace("20000", "50")
    supabase.run(sql, user="project_owner")
    await adapter.store_many(Scope("acme"), [_vectored(number) for number in range(400)])
    supabase.run_on(table, "ANALYZE {table}")
    return adapter


def _closest(query, numbers, limit):
    values = cosines(query, [VECTORS[number] for number in numbers])
    ranked = sorted(zip(values, numbers, strict=True), key=lambda pair: (-pair[0], pair[1]))
    return [f"m{number:03d}" for _, number in ranked[:limit]]


async def test_the_index_finds_what_a_comparison_with_all_would(indexed, supabase, table):
    definitions = supabase.run_on(table, "SELECT indexdef FROM pg_indexes WHERE indexname = '{table}__nearest_8'")
    assert "hnsw" in definitions[0][0]
    overlap = 0
    for _ in range(20):
        query = [RANDOM.gauss(0, 1) for _ in range(8)]
        overlap += len({*ids(await by_vector(indexed, query, limit=10))} & {*_closest(query, range(400), 10)})
    assert overlap >= 190  # of 200


async def test_a_filter_loses_nothing_of_the_index(indexed):
    query = [1.0] + [0.0] * 7
    odd = where(Where("n").is_in(range(1, 400, 4)))
    assert len(await by_vector(indexed, query, filter=odd, limit=60)) == 60
    rare = where(Where("n").gte(395))
    assert ids(await by_vector(indexed, query, filter=rare, limit=10)) == _closest(query, range(395, 400), 10)
    assert len(await by_vector(indexed, query, limit=1_000)) == 400


async def test_a_zero_vector_is_found_beside_the_index(indexed):
    await put(indexed, memory("zero", embedding=[0.0] * 8))
    hits = await by_vector(indexed, [1.0] + [0.0] * 7, limit=401)
    assert {hit.entry.id: hit.similarity for hit in hits}["zero"] == 0.0
    assert len(hits) == 401
    assert len(await by_vector(indexed, [0.0] * 8, limit=10)) == 10


async def test_vectors_that_no_index_takes_are_compared_one_by_one(opened):
    adapter = await opened()
    await put(adapter, memory("near", embedding=[1.0] * 4_000), memory("far", embedding=[1.0, -1.0] * 2_000))
    assert ids(await by_vector(adapter, [1.0] * 4_000)) == ["near", "far"]


async def test_vectors_that_the_database_cannot_hold_are_refused_by_name(opened):
    adapter = await opened()
    with pytest.raises(InvalidInput, match="16000") as refusal:
        await put(adapter, memory(embedding=[1.0] * 16_001))
    assert refusal.value.field == "embedding"
    assert await listed(adapter) == []


async def test_an_update_of_another_field_keeps_the_exact_vector(opened):
    adapter = await opened()
    await put(adapter, memory(embedding=[0.1, 1e-30]))
    await adapter.update(MINE, "m1", {"content": "changed"})
    before = memory(embedding=[0.1, 1e-30])
    back = await adapter.get(MINE, "m1")
    assert list(back.embedding) == pytest.approx(before.embedding, rel=1e-7)


async def test_words_too_long_for_an_index_are_found_whole(opened):
    adapter = await opened()
    long = "x" * 5_000
    await put(adapter, memory("m1", f"a {long}q"), memory("m2", f"a {long}z"))
    assert ids(await by_text(adapter, f"{long}z")) == ["m2"]
    assert (await adapter.term_statistics(MINE, [f"{long}q", long], NOW)).frequencies == {f"{long}q": 1, long: 0}


async def test_of_many_that_hold_a_common_word_those_with_the_rare_one_come_first(opened):
    adapter = await opened()
    common = [memory(f"c{number:04d}", f"harbour number{number}") for number in range(400)]
    await adapter.store_many(MINE, [*common, *(memory(f"z{number}", "harbour heron") for number in range(3))])
    assert ids(await by_text(adapter, "harbour heron", limit=4)) == ["z0", "z1", "z2", "c0000"]
    assert len(await by_text(adapter, "harbour heron", limit=1_000)) == 403


async def test_conditions_use_their_indexes(opened, supabase, table):
    """The database's own plans, on a table large enough for them."""
    adapter = await opened()
    numbers = range(2_000)
    await adapter.store_many(
        MINE, [memory(f"m{n}", f"word{n} lamp", metadata={"geo": {"n": n}}, tags=[f"t{n}"]) for n in numbers]
    )
    supabase.run_on(table, "ANALYZE {table}")
    for asked, index in (
        ({"where": {"operator": "eq", "path": ["geo", "n"], "operand": 7}}, "by_metadata"),
        ({"tags": ["t7"]}, "by_tag"),
        ({"digests": [memory(content="word7 lamp").digest]}, "by_digest"),
        ({"after": 1_990}, "by_seq"),
    ):
        assert f"{table}__{index}" in _plan(supabase, table, {"tenant": "acme", **asked})


def _plan(supabase, table, query):
    """How the database would look for what the query asks."""
    with psycopg.connect(supabase.database_url) as connection:
        connection.execute("SET LOCAL ROLE NONE")
        claims = json.dumps({"role": "authenticated", "tenant": "acme"})
        connection.execute("SELECT set_config('request.jwt.claims', %s, true)", [claims])
        [text] = connection.execute(f'SELECT "{table}__condition"(%s::jsonb)', [json.dumps(query)]).fetchone()
        literal = psycopg.sql.Literal(json.dumps(query)).as_string(connection)
        statement = f'EXPLAIN SELECT m.id FROM "{table}" AS m WHERE {text}'  # noqa: S608 - the database's own
        statement = statement.replace("$1", f"{literal}::jsonb")
        return "\n".join(row[0] for row in connection.execute(statement))


async def test_filters_hold_in_searches_of_words_too(opened):
    adapter = await opened()
    await put(adapter, *(memory(f"m{n}", metadata={"n": n}, expires_at=NOW if n == 3 else None) for n in range(5)))
    assert ids(await by_text(adapter, "harbour", filter=where(Where("n").gt(1)))) == ["m2", "m4"]
    assert ids(await by_text(adapter, "harbour", filter=MemoryFilter(now=NOW), limit=2)) == ["m0", "m1"]
