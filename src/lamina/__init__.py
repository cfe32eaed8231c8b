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
from typing import TYPE_CHECKING

from lamina._homes import HOME_OF as _HOME_OF
from lamina._version import __version__

if TYPE_CHECKING:
    from lamina.adapters.dynamodb import DynamoDBAdapter as DynamoDBAdapter
    from lamina.adapters.firestore import FirestoreAdapter as FirestoreAdapter
    from lamina.adapters.in_memory import InMemoryAdapter
    from lamina.adapters.mongodb import MongoDBAdapter as MongoDBAdapter
    from lamina.adapters.pinecone import PineconeAdapter as PineconeAdapter
    from lamina.adapters.postgres import PostgresAdapter as PostgresAdapter
    from lamina.adapters.qdrant import QdrantAdapter as QdrantAdapter
    from lamina.adapters.redis import RedisAdapter as RedisAdapter
    from lamina.adapters.sqlite import SqliteAdapter
    from lamina.adapters.supabase import SupabaseAdapter as SupabaseAdapter
    from lamina.adapters.turso import TursoAdapter as TursoAdapter
    from lamina.adapters.weaviate import WeaviateAdapter as WeaviateAdapter
    from lamina.agents import Agent, AgentAnswer, AgentDefinition, AgentRegistry, Tool, ToolContext, define_agent
    from lamina.context.engine import ContextEngine
    from lamina.context.manager import ContextEngineManager
    from lamina.context.plugin import (
        AssembleParams,
        AssembleResult,
        BaseContextEngine,
        CompactParams,
        CompactResult,
        ContextEnginePlugin,
        EngineInfo,
    )
    from lamina.conversation.folding import CompactionReport
    from lamina.conversation.manager import ConversationManager
    from lamina.conversation.memory_events import MemoryEvent
    from lamina.conversation.short_term import BaseMemory
    from lamina.conversation.short_term_stores import InMemoryMemory, PostgresMemory, SQLiteMemory
    from lamina.conversation.structured import StructuredSummary, TimeRange
    from lamina.conversation.tiers import ContextReport, Tier
    from lamina.conversation.window import WindowPolicy
    from lamina.databases.sqlite import SqliteDatabase
    from lamina.domain.context import ComputedContext
    from lamina.domain.document import Document, RagChunk
    from lamina.domain.filters import And, MemoryFilter, Not, Or, Where
    from lamina.domain.intent import Intent, IntentError, IntentResult, IntentStatus
    from lamina.domain.memory import Layer, MemoryEntry, Trust
    from lamina.domain.message import FilePart, ImagePart, Message, Role, TextPart, ToolCall
    from lamina.domain.message_formats import from_anthropic, from_openai, to_anthropic, to_openai
    from lamina.domain.pack import (
        MemoryType,
        Pack,
        PackHit,
        PackMatch,
        PackMemory,
        PackMetadata,
        PackSource,
        PackStatus,
        PackSummary,
        PackType,
        Relationship,
    )
    from lamina.domain.pack_decay import Decay
    from lamina.domain.recall import RecallResult, Results, ScoreBreakdown, SearchMode
    from lamina.domain.scope import Scope
    from lamina.domain.text import clean
    from lamina.domain.thread import Summary, Thread, ThreadContext
    from lamina.errors import (
        AdapterError,
        AdapterUnavailable,
        AskError,
        ConfigError,
        Conflict,
        ContextOverflowError,
        DocumentNotFound,
        EmbeddingDimensionError,
        EmbeddingFingerprintError,
        EngineNotFound,
        InvalidInput,
        InvalidType,
        LaminaError,
        MemoryNotFound,
        MessageNotFound,
        MissingExtra,
        NoModelConfiguredError,
        NotFound,
        NotStarted,
        PackExists,
        PackNotFound,
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
    from lamina.memory.quarantining import QuarantineReceipt
    from lamina.memory.working import WorkingItem, WorkingMemory
    from lamina.packs.bridging import ImportReport
    from lamina.packs.fading import DegradationReport, FadingStep
    from lamina.packs.inputs import PackMemoryInput
    from lamina.packs.reducers import ExtractiveReducer, ModelReducer, Reducer
    from lamina.packs.service import ContextPacks
    from lamina.ports.embedder import Embedder, Fingerprint
    from lamina.ports.events import Event, EventName
    from lamina.ports.hooks import ForgetReason, MemoryHooks
    from lamina.ports.language_model import LanguageModel
    from lamina.ports.memory_adapter import Capability, MemoryAdapter
    from lamina.ports.pack_store import PackStore
    from lamina.ports.reranker import Reranker
    from lamina.ports.state_store import StateStore
    from lamina.ports.token_counter import TokenCounter
    from lamina.providers.tokens import EstimateCounter, token_counter
    from lamina.rag.pipeline import RagPipeline
    from lamina.rag.reports import IngestReport, RagStats
    from lamina.sdk import Lamina
    from lamina.settings import (
        AgentsConfig,
        CompactionConfig,
        ContextConfig,
        ConversationConfig,
        EmbeddingConfig,
        LaminaConfig,
        MemoryConfig,
        PacksConfig,
        RagConfig,
        ScoringConfig,
        define_config,
        define_memory_config,
    )
    from lamina.settings.tiers import ContextThresholds
    from lamina.state import open_pack_store, open_state
    from lamina.state.postgres import PostgresPackStore as PostgresPackStore
    from lamina.state.postgres import PostgresStateStore as PostgresStateStore
    from lamina.state.sqlite import SqlitePackStore, SqliteStateStore

# What needs an extra is public too, but no part of `from lamina import *`, which would demand all of them.
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
    "AssembleParams",
    "AssembleResult",
    "BaseContextEngine",
    "BaseMemory",
    "Capability",
    "CompactParams",
    "CompactResult",
    "CompactionConfig",
    "CompactionReport",
    "ComputedContext",
    "ConfigError",
    "Conflict",
    "ContextConfig",
    "ContextEngine",
    "ContextEngineManager",
    "ContextEnginePlugin",
    "ContextOverflowError",
    "ContextPacks",
    "ContextReport",
    "ContextThresholds",
    "ConversationConfig",
    "ConversationManager",
    "Decay",
    "DecayReport",
    "DegradationReport",
    "Document",
    "DocumentNotFound",
    "Embedder",
    "EmbeddingConfig",
    "EmbeddingDimensionError",
    "EmbeddingFingerprintError",
    "EngineInfo",
    "EngineNotFound",
    "EstimateCounter",
    "Event",
    "EventName",
    "ExtractiveReducer",
    "FadingStep",
    "FilePart",
    "Fingerprint",
    "ForgetReason",
    "ImagePart",
    "ImportReport",
    "InMemoryAdapter",
    "InMemoryMemory",
    "IngestReport",
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
    "MemoryEvent",
    "MemoryFilter",
    "MemoryHooks",
    "MemoryNotFound",
    "MemoryType",
    "Message",
    "MessageNotFound",
    "MissingExtra",
    "ModelReducer",
    "ModelRouter",
    "NoModelConfiguredError",
    "Not",
    "NotFound",
    "NotStarted",
    "Or",
    "OwnerMemory",
    "Pack",
    "PackExists",
    "PackHit",
    "PackMatch",
    "PackMemory",
    "PackMemoryInput",
    "PackMetadata",
    "PackNotFound",
    "PackSource",
    "PackStatus",
    "PackStore",
    "PackSummary",
    "PackType",
    "PacksConfig",
    "PostgresMemory",
    "ProviderError",
    "ProviderUnavailable",
    "QuarantineReceipt",
    "RagChunk",
    "RagConfig",
    "RagPipeline",
    "RagStats",
    "RecallResult",
    "Reducer",
    "Relationship",
    "Reranker",
    "Results",
    "Role",
    "SQLiteMemory",
    "Scope",
    "ScopeError",
    "ScoreBreakdown",
    "ScoringConfig",
    "SearchMode",
    "SqliteAdapter",
    "SqliteDatabase",
    "SqlitePackStore",
    "SqliteStateStore",
    "StateStore",
    "StoreDamaged",
    "StructuredSummary",
    "Summary",
    "TextPart",
    "Thread",
    "ThreadArchivedError",
    "ThreadContext",
    "ThreadNotFound",
    "Tier",
    "TimeRange",
    "TokenCounter",
    "Tool",
    "ToolCall",
    "ToolContext",
    "Trust",
    "Unsupported",
    "Where",
    "WindowPolicy",
    "WorkingItem",
    "WorkingMemory",
    "__version__",
    "clean",
    "create_memory_engine",
    "define_agent",
    "define_config",
    "define_memory_config",
    "from_anthropic",
    "from_openai",
    "open_pack_store",
    "open_state",
    "to_anthropic",
    "to_openai",
    "token_counter",
]

# Hidden from type checkers, so that they still report names that do not exist.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module 'lamina' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(home), name)
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_HOME_OF})
