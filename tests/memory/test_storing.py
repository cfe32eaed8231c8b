from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest

from lamina.domain.memory import Layer, Trust
from lamina.errors import Conflict, InvalidInput, InvalidType, MemoryNotFound
from lamina.memory.inputs import MemoryInput

TEA = "Mira drinks tea with lemon"


async def test_a_memory_comes_back_as_it_was_said(engine, clock):
    id = await engine.store(
        TEA,
        layer="session",
        owner="mira",
        namespace="kitchen",
        tags=["preference", "drinks", "preference"],
        metadata={"key": "drink", "n": [1, 2.5, None, True]},
        relevance=0.9,
        confidence=0.7,
        ttl=60,
        occurred_at="2025-05-09T12:00",
        source="conversation:7",
        trust="untrusted",
        derived_from=["msg-1"],
    )
    entry = await engine.get(id)
    assert id.startswith("mem_")
    assert (entry.content, entry.layer, entry.owner, entry.namespace) == (TEA, Layer.SESSION, "mira", "kitchen")
    assert entry.tags == ["preference", "drinks"]
    assert entry.metadata == {"key": "drink", "n": [1, 2.5, None, True]}
    assert (entry.relevance, entry.base_relevance, entry.confidence) == (0.9, 0.9, 0.7)
    assert (entry.ttl, entry.expires_at) == (60, clock.now + timedelta(seconds=60))
    assert entry.occurred_at == datetime(2025, 5, 9, 12, tzinfo=UTC)
    assert (entry.source, entry.trust, entry.derived_from) == ("conversation:7", Trust.UNTRUSTED, ["msg-1"])
    assert (entry.created_at, entry.updated_at, entry.access_count) == (clock.now, clock.now, 0)
    assert entry.embedding is not None


async def test_what_is_left_out_takes_the_defaults(engine):
    entry = await engine.get(await engine.store(TEA))
    assert (entry.layer, entry.owner, entry.namespace, entry.tenant) == (Layer.LONGTERM, *["default"] * 3)
    assert (entry.relevance, entry.confidence, entry.ttl, entry.expires_at) == (0.5, 1.0, None, None)


@pytest.mark.parametrize(
    ("layer", "seconds"),
    [("working", 300), ("session", 3600), ("longterm", None), ("organizational", None), ("global", None)],
)
async def test_each_layer_has_its_own_time_to_live(engine, layer, seconds):
    assert (await engine.get(await engine.store(TEA, layer=layer))).ttl == seconds


async def test_none_means_never_and_a_timedelta_is_taken(engine):
    assert (await engine.get(await engine.store("one", layer="session", ttl=None))).expires_at is None
    assert (await engine.get(await engine.store("two", ttl=timedelta(days=2)))).ttl == 172800


async def test_one_method_takes_text_mappings_and_inputs(engine):
    as_mapping = await engine.store({"content": "one", "layer": "session", "derivedFrom": ["m1"]})
    as_input = await engine.store(MemoryInput(content="two", owner="mira"))
    assert (await engine.get(as_mapping)).derived_from == ["m1"]
    assert (await engine.get(as_input)).owner == "mira"


