"""Options, and collections that are made, found and refused."""

import asyncio

import pytest
from fake_weaviate import API_KEY

from lamina.adapters.weaviate import WeaviateAdapter
from lamina.adapters.weaviate.connection import Connection
from lamina.adapters.weaviate.layout import Vectors
from lamina.domain.filters import MemoryFilter
from lamina.domain.scope import Scope
from lamina.errors import ConfigError, StoreDamaged
from lamina.ports.memory_adapter import META_TENANT
from lamina.testing.memory_contract.material import (
    LIVE,
    MINE,
    NOW,
    by_text,
    by_vector,
    ids,
    listed,
    memory,
    put,
    second,
)


async def test_a_collection_that_is_not_there_is_made_and_found_again(service, opened):
    adapter = await opened(class_name="Memory")
    await put(adapter, memory(embedding=[1.0, 0.0]))
    assert list(service.classes) == ["Memory"]
    again = await opened(table="Memory")
    assert ids(await listed(again)) == ids(await by_vector(again, [1.0, 0.0])) == ["m1"]


async def test_those_that_make_the_same_collection_all_open_it(service, opened):
    await asyncio.gather(*(opened(table="shared") for _ in range(4)))
    assert list(service.classes) == ["Shared"]


async def test_two_that_add_indexes_at_the_same_time_both_have_theirs(service, opened):
    one, other = await opened(), await opened()
    await asyncio.gather(
        *(put(one, memory(tenant=f"a{n}", embedding=[1.0] * n)) for n in range(2, 7)),
        *(put(other, memory(tenant=f"b{n}", embedding=[1.0] * n)) for n in range(5, 10)),
    )
    [definition] = service.classes.values()
    assert set(definition["vectorConfig"]) == {f"of_{n}" for n in range(1, 10)}
    for n in range(5, 10):
        assert ids(await by_vector(one, [1.0] * n, Scope(f"b{n}"))) == ["m1"]


async def test_an_index_that_somebody_else_added_in_between_is_not_taken_away(opened, monkeypatch):
    one, other = await opened(), await opened()
    vectors: Vectors = one._opened._vectors
    add, is_first = vectors._collection.config.add_vector, [True]

    def add_later(**config):
        if is_first.pop() if is_first else False:
            vectors_of_other: Vectors = other._opened._vectors
            vectors_of_other.need(3)
        add(**config)

    monkeypatch.setattr(vectors._collection.config, "add_vector", add_later)
    vectors.need(3)
    assert vectors.has(3)


async def test_a_collection_that_an_earlier_version_made_learns_what_is_current(service, opened):
    first = await opened(class_name="Memory")
    await put(first, memory("m1", embedding=[1.0, 0.0]))
    properties = service.classes["Memory"]["properties"]
    properties[:] = [each for each in properties if not each["name"].startswith("holds")]
    again = await opened(class_name="Memory")
    await put(again, memory("m2", "two", superseded_by="m1"), memory("m3", "three", valid_until=second(1)))
    assert ids(await listed(again, MINE, MemoryFilter(now=NOW, current=True))) == ["m1", "m3"]


async def test_a_collection_of_somebody_else_is_refused(service, opened):
    await opened(table="theirs")
    service.classes["Theirs"]["properties"] = service.classes["Theirs"]["properties"][3:]
    with pytest.raises(ConfigError, match=r"none of Lamina's") as refusal:
        await opened(class_name="Theirs")
    assert refusal.value.field == "class_name"


@pytest.mark.parametrize(("first", "second"), [("notes", "Notes"), ("myNotes", "mynotes"), ("A_b", "a_B")])
async def test_names_that_weaviate_does_not_tell_apart_are_refused(opened, first, second):
    adapter = await opened(table=first)
    await put(adapter, memory())
    with pytest.raises(ConfigError) as refusal:
        await opened(table=second)
    assert refusal.value.field == "table"
    assert ids(await listed(adapter)) == ["m1"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("url", "localhost:8080"),
        ("url", "http://user:password@localhost:8080"),
        ("url", "ftp://localhost"),
        ("url", "http://localhost:8080/path"),
        ("url", "http://localhost:99999"),
        ("api_key", " "),
        ("api_key", "key\n"),
        ("grpc_host", ""),
        ("grpc_host", "http://localhost"),
        ("grpc_port", 0),
        ("grpc_port", True),
        ("table", ""),
        ("table", "a-b"),
        ("table", "é"),
        ("table", "1a"),
        ("table", "x" * 64),
        ("class_name", "a.b"),
        ("threads", 0),
        ("timeout", 0),
        ("freshness_timeout", float("inf")),
    ],
)
def test_an_option_that_cannot_be_is_refused_by_name(options, field, value):
    with pytest.raises(ConfigError) as refusal:
        WeaviateAdapter(**{**options, field: value})
    assert refusal.value.field == field
    assert "password" not in str(refusal.value)


def test_an_option_of_two_names_is_given_once(options):
    WeaviateAdapter(**options, table="same", class_name="same")
    with pytest.raises(ConfigError, match="another name for table"):
        WeaviateAdapter(**options, table="one", class_name="other")


def test_grpc_is_on_a_port_of_its_own(service):
    with pytest.raises(ConfigError) as refusal:
        WeaviateAdapter(service.url, grpc_port=int(service.url.rpartition(":")[2]))
    assert refusal.value.field == "grpc_port"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:8080", ("localhost", 50_051)),
        ("https://weaviate.example", ("weaviate.example", 50_051)),
        ("https://abc.c0.europe-west3.gcp.weaviate.cloud", ("grpc-abc.c0.europe-west3.gcp.weaviate.cloud", 443)),
        ("https://abc.weaviate.network", ("abc.grpc.weaviate.network", 443)),
    ],
)
def test_where_grpc_answers_is_known_of_weaviates_own_services(url, expected):
    connection = Connection(
        url=url, api_key=None, grpc_host=None, grpc_port=None, threads=1, timeout=1, freshness_timeout=1
    )
    assert connection.grpc_address == expected


def test_the_key_is_not_shown(options):
    adapter = WeaviateAdapter(**options, api_key=API_KEY)
    assert API_KEY not in repr(adapter) + repr(adapter._connection)


async def test_two_tables_never_see_each_other(opened):
    one, other = await opened(table="one"), await opened(table="other")
    await put(one, memory("m1", embedding=[1.0, 0.0, 0.0]))
    await put(other, memory("m1", "theirs", embedding=[1.0, 0.0]), memory("m2"))
    await one.save_meta(MINE, "key", "mine", NOW)
    assert [each.content for each in await listed(one)] == ["the harbour lamp is lit"]
    assert await other.load_meta(MINE, "key") is None
    assert ids(await by_vector(other, [1.0, 0.0])) == ["m1"]
    assert ids(await by_text(one, "theirs")) == []
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


@pytest.mark.parametrize(("field", "value"), [("memory", "spoilt"), ("memory", None), ("embedding", "AAA=")])
async def test_an_object_of_somebody_else_is_damage_and_is_not_shown(service, adapter, field, value):
    await put(adapter, memory(content="a secret", embedding=[1.0, 0.0]))
    [shards] = service.shards.values()
    for shard in shards.values():
        for values in shard.objects.values():
            if "memory" in values:
                values[field] = value
    with pytest.raises(StoreDamaged) as damage:
        await adapter.get(MINE, "m1")
    assert "secret" not in str(damage.value)
