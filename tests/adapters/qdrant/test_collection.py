"""The collection: made once, checked when it is opened, apart from others, and widened for new vectors."""

import asyncio

import pytest
from fake_qdrant import QdrantServer
from qdrant_client import QdrantClient, models

from lamina.adapters.qdrant import QdrantAdapter
from lamina.adapters.qdrant.points import HEAD, point_id
from lamina.domain.scope import Scope
from lamina.errors import AdapterError, AdapterUnavailable, ConfigError, StoreDamaged
from lamina.ports.memory_adapter import Capability
from lamina.testing.memory_contract.material import MINE, by_text, by_vector, ids, listed, memory, put


async def opened(*arguments, **options) -> QdrantAdapter:
    adapter = QdrantAdapter(*arguments, **options)
    await adapter.initialize()
    return adapter


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({}, "url"),
        ({"url": "http://127.0.0.1", "path": "x"}, "url"),
        ({"url": "qdrant.example:6333"}, "url"),
        ({"url": "ftp://qdrant.example"}, "url"),
        ({"url": "http://"}, "url"),
        ({"url": "http://u:secret@host:port"}, "url"),
        ({"path": "x", "api_key": "secret"}, "api_key"),
        ({"path": "x", "table": "a-b"}, "table"),
        ({"path": "x", "table": ""}, "table"),
        ({"path": "x", "table": "x" * 64}, "table"),
        ({"path": "x", "collection_name": "é"}, "collection_name"),
        ({"path": "x", "table": "a", "collection_name": "b"}, "collection_name"),
        ({"path": "x", "vector_size": 0}, "vector_size"),
        ({"path": "x", "vector_size": 100_000}, "vector_size"),
        ({"path": "x", "timeout": 0}, "timeout"),
        ({"path": "x", "threads": 0}, "threads"),
        ({"path": "x", "replication_factor": 0}, "replication_factor"),
    ],
    ids=repr,
)
def test_an_option_that_cannot_be_is_named_with_a_remedy(options, field):
    with pytest.raises(ConfigError) as refusal:
        QdrantAdapter(**options)
    assert refusal.value.field == field
    assert refusal.value.remedy
    assert "secret" not in str(refusal.value)


def test_nothing_that_is_printed_shows_a_secret():
    adapter = QdrantAdapter("https://mira:secret@qdrant.example:6333", api_key="hidden")
    assert repr(adapter) == "QdrantAdapter(qdrant.example:6333, table='lamina_memories')"


async def test_two_names_on_one_server_never_meet(qdrant, qdrant_table):
    one = await opened(qdrant.url, table=f"{qdrant_table}_a")
    other = await opened(qdrant.url, collection_name=f"{qdrant_table}_b")
    await put(one, memory("m1", embedding=[1.0, 0.0]))
    await put(other, memory("m1", "a kite", embedding=[1.0, 0.0, 0.0]), memory("m2"))
    assert [(each.id, each.content) for each in await listed(other)] == [
        ("m1", "a kite"),
        ("m2", "the harbour lamp is lit"),
    ]
    assert ids(await by_text(one, "kite")) == []
    await one.delete(MINE, "m1")
    assert ids(await listed(other)) == ["m1", "m2"]
    await one.close()
    await other.close()


async def test_two_names_in_one_folder_never_meet_and_share_it(qdrant_folder):
    one, other = await opened(path=qdrant_folder, table="a"), await opened(path=qdrant_folder, table="b")
    await put(one, memory("m1"))
    await put(other, memory("m2"))
    await one.close()
    assert ids(await listed(other)) == ["m2"]
    await other.close()
    again = await opened(path=qdrant_folder, table="a")
    assert ids(await listed(again)) == ["m1"]
    await again.close()


