from __future__ import annotations

import asyncio
import math
from datetime import timedelta

import pytest

from lamina.adapters.in_memory import InMemoryAdapter
from lamina.domain.filters import Expiry, MemoryFilter, Where
from lamina.domain.recall import Reason
from lamina.domain.scope import Scope
from lamina.errors import (
    AdapterUnavailable,
    ConfigError,
    DocumentNotFound,
    InvalidInput,
    InvalidType,
    ProviderUnavailable,
    StoreDamaged,
)
from lamina.ports.memory_adapter import META_TENANT
from lamina.rag.pipeline import RagPipeline
from lamina.settings.rag import RagConfig
from lamina.testing import HashingEmbedder

GUIDE = (
    "# Guide\n\nThe harbour has two lamps.\n\n## Tokens\n\nTokens are renewed every night at two. "
    "An old token works for an hour more. Then it is refused.\n\n## Ferries\n\n"
    "The ferry leaves at nine from the north pier. On Sundays it leaves at ten.\n"
)


async def rows_of(rag):
    """How many rows there are, of whatever edition."""
    adapter = rag._index.adapter
    return await adapter.count(Scope(rag.tenant), MemoryFilter(now=rag._clock(), expiry=Expiry.ANY))


async def test_a_document_is_found_with_all_that_a_caller_needs(rag):
    id = await rag.ingest(GUIDE, "guide.md", category="manual", version=2)
    found = await rag.retrieve("When does the ferry leave?", top_k=2)
    best = found[0]
    assert "ferry leaves at nine" in best.content
    assert (best.document_id, best.source) == (id, "guide.md")
    assert GUIDE[best.start : best.end] == best.content
    assert best.metadata == {"category": "manual", "version": 2, "headers": ["Guide", "Ferries"]}
    assert 1 >= found[0].score >= found[1].score >= 0
    assert found.degraded == ()
    head = await rag.get(id)
    assert (head.category, head.generation) == ("manual", 1)
    assert await rag.list_documents() == [head]
    assert (await rag.stats()).documents == 1
    assert (await rag.stats()).chunks == head.chunks == await rows_of(rag)


async def test_chunks_come_in_order_and_rebuild_the_document(rag):
    id = await rag.ingest(GUIDE, "guide.md")
    chunks = await rag.chunks(id)
    assert [chunk.chunk_index for chunk in chunks] == list(range(len(chunks)))
    assert all(GUIDE[chunk.start : chunk.end] == chunk.content for chunk in chunks)


async def test_what_is_ingested_unchanged_is_not_touched(rag, embedder, clock):
    id = await rag.ingest(GUIDE, "guide.md", category="manual")
    head, texts = await rag.get(id), embedder.texts
    clock.advance(timedelta(hours=3))
    assert await rag.ingest(GUIDE, "guide.md", category="manual") == id
    assert await rag.get(id) == head
    assert embedder.texts == texts


async def test_a_new_version_takes_the_place_of_the_old_one_and_keeps_the_id(rag):
    id = await rag.ingest(GUIDE, "guide.md")
    assert await rag.ingest("The ferry was sold.", "guide.md") == id
    assert await rows_of(rag) == (await rag.stats()).chunks == 1
    assert [chunk.content for chunk in await rag.retrieve("ferry leaves at nine", top_k=50)] == ["The ferry was sold."]


async def test_metadata_alone_is_changed_without_embedding_anew(rag, embedder):
    id = await rag.ingest(GUIDE, "guide.md", category="manual")
    texts = embedder.texts
    await rag.ingest(GUIDE, "guide.md", category="archive")
    assert embedder.texts == texts
    assert (await rag.get(id)).category == "archive"
    assert await rag.retrieve("ferry", filter={"category": "manual"}) == []
    found = await rag.retrieve("ferry", filter={"category": "archive"}, mode="vector")
    assert found
    assert found.degraded == ()


async def test_an_edit_embeds_only_what_it_changed(rag, embedder):
    await rag.ingest(GUIDE, "guide.md")
    before = embedder.texts
    await rag.ingest(GUIDE.replace("at ten", "at eleven"), "guide.md")
    assert embedder.texts == before + 1


