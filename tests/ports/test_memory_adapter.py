from datetime import UTC, datetime

import pytest

from lamina.adapters.in_memory import InMemoryAdapter
from lamina.domain.filters import MemoryFilter
from lamina.domain.memory import MemoryEntry
from lamina.domain.scope import Scope
from lamina.errors import InvalidInput, InvalidType, ScopeError
from lamina.ports.memory_adapter import (
    MemoryAdapter,
)

NOW = datetime(2099, 3, 1, tzinfo=UTC)
MINE = Scope("acme", "ada")
LIVE = MemoryFilter(now=NOW)


class Plain(InMemoryAdapter):
    """An adapter that leaves to the port what the port has defaults for."""

    store_many = MemoryAdapter.store_many
    update_many = MemoryAdapter.update_many
    delete_many = MemoryAdapter.delete_many
    touch = MemoryAdapter.touch
    find_duplicate = MemoryAdapter.find_duplicate
    drop_embeddings = MemoryAdapter.drop_embeddings
    term_statistics = MemoryAdapter.term_statistics


def entry(id: str, **fields) -> MemoryEntry:
    return MemoryEntry(
        **{"content": "x", "tenant": "acme", "owner": "ada", **fields}, id=id, created_at=NOW, updated_at=NOW
    )


async def test_the_default_batch_shows_no_twin_outside_the_scope():
    adapter = Plain()
    await adapter.store(Scope("acme"), entry("theirs", owner="bob"))
    with pytest.raises(ScopeError):
        await adapter.store_many(MINE, [entry("mine", owner="bob")], if_new=True)


async def test_the_default_batch_checks_all_entries_before_it_writes_one():
    adapter = Plain()
    with pytest.raises((InvalidInput, InvalidType)):
        await adapter.store_many(MINE, [entry("m1"), entry("m2", metadata={"odd": {1}})])
    assert await adapter.count(MINE, LIVE) == 0


async def test_the_default_look_up_pages_to_the_end_and_drops_every_vector():
    adapter = Plain()
    await adapter.store_many(MINE, [entry(f"m{n}", content=f"text {n}", embedding=[1.0]) for n in range(1_201)])
    last = await adapter.find_duplicate(MINE, entry("x").layer, entry("x", content="text 1200").digest, NOW)
    assert last is not None
    assert last.id == "m1200"
    assert await adapter.drop_embeddings(MINE) == 1_201
    assert await adapter.count(MINE, MemoryFilter(now=NOW, has_embedding=True)) == 0


async def test_what_is_kept_of_a_tenant_does_not_depend_on_how_its_name_is_spelled():
    adapter = Plain()
    names = [("a/b", "c"), ("a", "b/c"), ("x" * 512, "k"), ("x" * 511, "k")]
    for number, (tenant, key) in enumerate(names):
        await adapter.save_meta(Scope(tenant), key, str(number), NOW)
    assert [await adapter.load_meta(Scope(tenant), key) for tenant, key in names] == ["0", "1", "2", "3"]
