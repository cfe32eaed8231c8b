"""From a memory engine into packs, and back."""

from __future__ import annotations

import pytest

from lamina.domain.memory import Layer, Trust
from lamina.errors import InvalidInput
from lamina.memory.factory import create_memory_engine


@pytest.fixture
async def engine(clock):
    async with await create_memory_engine(provider="memory", embedding="none", clock=clock) as engine:
        yield engine


async def test_entries_become_memories_once_however_often_they_are_imported(wafers, engine):
    await engine.store("Yield is 80 percent", metadata={"memory_type": "kpi", "lot": 3}, confidence=0.7, tags=["t"])
    await engine.store("A web page says so", trust="untrusted", source="https://example.org")
    entries = await engine.query(None)
    report = await wafers.import_entries("chip_domain", entries)
    assert (len(report.added), report.skipped) == (2, [])
    memories = {each.content: each for each in await wafers.memories("chip_domain", touch=False)}
    kpi, page = memories["Yield is 80 percent"], memories["A web page says so"]
    assert (kpi.memory_type, kpi.confidence, kpi.tags, kpi.source) == ("kpi", 0.7, ["t"], "conversation")
    assert kpi.metadata["lot"] == 3
    assert (page.memory_type, page.source, page.provenance) == ("fact", "document", "https://example.org")
    await wafers.delete_memory(kpi.id)
    again = await wafers.import_entries("chip_domain", [*entries, *entries])
    assert (again.added, sorted(again.skipped)) == ([], sorted(report.added))
    assert len(await wafers.memories("chip_domain")) == 4


async def test_a_type_can_be_given_and_one_that_there_is_not_is_refused(wafers, engine):
    await engine.store("x", metadata={"memory_type": "rumour"})
    entries = await engine.query(None)
    with pytest.raises(InvalidInput, match="memory_type"):
        await wafers.import_entries("chip_domain", entries)
    report = await wafers.import_entries("chip_domain", entries, memory_type="policy")
    assert (await wafers.memory(report.added[0])).memory_type == "policy"


@pytest.mark.parametrize(
    ("kind", "owner", "layer"),
    [
        ("session", "mira", Layer.SESSION),
        ("user", "mira", Layer.LONGTERM),
        ("agent", "mira", Layer.LONGTERM),
        ("project", "mira", Layer.LONGTERM),
        ("domain", "mira", Layer.LONGTERM),
        ("project", None, Layer.ORGANIZATIONAL),
        ("domain", None, Layer.ORGANIZATIONAL),
        ("agent", None, Layer.ORGANIZATIONAL),
    ],
)
async def test_memories_become_entries_of_the_layer_that_only_those_see_who_saw_the_pack(
    packs, engine, kind, owner, layer
):
    await packs.create("notes", kind, owner=owner)
    added = await packs.add("notes", "Yield is 80 percent", "kpi", name="yield", confidence=0.7, owner=owner)
    (entry,) = await packs.export_entries("notes", owner=owner)
    assert (entry.id, entry.content, entry.layer, entry.confidence) == (added.id, added.content, layer, 0.7)
    assert (entry.metadata["memory_type"], entry.metadata["name"]) == ("kpi", "yield")
    assert (await packs.memory(added.id, touch=False, owner=owner)).access_count == 0
    await engine.restore([entry])
    seen = [each.content for each in await engine.query(None, owner="noor")]
    assert seen == ([added.content] if owner is None else [])
    assert [each.content for each in await engine.query(None, owner="mira")] == [added.content]


async def test_a_faded_memory_is_exported_whole_and_its_trust_goes_along(wafers, fade):
    await fade(wafers, "a", "existence_marker")
    await wafers.add("chip_domain", "From a page", source="document", provenance="page 3")
    entries = {entry.content: entry for entry in await wafers.export_entries("chip_domain")}
    assert "Wafer yield drops when the clean room is above 22 degrees" in entries
    page = entries["From a page"]
    assert (page.trust, page.metadata["provenance"], page.source) == (Trust.UNTRUSTED, "page 3", "pack:chip_domain")
    assert (await wafers.memory("a", touch=False)).tier == "existence_marker"
