from __future__ import annotations

import pytest

from lamina.errors import ConfigError
from lamina.settings.context import ContextConfig


def test_the_defaults():
    config = ContextConfig()
    assert config.token_budget == 8_000
    limits = (config.working_limit, config.session_limit, config.longterm_limit)
    assert (*limits, config.organizational_limit, config.global_limit) == (10, 20, 10, 5, 5)
    assert (config.auto_recall, config.use_packs, config.max_packs, config.pack_limit) == (True, False, 2, 5)
    assert (config.near_duplicate, config.near_duplicate_cosine, config.dispose_timeout) == (0.9, None, 10)


def test_camel_case_is_taken():
    assert ContextConfig(tokenBudget=10, longtermLimit=0).longterm_limit == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"token_budget": 0},
        {"token_budget": True},
        {"working_limit": -1},
        {"working_limit": 1_001},
        {"near_duplicate": 0.2},
        {"near_duplicate": 1.1},
        {"near_duplicate_cosine": 0},
        {"min_score": 2},
        {"step_timeout": 0},
        {"context_messages": 0},
        {"no_such": 1},
    ],
)
def test_a_wrong_value_is_named(wrong):
    with pytest.raises(ConfigError) as caught:
        ContextConfig(**wrong)
    assert caught.value.field in wrong
