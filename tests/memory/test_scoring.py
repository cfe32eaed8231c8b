from __future__ import annotations

from datetime import timedelta
from itertools import product

import pytest

from lamina.domain.memory import MemoryEntry
from lamina.domain.recall import ScoreBreakdown
from lamina.errors import ConfigError
from lamina.memory.fusion import fuse, text_share
from lamina.memory.scoring import age_hours, contributions, frequency, recency, total_score
from lamina.settings import ScoringConfig
from lamina.testing import FrozenClock

SAMPLE = ScoreBreakdown(similarity=0.92, recency=0.95, frequency=0.1, relevance=0.9)


@pytest.mark.parametrize(("hours", "expected"), [(0, 1), (336, 0.367879), (672, 0.135335)])
def test_recency_on_the_exponential_curve(hours, expected):
    assert recency(hours, 336, "exponential") == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("hours", "expected"), [(0, 1), (336, 0.5), (672, 0.25)])
def test_recency_on_the_half_life_curve(hours, expected):
    assert recency(hours, 336, "half_life") == pytest.approx(expected)


def test_the_true_half_life_of_each_curve():
    assert ScoringConfig().half_life_hours() == pytest.approx(232.90, abs=0.005)
    assert ScoringConfig(recency_curve="half_life").half_life_hours() == 336


@pytest.mark.parametrize(("count", "expected"), [(0, 0), (1, 0.1502), (5, 0.3882), (10, 0.5196), (100, 1), (500, 1)])
def test_frequency_grows_with_the_logarithm_and_is_limited(count, expected):
    assert frequency(count, 100) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(
    ("preset", "expected"),
    [("default", 0.8015), ("assistant", 0.799), ("news", 0.847), ("support", 0.927), ("knowledge_base", 0.8365)],
)
def test_the_score_of_one_breakdown_under_each_preset(preset, expected):
    scoring = ScoringConfig.preset(preset)
    assert total_score(SAMPLE, scoring) == pytest.approx(expected)
    assert sum(contributions(SAMPLE, scoring).values()) == pytest.approx(expected)


def test_weights_that_nearly_sum_to_one_are_accepted_as_they_are():
    scoring = ScoringConfig(similarity_weight=0.5)
    weights = (scoring.similarity_weight, scoring.recency_weight, scoring.frequency_weight, scoring.relevance_weight)
    assert sum(weights) == pytest.approx(1.05)
    best = ScoreBreakdown(similarity=1, recency=1, frequency=1, relevance=1)
    assert total_score(best, scoring) == 1


@pytest.mark.parametrize(
    "settings",
    [{"similarity_weight": 0.9}, {"similarity_weight": -0.1}, {"recency_half_life": 0}, {"frequency_cap": 0}],
)
def test_weights_that_make_no_sense_are_refused(settings):
    with pytest.raises(ConfigError):
        ScoringConfig(**settings)


def test_version_one_scores_by_similarity_and_relevance_alone():
    assert total_score(SAMPLE, ScoringConfig(), version=1) == pytest.approx(0.92 * 0.9)


def test_age_counts_from_the_newest_change_and_is_never_negative():
    now = FrozenClock().now
    entry = MemoryEntry("a", "text", created_at=now - timedelta(hours=9), updated_at=now - timedelta(hours=2))
    assert age_hours(entry, now) == 2
    assert age_hours(entry, now - timedelta(days=1)) == 0


def test_a_leg_that_has_nothing_to_say_does_not_pull_the_similarity_down():
    assert fuse(0.8, None, 0.25) == 0.8
    assert fuse(None, 0.8, 0.25) == 0.8
    assert fuse(None, None, 0.25) == 0
    assert fuse(0.4, 0.8, 0.25) == pytest.approx(0.5)


def test_the_fused_similarity_lies_between_nought_and_one():
    for vector, text, weight in product((-1.0, -0.2, 0.0, 0.5, 1.0, 1.0000001), (0.0, 0.4, 1.0), (0.25, 0.6)):
        assert 0 <= fuse(vector, text, weight) <= 1


def test_keywords_weigh_more_where_the_letters_are_not_latin():
    assert text_share("Was trinkt Mira?") == text_share("what does Mira drink") == text_share("42") == 0.2
    assert text_share("会议改到周五") == text_share("วันเกิด") == text_share("когда встреча") == 0.4
