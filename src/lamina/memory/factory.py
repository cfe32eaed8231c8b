"""Builds an engine from its settings: the one place that opens things for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from lamina import registry
from lamina.domain.memory import Layer
from lamina.domain.scope import Scope
from lamina.errors import AdapterError, ConfigError, StoreDamaged
from lamina.memory.backend import MemoryBackend
from lamina.memory.earlier import EarlierMemories
from lamina.memory.embedding import EmbeddingSpace
from lamina.memory.engine import MemoryEngine
from lamina.memory.hooks import HookRunner
from lamina.memory.inputs import EntryDefaults
from lamina.memory.reranking import Rerankers
from lamina.memory.runtime import Runtime
from lamina.memory.secret_screen import SecretScreen
from lamina.memory.working import WorkingMemory
from lamina.ports.clock import IdFactory, new_memory_id, utc_now
from lamina.ports.embedder import Embedder
from lamina.ports.events import Emit
from lamina.ports.hooks import MemoryHooks
from lamina.ports.memory_adapter import META_TENANT, MemoryAdapter
from lamina.settings import EmbeddingConfig, MemoryConfig, define_memory_config

__all__ = ["DEFAULT_EMBEDDER", "adapter_of", "create_memory_engine", "open_engine", "open_memory_backend"]

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
    engine = _assemble(read, _backend(read), new_id=new_id, emit=emit, owned=True)
    async with _closed_on_failure(engine, read):
        await engine.initialize()
    return engine


async def open_memory_backend(config: MemoryConfig) -> MemoryBackend:
    """The open stores and the embedder that the settings ask for, for engines of any number of tenants.

    Raises:
        ConfigError: a setting is wrong, or missing.
        MissingExtra: the backend's or the embedder's library is not installed.
        AdapterError: the store cannot be opened.
    """
    backend = _backend(config)
    async with _closed_on_failure(backend, config):
        await backend.initialize()
    return backend


async def open_engine(config: MemoryConfig, backend: MemoryBackend, *, emit: Emit | None = None) -> MemoryEngine:
    """An open engine of the settings' tenant over a backend that is open, and stays so when the engine is closed.

    Raises:
        AdapterError: the store failed.
    """
    engine = _assemble(config, backend, emit=emit, owned=False)
    async with _closed_on_failure(engine, config):
        await engine.initialize()
    return engine


def _backend(config: MemoryConfig) -> MemoryBackend:
    overlay = registry.load_adapter("memory")() if config.working_storage == "memory" else None
    return MemoryBackend(adapter_of(config), overlay, _embedder(config), Rerankers(config.rerank))


@asynccontextmanager
async def _closed_on_failure(opened: MemoryBackend | MemoryEngine, config: MemoryConfig) -> AsyncIterator[None]:
    try:
        yield
    except BaseException as error:
        await opened.close()
        if isinstance(error, StoreDamaged):
            await _tell_of_version_1(config, error)
        raise


def _assemble(
    config: MemoryConfig,
    backend: MemoryBackend,
    *,
    new_id: IdFactory = new_memory_id,
    emit: Emit | None,
    owned: bool,
) -> MemoryEngine:
    clock = config.clock or utc_now
    ttls = {layer: config.layer_ttl(layer) for layer in Layer}
    defaults = EntryDefaults(
        tenant=config.tenant,
        owner=config.default_owner,
        namespace=config.default_namespace,
        relevance=config.default_relevance,
        layer_ttls={layer: None if ttl is None else ttl.total_seconds() for layer, ttl in ttls.items()},
    )
    runtime = Runtime(
        adapter=backend.adapter,
        overlay=backend.overlay,
        defaults=defaults,
        strict_namespace=config.strict_namespace,
        strict_owner=config.strict_owner,
        search_mode=config.search_mode,
        min_match=config.min_match,
        scoring=config.scoring,
        version=config.version,
        hooks=HookRunner(config.hooks or MemoryHooks()),
        secrets=SecretScreen(config.secrets, tenant=config.tenant, clock=clock, emit=emit),
        space=EmbeddingSpace(backend.adapter, Scope(config.tenant), backend.embedder, clock),
        clock=clock,
        new_id=new_id,
        rerankers=backend.rerankers,
        emit=emit,
        earlier=_earlier(config, defaults),
        open_earlier=registry.open_earlier,
    )
    working = WorkingMemory(ttl=config.working_memory_ttl, clock=clock)
    return MemoryEngine(runtime, working, owned=backend if owned else None)


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
