"""What goes wrong between the adapter and a server, on the wire fake: typed errors, no half write, recovery."""

import logging
import traceback
from collections.abc import AsyncIterator

import pytest
from fake_qdrant import Fault, QdrantServer

from lamina.adapters.qdrant import QdrantAdapter
from lamina.domain.scope import Scope
from lamina.errors import (
    AdapterError,
    AdapterUnavailable,
    EmbeddingDimensionError,
    LaminaError,
    MissingExtra,
)
from lamina.testing.memory_contract.material import LIVE, MINE, by_text, by_vector, ids, listed, memory, put

EVERYTHING = Scope("acme")


@pytest.fixture
async def adapter(qdrant_server: QdrantServer) -> AsyncIterator[QdrantAdapter]:
    adapter = QdrantAdapter(qdrant_server.url, timeout=1)
    await adapter.initialize()
    yield adapter
    await adapter.close()


async def test_a_server_that_is_down_at_the_start_is_named_and_may_come_up_later(qdrant_server):
    qdrant_server.kill()
    adapter = QdrantAdapter(qdrant_server.url, timeout=1)
    with pytest.raises(AdapterUnavailable, match=f"127.0.0.1:{qdrant_server.port} cannot be reached"):
        await adapter.initialize()
    qdrant_server.start()
    await adapter.initialize()
    await put(adapter, memory())
    assert ids(await listed(adapter)) == ["m1"]
    await adapter.close()


async def test_every_call_says_that_the_server_is_gone_and_works_when_it_is_back(qdrant_server, adapter):
    await put(adapter, memory("m1", embedding=[1.0, 0.0]))
    qdrant_server.kill()
    calls = [
        lambda: adapter.get(MINE, "m1"),
        lambda: listed(adapter),
        lambda: adapter.count(MINE, LIVE),
        lambda: by_text(adapter, "harbour"),
        lambda: by_vector(adapter, [1.0, 0.0]),
        lambda: adapter.history(MINE, "m1"),
        lambda: adapter.load_meta(MINE, "key"),
        lambda: put(adapter, memory("m2")),
        lambda: adapter.update(MINE, "m1", {"content": "a kite"}),
        lambda: adapter.delete(MINE, "m1"),
    ]
    for call in calls:
        with pytest.raises(AdapterUnavailable):
            await call()
    qdrant_server.start()
    assert ids(await listed(adapter)) == ["m1"]
    await put(adapter, memory("m2"))
    assert ids(await listed(adapter)) == ["m1", "m2"]


async def test_an_answer_that_never_comes_is_waited_for_no_longer_than_the_time_out(qdrant_server, adapter):
    qdrant_server.spoil("POST", "/points/count", Fault(hangs=1.5))
    with pytest.raises(AdapterUnavailable, match="did not answer in time"):
        await adapter.count(MINE, LIVE)
    assert await adapter.count(MINE, LIVE) == 0


async def test_a_write_whose_connection_breaks_before_it_is_done_leaves_nothing(qdrant_server, adapter):
    qdrant_server.spoil("PUT", "/points", Fault())
    with pytest.raises(AdapterUnavailable):
        await put(adapter, memory("m1", embedding=[1.0]))
    assert await listed(adapter) == []
    await put(adapter, memory("m1", embedding=[1.0]))
    assert ids(await listed(adapter)) == ["m1"]


async def test_a_write_that_was_done_unheard_is_settled_by_its_id(qdrant_server, adapter):
    qdrant_server.spoil("PUT", "/points", Fault(is_done=True))
    with pytest.raises(AdapterUnavailable, match="Whether a change was kept is not known"):
        await put(adapter, memory("m1", "said once"))
    assert [call for call in qdrant_server.requests if call[1].endswith("/points")].count(
        ("PUT", "/collections/lamina_memories/points")
    ) == 2  # the head's and this one: nothing was sent a second time on the quiet
    assert [twin and twin.id for twin in await adapter.store_many(MINE, [memory("m1", "said once")], if_new=True)] == [
        "m1"
    ]
    assert ids(await listed(adapter)) == ["m1"]


async def test_a_server_that_ends_in_the_middle_of_a_batch_leaves_whole_memories_only(qdrant_server, adapter):
    batch = [memory(f"m{number:03d}", f"text {number}", embedding=[1.0, float(number)]) for number in range(200)]
    seen = []

    def end_at_the_third(method, path):
        seen.append((method, path))
        return Fault() if seen.count(("PUT", path)) == 3 and method == "PUT" else None

    qdrant_server.fault = end_at_the_third
    with pytest.raises(AdapterUnavailable):
        await adapter.store_many(MINE, batch)
    qdrant_server.kill()
    qdrant_server.start()
    left = ids(await listed(adapter))
    assert 0 < len(left) < 200
    assert sorted(ids(await by_text(adapter, "text", limit=500))) == left
    assert sorted(ids(await by_vector(adapter, [1.0, 0.0], limit=500))) == left
    await adapter.store_many(MINE, batch)
    assert len(await listed(adapter)) == 200