async def test_options_are_part_of_what_is_unchanged(rag):
    id = await rag.ingest(GUIDE, "guide.md")
    many = (await rag.get(id)).chunks
    await rag.ingest(GUIDE, "guide.md", chunk_size=500, chunk_overlap=0)
    assert (await rag.get(id)).chunks == 1 < many


async def test_a_second_document_of_a_source_can_stand_beside_the_first(rag):
    first = await rag.ingest("The ferry leaves at nine.", "times.md")
    second = await rag.ingest("The ferry leaves at ten.", "times.md", replace=False)
    assert first != second
    assert len(await rag.retrieve("ferry", top_k=9)) == 2
    assert await rag.ingest("The ferry leaves at noon.", "times.md") == first
    assert [head.id for head in await rag.list_documents()] == [first]
    assert await rows_of(rag) == 1


async def test_equal_chunks_of_two_documents_are_two(rag):
    await rag.ingest("The ferry leaves at nine.", "a.md")
    await rag.ingest("The ferry leaves at nine.", "b.md")
    assert sorted(chunk.source for chunk in await rag.retrieve("ferry")) == ["a.md", "b.md"]


async def test_owners_see_their_own_and_the_shared_documents_in_every_call(rag):
    shared = await rag.ingest("The ferry leaves at nine.", "ferry.md")
    mira = await rag.ingest("The ferry of Mira leaves at noon.", "ferry.md", owner="mira")
    other = await rag.ingest("The ferry of Mira 2 leaves at dusk.", "ferry.md", owner="mira2")
    assert len({shared, mira, other}) == 3
    for mode in ("hybrid", "vector", "text"):
        assert {c.document_id for c in await rag.retrieve("ferry", owner="mira", mode=mode)} == {shared, mira}
        assert {c.document_id for c in await rag.retrieve("ferry", mode=mode)} == {shared, mira, other}
    assert {head.id for head in await rag.list_documents(owner="mira")} == {shared, mira}
    assert (await rag.stats(owner="mira")).documents == 2
    assert await rag.get(other, owner="mira") is None
    with pytest.raises(DocumentNotFound):
        await rag.chunks(other, owner="mira")
    assert "dusk" not in await rag.get_context("ferry", owner="mira")
    assert not await rag.remove(other, owner="mira")
    assert not await rag.remove(shared, owner="mira")
    assert await rag.clear(owner="mira") == 1
    assert {head.id for head in await rag.list_documents()} == {shared, other}


async def test_tenants_on_one_file_see_nothing_of_each_other(open_pipeline):
    one, two = await open_pipeline(tenant="one"), await open_pipeline(tenant="two")
    id = await one.ingest(GUIDE, "guide.md")
    assert await two.retrieve("ferry") == []
    assert await two.get(id) is None
    assert not await two.remove(id)
    assert await two.clear() == 0
    await two.ingest("Something else of the ferry.", "guide.md")
    assert await two.purge_orphans() == 0
    assert len(await one.list_documents()) == 1


@pytest.mark.parametrize(
    "look_alike", ["guide.md ", "Guide.md", "guide", "guide.md/x", "guide%md", "guide_md", "ｇuide.md"]
)
async def test_sources_are_compared_exactly(rag, look_alike):
    await rag.ingest("The ferry leaves at nine.", "guide.md")
    await rag.ingest("The ferry leaves at ten.", look_alike)
    assert (await rag.stats()).documents == 2


async def test_removing_leaves_nothing_to_be_found_or_stored(rag):
    id = await rag.ingest(GUIDE, "guide.md")
    other = await rag.ingest("Another ferry.", "other.md")
    assert await rag.remove(id)
    assert not await rag.remove(id)
    assert await rag.get(id) is None
    assert {chunk.document_id for chunk in await rag.retrieve("ferry", top_k=50)} == {other}
    assert await rows_of(rag) == 1
    assert await rag.clear() == 1
    assert await rows_of(rag) == 0
    assert await rag.retrieve("ferry") == []


