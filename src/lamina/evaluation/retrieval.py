"""How much of the evidence an engine recalls, at which cost, and whether it knows when there is none."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lamina.domain.recall import Cutoff, Reason, SearchMode
from lamina.errors import ProviderError
from lamina.evaluation.baselines import BASELINES, Ranking, reciprocal_rank_fusion, vector_only
from lamina.evaluation.dataset import Dataset, Query
from lamina.evaluation.metrics import mean, median_of, ndcg_at, percentile_95, recall_at, recall_within
from lamina.evaluation.storing import Progress, store_documents
from lamina.evaluation.vector_cache import DiskCachedEmbedder
from lamina.memory.engine import MemoryEngine
from lamina.providers.tokens import EstimateCounter

__all__ = [
    "ALL",
    "DEFAULT_DEPTHS",
    "Abstention",
    "Answer",
    "Asking",
    "Figures",
    "Hit",
    "Measured",
    "Report",
    "evaluate",
]

DEFAULT_DEPTHS: Final = (5, 10, 20)
DEFAULT_BUDGET: Final = 1_000
"""Tokens."""
GRADED_DEPTH: Final = 10
"""Of nDCG, and of the tokens of an answer."""
MOST_PAGES: Final = 50
"""That are asked for to fill the budget of tokens."""
BASELINE: Final = "baseline: "
ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was returned; of several that one memory stands for, only the first costs tokens."""

    document: str
    score: float | None
    tokens: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What one way returned for one query, best first, and how long that took.

    `milliseconds` are those of the recall alone, `with_embedding` those of both; None if that is not known.
    """

    hits: tuple[Hit, ...]
    milliseconds: float | None = None
    with_embedding: float | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """An answer, and what it is worth. `ranks` has the place of each document of the evidence, None if not returned."""

    query: str
    category: str
    way: str
    ranks: Mapping[str, int | None]
    recall: Mapping[int, float]
    ndcg: float
    recall_in_budget: float
    tokens: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class Figures:
    """What answers of one way are worth, over the queries of one category: means, in [0, 1] but for tokens.

    `recall` is at each depth, `ndcg` at ten, `tokens` are those of the first ten. `milliseconds` and `with_embedding`
    are the median and the 95th percentile, None where nothing was timed.
    """

    category: str
    way: str
    queries: int
    recall: Mapping[int, float]
    ndcg: float
    recall_in_budget: float
    tokens: float
    milliseconds: tuple[float | None, float | None] = (None, None)
    with_embedding: tuple[float | None, float | None] = (None, None)


@dataclass(frozen=True, slots=True)
class Abstention:
    """How often the engine's cut-off left nothing: rightly, where there is no evidence, and wrongly, where there is."""

    way: str
    without_evidence: int
    empty_rightly: int
    with_evidence: int
    empty_wrongly: int


