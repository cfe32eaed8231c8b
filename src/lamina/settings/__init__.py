"""Typed settings: from arguments, the environment and TOML files."""

from lamina.settings.agents import AgentsConfig
from lamina.settings.context import ContextConfig
from lamina.settings.conversation import CompactionConfig, ConversationConfig, SummaryConfig
from lamina.settings.loading import LoadedConfig, load_config, user_config_file
from lamina.settings.models import (
    EmbeddingConfig,
    HooksConfig,
    MemoryConfig,
    ModelConfig,
    define_memory_config,
)
from lamina.settings.packs import DecayConfig, PacksConfig
from lamina.settings.project import LaminaConfig, define_config
from lamina.settings.rag import RagConfig
from lamina.settings.redaction import redacted
from lamina.settings.scoring import SCORING_PRESETS, ScoringConfig
from lamina.settings.server import JwtConfig, RateLimit, ServerConfig

__all__ = [
    "SCORING_PRESETS",
    "AgentsConfig",
    "CompactionConfig",
    "ContextConfig",
    "ConversationConfig",
    "DecayConfig",
    "EmbeddingConfig",
    "HooksConfig",
    "JwtConfig",
    "LaminaConfig",
    "LoadedConfig",
    "MemoryConfig",
    "ModelConfig",
    "PacksConfig",
    "RagConfig",
    "RateLimit",
    "ScoringConfig",
    "ServerConfig",
    "SummaryConfig",
    "define_config",
    "define_memory_config",
    "load_config",
    "redacted",
    "user_config_file",
]
