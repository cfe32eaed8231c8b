"""How memories lie in the table: whole, within DynamoDB's limits, and gone without a trace."""

import asyncio
import random
from base64 import b85encode
from datetime import UTC, datetime

import pytest
from real_dynamodb import KEYS

from lamina.adapters.dynamodb import DynamoDBAdapter
from lamina.adapters.dynamodb.keys import key_of, place
from lamina.domain.filters import Expiry, MemoryFilter, Where
from lamina.domain.memory import Layer
from lamina.domain.scope import Scope
from lamina.errors import InvalidInput
from lamina.testing.memory_contract.material import LIVE, MINE, NOW, ids, listed, memory, put, second, where

ANY = MemoryFilter(now=NOW, expiry=Expiry.ANY)
RANDOM = random.Random(7)


def noise(size):
    """Text of so many bytes that cannot be compressed by much."""
    return b85encode(RANDOM.randbytes(size * 4 // 5)).decode()


def items_of(dynamodb, table):
    pages = dynamodb.client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
    return [item for page in pages for item in page["Items"]]


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("content", {"content": noise(600_000)}),
        ("metadata", {"metadata": {"n": [1] * 80_000}}),
        ("derived_from", {"derived_from": [noise(500) for _ in range(1_200)]}),
        ("embedding", {"embedding": [float(n) for n in range(110_000)]}),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
async def test_what_makes_an_item_too_large_is_refused_by_name(adapter, field, fields):
    await put(adapter, memory("before"))
    with pytest.raises(InvalidInput, match="409600") as refusal:
        await put(adapter, memory(**fields))
    assert refusal.value.field == field
    with pytest.raises(InvalidInput) as refusal:
        await adapter.update(MINE, "before", fields)
    assert refusal.value.field == field
    assert [(each.id, each.revision) for each in await listed(adapter)] == [("before", 1)]


async def test_a_meta_value_that_is_too_large_is_refused_by_name(adapter):
    with pytest.raises(InvalidInput) as refusal:
        await adapter.save_meta(MINE, "key", noise(500_000), NOW)
    assert refusal.value.field == "value"
    assert await adapter.load_meta(MINE, "key") is None


async def test_a_batch_beyond_one_transaction_is_written_in_parts(adapter):
    batch = [memory(f"m{number}", noise(400_000)) for number in range(16)]
    assert await adapter.store_many(MINE, batch, if_new=True) == [None] * 16
    assert [each.content for each in await listed(adapter)] == [each.content for each in batch]


async def test_memories_with_long_histories_are_deleted_together(adapter, dynamodb, dynamodb_table):
    names = [f"m{number}" for number in range(4)]
    await put(adapter, *(memory(name, "text 0") for name in names))
    for number in range(1, 60):
        for name in names:
            await adapter.update(MINE, name, {"content": f"text {number}"})
    assert [each.content for each in await adapter.history(MINE, "m0")] == [f"text {n}" for n in range(9, 59)]
    assert await adapter.delete_many(MINE, names) == [True] * 4
    kinds = {item["pk"]["S"].partition("#")[0] for item in items_of(dynamodb, dynamodb_table)}
    assert kinds == {"n", "v"}


async def test_nothing_of_a_deleted_memory_is_left_in_the_table(adapter, dynamodb, dynamodb_table):
    canary = memory(
        "canary-id", "canary text", owner="canary-owner", namespace="canary-space", tags=["canary"], layer=Layer.GLOBAL
    )
    await put(adapter, canary)
    await adapter.update(Scope("acme"), "canary-id", {"content": "canary again", "metadata": {"canary": "canary"}})
    assert "canary" in str(items_of(dynamodb, dynamodb_table))
    assert await adapter.delete(Scope("acme"), "canary-id") is True
    assert "canary" not in str(items_of(dynamodb, dynamodb_table))


async def test_every_item_of_a_memory_expires_with_it(adapter, dynamodb, dynamodb_table):
    await put(adapter, memory(layer=Layer.ORGANIZATIONAL, expires_at=second(0.5)))
    await adapter.update(MINE, "m1", {"content": "changed"})

    def seconds():
        items = items_of(dynamodb, dynamodb_table)
        return {item["pk"]["S"][0]: item.get("ttl", {}).get("N") for item in items if item["pk"]["S"][0] not in "nvc"}

    after = int(NOW.timestamp()) + 1
    assert seconds() == dict.fromkeys("rtosah", str(after))
    await adapter.update(MINE, "m1", {"expires_at": second(100)})
    assert seconds() == dict.fromkeys("rtosah", str(after + 100))
    await adapter.update(MINE, "m1", {"expires_at": None})
    assert seconds() == dict.fromkeys("rtosah")
    told = dynamodb.client.describe_time_to_live(TableName=dynamodb_table)["TimeToLiveDescription"]
    assert (told["TimeToLiveStatus"], told["AttributeName"]) == ("ENABLED", "ttl")


@pytest.mark.parametrize("kind", ["r", "t", "o", "s", "a"])
async def test_what_dynamodb_has_removed_in_part_is_in_nobodys_way(adapter, dynamodb, dynamodb_table, kind):
    gone = memory("m2", "going", layer=Layer.GLOBAL, expires_at=second(-1))
    await put(adapter, memory("m1"), gone, memory("m3", "third", expires_at=second(-1)))
    places = {
        "r": key_of(place("r", "acme", "m2")),
        "t": key_of(place("t", "acme"), 2),
        "o": key_of(place("o", "acme", "ada"), 2),
        "s": key_of(place("s", "acme"), 2),
        "a": key_of(place("a", "acme", "ada", "notes", "global", gone.digest), 2),
    }
    assert "Attributes" in dynamodb.client.delete_item(
        TableName=dynamodb_table, Key=places[kind], ReturnValues="ALL_OLD"
    )
    assert ids(await listed(adapter)) == ["m1"]
    for scope in (MINE, Scope("acme"), Scope("acme", "bob", include_shared=True)):
        found = ids(await listed(adapter, scope, ANY))
        assert await adapter.count(scope, ANY) == len(found)
        assert ids([*await listed(adapter, scope, ANY, limit=1), *await listed(adapter, scope, ANY, offset=1)]) == found
    await put(adapter, memory("m2", "new", created_at=second(1)))
    assert ids(await listed(adapter)) == ["m1", "m2"]
    assert (await adapter.get(MINE, "m2")).content == "new"


async def test_two_tables_never_see_each_other(adapter, dynamodb, dynamodb_table):
    other = DynamoDBAdapter(endpoint=dynamodb.url, table_name=f"{dynamodb_table}_2", **KEYS)
    await other.initialize()
    await put(adapter, memory("m1"))
    await adapter.save_meta(MINE, "key", "ours", NOW)
    assert await listed(other) == []
    assert await other.load_meta(MINE, "key") is None
    await put(other, memory("m1", "theirs"))
    assert [each.content for each in await listed(adapter)] == ["the harbour lamp is lit"]
    await other.close()
    dynamodb.client.delete_table(TableName=f"{dynamodb_table}_2")


async def test_adapters_that_know_nothing_of_each_other_lose_nothing(adapter, dynamodb, dynamodb_table):
    other = DynamoDBAdapter(dynamodb.url, table=dynamodb_table, **KEYS)
    await other.initialize()
    await put(adapter, memory("m1"))

    async def work(mine, name):
        stored = 0
        for number in range(12):
            await mine.touch(MINE, ["m1"], datetime.now(UTC))
            twins = await mine.store_many(MINE, [memory(f"{name}{number}", f"text {number}")], if_new=True)
            stored += twins == [None]
        return stored

    stored = await asyncio.gather(work(adapter, "a"), work(other, "b"))
    entries = await listed(adapter)
    assert sum(stored) == 12
    assert (entries[0].access_count, len(entries)) == (24, 13)
    assert len({entry.content for entry in entries}) == len({entry.seq for entry in entries}) == 13
    await other.close()


async def test_adapters_open_the_same_new_table_at_once(dynamodb, dynamodb_table):
    several = [DynamoDBAdapter(dynamodb.url, table=dynamodb_table, **KEYS) for _ in range(4)]
    await asyncio.gather(*(each.initialize() for each in several))
    for number, each in enumerate(several):
        await put(each, memory(f"m{number}"))
    assert ids(await listed(several[0])) == ["m0", "m1", "m2", "m3"]
    await asyncio.gather(*(each.close() for each in several))


async def test_keys_longer_than_names_may_be_are_filtered_by(adapter):
    long = "key" * 30_000
    await put(adapter, memory("m1", metadata={long: {long: "x"}}), memory("m2", metadata={long[:-1]: {long: "x"}}))
    assert ids(await listed(adapter, MINE, where(Where((long, long)).eq("x")))) == ["m1"]


async def test_a_filter_that_dynamodb_cannot_take_is_refused(adapter):
    many = MemoryFilter(now=NOW, tags=tuple(f"tag {number}" for number in range(200)))
    with pytest.raises(InvalidInput, match="4096 characters"):
        await adapter.count(MINE, many)
    gap = adapter.filter_gap(Where("n").is_in(range(1_000)))
    assert gap is not None
    assert "4096 characters" in gap
    assert adapter.filter_gap(Where("n").is_in(range(600))) is None
    await put(adapter, memory("m1", metadata={"n": 599}), memory("m2", metadata={"n": 600}))
    assert ids(await listed(adapter, MINE, where(Where("n").is_in(range(600))))) == ["m1"]
    assert await adapter.count(MINE, LIVE) == 2
