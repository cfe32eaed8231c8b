import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import ConfigError
from lamina.settings import SCORING_PRESETS, ScoringConfig


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("default", (0.45, 0.25, 0.15, 0.15, 336)),
        ("assistant", (0.45, 0.20, 0.15, 0.20, 672)),
        ("news", (0.35, 0.40, 0.10, 0.15, 24)),
        ("support", (0.60, 0.30, 0.00, 0.10, 48)),
        ("knowledge_base", (0.70, 0.05, 0.10, 0.15, 8760)),
        ("evidence", (0.95, 0.00, 0.00, 0.05, 336)),
        ("knowledge-base", (0.70, 0.05, 0.10, 0.15, 8760)),
    ],
)
def test_a_preset_has_the_published_numbers(name, expected) -> None:
    config = ScoringConfig.preset(name)
    weights = (config.similarity_weight, config.recency_weight, config.frequency_weight, config.relevance_weight)
    assert (*weights, config.recency_half_life) == expected


def test_the_default_preset_is_what_no_argument_gives() -> None:
    assert ScoringConfig.preset("default") == ScoringConfig()


def test_every_preset_is_valid() -> None:
    assert len([ScoringConfig.preset(name) for name in SCORING_PRESETS]) == 6


def test_an_unknown_preset_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"preset: 'newz' is unknown\. Did you mean 'news'"):
        ScoringConfig.preset("newz")


def test_a_preset_is_the_ground_that_other_values_stand_on() -> None:
    config = ScoringConfig(preset="news", recencyHalfLife=12)
    assert (config.recency_weight, config.recency_half_life) == (0.40, 12)


def test_the_half_life_depends_on_the_curve() -> None:
    assert ScoringConfig().half_life_hours() == pytest.approx(232.9, abs=0.05)
    assert ScoringConfig(recency_curve="half_life").half_life_hours() == 336


def test_the_seed_s_partial_config_is_accepted_as_it_is() -> None:
    assert ScoringConfig(similarity_weight=0.5).similarity_weight == 0.5


def test_a_sum_outside_the_tolerance_is_named() -> None:
    with pytest.raises(ConfigError, match=r"weights: have the sum 1\.45"):
        ScoringConfig(similarity_weight=0.9)


def test_all_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match="all zero"):
        ScoringConfig(similarity_weight=0, recency_weight=0, frequency_weight=0, relevance_weight=0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"similarity_weight": -0.1},
        {"similarity_weight": math.nan},
        {"recency_half_life": 0},
        {"recency_half_life": math.inf},
        {"recency_curve": "linear"},
        {"frequency_cap": 0},
        {"frequency_cap": True},
    ],
)
def test_a_wrong_number_is_refused_by_name(wrong) -> None:
    with pytest.raises(ConfigError) as caught:
        ScoringConfig(**wrong)
    assert caught.value.field == next(iter(wrong))


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_weights_are_accepted_exactly_if_their_sum_is_about_one(weights) -> None:
    names = ("similarity_weight", "recency_weight", "frequency_weight", "relevance_weight")
    total = math.fsum(weights)
    if abs(abs(total - 1) - 0.1) < 1e-6:
        return
    if 0.9 < total < 1.1:
        ScoringConfig(**dict(zip(names, weights, strict=True)))
    else:
        with pytest.raises(ConfigError):
            ScoringConfig(**dict(zip(names, weights, strict=True)))
