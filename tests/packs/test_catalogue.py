"""Packs as a whole: made, listed, changed and deleted."""

from __future__ import annotations

import sqlite3
from datetime import timedelta

import pytest

from lamina.domain.pack import PackType
from lamina.domain.pack_decay import Decay
from lamina.errors import Conflict, InvalidInput, InvalidType, PackExists, PackNotFound
from lamina.settings.packs import PacksConfig


async def test_a_pack_is_made_and_read_back_as_it_was_given(packs, clock):
    made = await packs.create(
        "chip-domain_1",
        PackType.DOMAIN,
        description="Chips ✓",
        tags=["wafers", "wafers", "yield"],
        metadata={"team": "fab"},
        decay={"unit": 3600, "steps": [1, 2, 3, 4]},
    )
    assert made == await packs.get("chip-domain_1")
    assert (made.type, made.owner, made.revision, made.created_at) == (PackType.DOMAIN, None, 1, clock())
    assert (made.description, made.tags, made.metadata) == ("Chips ✓", ["wafers", "yield"], {"team": "fab"})
    assert made.decay == Decay(timedelta(hours=1), (1, 2, 3, 4))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"type": "team"}, "type"),
        ({"name": "With Space"}, "name"),
        ({"name": "x" * 64}, "name"),
        ({"name": ""}, "name"),
        ({"type": "user"}, "owner"),
        ({"type": "session"}, "owner"),
        ({"owner": " "}, "owner"),
        ({"tags": [""]}, "tags"),
        ({"decay": {"unit": 0}}, "decay.unit"),
        ({"decay": {"unit": 10, "steps": [2, 1, 3, 4]}}, "decay.steps"),
        ({"decay": {"steps": [1, 2, 3, 4]}}, "decay"),
        ({"decay": {"unit": 1e300}}, "decay.unit"),
    ],
)
async def test_what_cannot_be_a_pack_is_refused_by_the_field_and_nothing_is_written(packs, change, field):
    with pytest.raises(InvalidInput) as raised:
        await packs.create(**{"name": "good", "type": "domain", **change})
    assert raised.value.field == field
    assert await packs.count() == 0


@pytest.mark.parametrize(
    "change", [{"tags": "one"}, {"description": 5}, {"metadata": [1]}, {"decay": {"unit": "a day"}}, {"name": 5}]
)
async def test_what_has_a_wrong_type_is_refused(packs, change):
    with pytest.raises(InvalidType):
        await packs.create(**{"name": "good", "type": "domain", **change})
    assert await packs.count() == 0


async def test_the_error_of_an_unknown_type_lists_those_that_there_are(packs):
    with pytest.raises(InvalidInput, match="session, user, domain, project, agent"):
        await packs.create("good", "data_source")


async def test_a_name_is_taken_once_for_each_owner_and_is_free_after_a_deletion(packs):
    await packs.create("notes", "project")
    await packs.create("notes", "project", owner="mira")
    with pytest.raises(PackExists):
        await packs.create("notes", "domain")
    with pytest.raises(PackExists):
        await packs.create("notes", "user", owner="mira")
    assert await packs.delete("notes")
    assert (await packs.create("notes", "domain")).type is PackType.DOMAIN


async def test_an_owner_means_the_own_pack_first_and_nobody_means_the_shared_one(packs):
    shared = await packs.create("notes", "project")
    own = await packs.create("notes", "project", owner="mira")
    assert (await packs.get("notes", owner="mira")).id == own.id
    assert (await packs.get("notes", owner="noor")).id == shared.id
    assert (await packs.get("notes")).id == shared.id


async def test_listing_filters_pages_and_counts(packs):
    for name, kind, tags in [("a", "domain", ["x"]), ("b", "project", ["x"]), ("c", "domain", []), ("d", "domain", [])]:
        await packs.create(name, kind, tags=tags)
    await packs.archive_pack("d")

    def names(found):
        return [each.name for each in found]

    assert names(await packs.list()) == ["a", "b", "c"]
    assert names(await packs.list(type="domain")) == ["a", "c"]
    assert names(await packs.list(tag="x", limit=1, offset=1)) == ["b"]
    assert names(await packs.list(status="archived")) == ["d"]
    assert (await packs.count(), await packs.count(type="domain"), await packs.count(status="deleted")) == (3, 2, 0)
    with pytest.raises(InvalidInput, match="active, archived, deleted"):
        await packs.list(status="deprecated")


