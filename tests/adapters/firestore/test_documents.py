"""How memories lie in Firestore: within its limits, told apart by names of any kind, and gone without a trace."""

import asyncio
import json
import random
from base64 import b85encode
from datetime import UTC, datetime, timedelta

import pytest
from google.cloud.firestore_v1.types import document, firestore

from lamina.adapters.firestore import FirestoreAdapter, firestore_indexes
from lamina.adapters.firestore.conditions import Conditions
from lamina.domain.filters import And, Expiry, MemoryFilter, Not, Or, Where
from lamina.domain.memory import Layer
from lamina.domain.scope import Scope
from lamina.errors import ConfigError, InvalidInput, Unsupported
from lamina.testing.memory_contract.material import LIVE, MINE, NOW, by_vector, ids, listed, memory, put, second, where

RANDOM = random.Random(7)
EVERYTHING = MemoryFilter(now=NOW, expiry=Expiry.ANY)


def noise(size):
    """Text of so many bytes that cannot be compressed by much."""
    return b85encode(RANDOM.randbytes(size * 4 // 5)).decode()


def documents_of(adapter):
    """Every document below the collection, and those below them."""
    api, owner = adapter._documents._api, [("authorization", "Bearer owner")]
    found = []

    def walk(parent):
        for collection in api.list_collection_ids(parent=parent, metadata=owner):
            request = firestore.ListDocumentsRequest(parent=parent, collection_id=collection, show_missing=True)
            for each in api.list_documents(request, metadata=owner):
                found.append(document.Document.pb(each))
                walk(each.name)

    walk(adapter._documents._parent)
    return [each for each in found if each.fields]


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("content", {"content": noise(1_600_000)}),
        ("metadata", {"metadata": {"n": list(range(6_000))}}),
        ("derived_from", {"derived_from": [noise(500) for _ in range(3_000)]}),
        ("embedding", {"embedding": [float(n) for n in range(2_049)]}),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
async def test_what_firestore_would_not_keep_is_refused_by_name(adapter, field, fields):
    await put(adapter, memory("before"))
    with pytest.raises(InvalidInput) as refusal:
        await put(adapter, memory(**fields))
    assert refusal.value.field == field
    with pytest.raises(InvalidInput) as refusal:
        await adapter.update(MINE, "before", fields)
    assert refusal.value.field == field
    assert [(each.id, each.revision) for each in await listed(adapter)] == [("before", 1)]


async def test_a_meta_value_that_is_too_large_is_refused_by_name(adapter):
    with pytest.raises(InvalidInput) as refusal:
        await adapter.save_meta(MINE, "key", noise(1_100_000), NOW)
    assert refusal.value.field == "value"


async def test_the_longest_vector_is_kept_and_found(adapter):
    vector = [float(n) for n in range(2_048)]
    await put(adapter, memory(embedding=vector))
    [hit] = await by_vector(adapter, vector)
    assert hit.similarity == pytest.approx(1.0, abs=1e-6)


async def test_a_batch_beyond_one_commit_is_written_in_parts(adapter):
    batch = [memory(f"m{number}", noise(900_000)) for number in range(16)]
    assert await adapter.store_many(MINE, batch, if_new=True) == [None] * 16
    assert [each.content for each in await listed(adapter)] == [each.content for each in batch]


async def test_memories_with_long_histories_are_deleted_together_without_a_trace(adapter):
    names = [f"canary {number}" for number in range(12)]
    await put(adapter, *(memory(name, "canary 0", owner="canary", tags=["canary"]) for name in names))
    scope = Scope("acme", "canary")
    for number in range(1, 55):
        changes = {"content": f"canary {number}", "metadata": {"canary": "canary"}}
        await asyncio.gather(*(adapter.update(scope, name, changes) for name in names))
    assert [each.content for each in await adapter.history(scope, names[0])] == [f"canary {n}" for n in range(4, 54)]
    assert "canary" in str(documents_of(adapter))
    assert await adapter.delete_many(scope, names) == [True] * 12
    left = documents_of(adapter)
    assert "canary" not in str(left)
    assert {each.name.rpartition("/")[2] for each in left if "layout" in each.fields or "last" in each.fields} == {
        "lamina",
        "seq",
    }
    assert len(left) == 2


async def test_every_document_of_a_memory_expires_with_it(adapter):
    def seconds(past):
        memories = [each for each in documents_of(adapter) if "entry" in each.fields]
        assert len(memories) == 1 + past
        return {
            each.fields["expires_at"].timestamp_value.seconds if "expires_at" in each.fields else None
            for each in memories
        }

    await put(adapter, memory(expires_at=second(0.5)))
    await adapter.update(MINE, "m1", {"content": "changed"})
    after = int(NOW.timestamp()) + 1
    assert seconds(1) == {after}
    await adapter.update(MINE, "m1", {"expires_at": second(100)})
    assert seconds(2) == {after + 100}
    await adapter.update(MINE, "m1", {"expires_at": None})
    assert seconds(3) == {None}


async def test_an_expiry_at_the_end_of_time_is_kept(adapter):
    last = datetime.max.replace(tzinfo=UTC)
    await put(adapter, memory(expires_at=last))
    assert (await adapter.get(MINE, "m1")).expires_at == last
    assert ids(await listed(adapter)) == ["m1"]


async def test_two_collections_never_see_each_other(adapter, firestore, firestore_project):
    others = [
        FirestoreAdapter(url=f"http://{firestore.url}", project_id=firestore_project, collection_name=name)
        for name in ("past", "controls", "lamina", "lamina_memories_past")
    ]
    await put(adapter, memory("m1"))
    await adapter.update(MINE, "m1", {"content": "ours"})
    await adapter.save_meta(MINE, "key", "ours", NOW)
    for other in others:
        await other.initialize()
        assert await listed(other, Scope("acme"), EVERYTHING) == []
        assert await other.load_meta(MINE, "key") is None
        await put(other, memory("m1", "theirs"))
        assert [each.content for each in await listed(other)] == ["theirs"]
        await other.close()
    assert [each.content for each in await listed(adapter)] == ["ours"]
    assert len(await adapter.history(MINE, "m1")) == 1


async def test_adapters_that_know_nothing_of_each_other_lose_nothing(adapter, firestore, firestore_project):
    other = FirestoreAdapter(firestore.url, project_id=firestore_project)
    await other.initialize()
    await put(adapter, memory("m1"))
    await adapter.save_meta(MINE, "key", "value", NOW)

    async def work(mine, name):
        stored = 0
        for number in range(12):
            await mine.touch(MINE, ["m1"], datetime.now(UTC))
            batch = [memory(f"{name}{number}", f"text {number}")]
            stored += await mine.store_many(MINE, batch, if_new=True, expected_meta={"key": "value"}) == [None]
        return stored

    stored = await asyncio.gather(work(adapter, "a"), work(other, "b"))
    entries = await listed(adapter)
    assert sum(stored) == 12
    assert (entries[0].access_count, len(entries)) == (24, 13)
    assert len({entry.content for entry in entries}) == len({entry.seq for entry in entries}) == 13
    await other.close()


async def test_adapters_open_the_same_new_collection_at_once(firestore, firestore_project):
    several = [FirestoreAdapter(firestore.url, project_id=firestore_project) for _ in range(4)]
    await asyncio.gather(*(each.initialize() for each in several))
    for number, each in enumerate(several):
        await put(each, memory(f"m{number}"))
    assert ids(await listed(several[0])) == ["m0", "m1", "m2", "m3"]
    await asyncio.gather(*(each.close() for each in several))


async def test_tags_beyond_what_firestore_can_be_asked_hold_too(adapter):
    many = [f"tag {number}" for number in range(40)]
    await put(
        adapter,
        *(memory(f"m{n}", tags=many[n : n + 3], metadata={"n": n % 2}, layer=Layer.GLOBAL) for n in range(12)),
    )
    shared = Scope("acme", "bob", include_shared=True)
    for scope in (MINE, shared):
        several = MemoryFilter(now=NOW, tags=("tag 4", "tag 5"), layers=frozenset({Layer.GLOBAL, Layer.SESSION}))
        assert ids(await listed(adapter, scope, several)) == ["m3", "m4"]
        assert ids(await listed(adapter, scope, several, limit=1, offset=1)) == ["m4"]
        assert await adapter.count(scope, several) == 2
        any_of_many = MemoryFilter(now=NOW, tags_any=tuple(many[10:]), layers=frozenset(Layer))
        assert ids(await listed(adapter, scope, any_of_many)) == ["m8", "m9", "m10", "m11"]
        with_metadata = where(Where("n").eq(1), tags=("tag 4",), tags_any=("tag 5", "tag 6"))
        assert ids(await listed(adapter, scope, with_metadata)) == ["m3"]
        either = where(Or((Where("n").eq(1), Where("n").is_in([5, 6]))), layers=frozenset(Layer))
        assert await adapter.count(scope, either) == 6


async def test_what_firestore_cannot_be_asked_is_refused_with_the_reason(adapter):
    for condition in (Where("n").gt(1), Not(Where("n").eq(1)), Where("n").ne(1), Where("kind").contains("part")):
        assert "index" in adapter.filter_gap(condition)
    for condition in (And((Where("n").eq(1), Where("m").eq(2))), Where("n").is_in(range(31))):
        assert "one thing" in adapter.filter_gap(condition)
    for condition in (Where("n").is_in(range(30)), And((Where("n").eq(1),)), Or(()), And(())):
        assert adapter.filter_gap(condition) is None
    with pytest.raises(Unsupported, match="index"):
        await listed(adapter, MINE, where(Where("n").gt(1)))


async def test_neighbours_that_a_filter_hides_are_looked_past(adapter):
    """Expiry is no condition of a vector index, so that more neighbours are asked for until enough are live."""
    gone = [memory(f"g{n}", embedding=[1.0, n / 10_000], expires_at=second(-1)) for n in range(300)]
    live = [memory(f"m{n}", embedding=[1.0, 1.0 + n]) for n in range(3)]
    await adapter.store_many(MINE, [*gone, *live])
    assert ids(await by_vector(adapter, [1.0, 0.0], limit=2)) == ["m0", "m1"]
    assert len(await by_vector(adapter, [1.0, 0.0], MINE, EVERYTHING, limit=303)) == 303


async def test_a_vector_search_deeper_than_firestore_goes_is_refused(adapter):
    gone = [memory(f"g{n}", embedding=[1.0, n / 10_000], expires_at=second(-1)) for n in range(1_000)]
    await adapter.store_many(MINE, [*gone, memory("m1", embedding=[0.0, 1.0])])
    with pytest.raises(Unsupported, match="1000 neighbours"):
        await by_vector(adapter, [1.0, 0.0], limit=1)
    assert ids(await by_vector(adapter, [0.0, 1.0], limit=1)) == ["m1"]


def test_the_indexes_are_what_googles_tools_read():
    made = json.loads(json.dumps(firestore_indexes("notes", dimensions=384)))
    assert {each["collectionGroup"] for each in made["indexes"]} == {"notes"}
    written = [json.dumps(each, sort_keys=True) for each in made["indexes"]]
    assert len(set(written)) == len(written) < 200  # as many as a database may have
    fields = {field["fieldPath"] for each in made["indexes"] for field in each["fields"]}
    ttl = [(each["collectionGroup"], each["fieldPath"]) for each in made["fieldOverrides"] if each["ttl"]]
    assert ttl == [("notes", "expires_at"), ("past", "expires_at")]
    asked = set()
    for scope in (
        Scope("a"),
        Scope("a", "b", include_shared=True),
        Scope("a", None, "c"),
        Scope("a", "b", "c", include_shared=True),
    ):
        filter = MemoryFilter(
            now=NOW,
            layers=frozenset({Layer.GLOBAL}),
            tags=("x",),
            min_relevance=0.1,
            min_confidence=0.1,
            created_before=NOW + timedelta(1),
            updated_before=NOW + timedelta(1),
            has_embedding=True,
        )
        for each in Conditions.of(scope, filter).filters:
            parts = each.composite_filter.filters or [each]
            asked |= {part.field_filter.field.field_path for part in parts}
    assert asked <= fields


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("table", {"table": ""}),
        ("table", {"table": "a/b"}),
        ("table", {"table": "__notes__"}),
        ("table", {"table": "x" * 64}),
        ("collection_name", {"table": "notes", "collection_name": "others"}),
        ("project_id", {"project_id": "My Project"}),
        ("database", {"database": "a/b"}),
        ("url", {"url": "https://host:1"}),
        ("url", {"url": "host"}),
        ("url", {"url": "host:port"}),
        ("url", {"url": "user:pay-roll@host:1"}),
        ("url", {"url": "host:1/path"}),
        ("timeout", {"timeout": 0}),
        ("retry_timeout", {"retry_timeout": float("nan")}),
        ("threads", {"threads": True}),
    ],
)
def test_a_wrong_option_is_refused_by_name(field, options):
    with pytest.raises(ConfigError) as refusal:
        FirestoreAdapter(**options)
    assert refusal.value.field == field
    assert "pay-roll" not in str(refusal.value)


def test_it_shows_where_it_is_and_no_secret():
    assert repr(FirestoreAdapter("localhost:8080")) == "FirestoreAdapter(lamina_memories in localhost:8080)"
    adapter = FirestoreAdapter(project_id="notes-4711", table="notes", credentials="/etc/pay-roll.json")
    assert repr(adapter) == "FirestoreAdapter(notes in the project notes-4711)"


async def test_counts_are_of_what_a_list_would_have(adapter):
    await put(adapter, *(memory(f"m{n}", tags=["a", "b"][: n % 3]) for n in range(7)))
    assert await adapter.count(MINE, LIVE) == 7
    assert await adapter.count(MINE, MemoryFilter(now=NOW, tags=("a", "b"))) == 2
