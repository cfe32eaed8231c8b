"""Odd characters, very large texts and none at all: one rule on every store and through every interface."""

from __future__ import annotations

import json

import pytest
from served import TOKEN, client_of

from lamina.conversation.manager import ConversationManager
from lamina.errors import InvalidInput, ProviderError
from lamina.kernel import Kernel, ModelRouter
from lamina.providers.tokens import EstimateCounter, VocabularyCounter
from lamina.rag.chunking import ChunkOptions, ChunkStrategy, chunk_text
from lamina.server import create_app
from lamina.testing import EchoModel, HashingEmbedder

EVERYWHERE = pytest.mark.parametrize("place", ["memory", "sqlite", "postgres"], indirect=True)

ODD = {
    "half a pair": ("bad \ud83d half", "bad \ufffd half"),
    "zero": ("pay\x00roll is due", "pay\ufffdroll is due"),
    "a pair in two halves": ("good \ud83d\ude00 face", "good 😀 face"),
}
odd = pytest.mark.parametrize(("said", "kept"), ODD.values(), ids=ODD)


@pytest.mark.case("B19", "B20")
@EVERYWHERE
@odd
async def test_a_memory_is_cleaned_alike_by_every_store_and_found(engine, said, kept):
    id = await engine.store(said, tags=[said], metadata={said: [said]}, source=said)
    entry = await engine.get(id)
    assert (entry.content, entry.tags, entry.metadata, entry.source) == (kept, [kept], {kept: [kept]}, kept)
    assert [hit.entry.id for hit in await engine.recall(said, mode="text")] == [id]
    assert [entry.id for entry in await engine.query(where={kept: {"contains": kept}}, tags=[said])] == [id]
    assert (await engine.update(id, content=f"again {said}")).content == f"again {kept}"


@pytest.fixture(params=["sqlite", "postgres"])
async def served_on(request, tmp_path):
    """A client of a server whose conversations and memories are in a file, or in PostgreSQL."""
    options = {"data_dir": tmp_path}
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_database")
        options = {"memory": {"url": url}}
    kernel = Kernel(**options, model_router=ModelRouter(EchoModel(), embed=HashingEmbedder()))
    async with kernel, client_of(create_app(kernel, auth={TOKEN})) as client:
        yield client, kernel


@pytest.mark.case("B19", "B20")
async def test_what_the_edge_refuses_the_library_cleans_and_the_thread_is_read_and_summarised(served_on):
    http, kernel = served_on
    lines = {"Content-Type": "application/json"}
    for number, (said, kept) in enumerate(ODD.values()):
        body = json.dumps({"messages": [{"role": "user", "content": said, "id": f"m{number}"}]})
        assert body.isascii()  # the escape itself is sent, as a careless program sends it
        answer = await http.post("/v1/threads/t/messages", content=body, headers=lines)
        if "half" in kept:
            assert (answer.status_code, "messages.0.content" in answer.text) == (422, True)
            await kernel.conversation.add_message_to_thread("t", "user", said, id=f"m{number}")
        else:
            assert answer.status_code in (200, 201), answer.text
    shown = (await http.get("/v1/threads/t")).json()["messages"]
    assert [each["content"] for each in shown] == [kept for _, kept in ODD.values()]
    await kernel.conversation.add_messages("t", [{"role": "user", "content": f"line {n}"} for n in range(100)])
    context = await kernel.conversation.get_thread_context("t")
    assert context.summary is not None
    assert (len(context.messages), context.warnings) == (50, [])
    history = await kernel.conversation.history("t")
    assert [message.content for message in history[:3]] == [kept for _, kept in ODD.values()]


@pytest.mark.case("B22")
async def test_text_that_spells_control_tokens_is_ordinary_text(manager):
    text = "the end mark is <|endoftext|>, then <|im_start|>system and <|fim_prefix|>"
    for counter in (VocabularyCounter("cl100k_base"), VocabularyCounter("o200k_base"), EstimateCounter()):
        assert counter.count(text) > counter.count("the end mark is , then system and ")
        options = ChunkOptions(strategy=ChunkStrategy.RECURSIVE, size=8, overlap=2)
        chunks = list(chunk_text(text, options, counter.count))
        assert all(text[chunk.start : chunk.end].strip() for chunk in chunks)
    kept = await manager.add_messages("t", [{"role": "user", "content": f"{text} {n}"} for n in range(70)])
    await manager.compact("t")
    assert (await manager.history("t"))[0].content == kept[0].content == f"{text} 0"
    assert (await manager.get_thread_context("t")).tokens > 0


@pytest.mark.case("B25", "B26")
@EVERYWHERE
async def test_a_blank_text_is_refused_by_its_name_and_nothing_is_written(engine):
    texts = [f"fact {number}" for number in range(23)]
    for blank in ("", "\n\t", "\u200b"):
        with pytest.raises(InvalidInput, match="content"):
            await engine.store_many([*texts[:8], blank, *texts[8:]])
        assert await engine.count() == 0


@pytest.mark.case("B26")
@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
async def test_what_was_embedded_before_a_bad_text_survives_a_restart_and_is_not_done_again(open_engine, place):
    embedded = []

    class Picky(HashingEmbedder):
        refuses = "item 9"

        async def embed_documents(self, texts):
            if self.refuses in texts:
                raise ProviderError("The embedder", "400: input must not be blank")
            embedded.extend(texts)
            return await super().embed_documents(texts)

    engine = await open_engine(**place, embedding="none")
    await engine.store_many([f"item {number}" for number in range(24)])
    await engine.close()
    for expected in ((23, 1), (0, 1)):
        engine = await open_engine(**place, embed=Picky())
        report = await engine.reembed_missing()
        assert (report.embedded, report.failed) == expected
        assert (await engine.stats()).without_embedding == 1
        await engine.close()
    assert sorted(embedded) == sorted(f"item {number}" for number in range(24) if number != 9)
    engine = await open_engine(**place)
    assert (await engine.reembed_missing()).embedded == 1


@pytest.mark.case("B23")
@EVERYWHERE
async def test_a_text_beyond_the_limit_is_refused_and_harms_no_other(engine):
    near = await engine.store("the harbour lamp")
    with pytest.raises(InvalidInput, match="content"):
        await engine.store("x" * 5_000_001)
    assert [hit.entry.id for hit in await engine.recall("lamp")] == [near]


@pytest.mark.case("B109")
async def test_a_picture_has_a_price_of_its_own_and_is_no_memory(kernel):
    bytes_of = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo" * 200
    url = f"data:image/png;base64,{bytes_of}"
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]
    talk: ConversationManager = kernel.conversation
    await talk.add_messages("pictures", [{"role": "user", "content": parts} for _ in range(10)])
    await talk.add_messages("words", [{"role": "user", "content": "look"} for _ in range(10)])
    with_pictures = (await talk.get_thread_context("pictures")).tokens
    without = (await talk.get_thread_context("words")).tokens
    assert 10 * 85 <= with_pictures - without <= 10 * 2000
    assert (await kernel.memory_engine.stats()).memories == 0
