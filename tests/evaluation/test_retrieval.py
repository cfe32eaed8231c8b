from __future__ import annotations

from datetime import UTC, datetime

from lamina.domain.recall import SearchMode
from lamina.evaluation.dataset import load_dataset
from lamina.evaluation.retrieval import Asking, evaluate
from lamina.evaluation.vector_cache import DiskCachedEmbedder, VectorCache
from lamina.memory.factory import create_memory_engine
from lamina.testing import FrozenClock, HashingEmbedder, counting_ids


async def test_an_evaluation_counts_by_category_and_way(ferries):
    steps = []
    async with await create_memory_engine(provider="memory", embed=HashingEmbedder()) as engine:
        asking = Asking(depths=(1, 2, 3), budget=20, baselines=True, leave_out=["trick"])
        report = await evaluate(
            load_dataset(ferries), engine, asking, progress=lambda step, done, total: steps.append((step, done, total))
        )
        memory = next(iter(await engine.query("umbrella", namespace="b")))
    assert (memory.source, memory.metadata, memory.occurred_at) == (
        "conversation:b/1",
        {},
        datetime(2023, 5, 8, 13, 56, tzinfo=UTC),
    )
    figures = {(each.category, each.way): each for each in report.figures}
    ours = {"hybrid", "vector", "text"}
    plain = {"FTS5 porter", "vector only", "RRF of FTS5 porter, vector"}
    assert {way for _, way in figures} >= ours | {f"baseline: {name}" for name in plain}
    assert {category for category, _ in figures} == {"time", "person", "trick", "all", "all but trick"}
    assert figures["all", "hybrid"].queries == 4
    assert figures["all but trick", "hybrid"].queries == 3
    assert figures["trick", "text"].recall == {1: 1, 2: 1, 3: 1}
    # q1's two documents say the same, so they are one memory and both stand for it: the second counts from depth 2,
    # though the better one, and costs no tokens.
    time = figures["time", "text"]
    assert time.recall == {1: 0.75, 2: 1, 3: 1}
    assert 0.9 < time.ndcg < 1
    assert time.recall_in_budget == 1
    assert 0 < time.tokens < 20
    assert steps[0] == ("store", 5, 5)
    assert (report.documents, report.memories, report.embedder) == (5, 4, "testing:hashing")
    (answer,) = [each for each in report.answers if (each.query, each.way) == ("q1", "text")]
    assert answer.ranks == {"a/1": 1, "a/3": 2}
    assert [hit.tokens > 0 for hit in answer.answer.hits] == [True, False, True]  # the turn after them comes along


async def test_pages_are_asked_for_until_the_budget_is_full(write_set):
    corpus = [{"id": f"d{n:02}", "text": f"ferry number {n} " + "leaves " * n} for n in range(60)]
    folder = write_set("many", corpus, [{"id": "q", "text": "ferry"}], qrels=[("q", "d59", 1)])
    found = {}
    for budget in (100, 100_000):
        settings = {"provider": "memory", "embedding": "none", "clock": FrozenClock()}
        async with await create_memory_engine(settings, new_id=counting_ids()) as engine:  # all are equally good
            asking = Asking(modes=[SearchMode.TEXT], budget=budget)
            found[budget] = await evaluate(load_dataset(folder), engine, asking)
    assert [len(report.answers[0].answer.hits) for report in found.values()] == [20, 60]
    assert [report.figures[0].recall_in_budget for report in found.values()] == [0, 1]
    assert {report.figures[0].recall[20] for report in found.values()} == {0}


async def test_queries_without_evidence_say_how_often_the_cut_off_leaves_nothing(ferries):
    found = []
    for min_match in (None, 1.0):
        async with await create_memory_engine(provider="memory", embedding="none") as engine:
            asking = Asking(modes=[SearchMode.TEXT], min_match=min_match, baselines=True)
            report = await evaluate(load_dataset(ferries), engine, asking)
        assert report.embedder is None
        assert sum(each.queries for each in report.figures if (each.category, each.way) == ("all", "text")) == 4
        found += report.abstention
    assert [(each.without_evidence, each.empty_rightly) for each in found] == [(1, 1), (1, 1)]
    assert [(each.with_evidence, each.empty_wrongly) for each in found] == [(4, 0), (4, 4)]


async def test_the_time_of_the_embedding_is_told_from_that_of_the_recall(ferries):
    cache = VectorCache()
    embedder = DiskCachedEmbedder(HashingEmbedder(), cache)
    times = []
    for _ in range(2):
        async with await create_memory_engine(provider="memory", embed=embedder) as engine:
            report = await evaluate(load_dataset(ferries), engine, Asking(modes=[SearchMode.VECTOR]), embedder=embedder)
        times.append([(each.answer.milliseconds, each.answer.with_embedding) for each in report.answers])
    cache.close()
    assert all(alone > 0 for run in times for alone, _ in run)
    assert [both is None for _, both in times[0]] == [False, False, True, False]  # the third asks what the first did
    assert all(both is None for _, both in times[1])
    assert all(both > alone for alone, both in times[0] if both is not None)