async def test_an_update_changes_what_is_given_and_is_refused_at_another_revision(packs, clock):
    made = await packs.create("notes", "project", description="old", tags=["t"], metadata={"k": 1})
    clock.advance(5)
    changed = await packs.update("notes", description="new", new_name="papers", expected_revision=made.revision)
    assert (changed.name, changed.description, changed.tags, changed.metadata) == ("papers", "new", ["t"], {"k": 1})
    assert (changed.revision, changed.updated_at) == (2, clock())
    with pytest.raises(PackNotFound):
        await packs.get("notes")
    with pytest.raises(Conflict, match="revision 2, not 1"):
        await packs.update("papers", description="newer", expected_revision=1)
    assert (await packs.update("papers", decay={"unit": 60})).decay == Decay(timedelta(minutes=1))
    assert (await packs.update("papers", decay=None)).decay is None
    with pytest.raises(InvalidInput, match="Give at least one"):
        await packs.update("papers")


async def test_an_archived_pack_takes_no_memories_and_is_not_discovered_until_it_is_active(wafers):
    await wafers.archive_pack("chip_domain")
    assert await wafers.discover("wafer yield") == []
    with pytest.raises(Conflict, match="archived"):
        await wafers.add("chip_domain", "more")
    assert len(await wafers.memories("chip_domain")) == 3
    await wafers.activate("chip_domain")
    assert [match.pack.name for match in await wafers.discover("wafer yield")] == ["chip_domain"]
    await wafers.add("chip_domain", "more")


@pytest.mark.parametrize("permanent", [False, True])
async def test_a_deleted_pack_is_gone_with_its_memories_and_rows(wafers, permanent):
    assert await wafers.delete("chip_domain", permanent=permanent)
    assert not await wafers.delete("chip_domain", permanent=permanent)
    assert await wafers.discover("wafer yield") == []
    for call in (wafers.get("chip_domain"), wafers.memories("chip_domain"), wafers.add("chip_domain", "x")):
        with pytest.raises(PackNotFound):
            await call
    with pytest.raises(LookupError):
        await wafers.memory("a")
    assert await wafers._index.rows(["a", "b", "c"]) == {}
    deleted = await wafers.list(status="deleted")
    assert [each.name for each in deleted] == ([] if permanent else ["chip_domain"])


async def test_a_pack_that_was_deleted_before_is_removed_for_good_by_its_id(wafers):
    (summary,) = await wafers.list()
    assert not await wafers.delete(summary.id)
    await wafers.delete("chip_domain")
    assert not await wafers.delete(summary.id)
    assert await wafers.delete(summary.id, permanent=True)
    assert await wafers.list(status="deleted") == []
    assert await wafers.kept.get_memories("default", ["a", "b", "c"]) == []


async def test_settings_say_how_new_packs_of_a_type_fade(open_packs):
    packs = await open_packs(config=PacksConfig(decay={"project": {"hours": 24}}))
    assert (await packs.create("a", "project")).decay == Decay(timedelta(days=1))
    assert (await packs.create("b", "domain")).decay is None
    assert (await packs.create("c", "project", decay={"unit": 60})).decay == Decay(timedelta(minutes=1))


async def test_summary_and_metadata_are_layers_of_their_own_that_count_as_no_access(wafers):
    await wafers.memory("a")
    await wafers.memory("a")
    summary = await wafers.summary("chip_domain")
    assert (summary.name, summary.tags) == ("chip_domain", ["wafers", "yield"])
    metadata = await wafers.metadata("chip_domain")
    assert (metadata.memory_count, metadata.type_distribution, metadata.tier_distribution) == (
        3,
        {"fact": 3},
        {"full": 3},
    )
    assert (metadata.confidence.mean, metadata.access.total, metadata.access.most_used) == (1.0, 2, ["a"])
    assert (await wafers.metadata("chip_domain")).access.total == 2


async def test_discovery_and_summaries_read_no_table_of_memories(open_packs, monkeypatch):
    statements = []
    connect = sqlite3.connect

    def traced(*args, **options):
        connection = connect(*args, **options)
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    packs = await open_packs()
    await packs.create("chip_domain", "domain", description="wafer yield")
    await packs.add("chip_domain", "Yield drops when it is warm")

    async def tables(call):
        statements.clear()
        await call
        read = [each for each in statements if "lamina_pack" in each]
        assert read
        return {
            table
            for table in ("lamina_pack_memories", "lamina_pack_originals", "lamina_packs")
            for each in read
            if table in each
        }

    assert await tables(packs.discover("wafer yield")) == set()
    assert await tables(packs.list()) == set()
    assert await tables(packs.summary("chip_domain")) == set()
    assert await tables(packs.metadata("chip_domain")) == {"lamina_pack_memories"}
    assert {"lamina_pack_originals", "lamina_packs"} <= await tables(packs.retrieve("chip_domain", "yield"))


async def test_a_status_is_changed_together_with_all_else_and_not_to_deleted(wafers):
    changed = await wafers.update("chip_domain", status="archived", description="old", expected_revision=1)
    assert (changed.status, changed.description, changed.revision) == ("archived", "old", 2)
    assert (await wafers.update("chip_domain", status="active")).status == "active"
    with pytest.raises(InvalidInput, match="Delete the pack"):
        await wafers.update("chip_domain", status="deleted")
