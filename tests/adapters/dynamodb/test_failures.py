"""What goes wrong at DynamoDB becomes one of our errors, loses nothing, and is over when it is over."""

import asyncio
import socket

import pytest
from cutting_proxy import CuttingProxy
from real_dynamodb import KEYS, DynamoDBServer
from scripted_server import ScriptedServer

from lamina.adapters.dynamodb import DynamoDBAdapter
from lamina.adapters.dynamodb.keys import VERSION, place
from lamina.domain.scope import Scope
from lamina.errors import AdapterError, AdapterUnavailable, ConfigError, StoreDamaged
from lamina.testing.memory_contract.material import LIVE, MINE, ids, listed, memory, put

ONCE = {"retries": 0, "connect_timeout": 1, "timeout": 10}


@pytest.fixture
def proxy(dynamodb):
    proxy = CuttingProxy(dynamodb.port)
    yield proxy
    proxy.close()


@pytest.fixture
def own_server(dynamodb):
    server = DynamoDBServer(kept=True)
    yield server
    server.stop()


async def test_a_server_that_is_down_at_the_start_is_unavailable_until_it_is_up(own_server):
    own_server.kill()
    adapter = DynamoDBAdapter(own_server.url, **KEYS, **ONCE)
    with pytest.raises(AdapterUnavailable, match="cannot be reached"):
        await adapter.initialize()
    own_server.start()
    await adapter.initialize()
    await put(adapter, memory())
    assert ids(await listed(adapter)) == ["m1"]
    await adapter.close()


async def test_a_server_that_is_killed_while_many_write_leaves_nothing_half_written(own_server):
    adapter = DynamoDBAdapter(own_server.url, **KEYS, **ONCE)
    await adapter.initialize()
    acknowledged = []

    def named(name):
        return memory(name, f"text {name}", tags=["red"])

    async def write(letter):
        for number in range(1_000):
            await put(adapter, named(f"{letter}{number}"))
            acknowledged.append(f"{letter}{number}")
            if len(acknowledged) == 40:
                await asyncio.to_thread(own_server.kill)

    outcomes = await asyncio.gather(*(write(letter) for letter in "abcd"), return_exceptions=True)
    assert {type(each) for each in outcomes} == {AdapterUnavailable}
    own_server.start()
    left = await listed(adapter)
    names = ids(left)
    assert [each.content for each in left] == [f"text {name}" for name in names]
    assert ids(await listed(adapter, Scope("acme"))) == names
    assert await adapter.count(MINE, LIVE) == len(names)
    # The emulator acknowledges before it has written, unlike the service: whether all are there is not for it to say.
    found = {name: await adapter.get(MINE, name) for name in acknowledged}
    assert {name for name, entry in found.items() if entry is not None} == set(names) & set(acknowledged)
    await adapter.store_many(MINE, [named(name) for name in acknowledged], if_new=True)
    assert {each.id: each.revision for each in await listed(adapter)} == dict.fromkeys([*names, *acknowledged], 1)
    await adapter.close()


async def test_a_server_that_never_answers_is_unavailable():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        adapter = DynamoDBAdapter(url, **KEYS, retries=0, timeout=0.2)
        with pytest.raises(AdapterUnavailable, match="ReadTimeoutError"):
            await adapter.initialize()


async def test_a_change_whose_answer_was_lost_is_sent_again_and_made_once(proxy, dynamodb_table):
    adapter = DynamoDBAdapter(f"http://127.0.0.1:{proxy.port}", table=dynamodb_table, **KEYS)
    await adapter.initialize()
    await put(adapter, memory(content="first"))
    proxy.after = lambda data: b"TransactWriteItems" in data and proxy.cuts == 0
    await adapter.update(MINE, "m1", {"content": "second"})
    await adapter.touch(MINE, ["m1"], memory().created_at)
    assert proxy.cuts == 1
    back = await adapter.get(MINE, "m1")
    assert (back.content, back.revision, back.access_count) == ("second", 2, 1)
    assert [each.content for each in await adapter.history(MINE, "m1")] == ["first"]
    await adapter.close()


async def test_a_memory_whose_answer_was_lost_for_good_is_stored_once_by_a_repetition(proxy, dynamodb_table):
    adapter = DynamoDBAdapter(f"http://127.0.0.1:{proxy.port}", table=dynamodb_table, **KEYS, **ONCE)
    await adapter.initialize()
    proxy.after = lambda data: b"TransactWriteItems" in data and proxy.cuts == 0
    with pytest.raises(AdapterUnavailable):
        await adapter.store_many(MINE, [memory("m1"), memory("m2", "another")], if_new=True)
    twins = await adapter.store_many(MINE, [memory("m1"), memory("m2", "another")], if_new=True)
    assert ids(twins) == ["m1", "m2"]
    assert [(each.id, each.revision) for each in await listed(adapter)] == [("m1", 1), ("m2", 1)]
    await adapter.close()


