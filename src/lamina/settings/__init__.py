"""Typed settings: from arguments, the environment and TOML files."""

from lamina.settings.conversation import CompactionConfig, ConversationConfig, SummaryConfig
from lamina.settings.loading import LoadedConfig, load_config, user_config_file
from lamina.settings.models import (
    EmbeddingConfig,
    HooksConfig,
    LaminaConfig,
    MemoryConfig,
    ModelConfig,
    define_config,
    define_memory_config,
)
from lamina.settings.redaction import redacted
from lamina.settings.scoring import SCORING_PRESETS, ScoringConfig

__all__ = [
    "SCORING_PRESETS",
    "CompactionConfig",
    "ConversationConfig",
    "EmbeddingConfig",
    "HooksConfig",
    "LaminaConfig",
    "LoadedConfig",
    "MemoryConfig",
    "ModelConfig",
    "ScoringConfig",
    "SummaryConfig",
    "define_config",
    "define_memory_config",
    "load_config",
    "redacted",
    "user_config_file",
]