async def test_a_number_that_was_taken_unheard_is_given_to_nobody_else(qdrant_server, adapter):
    qdrant_server.spoil("POST", "/points/payload", Fault(is_done=True))
    with pytest.raises(AdapterUnavailable):
        await put(adapter, memory("m1"))
    await put(adapter, memory("m2"), memory("m3"))
    entries = await listed(adapter)
    assert ids(entries) == ["m2", "m3"]
    assert entries[0].seq < entries[1].seq


async def test_a_deletion_that_breaks_off_leaves_the_memory_or_nothing(qdrant_server, adapter):
    await put(adapter, memory("m1", "old"))
    await adapter.update(MINE, "m1", {"content": "new"})
    qdrant_server.spoil("POST", "/points/delete", Fault(is_done=True))
    with pytest.raises(AdapterUnavailable):
        await adapter.delete(MINE, "m1")
    await adapter.delete(MINE, "m1")
    await put(adapter, memory("m1", "another"))
    assert await adapter.history(MINE, "m1") == []


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (Fault(status=429, headers=(("Retry-After", "1"),)), AdapterUnavailable, "asked too much"),
        (Fault(status=429), AdapterUnavailable, "asked too much"),
        (Fault(status=500), AdapterUnavailable, "HTTP 500"),
        (Fault(status=503), AdapterUnavailable, "HTTP 503"),
        (Fault(status=403), AdapterError, "refused the key"),
        (Fault(status=404), AdapterError, "does not have"),
        (Fault(status=413), AdapterError, "larger"),
        (Fault(status=400), AdapterError, "HTTP 400"),
        (Fault(status=200, body=b"<html>Bad gateway</html>"), AdapterError, "not Qdrant's"),
        (Fault(status=200, body=b'{"result": 7}'), AdapterError, "not Qdrant's"),
    ],
    ids=repr,
)
@pytest.mark.parametrize(("method", "path"), [("POST", "/points/scroll"), ("PUT", "/points")])
async def test_each_answer_that_is_none_is_an_error_with_a_remedy(
    qdrant_server, adapter, caplog, fault, error, words, method, path
):
    caplog.set_level(logging.DEBUG)
    qdrant_server.spoil(method, path, fault)
    with pytest.raises(error, match=words) as failure:
        await (listed(adapter) if method == "POST" else put(adapter, memory("m1", "hush, said Mira")))
    assert isinstance(failure.value, LaminaError)
    assert failure.value.remedy
    assert "Mira" not in str(failure.value) + caplog.text
    qdrant_server.fault = lambda method, path: None
    await put(adapter, memory("m2"))
    assert "m2" in ids(await listed(adapter))


@pytest.mark.parametrize(
    ("status", "body"), [(422, b'{"status": {"error": "spare key"}}'), (200, b'{"result": {"points": "spare key"}}')]
)
async def test_what_an_answer_quotes_is_shown_nowhere(qdrant_server, adapter, status, body):
    qdrant_server.spoil("POST", "/points/scroll", Fault(status=status, body=body))
    with pytest.raises(AdapterError) as failure:
        await listed(adapter)
    assert "spare key" not in "".join(traceback.format_exception(failure.value))


async def test_a_wrong_key_is_refused_and_never_shown():
    server = QdrantServer(api_key="right-key")
    try:
        for key in ("wrong-key", None):
            adapter = QdrantAdapter(server.url, api_key=key)
            with pytest.raises(AdapterError, match="refused the key") as refusal:
                await adapter.initialize()
            assert "wrong-key" not in f"{refusal.value}{refusal.value!r}{adapter!r}{vars(adapter)}"
        adapter = QdrantAdapter(server.url, api_key="right-key")
        await adapter.initialize()
        await put(adapter, memory())
        assert ids(await listed(adapter)) == ["m1"]
        await adapter.close()
    finally:
        server.stop()


async def test_a_vector_of_another_length_is_refused_and_nothing_is_written(adapter):
    await put(adapter, memory("m1", embedding=[1.0, 0.0]))
    with pytest.raises(EmbeddingDimensionError):
        await put(adapter, memory("m2", embedding=[1.0, 0.0, 0.0]))
    assert ids(await listed(adapter)) == ["m1"]


async def test_a_change_that_is_accepted_and_not_made_is_not_called_done(qdrant_server, adapter):
    body = b'{"time": 0, "status": "ok", "result": {"operation_id": 1, "status": "acknowledged"}}'
    qdrant_server.spoil("PUT", "/points", Fault(status=200, body=body))
    with pytest.raises(AdapterUnavailable, match="accepted and is not made yet"):
        await put(adapter, memory())


async def test_a_collection_that_was_dropped_is_an_error_and_no_empty_answer(qdrant_server, adapter):
    await put(adapter, memory())
    qdrant_server.engine.delete_collection("lamina_memories")
    for call in (lambda: listed(adapter), lambda: put(adapter, memory()), lambda: by_text(adapter, "harbour")):
        with pytest.raises(AdapterError, match="initialize"):
            await call()


def test_a_missing_client_library_is_named(monkeypatch):
    import importlib
    import sys

    for name in [name for name in sys.modules if name.startswith(("lamina.adapters.qdrant", "qdrant_client"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(MissingExtra, match=r"lamina\[qdrant\]"):
        importlib.import_module("lamina.adapters.qdrant")