class TestConfirming:
    async def test_the_same_said_again_makes_no_second_memory(self, engine, clock):
        first = await engine.store(TEA, tags=["a"], metadata={"x": 1, "y": 1}, confidence=0.4, relevance=0.3, ttl=100)
        before = await engine.get(first)
        clock.advance(50)
        again = await engine.store(f"  {TEA.replace(' ', '   ')} ", tags=["b", "a"], metadata={"y": 2}, confidence=0.2)
        entry = await engine.get(first)
        assert again == first
        assert await engine.count() == 1
        assert (entry.relevance, entry.confidence) == (1.0, 0.4)
        assert entry.tags == ["a", "b"]
        assert entry.metadata == {"x": 1, "y": 2, "confirmations": 1}
        assert (entry.created_at, entry.updated_at) == (before.created_at, clock.now)
        assert entry.expires_at == clock.now + timedelta(seconds=100)
        await engine.store(TEA)
        assert (await engine.get(first)).metadata["confirmations"] == 2

    async def test_an_explicit_relevance_wins(self, engine):
        id = await engine.store(TEA)
        await engine.store(TEA, relevance=0.7)
        assert (await engine.get(id)).relevance == 0.7

    @pytest.mark.parametrize(
        "other", [{"owner": "tomas"}, {"namespace": "work"}, {"layer": "session"}, {"content": TEA.upper()}]
    )
    async def test_another_owner_namespace_layer_or_case_is_another_memory(self, engine, other):
        said = {"content": TEA, "owner": "mira"}
        assert await engine.store(said) != await engine.store({**said, **other})

    async def test_unicode_forms_are_the_same(self, engine):
        assert await engine.store("Café à Nîmes") == await engine.store("Cafe\u0301 a\u0300 Ni\u0302mes")

    async def test_an_expired_twin_counts_as_absent(self, engine, clock):
        first = await engine.store(TEA, ttl=10)
        clock.advance(10)
        second = await engine.store(TEA)
        assert second != first
        assert await engine.get(first) is None

    async def test_side_by_side_it_is_still_one(self, engine):
        ids = await asyncio.gather(*[engine.store(TEA) for _ in range(30)])
        assert len(set(ids)) == 1
        assert await engine.count() == 1
        assert (await engine.get(ids[0])).metadata["confirmations"] == 29


class TestBatches:
    async def test_ids_come_in_order(self, engine):
        ids = await engine.store_many(["one", {"content": "two", "owner": "mira"}, MemoryInput(content="three")])
        assert [(await engine.get(id)).content for id in ids] == ["one", "two", "three"]

    async def test_twins_inside_a_batch_are_one_memory(self, engine):
        ids = await engine.store_many(["one", "two", "one "])
        assert ids[0] == ids[2] != ids[1]
        assert (await engine.get(ids[0])).metadata == {"confirmations": 1}

    async def test_one_bad_item_and_nothing_is_written(self, engine):
        with pytest.raises(InvalidInput, match="relevance"):
            await engine.store_many(["one", {"content": "two", "relevance": 7}])
        assert await engine.count() == 0

    async def test_each_text_is_embedded_once(self, engine, embedder):
        await engine.store_many([f"fact {number}" for number in range(20)])
        await engine.store_many([f"fact {number}" for number in range(20)])
        assert embedder.texts == 20

    async def test_working_and_lasting_memories_can_be_mixed(self, engine):
        ids = await engine.store_many([{"content": "one", "layer": "working"}, "two"])
        assert [(await engine.get(id)).layer for id in ids] == ["working", "longterm"]

    @pytest.mark.parametrize("items", ["one", None, 5, {"content": "one"}])
    async def test_what_is_no_list_is_no_batch(self, engine, items):
        with pytest.raises(InvalidType, match="items"):
            await engine.store_many(items)


class TestOwnIds:
    async def test_the_same_call_twice_is_harmless(self, engine):
        assert await engine.store(TEA, id="turn-7") == await engine.store(TEA, id="turn-7") == "turn-7"
        assert await engine.count() == 1

    async def test_another_text_under_the_id_is_a_conflict(self, engine):
        await engine.store(TEA, id="turn-7")
        with pytest.raises(Conflict, match="turn-7"):
            await engine.store("something else", id="turn-7")
        assert (await engine.get("turn-7")).content == TEA

    async def test_nobody_takes_over_anothers_id(self, engine):
        await engine.store(TEA, id="turn-7", owner="mira")
        with pytest.raises(Conflict):
            await engine.store(TEA, id="turn-7", owner="tomas")
        assert (await engine.get("turn-7")).owner == "mira"

    async def test_two_texts_under_one_id_in_a_batch_are_a_conflict(self, engine):
        with pytest.raises(Conflict):
            await engine.store_many([{"content": "one", "id": "x"}, {"content": "two", "id": "x"}])

    async def test_a_conflict_anywhere_in_a_batch_and_nothing_is_written(self, engine):
        known = await engine.store("known", relevance=0.3)
        await engine.store("taken", id="taken")
        for bad in (
            ["known", {"content": "other", "id": "taken"}, "new"],
            ["known", {"content": "first", "id": "d"}, {"content": "second", "id": "d"}],
        ):
            with pytest.raises(Conflict):
                await engine.store_many(bad)
        assert (await engine.get(known)).relevance == 0.3
        assert await engine.count() == 2

    async def test_an_id_may_be_used_again_once_its_memory_has_expired(self, engine, clock):
        await engine.store("alice's", id="profile", owner="alice", ttl=10)
        clock.advance(11)
        await engine.store("bob's", id="profile", owner="bob")
        assert (await engine.get("profile", owner="bob")).revision == 1
        assert await engine.history("profile", owner="bob") == []