async def test_filters_are_exact_and_hold_in_every_mode(rag):
    await rag.ingest(
        "The ferry leaves at nine.", "a.md", category="api", rank=9, tags=["x", "y"], geo={"city": "Izmir"}
    )
    await rag.ingest("The ferry leaves at ten.", "b.md", category="api-docs", rank=10)
    cases = [
        ({"category": "api"}, ["a.md"]),
        ({"rank": {"gt": 9}}, ["b.md"]),
        ({"geo.city": "Izmir"}, ["a.md"]),
        (Where("tags").contains("x"), ["a.md"]),
        ({"category": ["api", "api-docs"]}, ["a.md", "b.md"]),
        ({"category": "none"}, []),
        ({"a') = 1 OR ('1": "x"}, []),
    ]
    for mode in ("hybrid", "vector", "text"):
        for filter, expected in cases:
            found = await rag.retrieve("ferry", filter=filter, mode=mode)
            assert sorted(chunk.source for chunk in found) == expected
    assert [chunk.source for chunk in await rag.retrieve("ferry", filter={"headers": {"exists": True}}, top_k=1)]


async def test_neighbours_are_joined_as_one_exact_span(rag):
    text = "".join(f"Sentence number {number} is about item{number}. " for number in range(60))
    id = await rag.ingest(text, "items.md")
    alone = (await rag.retrieve("item30", top_k=1))[0]
    joined = (await rag.retrieve("item30", top_k=1, neighbors=2))[0]
    chunks = await rag.chunks(id)
    assert (joined.id, joined.chunk_index) == (alone.id, alone.chunk_index)
    assert joined.start == chunks[alone.chunk_index - 2].start
    assert joined.end == chunks[alone.chunk_index + 2].end
    assert text[joined.start : joined.end] == joined.content
    everything = (await rag.retrieve("item30", top_k=1, neighbors=100))[0]
    assert everything.content == text


async def test_a_neighbour_does_not_stand_for_itself_too(rag):
    text = "".join(f"Sentence number {number} is about ferries and piers. " for number in range(40))
    await rag.ingest(text, "items.md")
    found = await rag.retrieve("ferries", top_k=3, neighbors=1)
    indexes = [chunk.chunk_index for chunk in found]
    assert len(indexes) == 3
    assert min(abs(a - b) for a in indexes for b in indexes if a != b) > 1


async def test_scores_are_similarity_alone_and_the_minimum_holds(rag, clock):
    await rag.ingest("The ferry leaves at nine.", "ferry.md")
    await rag.ingest("Bread is baked in the morning.", "bread.md")
    [ferry, bread] = await rag.retrieve("The ferry leaves at nine.")
    assert 0.99 < ferry.score <= 1
    assert bread.score < 0.5
    clock.advance(timedelta(hours=24 * 400))
    assert (await rag.retrieve("The ferry leaves at nine."))[0].score == ferry.score
    assert [chunk.source for chunk in await rag.retrieve("The ferry leaves at nine.", min_score=0.9)] == ["ferry.md"]
    exact = ferry.score
    assert len(await rag.retrieve("The ferry leaves at nine.", min_score=exact)) == 1


async def test_titles_and_table_headers_are_searched_and_shown_but_not_content(rag):
    rows = "".join(f"| {number} | value{number} |\n" for number in range(40))
    text = f"# Harbour dues\n\n## By length\n\n| metres | guilders |\n|---|---|\n{rows}"
    id = await rag.ingest(text, "dues.md")
    last = (await rag.chunks(id))[-1]
    assert text[last.start : last.end] == last.content
    assert last.metadata["table_header"] == "| metres | guilders |\n|---|---|\n"
    assert last.text == last.metadata["table_header"] + last.content
    found = await rag.retrieve("Harbour dues guilders value39", top_k=1, mode="text")
    assert found[0].id == last.id
    assert 0.95 < found[0].score <= 1  # all words of the question, in a chunk of a hundred words
    context = await rag.get_context("guilders value39", top_k=1)
    assert context.startswith("[dues.md] (score ")
    assert "Harbour dues > By length\n| metres | guilders |" in context


async def test_context_is_empty_where_nothing_is_found(rag):
    assert await rag.get_context("anything") == ""
    await rag.ingest("The ferry leaves at nine.", "ferry.md")
    assert await rag.get_context("ferry", min_score=1.0) == ""


@pytest.mark.parametrize("query", ["", "   ", None, 5])
async def test_a_query_of_nothing_is_refused(rag, query):
    with pytest.raises((InvalidInput, InvalidType), match="query"):
        await rag.retrieve(query)


