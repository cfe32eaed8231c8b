"""Single memories: added, shown, changed, superseded and put away."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.domain.pack import MemoryType, PackSource, Relationship
from lamina.domain.pack_decay import Tier
from lamina.domain.text import clean, is_blank
from lamina.errors import Conflict, InvalidInput, InvalidType, MemoryNotFound, PackNotFound
from lamina.packs.inputs import PackMemoryInput
from lamina.packs.pack_rows import MARKER
from lamina.ports.events import EventName


async def test_a_memory_is_added_and_read_back_as_it_was_given(wafers, clock):
    added = await wafers.add(
        "chip_domain",
        "Yield is measured per lot",
        "kpi",
        name="yield_rule",
        source="document",
        confidence=0.92,
        provenance="session 9, turn 4",
        tags=["yield"],
        metadata={"page": 3},
        relationships=[{"type": "related_to", "target_id": "a"}],
        expires_at="2030-01-01",
    )
    assert UUID(added.id).version == 4
    assert (added.memory_type, added.name, added.source) == (MemoryType.KPI, "yield_rule", PackSource.DOCUMENT)
    assert (added.confidence, added.provenance, added.tags) == (0.92, "session 9, turn 4", ["yield"])
    assert (added.metadata, added.relationships) == ({"page": 3}, [Relationship("related_to", "a")])
    assert added.expires_at == datetime(2030, 1, 1, tzinfo=UTC)
    assert (added.access_count, added.last_accessed, added.tier, added.superseded_by) == (0, None, Tier.FULL, None)
    assert await wafers.memory(added.id, touch=False) == added


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"content": " "}, "content"),
        ({"content": "x" * (1024 * 1024 + 1)}, "content"),
        ({"memory_type": "rumour"}, "memory_type"),
        ({"source": "hearsay"}, "source"),
        ({"confidence": 1.1}, "confidence"),
        ({"confidence": float("nan")}, "confidence"),
        ({"name": ""}, "name"),
        ({"id": "x" * 257}, "id"),
        ({"expires_at": "soon"}, "expires_at"),
        ({"relationships": [{"type": "related_to"}]}, "relationships"),
        ({"relationships": [{"type": "related_to", "target_id": "nowhere"}]}, "relationships"),
        ({"id": "me", "relationships": [{"type": "related_to", "target_id": "me"}]}, "relationships"),
    ],
)
async def test_what_cannot_be_a_memory_is_refused_by_the_field_and_nothing_is_written(wafers, change, field):
    with pytest.raises(InvalidInput) as raised:
        await wafers.add("chip_domain", **{"content": "good", **change})
    assert raised.value.field == field
    assert await wafers.count_memories("chip_domain") == 3


@pytest.mark.parametrize(
    "change", [{"content": b"x"}, {"tags": "one"}, {"confidence": "1"}, {"relationships": "a"}, {"provenance": 4}]
)
async def test_what_has_a_wrong_type_is_refused(wafers, change):
    with pytest.raises(InvalidType):
        await wafers.add("chip_domain", **{"content": "good", **change})
    assert await wafers.count_memories("chip_domain") == 3


async def test_many_are_added_all_or_none_and_in_order(wafers):
    items = ["one", {"content": "two", "memory_type": "policy"}, PackMemoryInput(content="three")]
    added = await wafers.add_many("chip_domain", items)
    assert [each.content for each in added] == ["one", "two", "three"]
    assert await wafers.add_many("chip_domain", []) == []
    with pytest.raises(InvalidInput, match="memory_type"):
        await wafers.add_many("chip_domain", ["four", {"content": "five", "memory_type": "x"}])
    with pytest.raises(InvalidInput, match="kind: is not a field"):
        await wafers.add_many("chip_domain", [{"content": "six", "kind": "fact"}])
    with pytest.raises(Conflict):
        await wafers.add_many("chip_domain", ["seven", {"content": "eight", "id": "a"}])
    assert await wafers.count_memories("chip_domain") == 6


async def test_a_memory_of_no_pack_is_refused(packs):
    with pytest.raises(PackNotFound):
        await packs.add("nowhere", "text")
    with pytest.raises(MemoryNotFound):
        await packs.memory("nowhere")


async def test_reading_counts_and_looking_does_not(wafers, clock):
    clock.advance(60)
    read = await wafers.memory("a")
    assert (read.access_count, read.last_accessed) == (1, clock())
    assert (await wafers.memory("a", touch=False)).access_count == 1
    assert await wafers.count_memories("chip_domain") == 3
    assert [each.access_count for each in await wafers.memories("chip_domain", limit=2)] == [2, 1]
    assert [each.access_count for each in await wafers.memories("chip_domain", touch=False)] == [2, 1, 0]


async def test_concurrent_reads_all_count(wafers):
    await asyncio.gather(
        *(wafers.memory("a") for _ in range(7)), *(wafers.retrieve("chip_domain", "yield") for _ in range(7))
    )
    assert (await wafers.memory("a", touch=False)).access_count == 14


async def test_a_faded_memory_is_shown_as_its_tier_left_it_and_comes_back_whole_when_it_is_read(wafers, fade, events):
    original = (await wafers.memory("a", touch=False)).content
    await fade(wafers, "a", "summary", "Yield drops above 22 degrees")
    shown = await wafers.memory("a", touch=False)
    assert (shown.tier, shown.content) == (Tier.SUMMARY, "Yield drops above 22 degrees")
    await fade(wafers, "a", "existence_marker")
    assert (await wafers.memory("a", touch=False)).content == MARKER
    listed = await wafers.memories("chip_domain", touch=False)
    assert listed[0].content == MARKER
    assert events == []
    read = await wafers.memory("a")
    assert (read.tier, read.content) == (Tier.FULL, original)
    assert (await wafers._index.rows(["a"]))["a"].entry.content == original
    (event,) = events
    assert (event.name, event.facts["ids"]) == (EventName.PACK_REPROMOTED, ["a"])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(min_size=1, max_size=300))
async def test_an_original_comes_back_byte_for_byte(wafers, fade, text):
    cleaned = clean(text)
    if is_blank(cleaned):
        with pytest.raises(InvalidInput, match="content"):
            await wafers.add("chip_domain", text)
        return
    added = await wafers.add("chip_domain", text)
    await fade(wafers, added.id, "key_facts", "less")
    assert (await wafers.memory(added.id)).content == cleaned


async def test_an_update_changes_what_is_given_and_is_refused_at_another_revision(wafers, clock):
    before = await wafers.memory("a", touch=False)
    clock.advance(5)
    changed = await wafers.update_memory("a", confidence=0.5, name="rule", expected_revision=before.revision)
    assert (changed.confidence, changed.name, changed.content) == (0.5, "rule", before.content)
    assert (changed.revision, changed.access_count, changed.updated_at) == (before.revision + 1, 0, clock())
    with pytest.raises(Conflict, match="revision"):
        await wafers.update_memory("a", confidence=0.6, expected_revision=before.revision)
    with pytest.raises(Conflict, match="rule"):
        await wafers.update_memory("b", name="rule")
    with pytest.raises(InvalidInput, match="Give at least one"):
        await wafers.update_memory("a")
    with pytest.raises(InvalidInput, match="content"):
        await wafers.update_memory("a", content="")
    cleared = await wafers.update_memory("a", name=None, provenance=None, expires_at=None)
    assert (cleared.name, cleared.provenance, cleared.expires_at) == (None, None, None)


async def test_a_new_content_is_found_and_the_old_one_is_not(wafers):
    await wafers.update_memory("c", content="Doping implants boron ions")
    assert [hit.memory.id for hit in await wafers.retrieve("chip_domain", "boron", mode="text")] == ["c"]
    assert await wafers.retrieve("chip_domain", "etching", mode="text") == []


async def test_an_edit_of_a_faded_memory_keeps_its_tier_and_a_new_content_brings_it_up(wafers, fade):
    await fade(wafers, "a", "summary", "Yield drops")
    changed = await wafers.update_memory("a", tags=["hot"])
    assert (changed.tier, changed.content, changed.tags) == (Tier.SUMMARY, "Yield drops", ["hot"])
    changed = await wafers.update_memory("a", content="All new")
    assert (changed.tier, changed.content) == (Tier.FULL, "All new")


async def test_concurrent_edits_are_all_kept(wafers):
    await asyncio.gather(
        wafers.update_memory("a", confidence=0.5), wafers.update_memory("a", tags=["t"]), wafers.pin("a")
    )
    memory = await wafers.memory("a", touch=False)
    assert (memory.confidence, memory.tags, memory.pinned_at is not None) == (0.5, ["t"], True)


async def test_superseding_is_on_both_sides_and_leaves_the_old_one_out(wafers):
    new = await wafers.add("chip_domain", "Wafer yield drops above 20 degrees in the clean room")
    old = await wafers.supersede("a", by=new.id)
    assert (old.superseded_by, old.access_count) == (new.id, 0)
    new = await wafers.memory(new.id, touch=False)
    assert new.relationships == [Relationship("supersedes", "a")]
    found = [hit.memory.id for hit in await wafers.retrieve("chip_domain", "wafer yield clean room")]
    assert "a" not in found
    assert new.id in found
    listed = await wafers.memories("chip_domain", include_superseded=True, touch=False)
    assert [each.id for each in listed] == ["a", "b", "c", new.id]
    both = await wafers.retrieve("chip_domain", "wafer yield clean room", include_superseded=True)
    assert {"a", new.id} <= {hit.memory.id for hit in both}
    assert (await wafers.memory("a")).access_count == 1  # by the search that asked for superseded ones
    for wrong in (wafers.supersede(new.id, by="a"), wafers.supersede("b", by="b")):
        with pytest.raises(InvalidInput):
            await wrong
    with pytest.raises(Conflict):
        await wafers.supersede("a", by="b")


async def test_a_memory_of_the_same_name_takes_the_place_of_the_old_one(wafers):
    first = await wafers.add("chip_domain", "Yield is 80 percent", name="yield")
    second = await wafers.add("chip_domain", "Yield is 85 percent", name="yield")
    assert (await wafers.memory(first.id)).superseded_by == second.id
    (found,) = await wafers.retrieve("chip_domain", name="yield")
    assert (found.memory.id, found.score, found.found_in) == (second.id, None, Tier.FULL)
    (found,) = await wafers.retrieve("chip_domain", "yield percent", name="yield")
    assert found.memory.id == second.id


async def test_what_a_removed_memory_superseded_is_live_and_found_again(wafers):
    new = await wafers.add("chip_domain", "Newer", relationships=[{"type": "supersedes", "target_id": "a"}])
    assert "a" not in [hit.memory.id for hit in await wafers.retrieve("chip_domain", "clean room")]
    assert await wafers.delete_memory(new.id, permanent=True)
    assert "a" in [hit.memory.id for hit in await wafers.retrieve("chip_domain", "clean room")]


async def test_pinning_is_idempotent_and_ends(wafers, clock):
    pinned = await wafers.pin("a")
    assert pinned.pinned_at == clock()
    clock.advance(5)
    assert await wafers.pin("a") == pinned
    assert (await wafers.unpin("a")).pinned_at is None
    assert (await wafers.unpin("a")).pinned_at is None


async def test_an_archived_memory_is_not_retrieved_and_comes_back_only_by_restore(wafers, clock):
    original = (await wafers.memory("a")).content
    archived = await wafers.archive("a")
    assert (archived.tier, archived.content) == (Tier.ARCHIVED, MARKER)
    assert (await wafers.archive("a")).revision == archived.revision
    assert "a" not in [hit.memory.id for hit in await wafers.retrieve("chip_domain", "wafer yield clean room")]
    assert "a" not in [hit.memory.id for hit in await wafers.retrieve("chip_domain")]
    assert [each.id for each in await wafers.memories("chip_domain")] == ["b", "c"]
    listed = await wafers.memories("chip_domain", include_archived=True)
    assert [(each.id, each.content == MARKER) for each in listed] == [("a", True), ("b", False), ("c", False)]
    assert (await wafers.memory("a")).tier is Tier.ARCHIVED
    assert "a" not in await wafers._index.rows(["a"])
    clock.advance(timedelta(days=9999))
    restored = await wafers.restore("a")
    assert (restored.tier, restored.content, restored.last_accessed) == (Tier.FULL, original, clock())
    assert (await wafers.restore("a")).revision == restored.revision
    assert "a" in [hit.memory.id for hit in await wafers.retrieve("chip_domain", "wafer yield clean room")]


async def test_a_restored_memory_does_not_expire_again_at_once(wafers, clock):
    await wafers.update_memory("a", expires_at=clock() + timedelta(hours=1))
    await wafers.archive("a")
    clock.advance(timedelta(hours=2))
    assert (await wafers.restore("a")).expires_at is None


async def test_what_has_expired_is_not_retrieved_before_a_sweep_has_archived_it(wafers, clock):
    await wafers.update_memory("a", expires_at=clock() + timedelta(hours=1))
    clock.advance(timedelta(hours=1))
    assert "a" not in [hit.memory.id for hit in await wafers.retrieve("chip_domain", "wafer yield clean room")]
    assert len(await wafers.retrieve("chip_domain", limit=2)) == 2
    assert "a" not in [hit.memory.id for hit in await wafers.retrieve("chip_domain")]


@pytest.mark.parametrize("permanent", [False, True])
async def test_a_deleted_memory_is_gone_with_its_row(wafers, permanent):
    assert await wafers.delete_memory("a", permanent=permanent)
    assert not await wafers.delete_memory("a")
    with pytest.raises(MemoryNotFound):
        await wafers.memory("a")
    with pytest.raises(MemoryNotFound):
        await wafers.pin("a")
    assert [each.id for each in await wafers.memories("chip_domain")] == ["b", "c"]
    assert "a" not in [hit.memory.id for hit in await wafers.retrieve("chip_domain", "wafer yield clean room")]
    assert await wafers._index.rows(["a"]) == {}
    kept = await wafers.kept.get_memories("default", ["a"])
    assert len(kept) == (0 if permanent else 1)
    assert await wafers.delete_memory("a", permanent=True) is not permanent
    assert await wafers.kept.get_memories("default", ["a"]) == []


async def test_listing_filters_and_its_pages_tile(wafers):
    await wafers.add_many(
        "chip_domain",
        [
            {"content": "p1", "memory_type": "policy", "tags": ["x", "y"], "confidence": 0.3},
            {"content": "p2", "memory_type": "policy", "tags": ["x"], "confidence": 0.9},
        ],
    )

    async def contents(**asked):
        return [each.content for each in await wafers.memories("chip_domain", **asked)]

    assert await contents(memory_type="policy") == ["p1", "p2"]
    assert await contents(tags=["x", "y"]) == ["p1"]
    assert await contents(memory_type=MemoryType.POLICY, min_confidence=0.9) == ["p2"]
    whole = await contents()
    assert [*await contents(limit=2), *await contents(limit=2, offset=2), *await contents(limit=2, offset=4)] == whole
    assert await wafers.count_memories("chip_domain", memory_type="policy") == 2
    for wrong in ({"limit": 0}, {"limit": -1}, {"limit": 10**9}, {"offset": -1}, {"min_confidence": 2}):
        with pytest.raises(InvalidInput):
            await contents(**wrong)
