"""In which module each public name of the package is at home."""

from __future__ import annotations

from typing import Final

__all__ = ["HOME_OF"]

_HOMES: Final = {
    "lamina.adapters.dynamodb": "DynamoDBAdapter",
    "lamina.adapters.firestore": "FirestoreAdapter",
    "lamina.adapters.in_memory": "InMemoryAdapter",
    "lamina.adapters.mongodb": "MongoDBAdapter",
    "lamina.adapters.pinecone": "PineconeAdapter",
    "lamina.adapters.postgres": "PostgresAdapter",
    "lamina.adapters.qdrant": "QdrantAdapter",
    "lamina.adapters.redis": "RedisAdapter",
    "lamina.adapters.sqlite": "SqliteAdapter",
    "lamina.adapters.supabase": "SupabaseAdapter",
    "lamina.adapters.turso": "TursoAdapter",
    "lamina.adapters.weaviate": "WeaviateAdapter",
    "lamina.agents": ("Agent AgentAnswer AgentDefinition AgentRegistry Tool ToolContext define_agent"),
    "lamina.context.engine": "ContextEngine",
    "lamina.context.manager": "ContextEngineManager",
    "lamina.context.plugin": (
        "AssembleParams AssembleResult BaseContextEngine CompactParams CompactResult ContextEnginePlugin EngineInfo"
    ),
    "lamina.conversation.folding": "CompactionReport",
    "lamina.conversation.manager": "ConversationManager",
    "lamina.conversation.memory_events": "MemoryEvent",
    "lamina.conversation.short_term": "BaseMemory",
    "lamina.conversation.short_term_stores": "InMemoryMemory PostgresMemory SQLiteMemory",
    "lamina.conversation.structured": "StructuredSummary TimeRange",
    "lamina.conversation.tiers": "ContextReport Tier",
    "lamina.conversation.window": "WindowPolicy",
    "lamina.databases.sqlite": "SqliteDatabase",
    "lamina.domain.context": "ComputedContext",
    "lamina.domain.document": "Document RagChunk",
    "lamina.domain.filters": "And MemoryFilter Not Or Where",
    "lamina.domain.intent": "Intent IntentError IntentResult IntentStatus",
    "lamina.domain.memory": "Layer MemoryEntry Trust",
    "lamina.domain.message": "FilePart ImagePart Message Role TextPart ToolCall",
    "lamina.domain.message_formats": "from_anthropic from_openai to_anthropic to_openai",
    "lamina.domain.pack": (
        "MemoryType Pack PackHit PackMatch PackMemory PackMetadata PackSource PackStatus PackSummary PackType "
        "Relationship"
    ),
    "lamina.domain.pack_decay": "Decay",
    "lamina.domain.recall": "RecallResult Results ScoreBreakdown SearchMode",
    "lamina.domain.scope": "Scope",
    "lamina.domain.text": "clean",
    "lamina.domain.thread": "Summary Thread ThreadContext",
    "lamina.errors": (
        "AdapterError AdapterUnavailable AskError ConfigError Conflict ContextOverflowError DocumentNotFound "
        "EmbeddingDimensionError EmbeddingFingerprintError EngineNotFound InvalidInput InvalidType "
        "LaminaError MemoryNotFound MessageNotFound"
    ),
    "lamina.kernel": "Kernel MaintenanceReport ModelRouter",
    "lamina.memory.decay": "DecayReport",
    "lamina.memory.engine": "MemoryEngine",
    "lamina.memory.factory": "create_memory_engine",
    "lamina.memory.owner_view": "OwnerMemory",
    "lamina.memory.quarantining": "QuarantineReceipt",
    "lamina.memory.working": "WorkingItem WorkingMemory",
    "lamina.packs.bridging": "ImportReport",
    "lamina.packs.fading": "DegradationReport FadingStep",
    "lamina.packs.inputs": "PackMemoryInput",
    "lamina.packs.reducers": "ExtractiveReducer ModelReducer Reducer",
    "lamina.packs.service": "ContextPacks",
    "lamina.ports.embedder": "Embedder Fingerprint",
    "lamina.ports.events": "Event EventName",
    "lamina.ports.hooks": "ForgetReason MemoryHooks",
    "lamina.ports.language_model": "LanguageModel",
    "lamina.ports.memory_adapter": "Capability MemoryAdapter",
    "lamina.ports.pack_store": "PackStore",
    "lamina.ports.reranker": "Reranker",
    "lamina.ports.state_store": "StateStore",
    "lamina.ports.token_counter": "TokenCounter",
    "lamina.providers.tokens": "EstimateCounter token_counter",
    "lamina.rag.pipeline": "RagPipeline",
    "lamina.rag.reports": "IngestReport RagStats",
    "lamina.sdk": "Lamina",
    "lamina.settings": (
        "AgentsConfig CompactionConfig ContextConfig ConversationConfig EmbeddingConfig LaminaConfig "
        "MemoryConfig PacksConfig RagConfig ScoringConfig define_config define_memory_config"
    ),
    "lamina.settings.tiers": "ContextThresholds",
    "lamina.state": "open_pack_store open_state",
    "lamina.state.postgres": "PostgresPackStore PostgresStateStore",
    "lamina.state.sqlite": "SqlitePackStore SqliteStateStore",
}
_MORE: Final = {
    "lamina.errors": (
        "MissingExtra NoModelConfiguredError NotFound NotStarted PackExists PackNotFound ProviderError "
        "ProviderUnavailable ScopeError StoreDamaged ThreadArchivedError ThreadNotFound Unsupported"
    ),
}
HOME_OF: Final = {name: home for each in (_HOMES, _MORE) for home, names in each.items() for name in names.split()}
