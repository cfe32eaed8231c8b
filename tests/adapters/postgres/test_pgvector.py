"""With pgvector, without it, and what happens when it comes or goes."""

from __future__ import annotations

import pytest

from lamina.adapters.postgres import PostgresAdapter
from lamina.domain.recall import Reason
from lamina.errors import Unsupported
from lamina.memory.factory import create_memory_engine
from lamina.ports.memory_adapter import Capability
from lamina.testing import HashingEmbedder
from lamina.testing.memory_contract.material import MINE, by_vector, ids, memory, put


async def test_where_it_may_not_be_installed_vectors_are_kept_and_the_search_is_refused(opened, plain_url, caplog):
    adapter = await opened(plain_url)
    assert Capability.VECTOR not in adapter.capabilities
    assert Capability.VECTOR in PostgresAdapter.capabilities
    assert "Let an owner of the database run CREATE EXTENSION vector" in caplog.text
    await put(adapter, memory(embedding=[1.0, 0.5]))
    assert list((await adapter.get(MINE, "m1")).embedding) == [1.0, 0.5]
    with pytest.raises(Unsupported, match="Install pgvector"):
        await by_vector(adapter, [1.0, 0.0])


async def test_the_engine_then_compares_and_says_so(plain_url):
    adapter = PostgresAdapter(plain_url)
    async with await create_memory_engine(adapter=adapter, embed=HashingEmbedder()) as engine:
        id = await engine.store("The spare key is under the blue pot")
        results = await engine.recall("spare key", mode="vector")
    assert [result.entry.id for result in results] == [id]
    assert Reason.NOT_NATIVE in [each.reason for each in results.degraded]


async def test_what_was_stored_before_it_came_is_found_and_so_is_what_the_unaware_store(opened, plain_url, aside):
    unaware = await opened(plain_url)
    await put(unaware, memory("before", embedding=[1.0, 0.0]))
    aside("CREATE SCHEMA elsewhere")
    aside("GRANT USAGE ON SCHEMA elsewhere TO lamina_app")
    aside("CREATE EXTENSION vector SCHEMA elsewhere")
    aware = await opened(plain_url)
    await put(unaware, memory("after", embedding=[0.0, 1.0]))
    assert ids(await by_vector(aware, [1.0, 0.1])) == ["before", "after"]
    assert Capability.VECTOR not in unaware.capabilities


async def test_where_it_goes_vectors_stay(opened, url, aside):
    adapter = await opened(url)
    await put(adapter, memory("m1", embedding=[1.0, 0.0]))
    aside("DROP EXTENSION vector CASCADE")
    again = await opened(url)
    assert Capability.VECTOR not in again.capabilities
    await put(again, memory("m2", embedding=[0.5, 1.0]))
    aside("CREATE EXTENSION vector")
    await again.initialize()
    assert ids(await by_vector(again, [1.0, 0.0])) == ["m1", "m2"]


async def test_one_that_cannot_go_on_scanning_is_not_asked_to(adapter, aside):
    # What the catalogue says of the version is all that tells; such a pgvector loses what a filter hides.
    aside("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")
    await adapter.initialize()
    await put(adapter, memory("m1", embedding=[1.0, 0.0]))
    assert ids(await by_vector(adapter, [1.0, 0.0])) == ["m1"]
    assert aside("SELECT count(*) FROM pg_indexes WHERE indexdef LIKE '%hnsw%'") == [(0,)]


async def test_who_may_use_the_tables_and_not_change_them_stores_and_finds(opened, url, aside, caplog):
    owner = await opened(url)
    aside("CREATE ROLE lamina_guest LOGIN")
    try:
        aside("GRANT USAGE ON SCHEMA lamina TO lamina_guest")
        aside("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA lamina TO lamina_guest")
        guest = await opened(url.replace("lamina_app@", "lamina_guest@"))
        await put(guest, memory("m1", embedding=[1.0, 0.0]))
        assert ids(await by_vector(guest, [1.0, 0.0])) == ["m1"]
        assert "only the owner of the tables can make one" in caplog.text
        await guest.close()
        await put(owner, memory("m2", embedding=[0.0, 1.0]))
        assert aside("SELECT count(*) FROM pg_indexes WHERE indexdef LIKE '%hnsw%'") == [(1,)]
    finally:
        aside("DROP OWNED BY lamina_guest")
        aside("DROP ROLE lamina_guest")
