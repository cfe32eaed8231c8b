from __future__ import annotations

import pytest

from lamina.context.engine import ContextEngine
from lamina.evaluation.assembly import evaluate_contexts
from lamina.evaluation.dataset import Dataset, Document, Query
from lamina.memory.factory import create_memory_engine
from lamina.testing import HashingEmbedder

DOCUMENTS = [Document(f"d{n}", f"The ferry number {n} leaves from pier {n}. " * 8, "g") for n in range(30)]
QUERIES = [
    Query("q1", "From which pier does ferry number 7 leave?", "g", "c", {"d7": 1}),
    Query("q2", "From which piers do ferries number 3 and number 4 leave?", "g", "c", {"d3": 1, "d4": 1}),
    Query("q3", "What is the capital of Peru?", "g", "c", {}),
    Query("q4", "ferry number 5", "another", "c", {"d5": 1}),
]
SET = Dataset("ferries", tuple(DOCUMENTS), tuple(QUERIES), "0" * 64)


@pytest.fixture
async def engine():
    async with await create_memory_engine(provider="memory", embed=HashingEmbedder()) as engine:
        yield engine


async def test_evidence_grows_with_the_budget_and_no_context_is_larger_than_it_says(engine):
    told = []
    figures = await evaluate_contexts(
        SET, engine, budgets=(40, 600, 8_000), memories=30, progress=lambda *step: told.append(step)
    )
    assert [each.budget for each in figures] == [40, 600, 8_000]
    assert all(each.queries == 3 for each in figures)  # the one without evidence is left out
    assert [each.too_large for each in figures] == [0, 0, 0]
    assert figures[0].evidence == 0.0
    assert figures[0].evidence < figures[1].evidence <= figures[2].evidence
    assert figures[2].evidence == pytest.approx(2 / 3)  # another conversation's evidence is never found
    assert figures[1].evidence <= figures[1].evidence_found == pytest.approx(2 / 3)
    assert figures[1].tokens <= 600
    assert figures[1].memories < figures[2].memories
    assert told[-1] == ("context", 9, 9)


async def test_contexts_that_cannot_fit_and_say_so_are_counted_apart(engine):
    (figures,) = await evaluate_contexts(SET, engine, budgets=(3,))
    assert (figures.over_budget, figures.too_large, figures.evidence) == (3, 0, 0.0)


async def test_a_context_that_is_over_its_budget_without_saying_so_is_found_out(engine, monkeypatch):
    compute = ContextEngine.compute

    async def lying(self, *args, **fields):
        context = await compute(self, *args, **fields)
        return context.replace(estimated_tokens=context.token_budget + 1, over_budget=False)

    monkeypatch.setattr(ContextEngine, "compute", lying)
    (figures,) = await evaluate_contexts(SET, engine, budgets=(600,))
    assert figures.too_large == 3


async def test_a_set_without_evidence_gives_zeros(engine):
    (figures,) = await evaluate_contexts(Dataset("none", (), (), ""), engine, budgets=(600,))
    assert (figures.queries, figures.evidence, figures.milliseconds) == (0, 0.0, 0.0)
