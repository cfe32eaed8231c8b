"""What goes wrong between the adapter and its server: a typed error, no half write, recovery without restart."""

import asyncio
import subprocess
import sys
from datetime import UTC, datetime

import pymongo
import pytest
import services
from real_mongodb import MongoDBServer
from secantus.server import SecantusDBServer

from lamina.adapters.mongodb import layout
from lamina.domain.lexical import ANALYZER_VERSION
from lamina.domain.memory import MemoryEntry
from lamina.errors import AdapterError, AdapterUnavailable, EmbeddingDimensionError, InvalidInput, StoreDamaged
from lamina.ports.memory_adapter import Update
from lamina.testing.memory_contract.material import MINE, NOW, by_text, ids, listed, memory, put, second

TRANSIENT = {"errorLabels": ["TransientTransactionError"]}


@pytest.fixture
def own_server():
    """A server that the test may kill."""
    server = MongoDBServer(durable=True)
    yield server
    server.stop()


async def test_a_server_that_is_down_is_said_to_be_and_is_found_when_it_is_up(own_server, opened):
    own_server.kill()
    adapter = opened(own_server.url, connect_timeout=0.3, timeout=2)
    with pytest.raises(AdapterUnavailable, match=f"127.0.0.1:{own_server.port}"):
        await adapter.initialize()
    own_server.start()
    await adapter.initialize()
    await put(adapter, memory())
    assert ids(await listed(adapter)) == ["m1"]


