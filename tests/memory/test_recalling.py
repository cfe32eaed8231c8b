from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from random import Random

import pytest
from stable_ids import stable

from lamina.adapters.in_memory import InMemoryAdapter
from lamina.domain.filters import Where
from lamina.domain.recall import Leg, Reason, Source
from lamina.errors import InvalidInput, InvalidType, ProviderUnavailable, Unsupported
from lamina.memory import fallback
from lamina.ports.hooks import MemoryHooks
from lamina.ports.memory_adapter import Capability
from lamina.testing import HashingEmbedder

FACTS = [
    "Mira drinks tea with lemon in the morning",
    "Tomas plays the violin on Tuesdays",
    "The cellar key hangs behind the blue door",
    "Mira moved to Ghent in the spring",
]


@pytest.fixture
async def filled(engine):
    await engine.store_many(FACTS)
    return engine


def contents(results):
    return [result.entry.content for result in results]


async def test_the_best_answer_comes_first_with_its_score_broken_down(filled):
    best, *_ = results = await filled.recall("where is the key to the cellar?")
    parts = best.score_breakdown
    assert best.entry.content == FACTS[2]
    assert best.source is Source.BOTH
    assert best.score == pytest.approx(
        0.45 * parts.similarity + 0.25 * parts.recency + 0.15 * parts.frequency + 0.15 * parts.relevance
    )
    assert parts.similarity == pytest.approx(0.2 * parts.text + 0.8 * max(0, parts.vector))
    assert (parts.recency, parts.frequency, parts.relevance) == (1, 0, 0.5)
    assert [result.score for result in results] == sorted((result.score for result in results), reverse=True)
    assert results.degraded == ()


@pytest.mark.parametrize(
    ("mode", "settings", "is_first"),
    [("hybrid", {}, True), ("vector", {}, False), ("hybrid", {"scoring": "evidence"}, True)],
)
async def test_what_was_said_twice_does_not_come_before_what_answers_better(
    open_engine, place, mode, settings, is_first
):
    class Angles(HashingEmbedder):
        """The cosine with the query is what the text says."""

        async def embed_documents(self, texts):
            return [[float(text.split()[-1]), (1 - float(text.split()[-1]) ** 2) ** 0.5] for text in texts]

        async def embed_query(self, text):
            return [1.0, 0.0]

    engine = await open_engine(**place, **settings, embed=Angles(dimensions=2))
    await engine.store_many(["answer 0.7", "twice 0.55", "lesser 0.5", "far 0.1", "twice 0.55"])
    found = await engine.recall("anything", mode=mode, explain=True, touch=False)
    assert (found[0].entry.content == "answer 0.7") is is_first
    similarities = {each.entry.content: round(each.score_breakdown.similarity / 0.8, 6) for each in found}
    if mode == "hybrid":  # each loses its distance to the best, and three quarters of what it has at most
        assert similarities == {"answer 0.7": 0.7, "twice 0.55": 0.4, "lesser 0.5": 0.3, "far 0.1": 0.025}
        assert [each.explanation.support < 0 for each in found] == [False, True, True, True]


ONLY_SIMILARITY = {"similarity_weight": 1, "recency_weight": 0, "frequency_weight": 0, "relevance_weight": 0}


@pytest.mark.parametrize("settings", [{"scoring": ONLY_SIMILARITY}, {"version": 1}])
async def test_where_only_similarity_counts_it_is_left_as_it_is(open_engine, settings):
    engine = await open_engine(provider="memory", **settings)
    await engine.store_many(FACTS)
    found = await engine.recall("where is the key to the cellar?", explain=True)
    assert {each.explanation.support for each in found} == {0}


async def test_ties_end_with_the_id(engine):
    ids = await engine.store_many([{"content": "same words", "owner": owner} for owner in "cab"])
    assert [result.entry.id for result in await engine.recall("same words")] == sorted(ids)


async def test_every_candidate_has_both_legs_values_whichever_found_it(filled):
    for result in await filled.recall("key of Mira"):
        assert result.score_breakdown.vector is not None
        assert result.score_breakdown.text is not None


