"""What goes wrong between the adapter and the service, against a fake on the wire."""

import asyncio

import pytest
from fake_weaviate import API_KEY, WeaviateFake
from grpc import StatusCode
from services import free_port

from lamina.adapters.weaviate import WeaviateAdapter
from lamina.domain.scope import Scope
from lamina.errors import AdapterError, AdapterUnavailable
from lamina.testing.memory_contract.material import LIVE, MINE, by_text, by_vector, ids, listed, memory, put

ATTEMPTS = 6  # that the client makes to search


async def test_a_service_that_is_down_at_the_start_is_unavailable_and_opens_later(service, options):
    service.kill()
    adapter = WeaviateAdapter(**options)
    with pytest.raises(AdapterUnavailable, match=r"Weaviate at 127\.0\.0\.1:\d+ cannot be reached"):
        await adapter.initialize()
    with pytest.raises(AdapterError, match="not open"):
        await adapter.get(MINE, "m1")
    service.start()
    await adapter.initialize()
    await put(adapter, memory())
    assert ids(await listed(adapter)) == ["m1"]
    await adapter.close()


async def test_grpc_that_is_not_there_is_unavailable(options):
    adapter = WeaviateAdapter(**{**options, "grpc_port": free_port()})
    with pytest.raises(AdapterUnavailable, match="cannot be reached"):
        await adapter.initialize()


async def test_a_service_that_dies_in_the_middle_loses_nothing_that_it_acknowledged(service, adapter):
    acknowledged: list[str] = []
    begun = asyncio.Event()

    async def write(number: int) -> None:
        await put(adapter, memory(f"m{number}", embedding=[1.0, 0.0]))
        acknowledged.append(f"m{number}")
        if len(acknowledged) == 10:
            begun.set()

    writes = [asyncio.ensure_future(write(number)) for number in range(60)]
    await begun.wait()
    service.kill()
    failures = [each for each in await asyncio.gather(*writes, return_exceptions=True) if each is not None]
    assert failures
    assert all(isinstance(each, AdapterUnavailable) for each in failures)
    with pytest.raises(AdapterUnavailable):
        await listed(adapter)
    with pytest.raises(AdapterUnavailable):
        await by_vector(adapter, [1.0, 0.0])

    service.start()
    assert set(acknowledged) <= set(ids(await listed(adapter)))
    for number in range(60):  # a write of which nobody knows is settled by its id
        await put(adapter, memory(f"m{number}", embedding=[1.0, 0.0]))
    assert len(await listed(adapter)) == await adapter.count(MINE, LIVE) == 60


async def test_a_service_that_does_not_answer_is_given_up(service, opened):
    adapter = await opened(timeout=0.3)
    await put(adapter, memory("before"))
    service.plays("Search", "hang")
    with pytest.raises(AdapterUnavailable, match="did not answer in time"):
        await adapter.get(MINE, "m1")
    service.plays("BatchObjects", "hang")
    with pytest.raises(AdapterUnavailable, match="did not answer in time"):
        await put(adapter, memory())
    await put(adapter, memory())
    assert ids(await listed(adapter)) == ["before", "m1"]


async def test_trouble_that_passes_is_not_noticed(service, adapter):
    service.plays("BatchObjects", StatusCode.UNAVAILABLE)
    await put(adapter, memory())
    service.plays("Search", StatusCode.UNAVAILABLE, StatusCode.UNAVAILABLE)
    assert ids(await listed(adapter)) == ["m1"]
    service.plays("Aggregate", StatusCode.UNAVAILABLE)
    assert await adapter.count(MINE, LIVE) == 1


@pytest.mark.parametrize("code", [StatusCode.UNAVAILABLE, StatusCode.RESOURCE_EXHAUSTED, StatusCode.ABORTED])
async def test_trouble_that_stays_is_unavailable_and_never_an_empty_answer(service, adapter, code):
    await put(adapter, memory("before", embedding=[1.0, 0.0]))
    calls = {
        "Search": [
            lambda: listed(adapter),
            lambda: adapter.get(MINE, "before"),
            lambda: by_vector(adapter, [1.0, 0.0]),
            lambda: by_text(adapter, "harbour"),
        ],
        "Aggregate": [lambda: adapter.count(MINE, LIVE)],
        "BatchObjects": [lambda: put(adapter, memory())],
        "BatchDelete": [lambda: adapter.delete(MINE, "before")],
    }
    for name, some in calls.items():
        for call in some:
            service.plays(name, *[code] * ATTEMPTS)
            with pytest.raises(AdapterUnavailable) as failure:
                await call()
            assert "secret" not in str(failure.value)
            service.plays(name)
    assert ids(await listed(adapter)) == ["before"]


