"""Options, and indexes that are made, found and refused."""

import asyncio

import pytest
from fake_pinecone import API_KEY

from lamina.adapters.pinecone import PineconeAdapter
from lamina.domain.scope import Scope
from lamina.errors import AdapterUnavailable, ConfigError, StoreDamaged
from lamina.ports.memory_adapter import META_TENANT
from lamina.testing.memory_contract.material import LIVE, MINE, NOW, by_vector, ids, listed, memory, put


async def test_an_index_that_is_not_there_is_made_and_waited_for(service, opened):
    adapter = await opened(index_name="new-one", dimension=4, cloud="gcp", region="europe-west4")
    await put(adapter, memory(embedding=[1.0, 0.0]))
    assert ids(await by_vector(adapter, [1.0, 0.0])) == ["m1"]
    assert set(service.indexes) == {"memories", "new-one"}
    again = await opened(index_name="new-one", dimension=4)
    assert ids(await listed(again)) == ["m1"]


async def test_two_that_make_the_same_index_both_open_it(service, opened):
    service.indexes.clear()
    await asyncio.gather(*(opened(index_name="shared", dimension=4) for _ in range(4)))
    assert list(service.indexes) == ["shared"]


async def test_an_index_that_never_gets_ready_is_unavailable(service, opened, monkeypatch):
    state = {"ready": False, "state": "Initializing"}
    monkeypatch.setitem(service.indexes, "memories", _NeverReady(service.indexes["memories"], status=state))
    with pytest.raises(AdapterUnavailable, match="was not ready within"):
        await opened(create_timeout=0.3)


class _NeverReady(dict):
    def __setitem__(self, key, value):
        """It stays as it is."""


async def test_an_index_that_is_not_there_is_missed_by_name(opened):
    with pytest.raises(ConfigError, match="there is no index 'absent'") as refusal:
        await opened(index_name="absent")
    assert refusal.value.field == "dimension"


@pytest.mark.parametrize("metric", ["dotproduct", "euclidean"])
async def test_an_index_of_another_measure_is_refused(service, opened, metric):
    service.create("other", 4, metric)
    with pytest.raises(ConfigError, match="compared by cosine") as refusal:
        await opened(index_name="other")
    assert refusal.value.field == "index_name"


async def test_an_index_without_a_dense_vector_is_refused(service, opened):
    service.create("words", 4)
    service.indexes["words"]["schema"] = {"fields": {"_sparse_values": {"type": "sparse_vector"}}}
    with pytest.raises(ConfigError, match="compared by cosine"):
        await opened(index_name="words")


async def test_an_index_of_another_dimension_is_refused(opened):
    with pytest.raises(ConfigError, match="is 5, but the index 'memories' has 4") as refusal:
        await opened(dimension=5)
    assert refusal.value.field == "dimension"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("index_name", ""),
        ("index_name", "Memories"),
        ("index_name", "-memories"),
        ("index_name", "x" * 46),
        ("table", ""),
        ("table", "a-b"),
        ("table", "é"),
        ("table", "x" * 64),
        ("namespace", "a.b"),
        ("url", "https://user:password@api.pinecone.io"),
        ("url", "ftp://api.pinecone.io"),
        ("url", "https://"),
        ("dimension", 0),
        ("dimension", 20_001),
        ("dimension", True),
        ("threads", 0),
        ("timeout", 0),
        ("create_timeout", float("inf")),
        ("freshness_timeout", -1),
    ],
)
def test_an_option_that_cannot_be_is_refused_by_name(options, field, value):
    with pytest.raises(ConfigError) as refusal:
        PineconeAdapter(**{**options, field: value})
    assert refusal.value.field == field
    assert "password" not in str(refusal.value)


def test_an_option_of_two_names_is_given_once(options):
    PineconeAdapter(**options, table="same", namespace="same")
    with pytest.raises(ConfigError, match="another name for table"):
        PineconeAdapter(**options, table="one", namespace="other")


@pytest.mark.parametrize("key", [None, " ", "key\n"])
async def test_a_key_that_is_none_is_refused(options, monkeypatch, key):
    monkeypatch.delenv("PINECONE_API_KEY", raising=False)
    with pytest.raises(ConfigError) as refusal:
        await PineconeAdapter(**{**options, "api_key": key}).initialize()
    assert refusal.value.field == "api_key"


async def test_the_key_may_come_from_the_environment(opened, monkeypatch):
    monkeypatch.setenv("PINECONE_API_KEY", API_KEY)
    adapter = await opened(api_key=None)
    assert await listed(adapter) == []


def test_the_key_is_not_shown(options):
    adapter = PineconeAdapter(**options)
    assert repr(adapter) == "PineconeAdapter('memories', table='lamina_memories')"
    assert API_KEY not in repr(adapter._options)


async def test_two_tables_never_see_each_other(opened):
    one, other = await opened(table="one"), await opened(namespace="other")
    await put(one, memory("m1", embedding=[1.0, 0.0, 0.0]))
    await put(other, memory("m1", "theirs", embedding=[1.0, 0.0]), memory("m2"))
    await one.save_meta(MINE, "key", "mine", NOW)
    assert [each.content for each in await listed(one)] == ["the harbour lamp is lit"]
    assert await other.load_meta(MINE, "key") is None
    assert ids(await by_vector(other, [1.0, 0.0])) == ["m1"]
    assert await one.delete(MINE, "m2") is False
    assert await other.count(MINE, LIVE) == 2


async def test_a_tenant_whose_name_is_taken_for_ours_has_memories_of_its_own(opened):
    adapter = await opened()
    for tenant in ("lamina", "controls", META_TENANT):
        await put(adapter, memory("version", tenant=tenant, embedding=[1.0]))
        await adapter.save_meta(Scope(tenant), "version", "3", NOW)
    again = await opened()
    assert ids(await listed(again, Scope("lamina"))) == ["version"]


async def test_what_a_newer_lamina_laid_out_is_refused(opened):
    adapter = await opened()
    adapter._keep("lamina", {"version": "2"})
    with pytest.raises(StoreDamaged, match="newer Lamina"):
        await opened()


@pytest.mark.parametrize("field", ["memory", "kind", "length"])
async def test_a_record_of_somebody_else_is_damage_and_is_not_shown(service, adapter, field):
    await put(adapter, memory(content="a secret", embedding=[1.0, 0.0]))
    [record] = service.data[adapter._of_tenant("acme")].visible.values()
    record["metadata"] = {**record["metadata"], field: "spoilt"}
    with pytest.raises(StoreDamaged) as damage:
        await adapter.get(MINE, "m1")
    assert "secret" not in str(damage.value)