async def test_a_connection_that_breaks_before_the_change_writes_nothing(proxy, dynamodb_table):
    adapter = DynamoDBAdapter(f"http://127.0.0.1:{proxy.port}", table=dynamodb_table, **KEYS, **ONCE)
    await adapter.initialize()
    proxy.before = lambda data: b"TransactWriteItems" in data and proxy.cuts == 0
    with pytest.raises(AdapterUnavailable):
        await put(adapter, memory())
    assert await listed(adapter) == []
    await put(adapter, memory())
    assert ids(await listed(adapter)) == ["m1"]
    await adapter.close()


async def test_credentials_that_are_refused_are_an_error_that_does_not_show_them(dynamodb, dynamodb_table):
    wrong = {**KEYS, "access_key_id": "not-a/key", "secret_access_key": "pay-roll"}
    adapter = DynamoDBAdapter(dynamodb.url, table=dynamodb_table, **wrong)
    with pytest.raises(AdapterError, match="refused the login") as refusal:
        await adapter.initialize()
    assert not isinstance(refusal.value, AdapterUnavailable)
    assert "pay-roll" not in f"{refusal.value!r} {adapter!r}"
    assert "not-a/key" not in f"{refusal.value!r} {adapter!r}"


@pytest.fixture
def nobody(monkeypatch, tmp_path):
    """An environment that says nothing of Amazon."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


async def test_without_credentials_it_says_so(nobody, dynamodb):
    with pytest.raises(AdapterError, match="there are no credentials"):
        await DynamoDBAdapter(dynamodb.url, region="eu-central-1").initialize()


async def test_without_a_region_it_says_so(nobody):
    with pytest.raises(ConfigError, match="region"):
        await DynamoDBAdapter().initialize()


async def test_a_table_of_somebody_else_is_left_alone(dynamodb, dynamodb_table):
    dynamodb.client.create_table(
        TableName=dynamodb_table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    )
    adapter = DynamoDBAdapter(dynamodb.url, table=dynamodb_table, **KEYS)
    with pytest.raises(StoreDamaged, match="was not made by Lamina"):
        await adapter.initialize()
    assert dynamodb.client.scan(TableName=dynamodb_table)["Count"] == 0


async def test_a_table_of_a_newer_lamina_is_refused(adapter, dynamodb, dynamodb_table):
    await adapter.close()
    dynamodb.client.put_item(TableName=dynamodb_table, Item={**VERSION, "version": {"N": "2"}})
    with pytest.raises(StoreDamaged, match="layout 2") as refusal:
        await adapter.initialize()
    assert "Upgrade Lamina" in refusal.value.remedy


@pytest.mark.parametrize(
    "change",
    [
        {"entry": {"S": "{'secret"}},
        {"entry": {"B": b"secret"}},
        {"entry": {"S": '{"id": "secret"}'}},
        {"version": None},
        {"past": {"N": "1.5"}},
    ],
    ids=repr,
)
async def test_an_item_that_cannot_be_read_is_damage_that_quotes_nothing(adapter, dynamodb, dynamodb_table, change):
    await put(adapter, memory())
    key = {"pk": {"S": place("r", "acme", "m1")}, "sk": {"N": "0"}}
    item = dynamodb.client.get_item(TableName=dynamodb_table, Key=key)["Item"] | change
    item = {name: value for name, value in item.items() if value is not None}
    dynamodb.client.put_item(TableName=dynamodb_table, Item=item)
    with pytest.raises(StoreDamaged) as refusal:
        await adapter.get(MINE, "m1")
    assert "secret" not in str(refusal.value)
    assert refusal.value.__cause__ is None


async def test_an_answer_of_somebody_else_is_an_error_and_no_empty_result(server, dynamodb_table):
    server.plays(*[ScriptedServer.json({"results": []})] * 3)
    adapter = DynamoDBAdapter(server.url, table=dynamodb_table, retries=0, **KEYS)
    with pytest.raises(AdapterError, match="not DynamoDB's"):
        await adapter.initialize()


async def test_a_table_that_was_dropped_is_damage(adapter, dynamodb, dynamodb_table):
    dynamodb.client.delete_table(TableName=dynamodb_table)
    with pytest.raises(StoreDamaged, match="is gone"):
        await adapter.get(Scope("acme"), "m1")


async def test_a_closed_adapter_says_that_it_is_closed(adapter):
    await adapter.close()
    with pytest.raises(AdapterError, match="it is not open"):
        await adapter.get(MINE, "m1")
