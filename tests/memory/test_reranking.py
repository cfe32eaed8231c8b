from __future__ import annotations

import pytest

from lamina.domain.recall import Degraded, Leg, Reason
from lamina.errors import ConfigError, InvalidInput, InvalidType, ProviderUnavailable
from lamina.memory import reranking
from lamina.settings import MemoryConfig

FACTS = [f"note {number} of the cellar" for number in range(70)]


def contents(results):
    return [result.entry.content for result in results]


class Favourite:
    """Finds that one text answers and the others do not."""

    provider, model = "test", "favourite"

    def __init__(self, text="note 7 of the cellar", error=None):
        self.text, self.error = text, error
        self.read, self.is_closed = [], False

    async def score(self, query, texts):
        self.read.append((query, list(texts)))
        if self.error is not None:
            raise self.error
        return [float(text == self.text) for text in texts]

    async def close(self):
        self.is_closed = True


@pytest.mark.parametrize(
    ("query", "share"),
    [("cellar note", 0.1), ("the cellar note?", 0.25), ("which note of the cellar", 0.25), ("what-if of a note", 0.25)],
)
async def test_what_the_reranker_says_is_blended_into_the_similarity_and_explained(open_engine, place, query, share):
    engine = await open_engine(**place, rerank=Favourite())
    await engine.store_many(FACTS[:10])
    plain = await engine.recall(query, rerank="none", explain=True, touch=False)
    found = await engine.recall(query, explain=True, touch=False)
    assert found.degraded == ()
    assert (plain.explanation.weights["rerank_share"], found.explanation.weights["rerank_share"]) == (0, share)
    assert {each.explanation.rerank for each in plain} == {None}
    assert contents(found)[0] == "note 7 of the cellar"
    before = {each.entry.id: each.score_breakdown.similarity - each.explanation.support for each in plain}
    for each in found:
        said = float(each.entry.content == "note 7 of the cellar")
        assert each.explanation.rerank == said
        own = each.score_breakdown.similarity - each.explanation.support
        assert own == pytest.approx((1 - share) * before[each.entry.id] + share * said)
    assert len(await engine.recall(query, min_score=found[0].score)) == 1, "the minimum is on the blended score"


@pytest.mark.parametrize("limit", [3, 10, 30])
async def test_pages_tile_and_what_was_not_read_comes_behind_in_its_old_order(open_engine, place, limit):
    reranker = Favourite()
    engine = await open_engine(**place, rerank=reranker)
    await engine.store_many(FACTS)
    pages = [await engine.recall("cellar note", limit=limit, offset=n, touch=False) for n in range(0, 70, limit)]
    paged = [text for page in pages for text in contents(page)]
    assert sorted(paged) == sorted(FACTS), "each memory is on one page"
    assert paged[0] == reranker.text
    read = reranker.read[0][1]
    assert len(read) == reranking.MOST_READ <= 100
    assert all(texts == read for _, texts in reranker.read), "every page is of the same order"
    plain = [
        text
        for n in range(0, 70, limit)
        for text in contents(await engine.recall("cellar note", limit=limit, offset=n, rerank="none", touch=False))
    ]
    assert set(paged[: len(read)]) == set(read)
    assert paged[len(read) :] == [text for text in plain if text not in read]


@pytest.mark.parametrize(
    ("reranker", "detail"),
    [
        (Favourite(error=ProviderUnavailable("test", "it is down")), "it is down"),
        (Favourite(error=ZeroDivisionError("oh")), "ZeroDivisionError: oh"),
        (lambda query, texts: [0.5] * (len(texts) - 1), "1 scores for 2 texts"),
        (lambda query, texts: [2.0] * len(texts), "in place of a number from 0 to 1"),
    ],
)
async def test_a_reranker_that_fails_leaves_the_order_without_it_and_is_told_of(open_engine, place, reranker, detail):
    engine = await open_engine(**place, rerank=reranker)
    await engine.store_many(FACTS[:2])
    plain = await engine.recall("note 1", rerank="none", touch=False)
    found = await engine.recall("note 1", touch=False)
    assert found == plain
    [told] = found.degraded
    assert (told.leg, told.reason) == (Leg.RERANK, Reason.RERANKER_FAILED)
    assert detail in told.detail


async def test_a_query_in_a_language_the_reranker_does_not_know_is_not_given_to_it(engine):
    await engine.store_many(["Mira wohnt in Gent", "Mira trinkt Tee"])
    found = await engine.recall("Wo wohnt die Mira?", rerank="cross-encoder", touch=False)
    assert found.degraded == (Degraded(Leg.RERANK, Reason.OTHER_LANGUAGE, "ms-marco-MiniLM-L-12-v2-int8"),)
    assert found == await engine.recall("Wo wohnt die Mira?", touch=False)


async def test_the_real_cross_encoder_finds_the_answer_among_mentions(engine):
    facts = ["Where does Mira live, asked Tomas", "Mira moved to a flat in Ghent", "Mira drinks tea"]
    await engine.store_many(facts)
    found = await engine.recall("Where does Mira live?", rerank="cross-encoder", explain=True)
    said = {each.entry.content: each.explanation.rerank for each in found}
    assert said[facts[1]] > 0.5 > said[facts[2]]


async def test_nothing_is_read_where_nothing_was_found(open_engine, place):
    reranker = Favourite()
    engine = await open_engine(**place, rerank=reranker)
    assert await engine.recall("anything") == []
    assert reranker.read == []


async def test_a_reranker_must_be_known_and_a_callers_own_is_not_closed(open_engine, engine):
    with pytest.raises(InvalidInput, match="cross-encoder"):
        await engine.recall("x", rerank="magic")
    with pytest.raises(InvalidType, match="rerank"):
        await engine.recall("x", rerank=Favourite())
    with pytest.raises(ConfigError, match="cross-encoder"):
        await open_engine(provider="memory", rerank="magic")
    with pytest.raises(ConfigError, match="rerank"):
        MemoryConfig(rerank=3)
    reranker = Favourite()
    await (await open_engine(provider="memory", rerank=reranker)).close()
    assert not reranker.is_closed
