from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lamina.domain.memory import MemoryEntry
from lamina.domain.periods import Period
from lamina.memory.dating import TELLING, TIMELY, timeliness

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WEEK = Period(NOW, NOW + timedelta(days=7), "that week")
YEAR = Period(NOW, NOW + timedelta(days=365), "that year")


def happened(days=None, content="words"):
    occurred_at = None if days is None else NOW + timedelta(days=days)
    return MemoryEntry("1", content, NOW, NOW, occurred_at=occurred_at)


def test_what_happened_within_a_period_gains_all_and_what_did_outside_the_less_the_further_away():
    within, near, far, unknown = timeliness(
        "that week?", [happened(3), happened(-1), happened(-60), happened()], [WEEK]
    )
    assert within == TIMELY > near > far > unknown == 0
    assert timeliness("that week?", [happened(14)], [WEEK]) == [pytest.approx(TIMELY * 0.367879, rel=1e-4)]


def test_the_longer_a_period_the_further_it_reaches():
    assert timeliness("?", [happened(-30)], [YEAR]) > timeliness("?", [happened(-30)], [WEEK])


def test_the_best_period_counts_and_without_one_nothing_is_gained():
    assert timeliness("?", [happened(300)], [WEEK, YEAR]) == [TIMELY]
    assert timeliness("?", [happened(3)], []) == [0.0]


def test_a_text_that_tells_a_time_gains_where_the_query_asks_for_one():
    entries = [happened(content="I came Yesterday."), happened(content="[8 May 2023] I came.")]
    assert timeliness("When did she come?", entries, []) == [TELLING, 0.0]
    assert timeliness("Who came?", entries, []) == [0.0, 0.0]
