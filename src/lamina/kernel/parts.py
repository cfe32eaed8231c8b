"""The open parts of a kernel, and how they are opened: the one place that knows them all."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from lamina import registry
from lamina.context.engine import ContextEngine
from lamina.context.manager import ContextEngineManager
from lamina.context.sources import ProfileProvider
from lamina.conversation.manager import ConversationManager
from lamina.conversation.window import policy_of
from lamina.kernel.auto_save import AutoSave
from lamina.kernel.model_router import ModelRouter, Task
from lamina.kernel.stores import Stores, choose_stores
from lamina.memory.engine import MemoryEngine
from lamina.memory.factory import create_memory_engine
from lamina.ports.clock import Clock
from lamina.ports.embedder import matches_from
from lamina.ports.events import Emit
from lamina.ports.language_model import LanguageModel
from lamina.ports.memory_adapter import MemoryAdapter
from lamina.ports.state_store import StateStore
from lamina.ports.token_counter import TokenCounter
from lamina.rag.pipeline import RagPipeline
from lamina.settings import EmbeddingConfig, LaminaConfig
from lamina.settings.shorthand import provider_table

__all__ = ["KernelOptions", "Parts", "open_parts", "router_of"]

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
class Parts:
    """Everything that is open while a kernel runs."""

    memory: MemoryEngine
    state: StateStore
    chunks: MemoryAdapter
    conversation: ConversationManager
    rag: RagPipeline
    context: ContextEngine
    auto_save: AutoSave | None
    offers_expansion: bool = False
    """Whether threads hold references, and agents with tools get one that gives the originals back."""


async def open_parts(config: LaminaConfig, options: KernelOptions, closing: AsyncExitStack) -> Parts:
    """Open everything, in order; what is open is closed by `closing`, the last first, though one fails to close.

    Raises:
        ConfigError: a setting cannot be used.
        MissingExtra: a library is not installed.
        AdapterError: a store cannot be opened.
    """
    stores = choose_stores(config)
    memory = await _open_memory(config, stores, options)
    closing.push_async_callback(memory.close)
    await _open(stores.state, closing)
    await _open(stores.chunks, closing)
    conversation = _conversation(config, options, memory=memory, state=stores.state)
    rag = RagPipeline(
        stores.chunks,
        stores.state,
        tenant=config.memory.tenant,
        embedder=memory.embedder,
        config=config.rag,
        counter=options.counter,
        clock=options.clock,
    )
    await rag.initialize()
    least = 0.0 if memory.embedder is None else matches_from(memory.embedder)
    context = ContextEngine(
        memory,
        conversation=conversation,
        rag=rag,
        profile_provider=options.profile_provider,
        engines=options.engines,
        config=config.effective_context(context_window=options.router.context_window, min_score=least),
        counter=options.counter,
        clock=options.clock,
        emit=options.emit,
    )
    saving = AutoSave(memory, _helper(config, options.router, Task.FACTS)) if config.memory.auto_save else None
    return Parts(
        memory=memory,
        state=stores.state,
        chunks=stores.chunks,
        conversation=conversation,
        rag=rag,
        context=context,
        auto_save=saving,
        offers_expansion=config.conversation.context_engineering is not None,
    )


def _conversation(
    config: LaminaConfig, options: KernelOptions, *, memory: MemoryEngine, state: StateStore
) -> ConversationManager:
    talk = config.effective_conversation()
    return ConversationManager(
        state,
        tenant=config.memory.tenant,
        llm=_helper(config, options.router, Task.SUMMARIES),
        memory=memory,
        policy=policy_of(talk),
        summary=talk.summary,
        context_engineering=talk.context_engineering,
        store_facts=talk.stores_facts,
        counter=options.counter,
        clock=options.clock,
        emit=options.emit,
    )


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


async def _open_memory(config: LaminaConfig, stores: Stores, options: KernelOptions) -> MemoryEngine:
    updates: dict[str, Any] = {"clock": options.clock}
    if "default_relevance" not in config.memory.model_fields_set:
        updates["default_relevance"] = DEFAULT_RELEVANCE
    embed = options.router.embed
    if embed is not None:
        named = EmbeddingConfig(**provider_table(embed)) if isinstance(embed, str) else None
        updates |= {"embedding": named, "embed": None if named else embed, "embed_batch": None}
    return await create_memory_engine(stores.memory.model_copy(update=updates), emit=options.emit)


async def _open(store: Any, closing: AsyncExitStack) -> None:
    closing.push_async_callback(store.close)
    await store.initialize()
