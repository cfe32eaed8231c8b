"""Races and crashes: at every point readers see the old document or the new one, whole."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from lamina.adapters.in_memory import InMemoryAdapter
from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.scope import Scope
from lamina.errors import AdapterUnavailable
from lamina.state.sqlite import SqliteStateStore


def text_of(version, sentences=30):
    return "".join(f"Version {version} says ferry {number}. " for number in range(sentences))


class Crash(BaseException):
    """The process dies here: nothing may catch it."""


class Flaky(InMemoryAdapter):
    """Fails at the n-th write from now on: by an error of the backend, or as if the process died."""

    fuse = -1
    error: type[BaseException] = Crash

    def burn(self):
        self.fuse -= 1
        if self.fuse == 0:
            if self.error is Crash:
                raise Crash
            raise AdapterUnavailable("memory", "down")

    async def store_many(self, *args, **options):
        self.burn()
        return await super().store_many(*args, **options)

    async def delete_many(self, *args, **options):
        self.burn()
        return await super().delete_many(*args, **options)

    async def save_meta(self, *args, **options):
        self.burn()
        return await super().save_meta(*args, **options)


class FlakyStore(SqliteStateStore):
    """Dies before or after the head is written."""

    moment = ""

    async def save_document(self, *args, **options):
        if self.moment == "before":
            raise Crash
        done = await super().save_document(*args, **options)
        if self.moment == "after":
            raise Crash
        return done


async def rows_of(rag):
    return await rag._index.adapter.count(Scope(rag.tenant), MemoryFilter(now=rag._clock(), expiry=Expiry.ANY))


async def shown(rag):
    """Every chunk that can be found, after checking that they are one whole document."""
    found = await rag.retrieve("ferry says Version", top_k=500)
    assert len({chunk.document_id for chunk in found}) == 1
    head = await rag.get(found[0].document_id)
    assert sorted(chunk.chunk_index for chunk in found) == list(range(head.chunks))
    [version] = {chunk.content.split("Version ")[1].split()[0] for chunk in found}
    return version


@pytest.mark.parametrize("error", [Crash, AdapterUnavailable])
@pytest.mark.parametrize("writes", range(1, 9))
async def test_a_failure_at_any_write_leaves_the_old_or_the_new_document_and_the_next_run_cleans_up(
    open_pipeline, error, writes
):
    adapter = Flaky()
    rag = await open_pipeline(adapter=adapter)
    await rag.ingest(text_of(1, 300), "a.md")
    adapter.error, adapter.fuse = error, writes
    try:
        await rag.ingest(text_of(2, 300), "a.md")
    except (Crash, AdapterUnavailable):
        assert await shown(rag) in {"1", "2"}
    else:
        assert await shown(rag) == "2"
    adapter.fuse = -1
    await rag.ingest(text_of(3, 20), "a.md")
    assert await shown(rag) == "3"
    assert await rows_of(rag) == (await rag.stats()).chunks


@pytest.mark.parametrize(("moment", "expected"), [("before", "1"), ("after", "2")])
async def test_a_crash_around_the_commit_leaves_one_whole_version(open_pipeline, tmp_path, moment, expected):
    store = FlakyStore(tmp_path / "heads.db")
    rag = await open_pipeline(store=store)
    await rag.ingest(text_of(1), "a.md")
    store.moment = moment
    with pytest.raises(Crash):
        await rag.ingest(text_of(2), "a.md")
    assert await shown(rag) == expected
    store.moment = ""
    await rag.ingest(text_of(3), "a.md")
    assert await shown(rag) == "3"
    assert await rows_of(rag) == (await rag.stats()).chunks


async def test_a_crash_while_removing_leaves_nothing_to_be_found(open_pipeline, clock):
    adapter = Flaky()
    rag = await open_pipeline(adapter=adapter)
    id = await rag.ingest(text_of(1), "a.md")
    adapter.fuse = 2
    with pytest.raises(Crash):
        await rag.remove(id)
    assert await rag.retrieve("ferry") == []
    assert await rows_of(rag) > 0
    assert await rag.purge_orphans() == 0  # it may be an ingestion under way
    clock.advance(timedelta(hours=2))
    assert await rag.purge_orphans() > 0
    assert await rows_of(rag) == 0


async def test_purging_leaves_documents_alone(rag, clock):
    await rag.ingest(text_of(1), "a.md")
    await rag.ingest(text_of(2), "b.md", owner="mira")
    clock.advance(timedelta(hours=5))
    before = await rows_of(rag)
    assert await rag.purge_orphans() == 0
    assert await rows_of(rag) == before


async def test_two_that_ingest_a_source_at_once_end_as_one_version(open_pipeline):
    one, two = await open_pipeline(), await open_pipeline()
    for _ in range(5):
        ids = await asyncio.gather(*(rag.ingest(text_of(n), "a.md") for rag in (one, two) for n in (1, 2, 3)))
        assert len(set(ids)) == 1
        assert await shown(one) == await shown(two)
        assert len(await one.list_documents()) == 1
        assert await rows_of(one) == (await one.stats()).chunks
        await one.clear()


async def test_readers_see_one_whole_version_while_others_are_written(open_pipeline):
    writer, reader = await open_pipeline(), await open_pipeline()
    await writer.ingest(text_of(1), "a.md")
    done = False

    async def write():
        nonlocal done
        for version in (2, 3, 1, 2, 3, 1, 2, 3):
            await writer.ingest(text_of(version, 30 + version), "a.md")
        done = True

    async def read():
        seen = 0
        while not done:
            found = await reader.retrieve("ferry says Version", top_k=6)
            assert len(found) == 6  # there are always enough
            assert len({chunk.content.split("Version ")[1].split()[0] for chunk in found}) == 1
            seen += 1
        return seen

    _, seen = await asyncio.gather(write(), read())
    assert seen > 0


async def test_leftovers_do_not_crowd_out_what_counts(open_pipeline):
    adapter = Flaky()
    rag = await open_pipeline(adapter=adapter)
    await rag.ingest(text_of(1, 12), "a.md")
    whole = (await rag.stats()).chunks
    adapter.fuse = 7  # dies after several batches of the new version are written
    with pytest.raises(Crash):
        await rag.ingest(text_of(2, 3_000), "a.md")
    assert await rows_of(rag) > 10 * whole
    found = await rag.retrieve("Version 2 says ferry", top_k=whole)
    assert len(found) == whole
    assert await shown(rag) == "1"


async def test_a_document_whose_chunks_were_lost_is_ingested_anew_though_unchanged(rag):
    id = await rag.ingest(text_of(1), "a.md")
    adapter = rag._index.adapter
    [last] = (await rag.chunks(id))[-1:]
    await adapter.delete(Scope(rag.tenant), last.id)
    await rag.ingest(text_of(1), "a.md")
    assert await shown(rag) == "1"


async def test_many_documents_at_once_are_all_there(rag):
    await asyncio.gather(*(rag.ingest(text_of(1), f"{number}.md") for number in range(20)))
    assert (await rag.stats()).documents == 20