BAD = [
    ({"content": ""}, "content"),
    ({"content": " \n\t"}, "content"),
    ({"content": 5}, "content"),
    ({"content": "x" * (10 * 1024 * 1024)}, "content"),
    ({"relevance": float("nan")}, "relevance"),
    ({"relevance": 1.5}, "relevance"),
    ({"relevance": True}, "relevance"),
    ({"confidence": -0.1}, "confidence"),
    ({"layer": "cellar"}, "layer"),
    ({"ttl": 0}, "ttl"),
    ({"ttl": -5}, "ttl"),
    ({"ttl": "soon"}, "ttl"),
    ({"tags": "preference"}, "tags"),
    ({"tags": [3]}, "tags"),
    ({"tags": [" "]}, "tags"),
    ({"metadata": ["x"]}, "metadata"),
    ({"metadata": {"x": datetime.now(UTC)}}, "metadata"),
    ({"metadata": {"x": float("inf")}}, "metadata"),
    ({"metadata": {"x": 2**70}}, "metadata"),
    ({"metadata": {"x": {1, 2}}}, "metadata"),
    ({"metadata": {1: "x"}}, "metadata"),
    ({"owner": ""}, "owner"),
    ({"owner": "mi\x00ra"}, "owner"),
    ({"namespace": "\ud800"}, "namespace"),
    ({"id": " "}, "id"),
    ({"occurred_at": "yesterday"}, "occurred_at"),
    ({"trust": "somewhat"}, "trust"),
    ({"derived_from": "abc"}, "derived_from"),
    ({"derived_from": 5}, "derived_from"),
    ({"colour": "red"}, "colour"),
    ({"derived_from": "mem_1"}, "derived_from"),
    ({"derived_from": [1]}, "derived_from"),
    ({"derived_from": 5}, "derived_from"),
    ({"source": 5}, "source"),
]


@pytest.mark.parametrize(("said", "field"), BAD, ids=lambda value: str(value)[:30])
async def test_bad_input_names_the_field_and_writes_nothing(engine, said, field):
    with pytest.raises((InvalidInput, InvalidType), match=field) as caught:
        await engine.store({"content": TEA, **said})
    assert caught.value.field.startswith(field)
    assert caught.value.remedy
    assert await engine.count() == 0


async def test_texts_are_cleaned_of_what_no_backend_keeps(engine):
    id = await engine.store("pay\x00roll \ud83d\ude00 \ud83d", tags=["a\x00"], metadata={"k\ud800": "v\x00"})
    entry = await engine.get(id)
    assert entry.content == "pay\ufffdroll \U0001f600 \ufffd"
    assert (entry.tags, entry.metadata) == (["a\ufffd"], {"k\ufffd": "v\ufffd"})