@pytest.mark.parametrize("query", ["harbour-lamp", 'he said "later', "ferry OR", "a:b*", "<|endoftext|>", "%_", "(((("])
async def test_a_query_is_plain_text(rag, query):
    await rag.ingest(f"Once upon a time {query} stood here.", "a.md")
    assert await rag.retrieve(query)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"top_k": 0}, "top_k"),
        ({"top_k": True}, "top_k"),
        ({"top_k": 10**9}, "top_k"),
        ({"min_score": 2}, "min_score"),
        ({"min_score": math.nan}, "min_score"),
        ({"neighbors": -1}, "neighbors"),
        ({"owner": " "}, "owner"),
        ({"owner": 7}, "owner"),
        ({"mode": "psychic"}, "mode"),
        ({"filter": "category"}, "where"),
    ],
)
async def test_arguments_of_a_search_that_cannot_be_are_refused(rag, options, field):
    with pytest.raises((InvalidInput, InvalidType)) as caught:
        await rag.retrieve("ferry", **options)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("arguments", "options", "field"),
    [
        (("", "a.md"), {}, "content"),
        ((" \n\u200b", "a.md"), {}, "content"),
        ((None, "a.md"), {}, "content"),
        ((b"bytes", "a.md"), {}, "content"),
        (("text", ""), {}, "source"),
        (("text", "nul\0"), {}, "source"),
        (("text", "x" * 513), {}, "source"),
        (("text", None), {}, "source"),
        (("text", "a.md"), {"owner": ""}, "owner"),
        (("text", "a.md"), {"chunk_size": 0}, "chunk_size"),
        (("text", "a.md"), {"chunk_size": 10, "chunk_overlap": 10}, "chunk_overlap"),
        (("text", "a.md"), {"chunk_strategy": "magic"}, "chunk_strategy"),
        (("text", "a.md"), {"headers": ["x"]}, "metadata"),
        (("text", "a.md"), {"metadata": {"category": "x"}}, "metadata"),
        (("text", "a.md"), {"score": math.nan}, "metadata"),
        (("text", "a.md"), {"when": object()}, "metadata"),
        (("text", "a.md"), {"big": "x" * 20_000}, "metadata"),
    ],
)
async def test_what_cannot_be_ingested_is_refused_and_nothing_written(rag, arguments, options, field):
    with pytest.raises((InvalidInput, InvalidType)) as caught:
        await rag.ingest(*arguments, **options)
    assert caught.value.field == field
    assert await rag.list_documents() == []
    assert await rows_of(rag) == 0


async def test_a_text_above_the_limit_is_refused_with_the_remedy(open_pipeline):
    rag = await open_pipeline(config=RagConfig(max_bytes=1_000))
    await rag.ingest("é" * 500, "fits.md")
    with pytest.raises(InvalidInput, match=r"has 1002 bytes, and the limit is 1000.*max_bytes"):
        await rag.ingest("é" * 501, "large.md")


async def test_metadata_may_be_named_as_an_inner_argument_is(rag):
    await rag.ingest("The ferry.", "a.md", directory="x", options="y", text="z", tenant="t")
    assert (await rag.retrieve("ferry"))[0].metadata["directory"] == "x"


async def test_nul_and_lone_surrogates_are_replaced_before_offsets_are_taken(rag):
    await rag.ingest("pay\x00roll \ud83d is due", "a.md")
    [chunk] = await rag.retrieve("due")
    assert chunk.content == "pay\ufffdroll \ufffd is due"
    assert (chunk.start, chunk.end) == (0, len(chunk.content))


async def test_a_failing_embedder_leaves_chunks_that_are_found_by_words_and_mended_later(open_pipeline):
    class Failing(HashingEmbedder):
        fails = True

        async def embed_documents(self, texts):
            if self.fails:
                raise ProviderUnavailable("testing", "down")
            return await super().embed_documents(texts)

    embedder = Failing()
    rag = await open_pipeline(embedder=embedder)
    await rag.ingest(GUIDE, "guide.md")
    found = await rag.retrieve("ferry leaves")
    assert found
    assert {each.reason for each in found.degraded} == {Reason.NO_VECTORS}
    embedder.fails = False
    report = await rag.reembed_missing()
    assert report.embedded == (await rag.stats()).chunks
    found = await rag.retrieve("ferry leaves", mode="vector")
    assert found
    assert found.degraded == ()