async def test_terms_are_weighed_anew_only_for_what_the_keyword_leg_did_not_bring(filled, monkeypatch):
    asked = []
    statistics = filled.adapter.term_statistics

    async def counting(scope, terms, now):
        asked.append(terms)
        return await statistics(scope, terms, now)

    monkeypatch.setattr(filled.adapter, "term_statistics", counting)
    await filled.recall("cellar key", mode="text")
    await filled.recall("cellar key", mode="vector")
    assert asked == []
    await filled.recall("cellar key")
    at_once = filled.adapter.name == "sqlite"  # it tells them with what it found
    assert asked == ([] if at_once else [["cellar", "cell", "key"]])


async def test_recency_relevance_and_frequency_count(engine, clock):
    await engine.store("the rota is on the fridge", owner="a", relevance=0.2)
    important = await engine.store("the rota is on the fridge", owner="b", relevance=0.9)
    assert (await engine.recall("rota"))[0].entry.id == important
    clock.advance(timedelta(days=60))
    newer = await engine.store("the rota is on the fridge", owner="c", relevance=0.2)
    assert (await engine.recall("rota"))[0].entry.id == newer


class TestModes:
    async def test_each_mode_runs_its_legs(self, filled):
        assert {result.source for result in await filled.recall("cellar key", mode="text")} == {Source.TEXT}
        by_vector = await filled.recall("cellar key", mode="vector")
        assert len(by_vector) == len(FACTS)
        assert {result.source for result in by_vector} == {Source.VECTOR}
        assert all(result.score_breakdown.text is None for result in by_vector)

    async def test_a_keyword_hit_that_vectors_miss_is_never_lost(self, open_engine, place):
        class Blind(HashingEmbedder):
            """Sees the same in every text: near-constant vectors."""

            def _embed(self, text):
                return super()._embed("constant")

        engine = await open_engine(**place, embed=Blind())
        await engine.store_many([f"filler number {number}" for number in range(120)])
        wanted = await engine.store("order zx-blue-77 was added")
        assert (await engine.recall("zx-blue-77 add", limit=1))[0].entry.id == wanted

    async def test_an_unknown_mode_is_refused(self, filled):
        with pytest.raises(InvalidInput, match="mode"):
            await filled.recall("key", mode="psychic")

    @pytest.mark.parametrize(
        "query", ["what's Mira's theme?", "a-b", "C++ OR", '"x', "***", "50% @tomas_k #q4", "NEAR(a b)"]
    )
    async def test_no_text_is_query_grammar(self, filled, query):
        await filled.recall(query)
        await filled.recall(query, mode="text")


class TestDegraded:
    async def test_without_an_embedder_keywords_answer_alone(self, open_engine, place):
        engine = await open_engine(**place, embedding="none")
        await engine.store_many(FACTS)
        for mode in ("hybrid", "vector"):
            results = await engine.recall("cellar key", mode=mode)
            assert contents(results)[0] == FACTS[2]
            assert [(mark.leg, mark.reason) for mark in results.degraded] == [(Leg.VECTOR, Reason.NO_EMBEDDER)]

    async def test_a_failing_embedder_never_fails_recall_and_is_logged_once(self, open_engine, place, caplog):
        class Failing(HashingEmbedder):
            failing = False

            async def embed_query(self, text):
                if self.failing:
                    raise ProviderUnavailable("The embedder", "it is down")
                return await super().embed_query(text)

        failing = Failing()
        engine = await open_engine(**place, embed=failing)
        await engine.store_many(FACTS)
        failing.failing = True
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                results = await engine.recall("cellar key")
        assert contents(results)[0] == FACTS[2]
        assert results.degraded[0].reason is Reason.EMBEDDER_FAILED
        assert "it is down" in results.degraded[0].detail
        assert len([record for record in caplog.records if "embedder failed" in record.message]) == 1

    async def test_what_could_not_be_embedded_is_kept_found_and_repaired(self, open_engine, place):
        class Failing(HashingEmbedder):
            failing = True

            async def embed_documents(self, texts):
                if self.failing:
                    raise ProviderUnavailable("The embedder", "it is down")
                return await super().embed_documents(texts)

        failing = Failing()
        engine = await open_engine(**place, embed=failing)
        id = await engine.store(FACTS[2])
        results = await engine.recall("cellar key")
        assert results[0].entry.id == id
        assert results.degraded[0].reason is Reason.NO_VECTORS
        failing.failing = False
        report = await engine.reembed_missing()
        assert (report.embedded, report.skipped, report.failed) == (1, 0, 0)
        assert (await engine.recall("cellar key")).degraded == ()

    async def test_an_empty_store_is_not_degraded(self, engine):
        results = await engine.recall("anything")
        assert (list(results), results.degraded) == ([], ())


