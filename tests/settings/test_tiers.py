from __future__ import annotations

import pytest

from lamina.errors import ConfigError
from lamina.settings.tiers import ContextThresholds


def test_the_defaults():
    thresholds = ContextThresholds()
    assert (thresholds.pre_rot_threshold, thresholds.hard_limit, thresholds.recent_to_keep) == (150_000, 1_000_000, 10)
    assert (thresholds.compact_from, thresholds.summarize_from) == (120_000, 142_500)


def test_a_mapping_may_leave_fields_out_and_use_camel_case():
    thresholds = ContextThresholds.of({"preRotThreshold": 100_000, "recentToKeep": 5})
    assert (thresholds.pre_rot_threshold, thresholds.recent_to_keep) == (100_000, 5)
    assert thresholds.compaction_trigger == 0.8
    assert ContextThresholds.of(thresholds) is thresholds
    assert ContextThresholds.of(None) == ContextThresholds()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"compaction_trigger": 0}, "compaction_trigger"),
        ({"summarization_trigger": 1.1}, "summarization_trigger"),
        ({"pre_rot_threshold": 0}, "pre_rot_threshold"),
        ({"recent_to_keep": -1}, "recent_to_keep"),
        ({"recent_to_keep": True}, "recent_to_keep"),
        ({"hard_limit": 100}, "hard_limit"),
        ({"pre_rot": 5}, "pre_rot"),
        (5, "thresholds"),
    ],
)
def test_what_cannot_be_is_refused_by_name(given, field):
    with pytest.raises(ConfigError) as caught:
        ContextThresholds.of(given)
    assert caught.value.field == field


def test_a_summary_before_compaction_is_refused_because_tier_2_would_never_be_reached():
    with pytest.raises(ConfigError, match="Tier 2 would never be reached"):
        ContextThresholds(compaction_trigger=0.8, summarization_trigger=0.6)


@pytest.mark.parametrize(("pre_rot", "limit"), [(100, 16), (20_000, 2_000), (1_000_000, 4_000)])
def test_a_summary_may_have_a_tenth_within_bounds(pre_rot, limit):
    assert ContextThresholds(pre_rot_threshold=pre_rot).summary_limit == limit
