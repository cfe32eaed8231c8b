"""The open parts of a kernel, and how they are opened: the one place that knows them all."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, TypeVar

from lamina import registry
from lamina.context.engine import ContextEngine
from lamina.context.manager import ContextEngineManager
from lamina.context.sources import ProfileProvider
from lamina.conversation.manager import ConversationManager
from lamina.conversation.short_term import BaseMemory
from lamina.conversation.window import policy_of
from lamina.errors import ConfigError
from lamina.kernel.auto_save import AutoSave
from lamina.kernel.model_router import ModelRouter, Task
from lamina.kernel.sessions import SessionMemories
from lamina.kernel.stores import choose_stores
from lamina.memory.backend import MemoryBackend
from lamina.memory.engine import MemoryEngine
from lamina.memory.factory import open_engine, open_memory_backend
from lamina.packs.reducers import ExtractiveReducer, ModelReducer, Reducer
from lamina.packs.service import ContextPacks
from lamina.ports.clock import Clock
from lamina.ports.events import Emit
from lamina.ports.language_model import LanguageModel
from lamina.ports.memory_adapter import MemoryAdapter
from lamina.ports.pack_store import PackStore
from lamina.ports.server_store import ServerStore
from lamina.ports.state_store import StateStore
from lamina.ports.token_counter import TokenCounter
from lamina.rag.pipeline import RagPipeline
from lamina.settings import EmbeddingConfig, LaminaConfig, MemoryConfig, PacksConfig, RagConfig
from lamina.settings.shorthand import provider_table

__all__ = ["Backends", "KernelOptions", "Parts", "build_parts", "open_backends", "open_parts", "router_of"]

_Block = TypeVar("_Block", RagConfig, PacksConfig)

DEFAULT_RELEVANCE = 1.0
"""Of memories about whose importance nothing was said, in a kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOptions:
    """What a kernel is made from beside its settings."""

    clock: Clock
    emit: Emit
    router: ModelRouter
    engines: ContextEngineManager
    counter: TokenCounter | None = None
    profile_provider: ProfileProvider | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backends:
    """What kernels stand on: open, and the same for every tenant. Nothing in it knows of one."""

    memory: MemoryBackend
    state: StateStore
    chunks: MemoryAdapter
    packs: PackStore
    pack_rows: MemoryAdapter
    server: ServerStore
    """Not open, until somebody opens it who serves others."""
    summaries: LanguageModel | None
    facts: LanguageModel | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What one tenant's kernel consists of, over its backends."""

    memory: MemoryEngine
    state: StateStore
    chunks: MemoryAdapter
    conversation: ConversationManager
    sessions: SessionMemories
    rag: RagPipeline
    packs: ContextPacks
    context: ContextEngine
    auto_save: AutoSave | None
    offers_expansion: bool = False
    """Whether threads hold references, and agents with tools get one that gives the originals back."""


async def open_parts(config: LaminaConfig, options: KernelOptions, closing: AsyncExitStack) -> Parts:
    """Open everything that a kernel of its own needs: the backends, and over them the tenant's parts.

    Raises:
        ConfigError: a setting cannot be used.
        MissingExtra: a library is not installed.
        AdapterError: a store cannot be opened.
    """
    backends = await open_backends(config, options.router, closing)
    return await build_parts(config, options, backends, closing)


async def open_backends(config: LaminaConfig, router: ModelRouter, closing: AsyncExitStack) -> Backends:
    """Open what serves any number of tenants; it is closed by `closing`, the last first, though one fails to close.

    Raises:
        ConfigError: a setting cannot be used.
        MissingExtra: a library is not installed.
        AdapterError: a store cannot be opened.
    """
    stores = choose_stores(config)
    memory = await open_memory_backend(stores.memory.model_copy(update=_embedding_of(router)))
    closing.push_async_callback(memory.close)
    await _open(stores.state, closing)
    await _open(stores.chunks, closing)
    await _open(stores.packs, closing)
    closing.push_async_callback(stores.pack_rows.close)  # opened by who first needs it, which many kernels never do
    return Backends(
        memory=memory,
        state=stores.state,
        chunks=stores.chunks,
        packs=stores.packs,
        pack_rows=stores.pack_rows,
        server=stores.server,
        summaries=_helper(config, router, Task.SUMMARIES),
        facts=_helper(config, router, Task.FACTS) if config.memory.auto_save else None,
    )


async def build_parts(
    config: LaminaConfig, options: KernelOptions, backends: Backends, closing: AsyncExitStack
) -> Parts:
    """The parts of the settings' tenant over backends that are open, and that `closing` leaves open.

    Raises:
        AdapterError: a store failed.
    """
    memory = await open_engine(_engine_settings(config, options), backends.memory, emit=options.emit)
    closing.push_async_callback(memory.close)
    conversation = _conversation(config, options, memory=memory, backends=backends)
    rag = _rag(config, options, memory=memory, backends=backends)
    packs = _packs(config, options, memory=memory, backends=backends)
    context = ContextEngine(
        memory,
        conversation=conversation,
        rag=rag,
        packs=packs,
        profile_provider=options.profile_provider,
        engines=options.engines,
        config=config.effective_context(context_window=options.router.context_window),
        counter=options.counter,
        clock=options.clock,
        emit=options.emit,
    )
    return Parts(
        memory=memory,
        state=backends.state,
        chunks=backends.chunks,
        conversation=conversation,
        sessions=_sessions(config, options, backends),
        rag=rag,
        packs=packs,
        context=context,
        auto_save=AutoSave(memory, backends.facts) if config.memory.auto_save else None,
        offers_expansion=config.conversation.context_engineering is not None,
    )


