"""Row-level security: a second wall between tenants, where the adapter's own conditions are the first."""

from __future__ import annotations

import psycopg
import pytest

from lamina.adapters.postgres.rows import hashes_of
from lamina.domain.scope import Scope
from lamina.testing.memory_contract.material import MINE, NOW, by_text, ids, memory, put

TABLES = ["lamina_memories", *(f"lamina_memories_{part}" for part in ("tenants", "vectors", "history", "meta"))]


@pytest.fixture
async def filled(adapter):
    for tenant in ("acme", "other"):
        await put(adapter, memory(tenant=tenant, embedding=[1.0, 0.0]))
        await adapter.update(Scope(tenant), "m1", {"content": "a secret word"})
        await adapter.save_meta(Scope(tenant), "key", "value", NOW)
    return adapter


@pytest.fixture
def client(filled, url):
    """A session of the tables' own owner, who is no superuser, past the adapter."""
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("table", TABLES)
def test_a_statement_without_any_condition_sees_one_tenant_and_none_if_none_is_set(client, table):
    count = f'SELECT count(*) FROM lamina."{table}"'  # noqa: S608 - the test's own
    assert client.execute(count).fetchone() == (0,)
    with client.transaction():
        client.execute("SELECT set_config('lamina.tenant', 'acme', true)")
        assert client.execute(count).fetchone() == (1,)
        assert client.execute(f'UPDATE lamina."{table}" SET {_any_column(table)}').rowcount == 1  # noqa: S608
    with client.transaction():
        client.execute("SELECT set_config('lamina.tenant', 'nobody', true)")
        assert client.execute(count).fetchone() == (0,)
        assert client.execute(f'DELETE FROM lamina."{table}"').rowcount == 0  # noqa: S608
    assert client.execute(count).fetchone() == (0,)  # what was set ended with its transaction


def test_nothing_can_be_written_into_another_tenant(client):
    with client.transaction(), pytest.raises(psycopg.errors.InsufficientPrivilege):
        client.execute("SELECT set_config('lamina.tenant', 'acme', true)")
        with client.transaction():
            client.execute("UPDATE lamina.lamina_memories SET tenant = 2")


def test_a_superuser_passes_the_wall(aside, filled):
    assert aside("SELECT count(*) FROM lamina.lamina_memories") == [(2,)]


def test_the_index_of_words_tells_no_word_and_no_tenants_words_are_anothers(client):
    found = client.execute("SELECT words FROM lamina.lamina_memories_words ORDER BY tenant").fetchall()
    assert len(found) == 2
    ours, theirs = (set(words) for (words,) in found)
    assert ours.isdisjoint(theirs)
    assert ours == set(hashes_of("acme", ["a", "secret", "word"]))


async def test_words_are_found_by_their_index_behind_the_wall(filled, url, client):
    many = [memory(f"n{number}", f"note number{number}") for number in range(3_000)]
    await filled.store_many(MINE, many)
    assert ids(await by_text(filled, "number77")) == ["n77"]
    for table in ("lamina_memories", "lamina_memories_words"):
        client.execute(f"ANALYZE lamina.{table}")
    with client.transaction():
        client.execute("SELECT set_config('lamina.tenant', 'acme', true)")
        plan = client.execute(
            "EXPLAIN SELECT m.seq FROM lamina.lamina_memories_words AS w JOIN lamina.lamina_memories AS m"
            " ON m.tenant = w.tenant AND m.seq = w.seq WHERE w.words && %s::bigint[]",
            (hashes_of("acme", ["number77"]),),
        ).fetchall()
    assert any("lamina_memories_words_by_word" in line for (line,) in plan), plan


def _any_column(table):
    return {"lamina_memories_tenants": "last_seq = last_seq", "lamina_memories_meta": "value = value"}.get(
        table, "tenant = tenant"
    )