async def test_a_server_that_is_killed_in_mid_write_leaves_nothing_half_and_the_adapter_works_on(own_server, opened):
    adapter = opened(own_server.url, connect_timeout=0.5, timeout=3)
    await adapter.initialize()
    await put(adapter, memory("before"))

    async def write(number: int) -> bool:
        batch = [memory(f"b{number}-{each}", f"of the batch {number}", embedding=[1.0, 0.0]) for each in range(10)]
        try:
            await adapter.store_many(MINE, batch)
        except AdapterUnavailable:
            return False
        return True

    writes = [asyncio.ensure_future(write(number)) for number in range(8)]
    await asyncio.wait(writes, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.to_thread(own_server.kill)
    acknowledged = await asyncio.gather(*writes)
    assert not all(acknowledged)
    with pytest.raises(AdapterUnavailable):
        await listed(adapter)
    await asyncio.to_thread(own_server.start)
    entries = ids(await listed(adapter))
    for number, is_acknowledged in enumerate(acknowledged):
        found = sum(each.startswith(f"b{number}-") for each in entries)
        assert found == 10 if is_acknowledged else found in {0, 10}
    await put(adapter, memory("after"))
    assert ids(await listed(adapter))[0 :: len(entries)] == ["before", "after"]


async def test_a_commit_whose_answer_is_lost_is_asked_for_again_and_done_once(mongodb_proxy, mongodb_table, opened):
    adapter = opened(mongodb_proxy.url, table=mongodb_table)
    await adapter.initialize()
    mongodb_proxy.cut_after = lambda command: "commitTransaction" in command and not mongodb_proxy.cuts
    await adapter.store(MINE, memory())
    assert mongodb_proxy.cuts == 1
    [entry] = await listed(adapter)
    assert (entry.id, entry.revision) == ("m1", 1)
    assert await adapter.history(MINE, "m1") == []


async def test_a_commit_whose_answer_never_comes_is_said_to_be_unknown_and_a_repeat_settles_it(
    mongodb_proxy, mongodb_table, opened
):
    adapter = opened(mongodb_proxy.url, table=mongodb_table, timeout=2)
    await adapter.initialize()
    mongodb_proxy.cut_after = lambda command: "commitTransaction" in command
    with pytest.raises(AdapterUnavailable, match="not known"):
        await adapter.store_many(MINE, [memory()], if_new=True)
    mongodb_proxy.cut_after = lambda command: False
    [twin] = await adapter.store_many(MINE, [memory()], if_new=True)
    assert twin is not None
    assert [(each.id, each.revision) for each in await listed(adapter)] == [("m1", 1)]


async def test_a_connection_that_is_cut_before_the_commit_leaves_nothing_and_is_tried_again(
    mongodb_proxy, mongodb_table, opened
):
    adapter = opened(mongodb_proxy.url, table=mongodb_table)
    await adapter.initialize()
    mongodb_proxy.cut_after = lambda command: "insert" in command and not mongodb_proxy.cuts
    await adapter.store_many(MINE, [memory("m1"), memory("m2", "a kite")])
    assert mongodb_proxy.cuts == 1
    assert [(each.id, each.revision) for each in await listed(adapter)] == [("m1", 1), ("m2", 1)]


@pytest.mark.parametrize("code", [112, 251, 10107, 189], ids=["conflict", "gone", "not primary", "stepped down"])
async def test_a_transaction_that_the_server_gives_up_is_tried_again(mongodb, adapter, code):
    with mongodb.failing("insert", times=2, errorCode=code, **TRANSIENT):
        await put(adapter, memory())
    assert ids(await listed(adapter)) == ["m1"]


async def test_a_full_disk_is_said_to_be_one_and_nothing_is_written(mongodb, adapter):
    await put(adapter, memory("before"))
    with mongodb.failing("insert", errorCode=14031), pytest.raises(AdapterUnavailable, match="no space left"):
        await adapter.store_many(MINE, [memory("m1"), memory("m2")])
    assert ids(await listed(adapter)) == ["before"]
    await put(adapter, memory("after"))
    assert ids(await by_text(adapter, "lamp")) == ["after", "before"]


async def test_a_slow_server_is_not_waited_for_longer_than_the_timeout(mongodb, mongodb_table, opened):
    adapter = opened(mongodb.url, table=mongodb_table, timeout=0.4)
    await adapter.initialize()
    with (
        mongodb.failing("find", blockConnection=True, blockTimeMS=3_000),
        pytest.raises(AdapterUnavailable, match="took too long"),
    ):
        await listed(adapter)
    with (
        mongodb.failing("insert", times=2, blockConnection=True, blockTimeMS=3_000),
        pytest.raises(AdapterUnavailable, match="took too long"),  # and not that others were faster
    ):
        await put(adapter, memory())
    patient = opened(mongodb.url, table=mongodb_table)
    await patient.initialize()
    assert await listed(patient) == []


@pytest.mark.parametrize("code", [50, 91, 262, 11600, 13436], ids=str)
async def test_a_server_that_cannot_answer_now_is_unavailable_and_never_empty(mongodb, mongodb_table, opened, code):
    adapter = opened(mongodb.url, table=mongodb_table, connect_timeout=5, timeout=4)  # it tries again till then
    await adapter.initialize()
    await put(adapter, memory())
    with mongodb.failing("find", "aggregate", errorCode=code), pytest.raises(AdapterUnavailable):
        await by_text(adapter, "lamp")
    assert ids(await by_text(adapter, "lamp")) == ["m1"]


async def test_what_the_user_may_not_do_is_an_error_that_names_the_remedy(mongodb, adapter):
    with mongodb.failing("find", errorCode=13), pytest.raises(AdapterError, match="readWrite") as refusal:
        await adapter.get(MINE, "m1")
    assert not isinstance(refusal.value, AdapterUnavailable)


async def test_a_wrong_password_is_refused_and_shown_nowhere(own_server, opened):
    with own_server.client() as client:
        client.admin.command("createUser", "mira", pwd="right-one", roles=["root"])
    own_server.kill()
    own_server.arguments = ("--auth",)
    own_server.start()
    host = f"127.0.0.1:{own_server.port}/?authSource=admin"
    wrong = opened(f"mongodb://mira:hunter2@{host}", connect_timeout=2)
    with pytest.raises(AdapterError, match="refused the login") as refusal:
        await wrong.initialize()
    assert not isinstance(refusal.value, AdapterUnavailable)
    shown = [repr(wrong), str(refusal.value), repr(refusal.value.__cause__)]
    assert not any("hunter2" in each or "mira" in each for each in shown)
    right = opened(f"mongodb://mira:right-one@{host}")
    await right.initialize()
    await put(right, memory())
    assert ids(await listed(right)) == ["m1"]


async def test_a_newer_layout_is_refused_and_left_alone(mongodb, adapter, mongodb_table, opened):
    await put(adapter, memory())
    with mongodb.client() as client:
        controls = client.lamina[f"{mongodb_table}.controls"]
        controls.update_one({"version": 1}, {"$set": {"version": 2}})
        before = list(controls.find())
        newer = opened(mongodb.url, table=mongodb_table)
        with pytest.raises(StoreDamaged, match="newer Lamina"):
            await newer.initialize()
        assert list(controls.find()) == before


async def test_words_of_an_older_analyzer_are_indexed_anew(mongodb, adapter, mongodb_table, opened, monkeypatch):
    monkeypatch.setattr(layout, "_PAGE", 2)
    await put(adapter, *(memory(f"m{number}", "die Bücher und das Haus") for number in range(3)))
    with mongodb.client() as client:
        client.lamina[mongodb_table].update_many({}, {"$set": {"words": []}})
        controls = client.lamina[f"{mongodb_table}.controls"]
        controls.update_one({"version": 1}, {"$set": {"words": ANALYZER_VERSION - 1}})
        anew = opened(mongodb.url, table=mongodb_table)
        await anew.initialize()
        assert len(await by_text(anew, "Buch")) == len(await by_text(anew, "Haus")) == 3
        assert controls.find_one({"version": 1})["words"] == ANALYZER_VERSION


async def test_a_collection_of_somebody_else_is_refused_and_left_alone(mongodb, mongodb_table, opened):
    with mongodb.client() as client:
        client.lamina[mongodb_table].insert_one({"_id": 1, "theirs": True})
        adapter = opened(mongodb.url, table=mongodb_table)
        with pytest.raises(StoreDamaged, match="did not put there"):
            await adapter.initialize()
        assert client.lamina.list_collection_names(filter={"name": {"$regex": f"^{mongodb_table}"}}) == [mongodb_table]
        assert list(client.lamina[mongodb_table].index_information()) == ["_id_"]


@pytest.mark.parametrize(
    "harm",
    [{"entry": "{no json of the secret harbour"}, {"entry": 7}, {"reads": "many"}, {"vector": b"odd"}],
    ids=["text", "type", "count", "vector"],
)
async def test_a_document_that_is_damaged_is_said_to_be_and_not_shown(mongodb, adapter, mongodb_table, harm):
    await put(adapter, memory())
    with mongodb.client() as client:
        client.lamina[mongodb_table].update_one({}, {"$set": harm})
    with pytest.raises(StoreDamaged) as damage:
        await adapter.get(MINE, "m1")
    assert "harbour" not in str(damage.value)


async def test_a_count_of_insertions_that_is_lost_is_not_begun_anew(mongodb, adapter, mongodb_table):
    await put(adapter, memory())
    with mongodb.client() as client:
        client.lamina[f"{mongodb_table}.controls"].delete_one({"last": {"$exists": True}})
    with pytest.raises(StoreDamaged, match="count of insertions"):
        await put(adapter, memory("m2"))


async def test_vectors_of_another_length_are_refused_by_a_second_adapter_too(mongodb, adapter, mongodb_table, opened):
    await put(adapter, memory(embedding=[1.0, 0.0]))
    other = opened(mongodb.url, table=mongodb_table)
    await other.initialize()
    with pytest.raises(EmbeddingDimensionError):
        await put(other, memory("m2", embedding=[1.0, 0.0, 0.0]))
    assert ids(await listed(adapter)) == ["m1"]


async def test_a_text_whose_words_exceed_a_document_is_refused_and_names_the_limit(adapter):
    letters = [chr(0x4E00 + number) for number in range(1_180)]
    content = "".join(first + second for first in letters for second in letters)[: 4 * 1024 * 1024 // 3]
    await put(adapter, memory("before"))
    with pytest.raises(InvalidInput, match="16 MiB") as refusal:
        await put(adapter, memory(content=content))
    assert refusal.value.field == "content"
    assert ids(await listed(adapter)) == ["before"]


async def test_of_a_long_history_the_latest_versions_stay(mongodb, adapter, mongodb_table):
    await put(adapter, memory())
    for number in range(3):
        batch = [Update("m1", {"confidence": (number * 40 + each) / 200}) for each in range(40)]
        assert all(await adapter.update_many(MINE, batch))
    kept = await adapter.history(MINE, "m1")
    assert len(kept) == 50
    assert [each.revision for each in kept] == list(range(71, 121))
    with mongodb.client() as client:
        assert client.lamina[f"{mongodb_table}.history"].count_documents({}) == 50
    await adapter.delete(MINE, "m1")
    with mongodb.client() as client:
        assert client.lamina[f"{mongodb_table}.history"].count_documents({}) == 0


async def test_the_server_itself_removes_what_has_expired_with_its_history(tmp_path, opened):
    server = SecantusDBServer(storage_path=str(tmp_path), ttl_sweep_seconds=0.2)  # only from within takes it this
    server.start()
    adapter = opened(f"mongodb://127.0.0.1:{server.port}/")
    try:
        await adapter.initialize()
        then = datetime(2020, 1, 1, tzinfo=UTC)
        await put(adapter, memory("kept", expires_at=second(10)), memory("short"))
        await adapter.update(MINE, "short", {"tags": ["changed"]})
        assert len(await adapter.history(MINE, "short")) == 1
        await adapter.update(MINE, "short", {"expires_at": then})
        with pymongo.MongoClient("127.0.0.1", server.port) as client:
            counts = [client.lamina[name].count_documents for name in ("lamina_memories", "lamina_memories.history")]
            for _ in range(300):
                left = [count({}) for count in counts]
                if left == [1, 0]:
                    break
                await asyncio.sleep(0.1)
        assert left == [1, 0]
        assert ids(await listed(adapter)) == ["kept"]
    finally:
        await adapter.close()
        server.stop()


async def test_a_collection_named_like_a_part_of_another_is_another(mongodb, mongodb_table, opened):
    first, second = (opened(mongodb.url, table=name) for name in (mongodb_table, f"{mongodb_table}_history"))
    try:
        for each in (first, second):
            await each.initialize()
        await put(first, memory("m1"))
        await first.update(MINE, "m1", {"tags": ["red"]})
        await put(second, memory("m2"))
        assert (ids(await listed(first)), ids(await listed(second))) == (["m1"], ["m2"])
        assert await second.history(MINE, "m1") == []
    finally:
        mongodb.drop(f"{mongodb_table}_history")


WRITER = """
import asyncio, sys
from lamina.adapters.mongodb import MongoDBAdapter
from lamina.testing.memory_contract.material import MINE, NOW, memory

async def main(url, table, name):
    adapter = MongoDBAdapter(url, table=table)
    await adapter.initialize()
    for number in range(15):
        await adapter.store_many(MINE, [memory(f"{name}{number}", f"said twice {number}")], if_new=True)
        await adapter.touch(MINE, ["m1"], NOW)
    await adapter.close()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_processes_that_write_the_same_store_it_once_and_count_every_read(mongodb, adapter, mongodb_table):
    await put(adapter, memory("m1"))
    commands = [[sys.executable, "-c", WRITER, mongodb.url, mongodb_table, name] for name in "xyz"]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE) for command in commands]  # noqa: ASYNC220
    for each in processes:
        _, printed = await asyncio.to_thread(each.communicate, timeout=120)
        assert each.returncode == 0, printed.decode()
    entries = await listed(adapter)
    assert sorted(each.content for each in entries[1:]) == sorted(f"said twice {number}" for number in range(15))
    assert len({each.seq for each in entries}) == 16
    assert entries[0].access_count == 45


async def test_names_that_look_like_operators_are_names(adapter):
    hostile = ["$where", "$gt", "a.b", "a\u0001b", '{"$ne": null}', "_id", "\u2024", "a" * 512, "é", "e\u0301"]
    metadata = {"$set": {"a.b": 1, "": 2, "$": [None]}, "__proto__": True, "0": {"$elemMatch": "x"}}
    for name in hostile:
        entry = MemoryEntry(
            id=name,
            content=f"the lamp of {name}",
            created_at=NOW,
            updated_at=NOW,
            tenant=name,
            owner=name,
            namespace=name,
            tags=[name],
            metadata=metadata,
        )
        await put(adapter, entry)
    for name in hostile:
        scope = type(MINE)(name, name, name)
        [entry] = await listed(adapter, scope)
        assert (entry.id, entry.tags, entry.metadata) == (name, [name], metadata)
        assert ids(await by_text(adapter, "lamp", scope)) == [name]


def test_the_server_of_the_tests_is_described():
    assert services.described()["mongodb"]["server"] == "real_mongodb:MongoDBServer"
