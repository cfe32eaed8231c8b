"""Row-level security: a second wall between tenants, where the adapter's own conditions are the first."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from lamina.adapters.postgres import words
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
    with client.transaction():
        client.execute("SELECT set_config('lamina.tenant', 'acme', true)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege), client.transaction():
            client.execute("UPDATE lamina.lamina_memories SET tenant = 2")


def test_a_superuser_passes_the_wall(aside, filled):
    assert aside("SELECT count(*) FROM lamina.lamina_memories") == [(2,)]


def test_the_index_of_words_tells_no_word_and_no_tenants_words_are_anothers(client):
    found = client.execute("SELECT words FROM lamina.lamina_memories_words ORDER BY tenant").fetchall()
    assert len(found) == 2
    ours, theirs = (set(words) for (words,) in found)
    assert ours.isdisjoint(theirs)
    assert ours == set(hashes_of("acme", ["a", "secret", "word"]))


async def test_words_are_found_by_their_index_behind_the_wall(filled, opened, url, aside):
    # So few rows are faster read than looked up; without that choice, the index is taken if it can be.
    adapter = await opened(f"{url}&options=-c%20enable_seqscan%3Doff")
    count = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'lamina_memories_words_by_word'"
    assert aside(count) == [(0,)]
    await filled.store_many(MINE, [memory(f"n{number}", f"note number{number}") for number in range(words.SMALL + 1)])
    assert ids(await by_text(adapter, "number77")) == ["n77"]
    assert ids(await by_text(adapter, "number77 secret")) == ["m1", "n77"]
    await adapter.close()  # a session reports its statistics when it ends, at the latest
    for _ in range(1_000):
        if aside(count)[0][0] >= 3:  # the search for one, the frequencies of two, the search for two
            return
        await asyncio.sleep(0.005)
    pytest.fail("the index was not used")


def _any_column(table):
    return {"lamina_memories_tenants": "last_seq = last_seq", "lamina_memories_meta": "value = value"}.get(
        table, "tenant = tenant"
    )
