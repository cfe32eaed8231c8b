"""Memories, blocking."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lamina.memory.engine import MemoryEngine as AsyncMemoryEngine
from lamina.memory.factory import create_memory_engine as create_async_memory_engine
from lamina.memory.owner_view import OwnerMemory as AsyncOwnerMemory
from lamina.ports.clock import IdFactory, new_memory_id
from lamina.ports.events import Emit
from lamina.sync.background import background
from lamina.sync.forwarding import Blocking, Resource, bare, blocking_iterator, blocking_method

if TYPE_CHECKING:
    from lamina.memory.working import WorkingMemory
    from lamina.ports.embedder import Embedder
    from lamina.ports.memory_adapter import MemoryAdapter
    from lamina.settings import MemoryConfig

__all__ = ["MemoryEngine", "OwnerMemory", "create_memory_engine"]

_PAGE = 200
"""Entries that `scan` fetches in one hop to the background."""


class MemoryEngine(Resource[AsyncMemoryEngine]):
    """A `lamina.memory.engine.MemoryEngine` that blocks; `asynchronous` is the engine behind it.

    Its methods have the same names, parameters, documentation and errors. Safe to call from several
    threads. Use it as a context manager, or call `close`.
    """

    @property
    def tenant(self) -> str:
        """The tenant that every call is bound to."""
        return self.asynchronous.tenant

    @property
    def adapter(self) -> MemoryAdapter:
        """The store behind the engine; its methods are async."""
        return self.asynchronous.adapter

    @property
    def embedder(self) -> Embedder | None:
        """What makes the vectors, if anything does; its methods are async."""
        return self.asynchronous.embedder

    @property
    def working(self) -> WorkingMemory:
        """The key-value store of the process."""
        return self.asynchronous.working

    initialize = blocking_method(AsyncMemoryEngine.initialize)
    close = blocking_method(AsyncMemoryEngine.close)
    store = blocking_method(AsyncMemoryEngine.store)
    store_many = blocking_method(AsyncMemoryEngine.store_many)
    update = blocking_method(AsyncMemoryEngine.update)
    supersede = blocking_method(AsyncMemoryEngine.supersede)
    restore = blocking_method(AsyncMemoryEngine.restore)
    migrate_v1 = blocking_method(AsyncMemoryEngine.migrate_v1)
    get = blocking_method(AsyncMemoryEngine.get)
    history = blocking_method(AsyncMemoryEngine.history)
    recall = blocking_method(AsyncMemoryEngine.recall)
    query = blocking_method(AsyncMemoryEngine.query)
    scan = blocking_iterator(AsyncMemoryEngine.scan, page=_PAGE)
    count = blocking_method(AsyncMemoryEngine.count)
    stats = blocking_method(AsyncMemoryEngine.stats)
    decay = blocking_method(AsyncMemoryEngine.decay)
    forget = blocking_method(AsyncMemoryEngine.forget)
    erase = blocking_method(AsyncMemoryEngine.erase)
    erase_derived = blocking_method(AsyncMemoryEngine.erase_derived)
    erased_at = blocking_method(AsyncMemoryEngine.erased_at)
    forget_where = blocking_method(AsyncMemoryEngine.forget_where)
    forget_source = blocking_method(AsyncMemoryEngine.forget_source)
    quarantine = blocking_method(AsyncMemoryEngine.quarantine)
    quarantined = blocking_method(AsyncMemoryEngine.quarantined)
    release = blocking_method(AsyncMemoryEngine.release)
    clear = blocking_method(AsyncMemoryEngine.clear)
    purge_expired = blocking_method(AsyncMemoryEngine.purge_expired)
    reembed = blocking_method(AsyncMemoryEngine.reembed)
    reembed_missing = blocking_method(AsyncMemoryEngine.reembed_missing)


class OwnerMemory(Blocking[AsyncOwnerMemory]):
    """A `lamina.memory.owner_view.OwnerMemory` that blocks: a memory engine bound to one owner."""

    def __init__(self, engine: MemoryEngine | AsyncMemoryEngine, owner: str) -> None:
        super().__init__(AsyncOwnerMemory(bare(engine), owner))

    @property
    def owner(self) -> str:
        """Whose memories these are."""
        return self.asynchronous.owner

    store = blocking_method(AsyncOwnerMemory.store)
    recall = blocking_method(AsyncOwnerMemory.recall)
    query = blocking_method(AsyncOwnerMemory.query)
    count = blocking_method(AsyncOwnerMemory.count)
    get = blocking_method(AsyncOwnerMemory.get)
    update = blocking_method(AsyncOwnerMemory.update)
    supersede = blocking_method(AsyncOwnerMemory.supersede)
    forget = blocking_method(AsyncOwnerMemory.forget)
    forget_where = blocking_method(AsyncOwnerMemory.forget_where)


def create_memory_engine(
    config: MemoryConfig | Mapping[str, Any] | None = None,
    *,
    new_id: IdFactory = new_memory_id,
    emit: Emit | None = None,
    **settings: Any,
) -> MemoryEngine:
    """An open engine that blocks; arguments and errors as of `lamina.memory.factory.create_memory_engine`."""
    make = functools.partial(create_async_memory_engine, config, new_id=new_id, emit=emit, **settings)
    return MemoryEngine(background().run(make))