class PlainAdapter(InMemoryAdapter):
    """A backend that can only list."""

    name = "plain"
    capabilities = frozenset()

    async def search_by_vector(self, embedding, options):
        raise Unsupported(self.name, Capability.VECTOR)

    async def search_by_text(self, query, options):
        raise Unsupported(self.name, Capability.TEXT)

    async def list(self, options):
        assert options.filter.where is None, "a filter reached a backend that does not declare filters"
        return await super().list(options)

    async def count(self, scope, filter):
        assert filter.where is None, "a filter reached a backend that does not declare filters"
        return await super().count(scope, filter)


class TestFallback:
    async def test_a_backend_without_searches_gives_the_same_answers_and_says_so(self, open_engine):
        native = await open_engine(provider="memory")
        plain = await open_engine(adapter=PlainAdapter())
        for engine in (native, plain):
            await engine.store_many([{"content": fact, "metadata": {"n": n}} for n, fact in enumerate(FACTS)])
        for query in ("cellar key", "what does Mira drink", "violin"):
            for filters in ({}, {"where": {"n": {"gte": 1}}}):
                expected = await native.recall(query, **filters)
                results = await plain.recall(query, explain=True, **filters)
                assert contents(results) == contents(expected)
                assert [result.score for result in results] == pytest.approx([result.score for result in expected])
                assert {mark.reason for mark in results.degraded} == {Reason.NOT_NATIVE}
                assert {mark.leg for mark in results.degraded} == {Leg.VECTOR, Leg.TEXT}
        assert await plain.count(where={"n": 2}) == 1
        assert len(await plain.query(where={"n": {"lt": 2}})) == 2

    async def test_a_scope_too_large_to_scan_is_refused_with_the_remedy(self, open_engine, monkeypatch):
        monkeypatch.setattr(fallback, "MAX_SCANNED", 3)
        engine = await open_engine(adapter=PlainAdapter())
        await engine.store_many(FACTS)
        with pytest.raises(Unsupported, match="narrow the scope"):
            await engine.recall("cellar key")


