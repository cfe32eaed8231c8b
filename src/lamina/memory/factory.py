"""Builds an engine from its settings: the one place in the engine that opens things."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lamina import registry
from lamina.domain.memory import Layer
from lamina.domain.scope import Scope
from lamina.errors import AdapterError, ConfigError, StoreDamaged
from lamina.memory.earlier import EarlierMemories
from lamina.memory.embedding import EmbeddingSpace
from lamina.memory.engine import MemoryEngine
from lamina.memory.hooks import HookRunner
from lamina.memory.inputs import EntryDefaults
from lamina.memory.runtime import Runtime
from lamina.memory.working import WorkingMemory
from lamina.ports.clock import IdFactory, new_memory_id, utc_now
from lamina.ports.embedder import Embedder
from lamina.ports.events import Emit
from lamina.ports.hooks import MemoryHooks
from lamina.ports.memory_adapter import META_TENANT, MemoryAdapter
from lamina.settings import EmbeddingConfig, MemoryConfig, define_memory_config

__all__ = ["DEFAULT_EMBEDDER", "adapter_of", "create_memory_engine"]

NO_EMBEDDER: Final = "none"
DEFAULT_EMBEDDER: Final = "builtin"


async def create_memory_engine(
    config: MemoryConfig | Mapping[str, Any] | None = None,
    *,
    new_id: IdFactory = new_memory_id,
    emit: Emit | None = None,
    **settings: Any,
) -> MemoryEngine:
    """An open engine, from a `MemoryConfig`, a mapping, keywords of `MemoryConfig`, or a mixture (keywords win).

    Say where memories are kept: `path="lamina.db"`, `provider="memory"`, a `url`, or an `adapter`.
    Without `embedding` or `embed` the embedder that comes with Lamina is used; `embedding="none"`
    means none. `new_id` gives the ids of new memories; `emit` is told what happens to memories.

    Raises:
        ConfigError: a setting is unknown, wrong, or missing.
        MissingExtra: the backend's or the embedder's library is not installed.
        AdapterError: the store cannot be opened.
    """
    if isinstance(config, MemoryConfig):
        given = {name: getattr(config, name) for name in config.model_fields_set}
        read = define_memory_config(given, **settings) if settings else config
    else:
        read = define_memory_config(config, **settings)
    if read.tenant == META_TENANT:
        raise ConfigError("tenant", f"{META_TENANT!r} is reserved", "Choose another name.")
    engine = _assemble(read, new_id, emit)
    try:
        await engine.initialize()
    except BaseException as error:
        await engine.close()
        if isinstance(error, StoreDamaged):
            await _tell_of_version_1(read, error)
        raise
    return engine


def _assemble(config: MemoryConfig, new_id: IdFactory, emit: Emit | None) -> MemoryEngine:
    clock = config.clock or utc_now
    adapter = adapter_of(config)
    overlay = registry.load_adapter("memory")() if config.working_storage == "memory" else None
    ttls = {layer: config.layer_ttl(layer) for layer in Layer}
    defaults = EntryDefaults(
        tenant=config.tenant,
        owner=config.default_owner,
        namespace=config.default_namespace,
        relevance=config.default_relevance,
        layer_ttls={layer: None if ttl is None else ttl.total_seconds() for layer, ttl in ttls.items()},
    )
    runtime = Runtime(
        adapter=adapter,
        overlay=overlay,
        defaults=defaults,
        strict_namespace=config.strict_namespace,
        strict_owner=config.strict_owner,
        search_mode=config.search_mode,
        scoring=config.scoring,
        version=config.version,
        hooks=HookRunner(config.hooks or MemoryHooks()),
        space=EmbeddingSpace(adapter, Scope(config.tenant), _embedder(config), clock),
        clock=clock,
        new_id=new_id,
        emit=emit,
        earlier=_earlier(config, defaults),
        open_earlier=registry.open_earlier,
    )
    return MemoryEngine(runtime, WorkingMemory(ttl=config.working_memory_ttl, clock=clock))


async def _tell_of_version_1(config: MemoryConfig, refused: StoreDamaged) -> None:
    """Raise with the way forward if the file that was refused is one that version 1 wrote."""
    try:
        tables = [] if config.path is None else await registry.open_earlier(config.path).tables()
    except AdapterError:
        return  # it is something else; what refused it says more
    if tables:
        remedy = "Give another path for the new store and this one as v1_path, then call migrate_v1()."
        raise ConfigError("path", f"{config.path} holds memories of version 1", remedy) from refused


def _earlier(config: MemoryConfig, defaults: EntryDefaults) -> EarlierMemories | None:
    if config.v1_path is None:
        return None
    return EarlierMemories(registry.open_earlier(config.v1_path), registry.load_adapter("memory"), defaults)


def adapter_of(config: MemoryConfig) -> MemoryAdapter:
    """The adapter that the settings ask for, not initialised yet.

    Raises:
        ConfigError: nothing says where memories are kept, or the backend cannot be made with these settings.
        MissingExtra: its client library is not installed.
    """
    if config.adapter is not None and not isinstance(config.adapter, str):
        if not isinstance(config.adapter, MemoryAdapter):
            problem = f"must be a name or a MemoryAdapter, not {type(config.adapter).__name__}"
            raise ConfigError("adapter", problem, "Derive your adapter from lamina.MemoryAdapter.")
        return config.adapter
    name = config.adapter_name()
    if name is None:
        remedy = 'Give path="lamina.db" for a file, or provider="memory" to keep nothing.'
        raise ConfigError("memory", "nothing says where memories are kept", remedy)
    said = {key: getattr(config, key) for key in ("path", "url", "table") if key in config.model_fields_set}
    options = config.options | {key: value for key, value in said.items() if value is not None}
    try:
        return registry.load_adapter(name)(**options)
    except TypeError as error:
        problem = f"the adapter {name!r} cannot be made with {', '.join(options) or 'no options'}: {error}"
        raise ConfigError("memory", problem, "Give what it lacks, and leave out what it does not take.") from error


def _embedder(config: MemoryConfig) -> Embedder | None:
    embedding = config.embedding or EmbeddingConfig()
    if config.embed is not None or config.embed_batch is not None:
        options = {"embed_batch": config.embed_batch, "model": embedding.model, "dimensions": embedding.dimensions}
        return registry.adopt_embedder(config.embed, **{k: v for k, v in options.items() if v is not None})
    if embedding.provider == NO_EMBEDDER:
        return None
    if embedding.provider is None:
        return registry.load_embedder(DEFAULT_EMBEDDER)
    options = {
        "dimensions": embedding.dimensions,
        "base_url": embedding.base_url,
        "api_key": None if embedding.api_key is None else embedding.api_key.get_secret_value(),
    }
    return registry.load_embedder(embedding.spec(), **{k: v for k, v in options.items() if v is not None})