def _conversation(
    config: LaminaConfig, options: KernelOptions, *, memory: MemoryEngine, backends: Backends
) -> ConversationManager:
    context = config.effective_context(context_window=options.router.context_window)
    talk = config.effective_conversation(token_budget=context.token_budget)
    return ConversationManager(
        backends.state,
        tenant=config.memory.tenant,
        llm=backends.summaries,
        memory=memory,
        policy=policy_of(talk),
        summary=talk.summary,
        context_engineering=talk.context_engineering,
        store_facts=talk.stores_facts,
        counter=options.counter,
        clock=options.clock,
        emit=options.emit,
        secrets=config.conversation.secrets or config.memory.secrets,
    )


def _rag(config: LaminaConfig, options: KernelOptions, *, memory: MemoryEngine, backends: Backends) -> RagPipeline:
    return RagPipeline(
        backends.chunks,
        backends.state,
        tenant=config.memory.tenant,
        embedder=memory.embedder,
        config=_following(config, config.rag),
        counter=options.counter,
        clock=options.clock,
        emit=options.emit,
    )


def _packs(config: LaminaConfig, options: KernelOptions, *, memory: MemoryEngine, backends: Backends) -> ContextPacks:
    return ContextPacks(
        backends.packs,
        backends.pack_rows,
        tenant=config.memory.tenant,
        embedder=memory.embedder,
        config=_following(config, config.packs),
        clock=options.clock,
        emit=options.emit,
        reducer=_reducer(config, backends.summaries),
    )


def _following(config: LaminaConfig, block: _Block) -> _Block:
    """The block with the memory block's policy about secrets, unless it has its own."""
    return block if block.secrets is not None else block.model_copy(update={"secrets": config.memory.secrets})


def _reducer(config: LaminaConfig, model: LanguageModel | None) -> Reducer:
    if config.packs.reducer == "extractive":
        return ExtractiveReducer()
    if model is None:
        raise ConfigError("packs.reducer", "is 'model', and there is none", "Name a model, or use 'extractive'.")
    return ModelReducer(model)


def _sessions(config: LaminaConfig, options: KernelOptions, backends: Backends) -> SessionMemories:
    context = config.effective_context(context_window=options.router.context_window)
    thresholds = config.effective_conversation(token_budget=context.token_budget).context_engineering

    def make(owner: str | None) -> BaseMemory:
        return BaseMemory(
            backends.state,
            tenant=config.memory.tenant,
            owner=owner,
            llm=backends.summaries,
            thresholds=thresholds,
            counter=options.counter,
            clock=options.clock,
            emit=options.emit,
            secrets=config.conversation.secrets or config.memory.secrets,
        )

    return SessionMemories(make)


def router_of(config: LaminaConfig, router: ModelRouter | None) -> ModelRouter:
    """The given router, else one with the model that the settings name, if they do.

    Raises:
        ConfigError: the model cannot be made.
        MissingExtra: its library is not installed.
    """
    if router is not None:
        return router
    model = config.model
    made = ModelRouter()
    if model is not None:
        key = None if model.api_key is None else model.api_key.get_secret_value()
        options = {"base_url": model.base_url, "api_key": key}
        given = {name: value for name, value in options.items() if value is not None}
        made.take_over(registry.load_language_model(model.spec(), **given))
    return made


def _helper(config: LaminaConfig, router: ModelRouter, task: Task) -> LanguageModel | None:
    """The model for a task beside answering: the router's own for it, else `memory.llm`, else the one that answers."""
    given = config.memory.llm
    if router.has_own(task) or given is None:
        return router.model_for(task)
    return router.made_of(given)


def _embedding_of(router: ModelRouter) -> dict[str, Any]:
    """The memory settings that the router's embedder goes before."""
    embed = router.embed
    if embed is None:
        return {}
    named = EmbeddingConfig(**provider_table(embed)) if isinstance(embed, str) else None
    return {"embedding": named, "embed": None if named else embed, "embed_batch": None}


def _engine_settings(config: LaminaConfig, options: KernelOptions) -> MemoryConfig:
    updates: dict[str, Any] = {"clock": options.clock}
    if "default_relevance" not in config.memory.model_fields_set:
        updates["default_relevance"] = DEFAULT_RELEVANCE
    return config.memory.model_copy(update=updates)


async def _open(store: Any, closing: AsyncExitStack) -> None:
    closing.push_async_callback(store.close)
    await store.initialize()
