from __future__ import annotations

import math

import pytest

from lamina.evaluation.metrics import mean, median_of, ndcg_at, percentile_95, recall_at, recall_within


def test_recall_is_the_share_of_the_evidence_that_was_found():
    assert recall_at(2, ["x", "a", "b"], frozenset("ab")) == 0.5
    assert recall_at(3, ["x", "a", "b"], frozenset("ab")) == 1
    assert recall_at(1, [], frozenset("ab")) == 0


@pytest.mark.parametrize(("budget", "share"), [(9, 0), (10, 0.5), (24, 0.5), (25, 1), (1_000, 1)])
def test_what_fits_into_a_budget_is_taken_in_order_up_to_the_first_that_does_not(budget, share):
    ranking = [("a", 10), ("x", 10), ("b", 5)]
    assert recall_within(budget, ranking, frozenset("ab")) == share
    assert recall_within(12, [("a", 10), ("x", 10), ("b", 1)], frozenset("ab")) == 0.5


def test_a_discounted_gain_is_a_share_of_that_of_the_best_order():
    gains = {"a": 3, "b": 1}
    assert ndcg_at(10, ["a", "b"], gains) == 1
    assert ndcg_at(10, ["b", "x", "a"], gains) == pytest.approx((1 + 3 / 2) / (3 + 1 / math.log2(3)))
    assert ndcg_at(1, ["a"], gains) == 1
    assert ndcg_at(10, [], gains) == 0


def test_figures_of_nothing_are_none():
    assert (mean([]), median_of([]), percentile_95([])) == (0.0, None, None)
    assert (mean([1, 2]), median_of([3, 1, 2]), percentile_95(list(range(1, 101)))) == (1.5, 2, 95)
