"""What goes wrong between the adapter and the service, against a fake at the level of HTTP."""

import asyncio

import pytest
from fake_pinecone import API_KEY

from lamina.adapters.pinecone import PineconeAdapter
from lamina.errors import AdapterError, AdapterUnavailable
from lamina.testing.memory_contract.material import LIVE, MINE, by_vector, ids, listed, memory, put

ATTEMPTS = 4  # that the client makes


async def test_a_service_that_is_down_at_the_start_is_unavailable_and_opens_later(service, options):
    service.kill()
    adapter = PineconeAdapter(**options)
    with pytest.raises(AdapterUnavailable, match="the index 'memories' cannot be reached") as failure:
        await adapter.initialize()
    assert API_KEY not in str(failure.value)
    with pytest.raises(AdapterError, match="not open"):
        await adapter.get(MINE, "m1")
    service.start()
    await adapter.initialize()
    await put(adapter, memory())
    assert ids(await listed(adapter)) == ["m1"]
    await adapter.close()


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
    adapter = await opened(timeout=0.2)
    service.plays(*["hang"] * ATTEMPTS)
    with pytest.raises(AdapterUnavailable, match="did not answer in time"):
        await adapter.get(MINE, "m1")
    await put(adapter, memory())
    assert ids(await listed(adapter)) == ["m1"]


@pytest.mark.parametrize("trouble", [408, 429, 500, 502, 503, 504, "drop"])
async def test_trouble_that_passes_is_not_noticed(service, adapter, trouble):
    service.plays(trouble)
    await put(adapter, memory())
    service.plays(trouble, trouble)
    assert ids(await listed(adapter)) == ["m1"]


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_trouble_that_stays_is_unavailable(service, adapter, status):
    await put(adapter, memory("before"))
    for call in (lambda: put(adapter, memory()), lambda: listed(adapter), lambda: by_vector(adapter, [1.0, 0.0])):
        service.plays(*[status] * ATTEMPTS)
        with pytest.raises(AdapterUnavailable) as failure:
            await call()
        assert "secret" not in str(failure.value)
    assert ids(await listed(adapter)) == ["before"]


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 412, 413, 422])
async def test_a_refusal_is_no_unavailability_and_nothing_of_it_is_quoted(service, adapter, status):
    service.plays(status)
    with pytest.raises(AdapterError, match=str(status)) as failure:
        await adapter.get(MINE, "m1")
    assert not isinstance(failure.value, AdapterUnavailable)
    assert "secret" not in str(failure.value)
    assert failure.value.__cause__ is None  # it would quote the answer


async def test_an_answer_that_is_none_is_an_error_and_no_empty_result(service, adapter):
    for call in (lambda: listed(adapter), lambda: adapter.get(MINE, "m1"), lambda: by_vector(adapter, [1.0, 0.0])):
        service.plays("rubbish")
        with pytest.raises(AdapterError) as failure:
            await call()
        assert "secret" not in str(failure.value)


@pytest.mark.parametrize("attempts", [1, ATTEMPTS])
async def test_a_connection_that_drops_after_the_write_was_sent_leaves_one_memory(service, adapter, attempts):
    entry = memory(embedding=[1.0, 0.0])
    await put(adapter, memory("before", embedding=[1.0, 0.0]))
    service.plays_at("/vectors/upsert", *["drop after"] * attempts)
    if attempts == 1:  # the client repeats it, which changes nothing
        await put(adapter, entry)
    else:
        with pytest.raises(AdapterUnavailable, match="storing it again under its id settles it"):
            await put(adapter, entry)
    [twin] = await adapter.store_many(MINE, [entry], if_new=True)
    assert twin is not None
    assert (twin.id, twin.revision) == ("m1", 1)
    assert ids(await listed(adapter)) == ["before", "m1"]


async def test_a_connection_that_drops_before_the_write_arrives_leaves_nothing(service, adapter):
    service.plays_at("/vectors/upsert", *["drop"] * ATTEMPTS)
    with pytest.raises(AdapterUnavailable):
        await put(adapter, memory())
    assert await listed(adapter) == []


async def test_a_wrong_key_is_said_to_be_one_and_not_shown(options):
    adapter = PineconeAdapter(**{**options, "api_key": "pcsk_wrong"})
    with pytest.raises(AdapterError, match="refused the API key") as failure:
        await adapter.initialize()
    assert not isinstance(failure.value, AdapterUnavailable)
    assert "pcsk_wrong" not in str(failure.value) + repr(adapter)


async def test_an_index_that_was_deleted_meanwhile_is_an_error(service, adapter):
    await put(adapter, memory())
    service.indexes.clear()
    with pytest.raises(AdapterError, match="not there"):
        await listed(adapter)
    with pytest.raises(AdapterError, match="not there"):
        await adapter.delete(MINE, "m1")
