from __future__ import annotations

import pytest

from lamina.domain.recall import Source
from lamina.memory.neighbours import BEST
from lamina.testing import HashingEmbedder

QUESTION = "Which kettle did Mira buy?"


class TwoModels(HashingEmbedder):
    """Says that its vectors are two models' and keeps what it was told of the words in reach."""

    def __init__(self):
        super().__init__()
        self.overlaps = []

    def weighted_parts(self, query, overlap):
        self.overlaps.append(overlap)
        return ((self.dimensions, 1.0),)


@pytest.fixture(params=["none", "two models"])
async def engine(request, open_engine, place):
    return await open_engine(**place, **({"embedding": "none"} if request.param == "none" else {"embed": TwoModels()}))


async def turns(engine, texts, source="conversation:1", **fields):
    return [await engine.store(text, source=source, **fields) for text in texts]


async def fill(engine):
    """So much that holds the question's words that nothing else is among the first candidates."""
    await engine.store_many([f"kettle {n}" for n in range(60)])


async def test_turns_around_the_best_are_results_though_no_leg_found_them(open_engine, place):
    engine = await open_engine(**place, embedding="none")
    texts = ["Guess!", "A kettle?", "Blue.", "Nice.", "Good night."]
    before, _, after, _, far = await turns(engine, texts)
    sources = {result.entry.id: result.source for result in await engine.recall("kettle")}
    assert sources[before] is sources[after] is Source.CONVERSATION
    assert far not in sources


async def test_neither_scope_nor_filter_nor_conversation_is_left_for_them(open_engine, place):
    engine = await open_engine(**place, embedding="none")
    await fill(engine)
    [theirs] = await turns(engine, ["Red."], owner="else")
    [hidden] = await turns(engine, ["Green."])
    await turns(engine, [QUESTION], tags=["seen"])
    [other] = await turns(engine, ["Black."], source="conversation:2", tags=["seen"])
    [shown] = await turns(engine, ["Blue."], tags=["seen"])
    found = {result.entry.id for result in await engine.recall(QUESTION, tags=["seen"], limit=60)}
    assert shown in found
    assert found.isdisjoint({theirs, hidden, other})


async def test_pages_of_one_limit_tile_with_them_too(engine):
    await fill(engine)
    await turns(engine, ["Guess!", QUESTION, "Blue."])
    pages = [await engine.recall(QUESTION, limit=7, offset=offset) for offset in range(0, 63, 7)]
    ids = [result.entry.id for page in pages for result in page]
    assert len(ids) == len(set(ids)) == 63
    assert all(result.entry.embedding is None for page in pages for result in page)


async def test_a_recall_asks_once_for_no_more_runs_of_turns_than_it_has_best_candidates(engine, monkeypatch):
    for _ in range(BEST + 5):
        await turns(engine, [QUESTION, *(f"word{n}" for n in range(9))])
    asked, read = [], engine.adapter.list_each

    async def counting(pages):
        asked.append(pages)
        return await read(pages)

    monkeypatch.setattr(engine.adapter, "list_each", counting)
    await engine.recall(QUESTION)
    (pages,) = asked
    assert 0 < len(pages) <= BEST
    assert all(options.limit <= 5 for options in pages)


async def test_a_turn_is_compared_together_with_the_one_before_it(open_engine, place):
    engine = await open_engine(**place, embed=TwoModels())
    await turns(engine, ["the kettle of Mira", "a blue one"])
    alone = await engine.store("one a blue", source="conversation:2")
    results = {result.entry.id: result for result in await engine.recall("kettle of Mira", mode="vector", explain=True)}
    [answer] = [each for each in results.values() if each.entry.content == "a blue one"]
    own = answer.score_breakdown.vector
    assert answer.score_breakdown.similarity - answer.explanation.support > own + 0.1
    lone = results[alone]
    assert lone.score_breakdown.similarity - lone.explanation.support == pytest.approx(lone.score_breakdown.vector)


async def test_whom_to_believe_is_told_by_words_where_only_vectors_are_asked_too(open_engine, place):
    embedder = TwoModels()
    engine = await open_engine(**place, embed=embedder)
    await engine.store_many(["the cellar key", "lemon tea"])
    for mode in ["vector", "hybrid"]:
        await engine.recall("cellar key", mode=mode)
        assert embedder.overlaps[-1] == pytest.approx(1.0, abs=0.05)
