"""Between the store and its projection: what fails there is refused or mended, and never lost.

The adapter and the embedder are real ones that fail on demand.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from lamina.domain.pack_decay import Tier
from lamina.domain.recall import Reason
from lamina.errors import AdapterUnavailable, MemoryNotFound, PackNotFound


def ids(hits):
    return [hit.memory.id for hit in hits]


@pytest.fixture
async def packs(open_packs):
    return await open_packs()


async def waiting(packs):
    return [each.id for each in await packs.kept.unprojected(packs.tenant, limit=100)]


async def test_nothing_waits_for_its_projection_where_nothing_failed(wafers, fade):
    await wafers.supersede("a", by="b")
    await wafers.update_memory("b", tags=["t"])
    await fade(wafers, "c", "summary", "Etching")
    await wafers.memory("c")
    await wafers.archive("b")
    await wafers.delete_memory("c")
    assert await waiting(wafers) == []


async def test_a_memory_whose_row_cannot_be_written_is_not_added_and_what_it_superseded_is_live(wafers):
    wafers.rows.fails_to_write = True
    with pytest.raises(AdapterUnavailable):
        await wafers.add("chip_domain", "New", relationships=[{"type": "supersedes", "target_id": "a"}])
    wafers.rows.fails_to_write = False
    assert [each.id for each in await wafers.memories("chip_domain")] == ["a", "b", "c"]
    await wafers.add("chip_domain", "Another")
    assert await waiting(wafers) == []
    assert ids(await wafers.retrieve("chip_domain", "clean room", limit=1)) == ["a"]


async def test_an_edit_stands_and_its_row_is_mended_by_the_next_change(wafers):
    wafers.rows.fails_to_write = True
    await wafers.update_memory("c", content="Doping implants boron")
    assert await waiting(wafers) == ["c"]
    wafers.rows.fails_to_write = False
    await wafers.pin("a")
    assert await waiting(wafers) == []
    assert ids(await wafers.retrieve("chip_domain", "boron", mode="text")) == ["c"]


async def test_what_failed_is_mended_when_the_packs_are_opened_again(wafers, open_packs):
    wafers.rows.fails_to_write = True
    await wafers.update_memory("c", content="Doping implants boron")
    again = await open_packs()
    assert await waiting(again) == []
    assert ids(await again.retrieve("chip_domain", "boron", mode="text")) == ["c"]


async def test_packs_that_were_closed_can_be_opened_again(wafers, open_packs):
    await wafers.close()
    await wafers.initialize()
    assert ids(await wafers.retrieve("chip_domain", "clean room", limit=1)) == ["a"]


async def test_a_memory_is_given_back_whole_even_if_its_row_cannot_be_written(wafers, fade):
    await fade(wafers, "c", "summary", "Etching")
    wafers.rows.fails_to_write = True
    (hit,) = await wafers.retrieve("chip_domain", "etching", limit=1)
    assert hit.memory.content == "Etching removes what the resist does not cover"
    assert await waiting(wafers) == ["c"]
    wafers.rows.fails_to_write = False
    await wafers.pin("a")
    assert (await wafers._index.rows(["c"]))["c"].entry.content == hit.memory.content


async def test_what_is_deleted_stays_away_though_its_row_is_still_there(wafers):
    wafers.rows.fails_to_delete = True
    assert await wafers.delete_memory("a")
    assert await waiting(wafers) == ["a"]
    assert "a" not in ids(await wafers.retrieve("chip_domain", "wafer yield clean room"))
    with pytest.raises(AdapterUnavailable):
        await wafers.delete_memory("b", permanent=True)
    with pytest.raises(MemoryNotFound):
        await wafers.memory("b")
    wafers.rows.fails_to_delete = False
    assert await wafers.delete_memory("b", permanent=True)
    assert await wafers._index.rows(["a", "b"]) == {}
    assert await waiting(wafers) == []


@pytest.mark.parametrize("by_id", [True, False])
async def test_a_pack_that_cannot_be_removed_for_good_is_deleted_and_can_be_removed_later(wafers, by_id):
    (summary,) = await wafers.list()
    asked = summary.id if by_id else summary.name
    wafers.rows.fails_to_delete = True
    with pytest.raises(AdapterUnavailable):
        await wafers.delete("chip_domain", permanent=True)
    with pytest.raises(PackNotFound):
        await wafers.get("chip_domain")
    wafers.rows.fails_to_delete = False
    assert await wafers.delete(asked, permanent=True)
    assert not await wafers.delete(asked, permanent=True)
    assert await wafers._index.rows(["a", "b", "c"]) == {}
    assert await wafers.list(status="deleted") == []


async def test_rows_of_nothing_are_purged_and_others_stay(wafers):
    wafers.rows.fails_to_delete = True
    await wafers.create("other", "domain")
    kept = await wafers.add("other", "kept")
    await wafers.delete("chip_domain")
    wafers.rows.fails_to_delete = False
    assert await wafers.purge_orphans() == 3
    assert await wafers.purge_orphans() == 0
    assert list(await wafers._index.rows(["a", "b", "c", kept.id])) == [kept.id]


async def test_while_the_embedder_is_down_memories_are_kept_and_found_by_words(wafers, embedder):
    embedder.is_down = True
    added = await wafers.add("chip_domain", "Doping implants boron")
    hits = await wafers.retrieve("chip_domain", "boron", limit=1)
    assert ids(hits) == [added.id]
    assert [each.reason for each in hits.degraded] == [Reason.EMBEDDER_FAILED]
    embedder.is_down = False
    hits = await wafers.retrieve("chip_domain", "boron")
    assert Reason.SOME_WITHOUT_VECTOR in [each.reason for each in hits.degraded]
    report = await wafers.reembed_missing()
    assert (report.embedded, report.failed) == (1, 0)
    assert (await wafers.retrieve("chip_domain", "boron")).degraded == ()


@pytest.mark.parametrize("answer", [[], [None], [["a"]], [[float("nan")] * 256], [[]], [[1.0], [1.0]]])
async def test_an_embedder_that_answers_rubbish_leaves_packs_to_be_found_by_words(
    wafers, embedder, monkeypatch, answer
):
    async def rubbish(texts):
        return answer

    async def rubbish_query(text):
        return answer[0] if answer else None

    monkeypatch.setattr(embedder, "embed_documents", rubbish)
    monkeypatch.setattr(embedder, "embed_query", rubbish_query)
    await wafers.create("pumps", "project", description="Pumps and valves")
    found = await wafers.discover("valves")
    assert [match.pack.name for match in found] == ["pumps"]
    assert found.degraded


async def test_whatever_an_embedder_raises_a_memory_is_kept_whole_and_found_by_words(wafers, embedder, monkeypatch):
    async def burst(texts):
        raise RuntimeError("boom")

    with monkeypatch.context() as patched:
        patched.setattr(embedder, "embed_documents", burst)
        await wafers.add("chip_domain", "Doping", id="d", relationships=[{"type": "supersedes", "target_id": "a"}])
        edited = await wafers.update_memory("b", content="A lithography step, anew")
    assert await waiting(wafers) == []
    rows = await wafers._index.rows(["b", "d"])
    assert [rows[id].entry.content for id in ("b", "d")] == [edited.content, "Doping"]
    assert (await wafers.reembed_missing()).embedded == 2


@pytest.mark.parametrize("answer", [RuntimeError("boom"), [1.0, 2.0], [], None, ["a"]], ids=repr)
async def test_an_embedder_that_fails_on_one_text_holds_up_no_other_memory_of_a_sweep(
    wafers, embedder, monkeypatch, clock, answer
):
    embed = embedder.embed_documents

    async def fails_on_one(texts):
        if any("clean room" in text for text in texts) and isinstance(answer, Exception):
            raise answer
        made = await embed(texts)
        return [answer if "clean room" in text else vector for text, vector in zip(texts, made, strict=True)]

    clock.advance(timedelta(days=366))
    embedder.is_down = True  # so that the rows have no vectors, and are given some by the sweep
    for id, text in {"a": "It drops when the clean room is warm " * 8, "b": "A step projects it " * 8}.items():
        await wafers.update_memory(id, content=text)
    embedder.is_down = False
    clock.advance(timedelta(days=366))
    monkeypatch.setattr(embedder, "embed_documents", fails_on_one)
    report = await wafers.degrade()
    assert sum(report.moved.values()) >= 2
    rows = await wafers._index.rows(["a", "b"])
    assert rows["b"].tier is (await wafers.memory("b", touch=False)).tier is Tier.SUMMARY
    is_unwritten = answer == [1.0, 2.0]
    assert report.unwritten == is_unwritten
    assert await waiting(wafers) == (["a"] if is_unwritten else [])
    monkeypatch.undo()
    await wafers.degrade()
    assert await waiting(wafers) == []


async def test_a_memory_keeps_its_vector_when_anything_but_its_content_changes(wafers, embedder, fade):
    before = (await wafers._index.rows(["a"]))["a"].entry.embedding
    embedder.is_down = True
    await wafers.update_memory("a", tags=["t"], confidence=0.5)
    await fade(wafers, "a", "summary", "less")
    await fade(wafers, "a", "existence_marker")
    await wafers.memory("a")
    assert (await wafers._index.rows(["a"]))["a"].entry.embedding == before


async def test_a_faded_row_leaves_nothing_of_the_original_behind(wafers, fade, tmp_path):
    await wafers.add("chip_domain", "The secret ingredient is xylitolmarker", id="s")
    await fade(wafers, "s", "summary", "A secret ingredient")
    row = (await wafers._index.rows(["s"]))["s"]
    versions = await wafers.rows.history(wafers._index.scope_of(row.pack_id), row.entry.id)
    assert versions == []
    wal = tmp_path / "lamina.db-wal"
    await wafers.close()
    assert not wal.exists() or not wal.read_bytes()
    assert b"xylitolmarker" not in (tmp_path / "lamina.db").read_bytes()


async def test_a_row_that_a_failure_left_two_revisions_behind_leaves_nothing_of_the_original_either(wafers, tmp_path):
    await wafers.update_memory("a", content="The secret ingredient is xylitolmarker")
    wafers.rows.fails_to_write = True
    await wafers.update_memory("a", content="The ingredient is not told")
    wafers.rows.fails_to_write = False
    await wafers.pin("a")
    row = (await wafers._index.rows(["a"]))["a"]
    assert await wafers.rows.history(wafers._index.scope_of(row.pack_id), row.entry.id) == []
    await wafers.close()
    assert b"xylitolmarker" not in (tmp_path / "lamina.db").read_bytes()


async def test_a_memory_is_found_at_every_moment_while_it_fades_and_comes_back(wafers, fade):
    missed = []

    async def look():
        for _ in range(40):
            hits = await wafers.retrieve("chip_domain", "etching resist", limit=3, touch=False)
            missed.extend(["c"] if "c" not in ids(hits) else [])

    async def change():
        for _ in range(6):
            await fade(wafers, "c", "summary", "Etching")
            await fade(wafers, "c", "key_facts", "Etch")
            await wafers.memory("c")

    await asyncio.gather(look(), change())
    assert missed == []


async def test_of_those_who_write_a_row_at_once_the_newest_revision_stays(wafers):
    async def edit(number):
        await wafers.update_memory("a", content=f"Wafer number {number}")

    await asyncio.gather(*(edit(number) for number in range(12)))
    memory = await wafers.memory("a", touch=False)
    row = (await wafers._index.rows(["a"]))["a"]
    assert (row.revision, row.entry.content) == (memory.revision, memory.content)
    assert await waiting(wafers) == []


async def test_services_on_one_file_see_each_others_changes_and_count_together(wafers, open_packs):
    other = await open_packs()
    await other.update_memory("c", content="Doping implants boron")
    assert ids(await wafers.retrieve("chip_domain", "boron", mode="text")) == ["c"]
    await asyncio.gather(
        *(each.retrieve("chip_domain", "boron", limit=1) for each in (wafers, other) for _ in range(5))
    )
    assert (await other.memory("c", touch=False)).access_count == 11
    await other.delete("chip_domain")
    assert await wafers.search("boron") == []