async def test_a_folder_that_another_process_has_open_is_refused_until_it_is_free(qdrant_folder):
    script = (
        "import sys; from qdrant_client import QdrantClient; client = QdrantClient(path=sys.argv[1]);"
        "print('open', flush=True); sys.stdin.read(); client.close()"
    )
    other = await asyncio.create_subprocess_exec(
        __import__("sys").executable,
        "-c",
        script,
        str(qdrant_folder),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert other.stdin is not None
    assert other.stdout is not None
    assert await other.stdout.readline() == b"open\n"
    adapter = QdrantAdapter(path=qdrant_folder)
    with pytest.raises(AdapterUnavailable, match="another process"):
        await adapter.initialize()
    other.stdin.close()
    await other.wait()
    await adapter.initialize()
    await put(adapter, memory())
    await adapter.close()


async def test_what_is_kept_in_memory_only_is_not_called_kept():
    adapter = await opened(path=":memory:")
    assert Capability.PERSISTENCE not in adapter.capabilities
    assert Capability.PERSISTENCE in QdrantAdapter.capabilities
    await put(adapter, memory())
    assert ids(await listed(adapter)) == ["m1"]
    await adapter.close()
    await adapter.initialize()
    assert await listed(adapter) == []
    await adapter.close()


async def test_a_folder_keeps_vectors_of_every_length(qdrant_folder):
    adapter = await opened(path=qdrant_folder)
    await put(adapter, memory("m1", embedding=[1.0, 0.0]), memory("m1", tenant="other", embedding=[1.0, 0.0, 0.0]))
    await adapter.close()
    await adapter.initialize()
    assert ids(await by_vector(adapter, [1.0, 0.0])) == ["m1"]
    assert ids(await by_vector(adapter, [1.0, 0.0, 0.0], Scope("other"))) == ["m1"]
    await adapter.close()


async def test_a_collection_that_somebody_else_made_is_left_alone(qdrant, qdrant_table):
    theirs = QdrantClient(url=qdrant.url, check_compatibility=False)
    for vectors in ({}, {"sparse_vectors_config": {"terms": models.SparseVectorParams()}}):
        theirs.create_collection(qdrant_table, vectors_config={}, **vectors)
        theirs.upsert(qdrant_table, [models.PointStruct(id=1, vector={}, payload={"theirs": True})])
        adapter = QdrantAdapter(qdrant.url, table=qdrant_table)
        with pytest.raises(StoreDamaged, match="Give another table"):
            await adapter.initialize()
        assert [each.payload for each in theirs.retrieve(qdrant_table, [1])] == [{"theirs": True}]
        theirs.delete_collection(qdrant_table)
    theirs.close()


async def test_a_collection_of_a_newer_layout_is_refused(qdrant, qdrant_table):
    adapter = await opened(qdrant.url, table=qdrant_table)
    await put(adapter, memory())
    await adapter.close()
    with qdrant.lock:
        qdrant.engine.set_payload(qdrant_table, {"layout": 2}, points=[point_id(HEAD)])
    with pytest.raises(StoreDamaged, match="newer Lamina"):
        await adapter.initialize()


async def test_a_point_that_is_not_ours_is_damage_and_its_words_are_not_quoted(qdrant, qdrant_table):
    adapter = await opened(qdrant.url, table=qdrant_table)
    await put(adapter, memory("m1"), memory("m2"))
    with qdrant.lock:
        [first, *_] = [each for each in qdrant.engine.scroll(qdrant_table)[0] if each.payload.get("id") == "m1"]
        for spoilt in ('{"hush": 1}', "no json, hush", first.payload["text"].replace("m1", "m3")):
            qdrant.engine.set_payload(qdrant_table, {"text": spoilt}, points=[first.id])
            for read in (lambda: listed(adapter), lambda: adapter.get(MINE, "m1")):
                with pytest.raises(StoreDamaged) as damage:
                    await asyncio.wait_for(_unlocked(qdrant, read), 20)
                assert "hush" not in str(damage.value)
    await adapter.close()


async def _unlocked(qdrant, read):
    qdrant.lock.release()
    try:
        return await read()
    finally:
        qdrant.lock.acquire()


async def test_an_older_server_takes_vectors_of_the_size_that_was_announced():
    server = QdrantServer(version="1.17.1")
    try:
        adapter = await opened(server.url, table="announced", vector_size=2)
        await put(adapter, memory("m1", embedding=[1.0, 0.0]))
        assert ids(await by_vector(adapter, [1.0, 0.0])) == ["m1"]
        with pytest.raises(AdapterError, match=r"1\.18") as refusal:
            await put(adapter, memory("m1", tenant="other", embedding=[1.0]))
        assert "vector_size" in refusal.value.remedy
        assert await listed(adapter, Scope("other")) == []
        await adapter.close()
    finally:
        server.stop()


async def test_a_server_before_1_20_finds_no_parts_of_texts_and_says_so():
    from lamina.domain.filters import And, Not, Where
    from lamina.errors import Unsupported
    from lamina.testing.memory_contract.material import where

    server = QdrantServer(version="1.19.3")
    try:
        adapter = await opened(server.url)
        for filter in (Where("a").contains("x"), Not(And((Where("b").eq(1), Where("a").contains("x"))))):
            with pytest.raises(Unsupported, match=r"1\.20"):
                await listed(adapter, MINE, where(filter))
        await put(adapter, memory(metadata={"a": [1]}))
        assert ids(await listed(adapter, MINE, where(Where("a").contains(1)))) == ["m1"]
        await adapter.close()
    finally:
        server.stop()


async def test_a_replicated_collection_whose_writes_may_be_read_late_is_refused(qdrant, qdrant_table):
    adapter = await opened(qdrant.url, table=qdrant_table, replication_factor=3)
    await adapter.close()
    assert qdrant.replicas[qdrant_table] == (3, 3)
    qdrant.replicas[qdrant_table] = (3, 1)
    with pytest.raises(AdapterError, match="write_consistency_factor"):
        await adapter.initialize()


async def test_a_collection_in_strict_mode_is_searched_without_what_that_forbids(qdrant_server):
    qdrant_server.strict = True
    adapter = await opened(qdrant_server.url)
    await put(adapter, memory("m1", embedding=[1.0, 0.0]))
    assert ids(await by_vector(adapter, [1.0, 0.0])) == ["m1"]
    await adapter.close()


async def test_many_who_open_at_once_make_one_collection(qdrant, qdrant_table):
    adapters = [QdrantAdapter(qdrant.url, table=qdrant_table) for _ in range(6)]
    await asyncio.gather(*(adapter.initialize() for adapter in adapters))
    await asyncio.gather(*(put(adapter, memory(f"m{number}")) for number, adapter in enumerate(adapters)))
    for adapter in adapters:
        entries = await listed(adapter)
        assert sorted(ids(entries)) == [f"m{number}" for number in range(6)]
        assert len({each.seq for each in entries}) == 6
        await adapter.close()