class TestEditing:
    async def test_an_edit_changes_what_it_names_and_keeps_the_former_version(self, engine, clock):
        id = await engine.store(TEA, tags=["a"])
        vector = (await engine.get(id)).embedding
        clock.advance(60)
        entry = await engine.update(id, content="Mira drinks coffee", metadata={"why": "new doctor"}, ttl=30)
        assert (entry.content, entry.tags, entry.metadata) == ("Mira drinks coffee", ["a"], {"why": "new doctor"})
        assert (entry.updated_at, entry.expires_at) == (clock.now, clock.now + timedelta(seconds=30))
        assert entry.revision == 2
        assert list((await engine.get(id)).embedding) != list(vector)
        assert [old.content for old in await engine.history(id)] == [TEA]

    async def test_a_stale_edit_is_a_conflict_and_loses_nothing(self, engine):
        id = await engine.store(TEA)
        read = await engine.get(id)
        await engine.update(id, tags=["newer"], expected_revision=read.revision)
        with pytest.raises(Conflict):
            await engine.update(id, tags=["stale"], expected_revision=read.revision)
        assert (await engine.get(id)).tags == ["newer"]

    async def test_edits_side_by_side_are_all_there(self, engine):
        id = await engine.store(TEA)
        fields = [{"tags": ["t"]}, {"source": "s"}, {"confidence": 0.5}, {"relevance": 0.25}, {"trust": "untrusted"}]
        await asyncio.gather(*[engine.update(id, **field) for field in fields])
        entry = await engine.get(id)
        assert (entry.tags, entry.source, entry.confidence, entry.relevance) == (["t"], "s", 0.5, 0.25)
        assert entry.revision == 6

    async def test_an_unknown_or_foreign_memory_is_not_found(self, engine):
        id = await engine.store(TEA, owner="mira")
        for call in (engine.update("mem_none", tags=["x"]), engine.update(id, owner="tomas", tags=["x"])):
            with pytest.raises(MemoryNotFound):
                await call
        assert (await engine.get(id)).tags == []

    @pytest.mark.parametrize("change", [{}, {"seq": 1}, {"tenant": "x"}, {"relevance": 2}, {"content": " "}])
    async def test_a_change_that_cannot_be_is_refused(self, engine, change):
        id = await engine.store(TEA)
        with pytest.raises(InvalidInput, match=next(iter(change), "changes")):
            await engine.update(id, **change)
        assert (await engine.get(id)).revision == 1

    async def test_one_id_is_no_list_of_ids(self, engine):
        id = await engine.store(TEA, derived_from=["mem_1"])
        with pytest.raises(InvalidType, match="derived_from"):
            await engine.update(id, derived_from="mem_2")
        assert (await engine.get(id)).derived_from == ["mem_1"]

    async def test_a_working_note_can_become_a_lasting_one_and_back(self, engine):
        id = await engine.store(TEA, layer="working")
        await engine.update(id, layer="longterm", ttl=None)
        assert (await engine.get(id)).layer is Layer.LONGTERM
        assert await engine.count() == 1
        await engine.update(id, layer="working")
        assert [result.entry.layer for result in await engine.recall("tea")] == [Layer.WORKING]


class TestWorkingLayer:
    async def test_it_lives_in_this_process_only_and_is_searched_with_the_rest(self, engine):
        id = await engine.store(TEA, layer="working")
        await engine.store("the tea is in the blue tin")
        assert {result.entry.id for result in await engine.recall("tea")} >= {id}
        assert await engine.adapter.get(engine._runtime.tenant_scope, id) is None

    async def test_it_can_live_in_the_adapter(self, open_engine, place):
        engine = await open_engine(**place, working_storage="adapter")
        id = await engine.store(TEA, layer="working")
        assert (await engine.adapter.get(engine._runtime.tenant_scope, id)).content == TEA


async def test_instants_keep_their_meaning_across_zones(engine, clock):
    clock.now = datetime(2026, 3, 29, 1, 30, tzinfo=timezone(timedelta(hours=-5)))
    id = await engine.store(TEA, ttl=7200, occurred_at=datetime(2026, 3, 29, 3, tzinfo=timezone(timedelta(hours=9))))
    entry = await engine.get(id)
    assert entry.created_at == datetime(2026, 3, 29, 6, 30, tzinfo=UTC)
    assert entry.occurred_at == datetime(2026, 3, 28, 18, tzinfo=UTC)
    clock.advance(7199)
    assert await engine.get(id) is not None
    clock.advance(1)
    assert await engine.get(id) is None


@pytest.mark.parametrize("embedding", ["builtin", "none"])
async def test_what_is_said_is_looked_up_before_it_is_embedded_and_else_only_when_it_is_written(
    open_engine, monkeypatch, embedding
):
    embed = {"embed": None, "embedding": "none"} if embedding == "none" else {}
    engine = await open_engine(provider="memory", **embed)
    looked_up = 0
    find_twins = engine.adapter.find_twins

    async def counted(*arguments):
        nonlocal looked_up
        looked_up += 1
        return await find_twins(*arguments)

    monkeypatch.setattr(engine.adapter, "find_twins", counted)
    first = await engine.store(TEA, tags=["one"])
    assert await engine.store_many([TEA, {"content": TEA, "tags": ["two"]}]) == [first, first]
    assert (await engine.get(first)).metadata["confirmations"] == 2
    assert (await engine.get(first)).tags == ["one", "two"]
    assert looked_up == (0 if embedding == "none" else 2)