async def test_without_an_embedder_words_answer_and_the_result_says_so(open_pipeline):
    rag = await open_pipeline(embedder=None)
    await rag.ingest(GUIDE, "guide.md")
    found = await rag.retrieve("ferry")
    assert found
    assert [each.reason for each in found.degraded] == [Reason.NO_EMBEDDER]


async def test_another_model_is_noticed_and_changed_over_to(open_pipeline, tmp_path):
    class Other(HashingEmbedder):
        model = "other"

    first = await open_pipeline()
    await first.ingest(GUIDE, "guide.md")
    second = await open_pipeline(embedder=Other(64))
    found = await second.retrieve("ferry")
    assert found
    assert [each.reason for each in found.degraded] == [Reason.OTHER_MODEL]
    await second.ingest(GUIDE, "guide.md", category="new")  # nothing of the old model's is copied into it
    await second.reembed()
    assert (await second.retrieve("ferry", mode="vector")).degraded == ()


async def test_documents_survive_a_restart(open_pipeline):
    first = await open_pipeline()
    id = await first.ingest(GUIDE, "guide.md")
    before = await first.retrieve("ferry")
    await first.close()
    second = await open_pipeline()
    assert await second.retrieve("ferry") == before
    assert await second.ingest(GUIDE, "guide.md") == id


async def test_a_collection_with_memories_in_it_is_refused_and_not_misread(open_pipeline):
    from lamina.memory.factory import create_memory_engine

    adapter = InMemoryAdapter()
    engine = await create_memory_engine(adapter=adapter, embedding="none")
    await engine.store("The ferry is late")
    rag = await open_pipeline(adapter=adapter, embedder=None)
    with pytest.raises(StoreDamaged, match="collection of their own"):
        await rag.retrieve("ferry")
    await engine.close()


async def test_the_reserved_tenant_is_refused(open_pipeline):
    with pytest.raises(ConfigError, match="reserved"):
        await open_pipeline(tenant=META_TENANT)


async def test_many_parts_are_all_there_after_a_first_and_a_second_run(rag):
    text = "".join(
        f"# Part {number}\n\nPart {number} tells of thing{number}. " + "More. " * 30 for number in range(201)
    )
    id = await rag.ingest(text, "parts.md")
    count = (await rag.get(id)).chunks
    await rag.ingest(text + "\nThe end.", "parts.md")
    assert await rows_of(rag) == (await rag.get(id)).chunks >= count >= 201
    for number in (0, 100, 200):
        assert f"thing{number}" in (await rag.retrieve(f"thing{number}", top_k=1, mode="text"))[0].content


async def test_each_chunk_is_the_best_answer_to_its_own_text(rag):
    id = await rag.ingest(GUIDE, "guide.md")
    for chunk in await rag.chunks(id):
        assert (await rag.retrieve(chunk.content, top_k=1, mode="vector"))[0].id == chunk.id


async def test_an_adapter_that_cannot_be_reached_is_an_error_and_not_an_empty_answer(open_pipeline):
    class Down(InMemoryAdapter):
        async def search_by_text(self, query, options):
            raise AdapterUnavailable("memory", "down")

    rag = await open_pipeline(adapter=Down())
    await rag.ingest(GUIDE, "guide.md")
    with pytest.raises(AdapterUnavailable):
        await rag.retrieve("ferry")


def test_the_default_embedder_is_the_one_that_comes_with_lamina():
    assert RagPipeline(InMemoryAdapter(), None).embedder.provider == "builtin"


async def test_a_cancelled_ingestion_leaves_the_old_document(open_pipeline):
    begun = asyncio.Event()

    class Slow(HashingEmbedder):
        async def embed_documents(self, texts):
            if "Replaced" in texts[0]:
                begun.set()
                await asyncio.Event().wait()
            return await super().embed_documents(texts)

    rag = await open_pipeline(embedder=Slow())
    await rag.ingest(GUIDE, "guide.md")
    task = asyncio.create_task(rag.ingest("Replaced ferry.", "guide.md"))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "Replaced" not in await rag.get_context("ferry", top_k=50)