class TestFilters:
    async def test_each_filter_holds_in_both_legs(self, engine):
        base = {"content": "key", "layer": "longterm", "tags": ["a", "b"], "metadata": {"n": 1}, "relevance": 0.8}
        kept = await engine.store({**base, "owner": "mira", "confidence": 0.9})
        for other in (
            {"layer": "session"},
            {"tags": ["a"]},
            {"metadata": {"n": 2}},
            {"relevance": 0.4},
            {"confidence": 0.3},
            {"namespace": "other"},
        ):
            await engine.store({"confidence": 0.9, **base, "owner": f"mira {other}", **other})
        for mode in ("text", "vector", "hybrid"):
            for filters in (
                {"layers": ["longterm"], "tags": ["b"], "where": {"n": 1}, "min_relevance": 0.8, "min_confidence": 0.9},
                {"layer": "longterm", "tags_any": ["b", "z"], "where": Where("n").lt(2), "min_relevance": 0.5},
            ):
                results = await engine.recall("key", mode=mode, namespace="default", **filters)
                assert kept in [result.entry.id for result in results]
                for result in results:
                    assert result.entry.layer == "longterm"
                    assert "b" in result.entry.tags
                    assert result.entry.metadata["n"] == 1

    async def test_minima_are_inclusive(self, engine):
        await engine.store("key", relevance=0.5, confidence=0.5)
        assert len(await engine.recall("key", min_relevance=0.5, min_confidence=0.5)) == 1
        score = (await engine.recall("key"))[0].score
        assert len(await engine.recall("key", min_score=score)) == 1
        assert len(await engine.recall("key", min_score=min(1.0, score + 0.01))) == 0

    async def test_what_was_never_told_has_no_answer_under_auto(self, open_engine, place):
        engine = await open_engine(**place, min_match="auto")
        id = await engine.store("Mira keeps the cellar key under the blue pot")
        assert contents(await engine.recall("where is the cellar key"))
        unrelated = "best running shoes of 1998"
        results = await engine.recall(unrelated, explain=True)
        assert results == [] == await engine.query(unrelated)
        assert [(dropped.id, dropped.why) for dropped in results.explanation.dropped] == [(id, "min_match")]
        (kept,) = await engine.recall(unrelated, min_match=0)
        assert kept.score_breakdown.match < results.explanation.min_match
        assert await engine.recall(unrelated, mode="text") == []
        assert contents(await engine.recall("the shoes", mode="text")) == []

    async def test_a_figure_is_a_minimum_of_the_match_inclusive(self, filled):
        best, *rest = await filled.recall("cellar key", touch=False)
        match = best.score_breakdown.match
        assert rest
        assert [each.entry.id for each in await filled.recall("cellar key", min_match=match)] == [best.entry.id]
        assert await filled.recall("cellar key", min_match=min(1.0, match + 0.01)) == []

    async def test_a_memory_that_is_called_by_name_holds_all_that_is_asked_for(self, engine):
        await engine.store("Services run on Kubernetes", metadata={"aliases": ["k8s", "kubernetes"]})
        await engine.store("The cluster has four nodes and a spare one")
        for query in ("k8s nodes", "nodes of kuberntes"):
            called, other = sorted(await engine.recall(query), key=lambda result: len(result.entry.content))
            assert called.score_breakdown.text == 1 > other.score_breakdown.text

    async def test_no_namespace_means_all_of_them_and_storing_uses_the_default(self, engine):
        await engine.store("key one")
        await engine.store("key two", namespace="attic")
        assert len(await engine.recall("key")) == 2
        assert contents(await engine.recall("key", namespace="attic")) == ["key two"]
        assert contents(await engine.recall("key", namespace="default")) == ["key one"]

    async def test_strict_namespaces_make_recall_stay_at_home(self, open_engine, place):
        engine = await open_engine(**place, strict_namespace=True)
        await engine.store("key one")
        await engine.store("key two", namespace="attic")
        assert contents(await engine.recall("key")) == ["key one"]

    @pytest.mark.parametrize(
        ("arguments", "field"),
        [
            ({"limit": 0}, "limit"),
            ({"limit": -1}, "limit"),
            ({"limit": True}, "limit"),
            ({"limit": 2**63}, "limit"),
            ({"offset": 2**63}, "offset"),
            ({"layers": 5}, "layers"),
            ({"offset": -1}, "offset"),
            ({"min_score": 1.5}, "min_score"),
            ({"min_match": "strict"}, "min_match"),
            ({"min_relevance": float("nan")}, "min_relevance"),
            ({"layer": "cellar"}, "layer"),
            ({"layers": "longterm"}, "layers"),
            ({"tags": "a"}, "tags"),
            ({"where": {"n": {"like": 1}}}, "where"),
            ({"where": {"n": object()}}, "where"),
            ({"owner": " "}, "owner"),
            ({"owner": "a", "owner_id": "b"}, "owner_id"),
        ],
        ids=stable,
    )
    async def test_bad_arguments_name_their_field(self, engine, arguments, field):
        with pytest.raises((InvalidInput, InvalidType), match=field):
            await engine.recall("key", **arguments)
        if not {"min_score", "min_match"} & arguments.keys():
            with pytest.raises((InvalidInput, InvalidType), match=field):
                await engine.query(**arguments)

    @pytest.mark.parametrize("query", ["", "   ", "\n"])
    async def test_a_blank_recall_is_refused_and_a_blank_query_lists(self, filled, query):
        with pytest.raises(InvalidInput, match="query"):
            await filled.recall(query)
        assert len(await filled.query(query)) == len(FACTS)

    async def test_an_unknown_filter_is_refused_by_name(self, filled):
        with pytest.raises(TypeError, match="ownr"):
            await filled.recall("key", ownr="mira")


