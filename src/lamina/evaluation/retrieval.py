"""How much of the evidence an engine recalls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, TypeAlias

from lamina.domain.recall import SearchMode
from lamina.evaluation.baselines import fts5_porter, reciprocal_rank_fusion
from lamina.evaluation.dataset import Dataset, Query
from lamina.memory.engine import MemoryEngine
from lamina.memory.inputs import MemoryInput

__all__ = ["DEFAULT_DEPTHS", "Figures", "Progress", "Report", "evaluate", "recall_at", "store_documents"]

DEFAULT_DEPTHS: Final = (5, 10, 20)
BATCH: Final = 512
ALL: Final = "all"

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told the step, how many are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Mean recall of the evidence at each depth, over the queries of one category, found in one way."""

    category: str
    way: str
    queries: int
    recall: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Report:
    """An evaluation: what it ran on and with, and its figures by category and way."""

    dataset: str
    digest: str
    documents: int
    embedder: str | None
    figures: tuple[Figures, ...]


async def evaluate(
    dataset: Dataset,
    engine: MemoryEngine,
    *,
    modes: Sequence[SearchMode] = tuple(SearchMode),
    depths: Sequence[int] = DEFAULT_DEPTHS,
    baselines: bool = False,
    leave_out: Collection[str] = (),
    progress: Progress | None = None,
) -> Report:
    """Store the set's documents in the engine, which must be empty, then recall each query that has evidence.

    Each group is a namespace of its own. A query's recall at depth k is the share of its evidence among
    the first k results; figures are means over queries: in each category, over all of them, and over all but
    those whose category is in `leave_out`.
    """
    tell = progress or (lambda _step, _done, _total: None)
    stored = await store_documents(dataset, engine, tell)
    queries = [query for query in dataset.queries if query.evidence]
    rankings: dict[str, dict[str, list[str]]] = {}
    for mode in modes:
        rankings[mode.value] = await _recall(queries, engine, mode, depth=max(depths), stored=stored, tell=tell)
    if baselines:
        keyword = fts5_porter(dataset, max(depths))
        rankings["baseline: FTS5 porter"] = keyword
        if SearchMode.VECTOR.value in rankings:
            vector = rankings[SearchMode.VECTOR.value]
            rankings["baseline: RRF of FTS5 and vector"] = reciprocal_rank_fusion([keyword, vector], max(depths))
    return Report(
        dataset=dataset.name,
        digest=dataset.digest,
        documents=len(dataset.documents),
        embedder=None if engine.embedder is None else f"{engine.embedder.provider}:{engine.embedder.model}",
        figures=tuple(_figures(queries, rankings, depths, leave_out)),
    )


def recall_at(depth: int, ranking: Sequence[str], evidence: frozenset[str]) -> float:
    """The share, in [0, 1], of the evidence that stands among the first `depth` of the ranking."""
    return len(evidence.intersection(ranking[:depth])) / len(evidence)


async def store_documents(dataset: Dataset, engine: MemoryEngine, tell: Progress) -> dict[str, list[str]]:
    """Store them, each group in a namespace; which documents each memory stands for, several where they are equal."""
    stored: dict[str, list[str]] = defaultdict(list)
    documents = dataset.documents
    for start in range(0, len(documents), BATCH):
        batch = documents[start : start + BATCH]
        ids = await engine.store_many(MemoryInput(content=each.text, namespace=each.group) for each in batch)
        for document, id in zip(batch, ids, strict=True):
            stored[str(id)].append(document.id)
        tell("store", min(start + BATCH, len(documents)), len(documents))
    return stored


async def _recall(
    queries: Sequence[Query],
    engine: MemoryEngine,
    mode: SearchMode,
    *,
    depth: int,
    stored: Mapping[str, Sequence[str]],
    tell: Progress,
) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for number, query in enumerate(queries, start=1):
        results = await engine.recall(query.text, namespace=query.group, mode=mode, limit=depth, touch=False)
        found[query.id] = [document for result in results for document in stored[result.entry.id]]
        tell(f"recall by {mode.value}", number, len(queries))
    return found


def _figures(
    queries: Sequence[Query],
    rankings: Mapping[str, Mapping[str, Sequence[str]]],
    depths: Sequence[int],
    leave_out: Collection[str],
) -> list[Figures]:
    by_category: dict[str, list[Query]] = defaultdict(list)
    for query in queries:
        by_category[query.category].append(query)
    totals = [(ALL, list(queries))]
    if left_out := sorted(set(leave_out) & by_category.keys()):
        label = f"{ALL} but {', '.join(left_out)}"
        totals.append((label, [query for query in queries if query.category not in leave_out]))
    figures = []
    for category, members in [*sorted(by_category.items()), *totals]:
        for way, ranking in rankings.items():
            recall = {
                depth: fmean(recall_at(depth, ranking.get(query.id, ()), query.evidence) for query in members)
                for depth in depths
            }
            figures.append(Figures(category, way, len(members), recall))
    return figures