@pytest.mark.parametrize(
    "code", [StatusCode.UNKNOWN, StatusCode.INVALID_ARGUMENT, StatusCode.PERMISSION_DENIED, StatusCode.UNAUTHENTICATED]
)
async def test_a_refusal_is_no_unavailability_and_nothing_of_it_is_quoted(service, adapter, code):
    await put(adapter, memory())
    for name, call in {
        "Search": lambda: adapter.get(MINE, "m1"),
        "Aggregate": lambda: adapter.count(MINE, LIVE),
        "BatchObjects": lambda: put(adapter, memory("m2")),
        "BatchDelete": lambda: adapter.delete(MINE, "m1"),
    }.items():
        service.plays(name, code)
        with pytest.raises(AdapterError) as failure:
            await call()
        assert not isinstance(failure.value, AdapterUnavailable)
        assert "secret" not in str(failure.value)
        assert failure.value.__cause__ is None  # it would quote the answer


@pytest.mark.parametrize("trouble", [408, 429, 500, 503, "drop", "hang"])
async def test_trouble_with_http_is_unavailable(service, opened, trouble):
    adapter = await opened(timeout=0.3)
    service.plays("HEAD", *[trouble] * 4)
    with pytest.raises(AdapterUnavailable):
        await listed(adapter, Scope("never seen"))
    service.plays("HEAD")
    assert await listed(adapter, Scope("never seen")) == []


@pytest.mark.parametrize("status", [400, 401, 403, 422])
async def test_a_refusal_of_http_is_an_error(service, adapter, status):
    service.plays("HEAD", status)
    with pytest.raises(AdapterError, match=str(status)) as failure:
        await listed(adapter, Scope("never seen"))
    assert not isinstance(failure.value, AdapterUnavailable)
    assert "secret" not in str(failure.value)


async def test_what_answers_and_is_no_weaviate_is_an_error(service, options):
    adapter = WeaviateAdapter(**options)
    service.plays("GET", "rubbish", "rubbish")
    with pytest.raises(AdapterError, match="does not answer as Weaviate does"):
        await adapter.initialize()


@pytest.mark.parametrize("version", ["1.20.3", "1.32.9"])
async def test_a_service_that_is_too_old_is_refused(options, version):
    old = WeaviateFake(version=version)
    adapter = WeaviateAdapter(**{**options, "url": old.url, "grpc_port": old.grpc_port})
    with pytest.raises(AdapterError, match=r"1\.33 is needed"):
        await adapter.initialize()
    old.stop()


async def test_objects_that_are_not_taken_are_never_passed_over(service, adapter):
    service.plays("BatchObjects", None, "some")  # the first one keeps a mark of the numbers
    with pytest.raises(AdapterError, match="2 of 5 objects of a batch were not taken") as failure:
        await adapter.store_many(MINE, [memory(f"m{n}", f"text {n}") for n in range(5)])
    assert "secret" not in str(failure.value)
    await adapter.store_many(MINE, [memory(f"m{n}", f"text {n}") for n in range(5)])
    assert len(await listed(adapter)) == 5


async def test_objects_of_which_none_is_taken_are_an_error(service, adapter):
    await put(adapter, memory("before"))
    service.shards[adapter._opened._collection.name].clear()
    service.classes[adapter._opened._collection.name]["multiTenancyConfig"]["autoTenantCreation"] = False
    with pytest.raises(AdapterError):
        await put(adapter, memory())


async def test_objects_that_are_not_removed_are_never_passed_over(service, adapter):
    await adapter.store_many(MINE, [memory(f"m{n}", f"text {n}") for n in range(5)])
    service.plays("BatchDelete", "some")
    with pytest.raises(AdapterError, match="of 5 objects were not removed"):
        await adapter.delete_many(MINE, [f"m{n}" for n in range(5)])
    await adapter.delete_many(MINE, [f"m{n}" for n in range(5)])
    assert await listed(adapter) == []


@pytest.mark.parametrize("attempts", [1, ATTEMPTS])
async def test_a_connection_that_drops_after_the_write_was_sent_leaves_one_memory(service, adapter, attempts):
    await put(adapter, memory("before", embedding=[1.0, 0.0]))
    entry = memory(embedding=[1.0, 0.0])
    service.plays("BatchObjects", *["drop after"] * attempts)
    if attempts == 1:  # the client repeats it, which changes nothing
        await put(adapter, entry)
    else:
        with pytest.raises(AdapterUnavailable, match="storing it again under its id settles it"):
            await put(adapter, entry)
        service.plays("BatchObjects")
    [twin] = await adapter.store_many(MINE, [entry], if_new=True)
    assert twin is None or (twin.id, twin.revision) == ("m1", 1)
    assert ids(await listed(adapter)) == ["before", "m1"]


async def test_a_wrong_key_is_said_to_be_one_and_not_shown(service, options):
    service.api_key = API_KEY
    for key in (None, "another key"):
        adapter = WeaviateAdapter(**options, api_key=key)
        with pytest.raises(AdapterError, match="refused the API key") as failure:
            await adapter.initialize()
        assert not isinstance(failure.value, AdapterUnavailable)
        assert "another key" not in str(failure.value) + repr(adapter)


async def test_the_right_key_opens(service, opened):
    service.api_key = API_KEY
    adapter = await opened(api_key=API_KEY)
    await put(adapter, memory(embedding=[1.0]))
    assert ids(await by_vector(adapter, [1.0])) == ["m1"]