@dataclass(frozen=True, slots=True)
class Report:
    """An evaluation: what it ran on and with, its figures by category and way, and every single answer."""

    dataset: str
    digest: str
    labels: str
    documents: int
    memories: int
    queries: int
    embedder: str | None
    budget: int
    min_match: Cutoff | None
    configuration: Mapping[str, Any]
    figures: tuple[Figures, ...]
    abstention: tuple[Abstention, ...]
    answers: tuple[Measured, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How the queries are asked and their answers measured.

    `min_match` is the cut-off that abstention is measured with; the other figures are of answers without one.
    """

    modes: Sequence[SearchMode] = tuple(SearchMode)
    depths: Sequence[int] = DEFAULT_DEPTHS
    budget: int = DEFAULT_BUDGET
    baselines: bool = False
    leave_out: Collection[str] = ()
    min_match: Cutoff | None = None


async def evaluate(
    dataset: Dataset,
    engine: MemoryEngine,
    asking: Asking | None = None,
    *,
    embedder: DiskCachedEmbedder | None = None,
    configuration: Mapping[str, Any] | None = None,
    others: Mapping[str, Ranking] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Store the set's documents in the engine, which must be empty, then recall each query.

    Each group is a namespace of its own. A query's recall at depth k is the share of its evidence among the first
    k results; figures are means over the queries that have evidence: in each category, over all of them, and over
    all but those whose category is to be left out. `embedder` is the engine's own, to tell its time from that of
    the recall. `configuration` is kept in the report. `others` are rankings that came from elsewhere, by the name
    to show them under; they are measured as those of the baselines are.
    """
    asking = asking or Asking()
    tell = progress or (lambda _step, _done, _total: None)
    stored = await store_documents(dataset, engine, tell)
    run = _Run(dataset, engine, asking, stored, embedder, tell)
    with_evidence = [query for query in dataset.queries if query.gains]
    ways: dict[str, Mapping[str, Answer]] = {}
    abstention = []
    for mode in asking.modes:
        ways[mode.value] = answers = await run.answers(with_evidence, mode)
        abstention.append(await run.abstention(mode, answers))
    rankings = {**(await _baselines(run) if asking.baselines else {}), **(others or {})}
    ways |= {name: run.priced(ranking) for name, ranking in rankings.items()}
    measured = [
        _measured(query, way, answers[query.id], asking) for way, answers in ways.items() for query in with_evidence
    ]
    return Report(
        dataset=dataset.name,
        digest=dataset.digest,
        labels=dataset.labels,
        documents=len(dataset.documents),
        memories=len(stored),
        queries=len(dataset.queries),
        embedder=None if engine.embedder is None else f"{engine.embedder.provider}:{engine.embedder.model}",
        budget=asking.budget,
        min_match=asking.min_match,
        configuration=configuration or {},
        figures=tuple(_figures(measured, asking)),
        abstention=tuple(abstention),
        answers=tuple(measured),
    )


@dataclass(slots=True)
class _Run:
    dataset: Dataset
    engine: MemoryEngine
    asking: Asking
    stored: Mapping[str, Sequence[str]]
    embedder: DiskCachedEmbedder | None
    tell: Progress

    async def answers(self, queries: Sequence[Query], mode: SearchMode) -> dict[str, Answer]:
        """What the engine returns for each."""
        found = {}
        for number, query in enumerate(queries, start=1):
            found[query.id] = await self._answer(query, mode)
            self.tell(f"recall by {mode.value}", number, len(queries))
        return found

    async def _answer(self, query: Query, mode: SearchMode) -> Answer:
        """The first page, timed; then further ones, until the budget of tokens is full."""
        if not query.text.strip():
            return Answer(())
        limit = max(*self.asking.depths, GRADED_DEPTH)
        if self.embedder is not None:
            self.embedder.take_query_seconds()
        began = time.perf_counter()
        hits, is_last = await self._page(query, mode, limit=limit, offset=0)
        seconds = time.perf_counter() - began
        embedding = None if self.embedder is None else self.embedder.take_query_seconds()
        page = 1
        while not is_last and page < MOST_PAGES and sum(hit.tokens for hit in hits) < self.asking.budget:
            more, is_last = await self._page(query, mode, limit=limit, offset=page * limit)
            hits += more
            page += 1
        return Answer(
            tuple(hits),
            milliseconds=1_000 * (seconds - (embedding or 0.0)),
            with_embedding=None if embedding is None else 1_000 * seconds,
        )

    async def _page(self, query: Query, mode: SearchMode, *, limit: int, offset: int) -> tuple[list[Hit], bool]:
        results = await self.engine.recall(
            query.text, namespace=query.group, mode=mode, limit=limit, offset=offset, touch=False
        )
        failed = [each for each in results.degraded if each.reason is Reason.EMBEDDER_FAILED]
        if failed:  # a figure without it would be another figure
            raise ProviderError("The embedder", failed[0].detail)
        count = EstimateCounter().count
        hits = []
        for result in results:
            tokens = count(result.entry.content)
            for place, document in enumerate(self.stored[result.entry.id]):
                hits.append(Hit(document, result.score, 0 if place else tokens))
        return hits, len(results) < limit

    def priced(self, ranking: Ranking) -> dict[str, Answer]:
        """A baseline's ranking with the tokens of its documents."""
        count = EstimateCounter().count
        tokens = {document.id: count(document.text) for document in self.dataset.documents}
        return {
            query.id: Answer(tuple(Hit(document, None, tokens[document]) for document in ranking.get(query.id, ())))
            for query in self.dataset.queries
        }

    async def abstention(self, mode: SearchMode, answers: Mapping[str, Answer]) -> Abstention:
        """How often nothing is left by the cut-off; `answers` are those of the queries with evidence, without one."""
        empty = {True: 0, False: 0}
        for query in self.dataset.queries:
            if query.gains and self.asking.min_match is None:
                empty[True] += not answers[query.id].hits
            else:
                empty[bool(query.gains)] += await self._is_empty(query, mode)
        with_evidence = sum(bool(query.gains) for query in self.dataset.queries)
        without = len(self.dataset.queries) - with_evidence
        return Abstention(mode.value, without, empty[False], with_evidence, empty[True])

    async def _is_empty(self, query: Query, mode: SearchMode) -> bool:
        return not query.text.strip() or not await self.engine.recall(
            query.text, namespace=query.group, mode=mode, limit=1, min_match=self.asking.min_match, touch=False
        )


async def _baselines(run: _Run) -> dict[str, Ranking]:
    """By the names to show them under."""
    # As deep as the budget may reach; what a baseline ranks costs nothing but its own time.
    depth = max(*run.asking.depths, GRADED_DEPTH, run.asking.budget // 10)
    rankings = {each.name: each.rank(run.dataset, depth) for each in BASELINES if each.is_available}
    if run.engine.embedder is not None:
        vectors = await vector_only(run.dataset, depth, run.engine.embedder)
        keywords = BASELINES[0].name
        rankings["vector only"] = vectors
        rankings[f"RRF of {keywords}, vector"] = reciprocal_rank_fusion([rankings[keywords], vectors], depth)
    return {BASELINE + name: ranking for name, ranking in rankings.items()}


def _measured(query: Query, way: str, answer: Answer, asking: Asking) -> Measured:
    ranking = [hit.document for hit in answer.hits]
    places = {document: rank for rank, document in reversed([*enumerate(ranking, start=1)])}
    return Measured(
        query=query.id,
        category=query.category,
        way=way,
        ranks={document: places.get(document) for document in query.gains},
        recall={depth: recall_at(depth, ranking, query.evidence) for depth in asking.depths},
        ndcg=ndcg_at(GRADED_DEPTH, ranking, query.gains),
        recall_in_budget=recall_within(
            asking.budget, [(hit.document, hit.tokens) for hit in answer.hits], query.evidence
        ),
        tokens=sum(hit.tokens for hit in answer.hits[:GRADED_DEPTH]),
        answer=answer,
    )


def _figures(measured: Sequence[Measured], asking: Asking) -> list[Figures]:
    categories = sorted({each.category for each in measured})
    totals = [(category, [category]) for category in categories if category != ALL]
    totals.append((ALL, categories))
    if left_out := sorted(set(asking.leave_out) & set(categories)):
        rest = [category for category in categories if category not in left_out]
        totals.append((f"{ALL} but {', '.join(left_out)}", rest))
    ways = list(dict.fromkeys(each.way for each in measured))
    return [
        _mean_of(name, way, members, asking)
        for name, counted in totals
        for way in ways
        if (members := [each for each in measured if each.way == way and each.category in counted])
    ]


def _mean_of(category: str, way: str, members: Sequence[Measured], asking: Asking) -> Figures:
    alone = [each.answer.milliseconds for each in members if each.answer.milliseconds is not None]
    both = [each.answer.with_embedding for each in members if each.answer.with_embedding is not None]
    return Figures(
        category=category,
        way=way,
        queries=len(members),
        recall={depth: mean([each.recall[depth] for each in members]) for depth in asking.depths},
        ndcg=mean([each.ndcg for each in members]),
        recall_in_budget=mean([each.recall_in_budget for each in members]),
        tokens=mean([each.tokens for each in members]),
        milliseconds=(median_of(alone), percentile_95(alone)),
        with_embedding=(median_of(both), percentile_95(both)),
    )
