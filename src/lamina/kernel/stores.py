"""Where a kernel keeps things: which settings lead to which stores, all in one SQLite file where that can be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lamina import registry
from lamina.adapters.sqlite import SqliteAdapter
from lamina.databases.sqlite.connection import MEMORY
from lamina.databases.sqlite.database import SqliteDatabase
from lamina.errors import ConfigError
from lamina.ports.memory_adapter import MemoryAdapter
from lamina.ports.pack_store import PackStore
from lamina.ports.server_store import ServerStore
from lamina.ports.state_store import StateStore
from lamina.settings import LaminaConfig, MemoryConfig
from lamina.settings.project import DATABASE, DEFAULT_DATA_DIR
from lamina.state.opening import open_stores
from lamina.state.sqlite import SqlitePackStore, SqliteServerStore, SqliteStateStore

__all__ = ["Stores", "choose_stores", "database_file", "server_store_of"]

_DEFAULT_TABLE: Final = MemoryConfig.model_fields["table"].default
_PREFIX: Final = "lamina"
"""What the collections are called after where the memories' own has its usual name."""
_COLLECTION_OPTIONS: Final = ("collection", "collection_name", "class_name", "table_name", "namespace")
"""Options of backends that name the collection as `table` does: chunks and packs are in others."""
_POSTGRES: Final = "postgres"
_POSTGRES_LIMITS: Final = ("connections", "connect_timeout", "statement_timeout")


@dataclass(frozen=True, slots=True)
class Stores:
    """Made, and not yet open. `memory` are the memory settings with the adapter in them.

    `packs` is the truth about packs, `pack_rows` what search runs over.
    `server` is for processes that serve others; a kernel alone does not open it.
    """

    memory: MemoryConfig
    chunks: MemoryAdapter
    pack_rows: MemoryAdapter
    state: StateStore
    packs: PackStore
    server: ServerStore


@dataclass(frozen=True, slots=True)
class _Tables:
    """What the collections beside the memories' own are called."""

    chunks: str
    packs: str


def choose_stores(config: LaminaConfig) -> Stores:
    """The stores that the settings ask for.

    Memories, chunks, threads, the heads of documents and packs share one SQLite file, or one PostgreSQL, unless the
    settings keep them apart. With any other memory backend the chunks and the rows of packs are in it too, and the
    rest in the kernel's own file. An adapter that is made already holds memories alone.

    Raises:
        ConfigError: a place cannot be used.
        MissingExtra: a backend's library is not installed.
    """
    memory = config.memory
    name = memory.adapter_name()
    tables = _tables(config)
    file = _file(config)
    if name == _POSTGRES and memory.url is not None:
        return _in_postgres(config, memory.url, tables, file)
    if name in {None, "sqlite"} and memory.url is None:
        if not _is_made(memory):
            memory = _with_adapter(memory, SqliteAdapter(database=file, table=memory.table))
        chunks, rows = (SqliteAdapter(database=file, table=table) for table in (tables.chunks, tables.packs))
        return Stores(memory, chunks, rows, *_state(config, file))
    assert name is not None  # noqa: S101 - adapter_name names every url's backend
    options = {key: value for key, value in memory.options.items() if key not in _COLLECTION_OPTIONS}
    place = {**options, "url": memory.url, "path": memory.path}
    made, other = (_made(name, {**place, "table": table}) for table in (tables.chunks, tables.packs))
    return Stores(memory, made, other, *_state(config, file))


def server_store_of(config: LaminaConfig) -> ServerStore:
    """The server store in the database of the kernel's state, not open yet; raises as `choose_stores`."""
    return choose_stores(config).server


def database_file(config: LaminaConfig) -> Path | None:
    """The file that `choose_stores` keeps memories in; None if they are in no file, or not in SQLite."""
    memory, place = config.memory, _place(config)
    is_elsewhere = memory.adapter_name() not in {None, "sqlite"} or _is_made(memory)
    return None if is_elsewhere or str(place) == MEMORY else Path(place)


def _file(config: LaminaConfig) -> SqliteDatabase:
    """The kernel's own file; the options are for it where memories are in it."""
    memory = config.memory
    options = memory.options if memory.adapter_name() in {None, "sqlite"} and memory.url is None else {}
    try:
        return SqliteDatabase(_place(config), **options)
    except TypeError as error:
        remedy = "Use busy_timeout, readers and backup."
        raise ConfigError("memory.options", f"holds what SQLite does not take: {error}", remedy) from error


def _is_made(memory: MemoryConfig) -> bool:
    return memory.adapter is not None and not isinstance(memory.adapter, str)


def _place(config: LaminaConfig) -> Path | str:
    """Where the kernel's own file is, which is the memories' if they are in SQLite."""
    memory = config.memory
    if memory.path is not None and memory.adapter_name() == "sqlite":
        return memory.path
    if config.is_ephemeral or memory.adapter_name() == "memory":
        return MEMORY
    return (config.data_dir or DEFAULT_DATA_DIR) / DATABASE


def _tables(config: LaminaConfig) -> _Tables:
    memory = config.memory
    named = next((memory.options[each] for each in _COLLECTION_OPTIONS if each in memory.options), memory.table)
    prefix = _PREFIX if named == _DEFAULT_TABLE else named
    return _Tables(f"{prefix}_chunks", config.packs.table or f"{prefix}_packs")


def _in_postgres(config: LaminaConfig, url: str, tables: _Tables, file: SqliteDatabase) -> Stores:
    """Everything on the same connections, unless a `state_url` keeps some apart."""
    from lamina.adapters.postgres import PostgresAdapter
    from lamina.databases.postgres import PostgresDatabase
    from lamina.state.postgres import PostgresPackStore, PostgresServerStore, PostgresStateStore

    limits = {key: value for key, value in config.memory.options.items() if key in _POSTGRES_LIMITS}
    others = {key: value for key, value in config.memory.options.items() if key not in _POSTGRES_LIMITS}
    database = PostgresDatabase(url, **limits)
    try:
        names = (config.memory.table, tables.chunks, tables.packs)
        memories, chunks, rows = (PostgresAdapter(database=database, table=each, **others) for each in names)
        state, packs, server = _state(config, file)
        if config.state_url in {None, url}:
            state = PostgresStateStore(database=database, **others)
            packs = PostgresPackStore(database=database, **others)
            server = PostgresServerStore(database=database, **others)
    except TypeError as error:
        known = ", ".join((*_POSTGRES_LIMITS, "schema"))
        raise ConfigError("memory.options", f"holds what PostgreSQL does not take: {error}", f"Use {known}.") from error
    return Stores(_with_adapter(config.memory, memories), chunks, rows, state, packs, server)


def _state(config: LaminaConfig, file: SqliteDatabase) -> tuple[StateStore, PackStore, ServerStore]:
    url = config.state_url
    if url is None:
        return SqliteStateStore(database=file), SqlitePackStore(database=file), SqliteServerStore(database=file)
    return open_stores(url)


def _with_adapter(memory: MemoryConfig, adapter: MemoryAdapter) -> MemoryConfig:
    return memory.model_copy(update={"adapter": adapter, "provider": None, "path": None, "url": None, "options": {}})


def _made(name: str, options: Mapping[str, Any]) -> MemoryAdapter:
    given = {key: value for key, value in options.items() if value is not None}
    adapter = registry.load_adapter(name)
    if name == "memory":
        return adapter()
    try:
        return adapter(**given)
    except TypeError as error:
        problem = f"the adapter {name!r} cannot be made with {', '.join(given)}: {error}"
        raise ConfigError("memory", problem, "Give what it lacks, and leave out what it does not take.") from error
