"""Packs on real SQLite files, with a driven clock and a deterministic embedder."""

from __future__ import annotations

import pytest

from lamina.adapters.in_memory import InMemoryAdapter
from lamina.adapters.sqlite import SqliteAdapter
from lamina.databases.sqlite import SqliteDatabase
from lamina.domain.pack_decay import Tier
from lamina.errors import AdapterUnavailable, ProviderUnavailable
from lamina.packs.service import ContextPacks
from lamina.state.sqlite import SqlitePackStore
from lamina.testing import FrozenClock, HashingEmbedder


class FlakyEmbedder(HashingEmbedder):
    """A real one, until it is told to be down."""

    is_down = False

    async def embed_documents(self, texts):
        if self.is_down:
            raise ProviderUnavailable("The embedder", "it is down")
        return await super().embed_documents(texts)

    async def embed_query(self, text):
        if self.is_down:
            raise ProviderUnavailable("The embedder", "it is down")
        return await super().embed_query(text)


class FlakyAdapter(SqliteAdapter):
    """A real one, until it is told that its writes or deletions fail."""

    fails_to_write = False
    fails_to_delete = False

    async def store_many(self, scope, entries, **options):
        if self.fails_to_write and entries:
            raise AdapterUnavailable(self.name, "the disk is full")
        return await super().store_many(scope, entries, **options)

    async def delete_many(self, scope, ids, **options):
        if self.fails_to_delete and ids:
            raise AdapterUnavailable(self.name, "the disk is full")
        return await super().delete_many(scope, ids, **options)


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
def embedder():
    return FlakyEmbedder()


@pytest.fixture
def events():
    return []


@pytest.fixture
async def open_packs(tmp_path, clock, embedder, events):
    """Opens services, all on one file unless told otherwise, and closes them at the end."""
    opened = []

    async def open_one(*, path=tmp_path / "lamina.db", adapter=None, store=None, **options):
        database = SqliteDatabase(path)
        adapter = adapter or FlakyAdapter(None, database=database, table="lamina_packs")
        store = store or SqlitePackStore(None, database=database)
        defaults = {"embedder": embedder, "clock": clock, "emit": events.append}
        packs = ContextPacks(store, adapter, **{**defaults, **options})
        packs.kept, packs.rows = store, adapter
        await packs.initialize()
        opened.append(packs)
        return packs

    yield open_one
    for packs in opened:
        await packs.close()


@pytest.fixture(params=["sqlite", "memory"])
async def packs(request, open_packs):
    """A service whose rows are in each kind of adapter in turn; the truth is always in SQLite."""
    return await open_packs(adapter=InMemoryAdapter() if request.param == "memory" else None)


@pytest.fixture
async def wafers(packs):
    """The service with a shared pack of three memories; their ids are `a`, `b` and `c`."""
    await packs.create(
        "chip_domain", "domain", description="Facts on chip making and wafer yield", tags=["wafers", "yield"]
    )
    texts = {
        "a": "Wafer yield drops when the clean room is above 22 degrees",
        "b": "A lithography step projects the circuit onto the wafer",
        "c": "Etching removes what the resist does not cover",
    }
    await packs.add_many("chip_domain", [{"id": id, "content": text} for id, text in texts.items()])
    return packs


@pytest.fixture
def fade(clock):
    """Puts a memory into a tier as a sweep does: the store first, then its row."""

    async def fade_one(packs, id, tier, text=None):
        (memory,) = await packs.kept.get_memories(packs.tenant, [id])
        assert await packs.kept.set_tier(packs.tenant, id, Tier(tier), expected_revision=memory.revision, now=clock())
        (faded,) = await packs.kept.get_memories(packs.tenant, [id])
        await packs._index.project([faded], {} if text is None else {id: text})

    return fade_one
