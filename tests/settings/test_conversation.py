from __future__ import annotations

import pytest

from lamina.errors import ConfigError
from lamina.settings.conversation import ConversationConfig, SummaryConfig


def test_the_defaults_are_the_sliding_window_of_fifty():
    config = ConversationConfig()
    assert (config.window, config.summarize_batch_size, config.compacts, config.shown) == (50, 1, False, None)
    assert config.stores_facts is False


def test_camel_case_and_nested_tables_are_taken():
    config = ConversationConfig(summarizeBatchSize=5, contextMessages=4, compaction={"keepRecent": 8})
    assert (config.summarize_batch_size, config.compacts, config.stores_facts) == (5, True, True)
    assert config.shown == 8


def test_thresholds_of_the_token_tiers_may_be_given_in_part():
    config = ConversationConfig(contextEngineering={"preRotThreshold": 9_000})
    assert (config.context_engineering.pre_rot_threshold, config.context_engineering.recent_to_keep) == (9_000, 10)


@pytest.mark.parametrize(
    "settings",
    [
        {"window": 0},
        {"windw": 5},
        {"summarize_batch_size": 0},
        {"context_messages": 0},
        {"compaction": {"threshold": 0}},
        {"summary": {"tokens": 10}},
        {"summary": {"timeout": 0}},
        {"summary": {"window": 2_000}},
    ],
)
def test_what_cannot_be_is_refused(settings):
    with pytest.raises(ConfigError):
        ConversationConfig(**settings)


def test_the_window_of_the_model_leaves_room_for_messages():
    config = SummaryConfig(tokens=200, window=2_200)
    assert 400 <= config.room(300) <= 2_200 - 200 - config.answer_tokens - 300
    with pytest.raises(ConfigError, match="window"):
        SummaryConfig(tokens=800, window=3_000)
