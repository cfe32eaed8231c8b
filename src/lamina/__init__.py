"""Lamina: memory and computed context for LLM agents.

    >>> import asyncio
    >>> from lamina import create_memory_engine
    >>> async def main() -> None:
    ...     async with await create_memory_engine(provider="memory", embedding="none") as memory:
    ...         await memory.store("The spare key is under the blue pot", owner="mira")
    ...         for result in await memory.recall("Where is the spare key?", owner="mira"):
    ...             print(result.entry.content)
    >>> asyncio.run(main())
    The spare key is under the blue pot

`lamina.sync` has the same calls without `await`. The public names are imported from their modules on
first use, so that `import lamina` stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from lamina._version import __version__

if TYPE_CHECKING:
    from lamina.adapters.in_memory import InMemoryAdapter
    from lamina.adapters.sqlite import SqliteAdapter
    from lamina.agents import Agent, AgentAnswer, AgentDefinition, AgentRegistry, Tool, ToolContext, define_agent
    from lamina.context.engine import ContextEngine
    from lamina.conversation.manager import ConversationManager
    from lamina.domain.context import ComputedContext
    from lamina.domain.filters import And, MemoryFilter, Not, Or, Where
    from lamina.domain.intent import Intent, IntentError, IntentResult, IntentStatus
    from lamina.domain.memory import Layer, MemoryEntry, Trust
    from lamina.domain.message import Message, Role
    from lamina.domain.recall import RecallResult, Results, ScoreBreakdown, SearchMode
    from lamina.domain.scope import Scope
    from lamina.domain.text import clean
    from lamina.errors import (
        AdapterError,
        AdapterUnavailable,
        AskError,
        ConfigError,
        Conflict,
        EmbeddingDimensionError,
        EmbeddingFingerprintError,
        InvalidInput,
        InvalidType,
        LaminaError,
        MemoryNotFound,
        MissingExtra,
        NoModelConfiguredError,
        NotFound,
        NotStarted,
        ProviderError,
        ProviderUnavailable,
        ScopeError,
        StoreDamaged,
        ThreadArchivedError,
        ThreadNotFound,
        Unsupported,
    )
    from lamina.kernel import Kernel, MaintenanceReport, ModelRouter
    from lamina.memory.decay import DecayReport
    from lamina.memory.engine import MemoryEngine
    from lamina.memory.factory import create_memory_engine
    from lamina.memory.owner_view import OwnerMemory
    from lamina.memory.working import WorkingItem, WorkingMemory
    from lamina.ports.embedder import Embedder, Fingerprint
    from lamina.ports.events import Event, EventName
    from lamina.ports.hooks import ForgetReason, MemoryHooks
    from lamina.ports.language_model import LanguageModel
    from lamina.ports.memory_adapter import Capability, MemoryAdapter
    from lamina.rag.pipeline import RagPipeline
    from lamina.sdk import Lamina
    from lamina.settings import (
        AgentsConfig,
        CompactionConfig,
        ContextConfig,
        ConversationConfig,
        EmbeddingConfig,
        LaminaConfig,
        MemoryConfig,
        RagConfig,
        ScoringConfig,
        define_config,
        define_memory_config,
    )

__all__ = [
    "AdapterError",
    "AdapterUnavailable",
    "Agent",
    "AgentAnswer",
    "AgentDefinition",
    "AgentRegistry",
    "AgentsConfig",
    "And",
    "AskError",
    "Capability",
    "CompactionConfig",
    "ComputedContext",
    "ConfigError",
    "Conflict",
    "ContextConfig",
    "ContextEngine",
    "ConversationConfig",
    "ConversationManager",
    "DecayReport",
    "Embedder",
    "EmbeddingConfig",
    "EmbeddingDimensionError",
    "EmbeddingFingerprintError",
    "Event",
    "EventName",
    "Fingerprint",
    "ForgetReason",
    "InMemoryAdapter",
    "Intent",
    "IntentError",
    "IntentResult",
    "IntentStatus",
    "InvalidInput",
    "InvalidType",
    "Kernel",
    "Lamina",
    "LaminaConfig",
    "LaminaError",
    "LanguageModel",
    "Layer",
    "MaintenanceReport",
    "MemoryAdapter",
    "MemoryConfig",
    "MemoryEngine",
    "MemoryEntry",
    "MemoryFilter",
    "MemoryHooks",
    "MemoryNotFound",
    "Message",
    "MissingExtra",
    "ModelRouter",
    "NoModelConfiguredError",
    "Not",
    "NotFound",
    "NotStarted",
    "Or",
    "OwnerMemory",
    "ProviderError",
    "ProviderUnavailable",
    "RagConfig",
    "RagPipeline",
    "RecallResult",
    "Results",
    "Role",
    "Scope",
    "ScopeError",
    "ScoreBreakdown",
    "ScoringConfig",
    "SearchMode",
    "SqliteAdapter",
    "StoreDamaged",
    "ThreadArchivedError",
    "ThreadNotFound",
    "Tool",
    "ToolContext",
    "Trust",
    "Unsupported",
    "Where",
    "WorkingItem",
    "WorkingMemory",
    "__version__",
    "clean",
    "create_memory_engine",
    "define_agent",
    "define_config",
    "define_memory_config",
]

_HOMES: Final = {
    "lamina.adapters.in_memory": "InMemoryAdapter",
    "lamina.adapters.sqlite": "SqliteAdapter",
    "lamina.agents": "Agent AgentAnswer AgentDefinition AgentRegistry Tool ToolContext define_agent",
    "lamina.context.engine": "ContextEngine",
    "lamina.conversation.manager": "ConversationManager",
    "lamina.domain.context": "ComputedContext",
    "lamina.domain.filters": "And MemoryFilter Not Or Where",
    "lamina.domain.intent": "Intent IntentError IntentResult IntentStatus",
    "lamina.domain.memory": "Layer MemoryEntry Trust",
    "lamina.domain.message": "Message Role",
    "lamina.domain.recall": "RecallResult Results ScoreBreakdown SearchMode",
    "lamina.domain.scope": "Scope",
    "lamina.domain.text": "clean",
    "lamina.errors": (
        "AdapterError AdapterUnavailable AskError ConfigError Conflict EmbeddingDimensionError "
        "EmbeddingFingerprintError InvalidInput InvalidType LaminaError MemoryNotFound MissingExtra "
        "NoModelConfiguredError NotFound NotStarted ProviderError ProviderUnavailable ScopeError StoreDamaged "
        "ThreadArchivedError ThreadNotFound Unsupported"
    ),
    "lamina.kernel": "Kernel MaintenanceReport ModelRouter",
    "lamina.memory.decay": "DecayReport",
    "lamina.memory.engine": "MemoryEngine",
    "lamina.memory.factory": "create_memory_engine",
    "lamina.memory.owner_view": "OwnerMemory",
    "lamina.memory.working": "WorkingItem WorkingMemory",
    "lamina.ports.embedder": "Embedder Fingerprint",
    "lamina.ports.events": "Event EventName",
    "lamina.ports.hooks": "ForgetReason MemoryHooks",
    "lamina.ports.language_model": "LanguageModel",
    "lamina.ports.memory_adapter": "Capability MemoryAdapter",
    "lamina.rag.pipeline": "RagPipeline",
    "lamina.sdk": "Lamina",
    "lamina.settings": (
        "AgentsConfig CompactionConfig ContextConfig ConversationConfig EmbeddingConfig LaminaConfig "
        "MemoryConfig RagConfig ScoringConfig define_config define_memory_config"
    ),
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names.split()}

# Hidden from type checkers, so that they still report names that do not exist.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module 'lamina' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(home), name)
        return value


def __dir__() -> list[str]:
    return __all__
