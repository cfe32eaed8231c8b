"""How much of the evidence a computed context holds at which budget, and how long it takes to compute."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lamina.context.engine import ContextEngine
from lamina.evaluation.dataset import Dataset, Query
from lamina.evaluation.storing import Progress, store_documents
from lamina.memory.engine import MemoryEngine
from lamina.settings.context import ContextConfig

__all__ = ["DEFAULT_BUDGETS", "BudgetFigures", "evaluate_contexts"]

DEFAULT_BUDGETS: Final = (1_000, 2_000, 4_000, 8_000, 16_000)
DEFAULT_MEMORIES: Final = 50
"""How many memories may come into a context: so many that it is the budget that decides."""


@dataclass(frozen=True, slots=True)
class BudgetFigures:
    """Contexts with one budget, over queries that have evidence; shares are means in [0, 1].

    `evidence` is the share of a query's evidence that its context holds, `evidence_found` the share that was found
    before anything was dropped. `tokens` is the mean size; `too_large` counts contexts that were over their budget
    without saying so, which must never be. Milliseconds are medians.
    """

    budget: int
    queries: int
    evidence: float
    evidence_found: float
    memories: float
    tokens: float
    too_large: int
    over_budget: int
    milliseconds: float


async def evaluate_contexts(
    dataset: Dataset,
    engine: MemoryEngine,
    *,
    budgets: Sequence[int] = DEFAULT_BUDGETS,
    memories: int = DEFAULT_MEMORIES,
    progress: Progress | None = None,
) -> list[BudgetFigures]:
    """Store the set's documents in the engine, which must be empty, and compute a context for each query and budget."""
    tell = progress or (lambda _step, _done, _total: None)
    stored = await store_documents(dataset, engine, tell)
    queries = [query for query in dataset.queries if query.evidence]
    config = ContextConfig(longterm_limit=memories, session_limit=0, working_limit=0, preference_limit=0)
    context_engine = ContextEngine(engine, config=config)
    figures = []
    for number, budget in enumerate(budgets):
        seen = []
        for done, query in enumerate(queries, start=1):
            seen.append(await _seen(query, context_engine, budget, stored))
            tell("context", number * len(queries) + done, len(budgets) * len(queries))
        figures.append(_figures(budget, seen))
    return figures


@dataclass(frozen=True, slots=True)
class _Seen:
    kept: float
    found: float
    memories: int
    tokens: int
    is_too_large: bool
    says_so: bool
    seconds: float


async def _seen(query: Query, engine: ContextEngine, budget: int, stored: dict[str, list[str]]) -> _Seen:
    began = time.perf_counter()
    context = await engine.compute(
        intent_id=query.id, goal=query.text, owner_id="default", namespace=query.group, token_budget=budget, touch=False
    )
    seconds = time.perf_counter() - began
    kept = {document for entry in context.memories for document in stored[entry.id]}
    dropped = {document for item in context.dropped for document in stored.get(item.id, ())}
    return _Seen(
        kept=len(query.evidence & kept) / len(query.evidence),
        found=len(query.evidence & (kept | dropped)) / len(query.evidence),
        memories=len(context.memories),
        tokens=context.estimated_tokens,
        is_too_large=context.estimated_tokens > budget,
        says_so=context.over_budget,
        seconds=seconds,
    )


def _figures(budget: int, seen: Sequence[_Seen]) -> BudgetFigures:
    return BudgetFigures(
        budget=budget,
        queries=len(seen),
        evidence=_mean([each.kept for each in seen]),
        evidence_found=_mean([each.found for each in seen]),
        memories=_mean([each.memories for each in seen]),
        tokens=_mean([each.tokens for each in seen]),
        too_large=sum(each.is_too_large and not each.says_so for each in seen),
        over_budget=sum(each.says_so for each in seen),
        milliseconds=1_000 * statistics.median([each.seconds for each in seen] or [0.0]),
    )


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else 0.0