class TestListing:
    async def test_a_listing_is_sorted_by_relevance_then_newest_then_id(self, engine, clock):
        low = await engine.store("one", relevance=0.2)
        old = await engine.store("two", relevance=0.7)
        clock.advance(1)
        new, twin = await engine.store_many([{"content": c, "relevance": 0.7} for c in ("three", "four")])
        working = await engine.store("five", layer="working", relevance=0.9)
        assert [entry.id for entry in await engine.query()] == [working, new, twin, old, low]

    async def test_pages_tile(self, engine):
        await engine.store_many([{"content": f"fact {n}", "relevance": n % 7 / 10} for n in range(57)])
        pages = [await engine.query(limit=10, offset=offset) for offset in range(0, 60, 10)]
        ids = [entry.id for page in pages for entry in page]
        assert len(ids) == len(set(ids)) == 57

    async def test_pages_of_a_recall_tile(self, engine):
        await engine.store_many([f"the key of room {n}" for n in range(8)])
        pages = [await engine.recall("key", limit=2, offset=offset) for offset in (0, 2, 4, 6, 8)]
        ids = [result.entry.id for page in pages for result in page]
        assert len(ids) == len(set(ids)) == 8

    @pytest.mark.parametrize("mode", ["text", "vector", "hybrid"])
    async def test_deep_pages_of_a_recall_tile_whatever_reorders_the_candidates(self, engine, mode):
        random = Random(7)
        await engine.store_many(
            [{"content": f"note {n} w{n % 9} {random.random()}", "relevance": random.random()} for n in range(400)]
        )
        pages = [await engine.recall("note w3", limit=5, offset=o, mode=mode, touch=False) for o in range(0, 400, 5)]
        ids = [result.entry.id for page in pages for result in page]
        assert len(ids) == len(set(ids)) == 400

    async def test_listing_takes_no_score(self, engine):
        with pytest.raises(InvalidInput, match="min_score"):
            await engine.query(min_score=0.5)

    async def test_a_scan_walks_through_everything_in_insertion_order(self, engine):
        ids = await engine.store_many([f"fact {number}" for number in range(1137)])
        assert [entry.id async for entry in engine.scan()] == ids
        assert await engine.count() == 1137


class TestAccesses:
    async def test_only_returned_results_of_a_text_count_and_only_after_scoring(self, filled, clock):
        first = (await filled.recall("cellar key", limit=1))[0]
        assert first.score_breakdown.frequency == 0
        await filled.query()
        await filled.recall("cellar key", limit=1, touch=False)
        await filled._accesses.flush()
        entry = await filled.get(first.entry.id)
        assert (entry.access_count, entry.last_accessed_at, entry.revision) == (1, clock.now, 1)
        assert sum([entry.access_count async for entry in filled.scan()]) == 1
        assert (await filled.recall("cellar key", limit=1))[0].score_breakdown.frequency == pytest.approx(
            0.1502, abs=1e-4
        )

    async def test_counts_are_written_by_themselves_soon(self, filled):
        await filled.recall("cellar key", limit=1)
        await asyncio.sleep(1.3)
        assert sum([entry.access_count async for entry in filled.scan()]) == 1

    async def test_counts_survive_closing(self, open_engine, tmp_path):
        engine = await open_engine(path=tmp_path / "lamina.db")
        await engine.store(FACTS[0])
        await engine.recall("tea")
        await engine.close()
        again = await open_engine(path=tmp_path / "lamina.db")
        assert [entry.access_count async for entry in again.scan()] == [1]

    async def test_what_a_hook_makes_up_is_not_counted(self, open_engine, place):
        stranger = None

        def add(results, query):
            return [*results, results[0].replace(entry=stranger)]

        engine = await open_engine(**place, hooks=MemoryHooks(on_after_recall=add))
        stranger = await engine.get(await engine.store("hers", owner="mira"))
        await engine.store("the key", owner="tomas")
        assert len(await engine.recall("key", owner="tomas")) == 2
        await engine._accesses.flush()
        assert (await engine.get(stranger.id)).access_count == 0


