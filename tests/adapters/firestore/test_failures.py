"""What goes wrong at Firestore becomes one of our errors, loses nothing, and is over when it is over."""

import asyncio
import socket
import time

import pytest
from cutting_proxy import CuttingProxy
from google.api_core import exceptions
from google.auth.exceptions import DefaultCredentialsError
from real_firestore import FirestoreServer

from lamina.adapters.firestore import FirestoreAdapter
from lamina.adapters.firestore.changes import memory_name
from lamina.adapters.firestore.documents import Write, as_message
from lamina.adapters.firestore.failures import translated
from lamina.errors import AdapterError, AdapterUnavailable, StoreDamaged
from lamina.testing.memory_contract.material import MINE, ids, listed, memory, put

IMPATIENT = {"retry_timeout": 0.2, "timeout": 10}


@pytest.fixture
def proxy(firestore):
    proxy = CuttingProxy(firestore.port)
    yield proxy
    proxy.close()


@pytest.fixture
def own_server(firestore):
    server = FirestoreServer()
    yield server
    server.stop()


async def until(condition):
    """Wait for what another process does in its own time."""
    for _ in range(600):
        if await condition():
            return
        await asyncio.sleep(0.05)
    pytest.fail("it never came")


async def test_a_server_that_is_down_is_unavailable_until_it_is_up(own_server):
    own_server.kill()
    adapter = FirestoreAdapter(own_server.url, project_id="notes", **IMPATIENT)
    with pytest.raises(AdapterUnavailable, match="cannot be reached"):
        await adapter.initialize()
    own_server.start()
    await adapter.initialize()
    await put(adapter, memory())
    assert ids(await listed(adapter)) == ["m1"]

    async def write(letter):
        for number in range(1_000):
            await put(adapter, memory(f"{letter}{number}"))
            if number == 10:
                await asyncio.to_thread(own_server.kill)

    outcomes = await asyncio.gather(*(write(letter) for letter in "abcd"), return_exceptions=True)
    assert {type(each) for each in outcomes} == {AdapterUnavailable}
    own_server.start()  # it remembers nothing, unlike the service

    async def is_up():
        try:
            return await listed(adapter) == []
        except AdapterUnavailable:
            return False

    await until(is_up)
    await adapter.initialize()
    await put(adapter, memory("after"))
    assert ids(await listed(adapter)) == ["after"]
    await adapter.close()


async def test_a_server_that_never_answers_is_unavailable():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"127.0.0.1:{silent.getsockname()[1]}"
        adapter = FirestoreAdapter(url, project_id="notes", retry_timeout=0.1, timeout=0.2)
        with pytest.raises(AdapterUnavailable):
            await adapter.initialize()


async def test_a_memory_whose_answer_was_lost_is_stored_once_by_a_repetition(proxy, adapter, firestore_project):
    broken = FirestoreAdapter(f"127.0.0.1:{proxy.port}", project_id=firestore_project, **IMPATIENT)
    await broken.initialize()

    def has_been_written(data):
        if b"canary" not in data or proxy.cuts:
            return False
        until = time.monotonic() + 30
        while not adapter._load("acme", ["m1"]):
            assert time.monotonic() < until
        return True

    proxy.after = has_been_written
    with pytest.raises(AdapterUnavailable):
        await broken.store_many(MINE, [memory("m1", "a canary"), memory("m2", "another")], if_new=True)
    assert proxy.cuts == 1
    twins = await broken.store_many(MINE, [memory("m1", "a canary"), memory("m2", "another")], if_new=True)
    assert ids(twins) == ["m1", "m2"]
    assert [(each.id, each.revision) for each in await listed(broken)] == [("m1", 1), ("m2", 1)]
    await broken.close()


async def test_a_connection_that_breaks_before_the_change_writes_nothing(proxy, firestore_project):
    adapter = FirestoreAdapter(f"127.0.0.1:{proxy.port}", project_id=firestore_project, **IMPATIENT)
    await adapter.initialize()
    proxy.before = lambda data: b"canary" in data and proxy.cuts == 0
    with pytest.raises(AdapterUnavailable):
        await put(adapter, memory(content="a canary"))
    assert await listed(adapter) == []
    await put(adapter, memory(content="a canary"))
    assert [each.revision for each in await listed(adapter)] == [1]
    await adapter.close()


def change(adapter, name, values, **options):
    adapter._documents.commit([as_message(Write(name, values, **options))])


@pytest.mark.parametrize(("layout", "problem"), [(2, "layout 2"), (0, "was not made by Lamina"), ("x", "was not made")])
async def test_a_collection_of_another_layout_is_refused(adapter, layout, problem):
    change(adapter, adapter._documents.name("lamina"), {"layout": layout})
    await adapter.close()
    with pytest.raises(StoreDamaged, match=problem):
        await adapter.initialize()


@pytest.mark.parametrize(
    "damage", [{"entry": "{'secret"}, {"entry": b"secret"}, {"entry": '{"id": "secret"}'}, {"past": "secret"}], ids=repr
)
async def test_a_document_that_cannot_be_read_is_damage_that_quotes_nothing(adapter, damage):
    await put(adapter, memory())
    change(adapter, memory_name(adapter._documents, "acme", "m1"), damage, only=list(damage))
    with pytest.raises(StoreDamaged) as refusal:
        await adapter.get(MINE, "m1")
    assert "secret" not in str(refusal.value)
    assert refusal.value.__cause__ is None


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (exceptions.ServiceUnavailable("secret"), AdapterUnavailable),
        (exceptions.ResourceExhausted("secret"), AdapterUnavailable),
        (exceptions.DeadlineExceeded("secret"), AdapterUnavailable),
        (exceptions.Unauthenticated("secret"), AdapterError),
        (exceptions.PermissionDenied("secret"), AdapterError),
        (DefaultCredentialsError("secret"), AdapterError),
        (exceptions.NotFound("secret"), AdapterError),
        (exceptions.InvalidArgument("secret"), AdapterError),
        (exceptions.FailedPrecondition("secret"), AdapterError),
    ],
)
def test_what_the_service_would_refuse_is_told_apart_and_not_quoted(error, expected):
    with pytest.raises(expected) as raised, translated("memories in the project notes"):
        raise error
    assert type(raised.value) is expected
    assert "secret" not in str(raised.value)


def test_an_index_that_the_service_would_lack_is_named():
    said = "The query requires an index. You can create it here: https://console.firebase.google.com/project/notes/x"
    with pytest.raises(AdapterError, match=r"console\.firebase\.google\.com") as raised, translated("memories"):
        raise exceptions.FailedPrecondition(said)
    assert "firestore_indexes()" in raised.value.remedy