class TestExplaining:
    async def test_an_explanation_adds_up(self, filled):
        results = await filled.recall("cellar key of Mira", limit=2, min_score=0.3, explain=True)
        explanation = results.explanation
        for result in results:
            assert sum(result.explanation.contributions.values()) == pytest.approx(result.score)
            assert result.explanation.vector.similarity == result.score_breakdown.vector
        assert results[0].explanation.vector.rank == 1
        assert explanation.candidates[Leg.VECTOR] == len(FACTS)
        assert "cellar" in explanation.terms
        assert {dropped.why for dropped in explanation.dropped} <= {"min_score", "limit"}
        assert len(results) + len(explanation.dropped) == len(FACTS)

    async def test_a_memory_of_the_period_that_the_query_names_comes_first_and_the_period_is_told(self, engine):
        now = engine._runtime.clock()
        for days in (40, 14, 3):
            await engine.store(f"She bought a kettle, number {days}", occurred_at=now - timedelta(days=days))
        undated = await engine.recall("Which kettle did she buy?", explain=True)
        assert undated.explanation.periods == ()
        dated = await engine.recall("Which kettle did she buy two weeks ago?", explain=True)
        assert dated[0].entry.content.endswith("14")
        assert dated[0].explanation.support == 0.15
        (period,) = dated.explanation.periods
        assert period.text == "two weeks ago"
        assert period.start < now - timedelta(days=14) < period.end

    async def test_nothing_is_explained_unasked(self, filled):
        results = await filled.recall("cellar key")
        assert results.explanation is None
        assert results[0].explanation is None


async def test_results_never_show_other_peoples_vectors(filled):
    assert all(result.entry.embedding is None for result in await filled.recall("cellar key"))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("会议改到周五", "周五"),
        ("会议改到周五", "五"),
        ("路線図は灯台の隣の壁に貼った", "灯台"),
        ("오늘 회의는 세시로 옮겼다", "회의"),
        ("น้ำแข็งอยู่ในตู้", "น้ำ"),
        ("किताब मेज़ पर है", "किताब"),
        ("کتاب روی میز", "كتاب"),
        ("Nguyễn đến lúc 3h", "Nguye\u0302\u0303n"),
        ("Die Haltestelle an der Hauptstraße", "HAUPTSTRASSE"),
        ("the party is at 8 🎉", "🎉"),
        ("ping @tomas_k about 50% refund #q4", "@tomas_k"),
    ],
)
async def test_words_of_any_script_are_found_without_an_embedder(open_engine, place, text, query):
    engine = await open_engine(**place, embedding="none")
    await engine.store_many(["something else entirely", "完全に別の話", "อีกเรื่อง"])
    id = await engine.store(text)
    results = await engine.recall(query)
    assert results[0].entry.id == id
    assert results[0].entry.content == text


async def test_the_working_layer_is_weighed_like_the_rest(engine):
    await engine.store_many([f"common filler {number}" for number in range(60)])
    await engine.store("common rareword")
    lasting = await engine.store("common", owner="a")
    working = await engine.store("common", layer="working", owner="a")
    texts = {r.entry.id: r.score_breakdown.text for r in await engine.recall("common rareword", mode="text", limit=100)}
    assert texts[working] == pytest.approx(texts[lasting], abs=0.01)
