"""Context packs, blocking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.packs.service import ContextPacks as AsyncContextPacks
from lamina.sync.forwarding import Resource, blocking_method, made_as

if TYPE_CHECKING:
    from lamina.ports.embedder import Embedder
    from lamina.settings import PacksConfig

__all__ = ["ContextPacks"]


class ContextPacks(Resource[AsyncContextPacks]):
    """A `lamina.packs.service.ContextPacks` that blocks, made with the same arguments.

    Its methods have the same names, parameters, documentation and errors. Safe to call from several
    threads. Use it as a context manager, or call `initialize` and `close`.
    """

    @made_as(AsyncContextPacks)
    def __init__(self, asynchronous: AsyncContextPacks) -> None:
        super().__init__(asynchronous)

    @property
    def tenant(self) -> str:
        """Whose packs they are."""
        return self.asynchronous.tenant

    @property
    def config(self) -> PacksConfig:
        """Defaults and limits."""
        return self.asynchronous.config

    @property
    def embedder(self) -> Embedder | None:
        """What makes the vectors, if anything does; its methods are async."""
        return self.asynchronous.embedder

    def without_shared_writes(self) -> ContextPacks:  # noqa: D102 - below
        return ContextPacks.over(self.asynchronous.without_shared_writes())

    without_shared_writes.__doc__ = AsyncContextPacks.without_shared_writes.__doc__

    initialize = blocking_method(AsyncContextPacks.initialize)
    close = blocking_method(AsyncContextPacks.close)
    create = blocking_method(AsyncContextPacks.create)
    get = blocking_method(AsyncContextPacks.get)
    list = blocking_method(AsyncContextPacks.list)
    count = blocking_method(AsyncContextPacks.count)
    update = blocking_method(AsyncContextPacks.update)
    archive_pack = blocking_method(AsyncContextPacks.archive_pack)
    activate = blocking_method(AsyncContextPacks.activate)
    delete = blocking_method(AsyncContextPacks.delete)
    summary = blocking_method(AsyncContextPacks.summary)
    metadata = blocking_method(AsyncContextPacks.metadata)
    add = blocking_method(AsyncContextPacks.add)
    add_many = blocking_method(AsyncContextPacks.add_many)
    memory = blocking_method(AsyncContextPacks.memory)
    read = blocking_method(AsyncContextPacks.read)
    with_embeddings = blocking_method(AsyncContextPacks.with_embeddings)
    update_memory = blocking_method(AsyncContextPacks.update_memory)
    supersede = blocking_method(AsyncContextPacks.supersede)
    pin = blocking_method(AsyncContextPacks.pin)
    unpin = blocking_method(AsyncContextPacks.unpin)
    archive = blocking_method(AsyncContextPacks.archive)
    restore = blocking_method(AsyncContextPacks.restore)
    delete_memory = blocking_method(AsyncContextPacks.delete_memory)
    memories = blocking_method(AsyncContextPacks.memories)
    count_memories = blocking_method(AsyncContextPacks.count_memories)
    discover = blocking_method(AsyncContextPacks.discover)
    retrieve = blocking_method(AsyncContextPacks.retrieve)
    rank = blocking_method(AsyncContextPacks.rank)
    search = blocking_method(AsyncContextPacks.search)
    find = blocking_method(AsyncContextPacks.find)
    import_entries = blocking_method(AsyncContextPacks.import_entries)
    export_entries = blocking_method(AsyncContextPacks.export_entries)
    degrade = blocking_method(AsyncContextPacks.degrade)
    preview = blocking_method(AsyncContextPacks.preview)
    reembed_missing = blocking_method(AsyncContextPacks.reembed_missing)
    reembed = blocking_method(AsyncContextPacks.reembed)
    purge_orphans = blocking_method(AsyncContextPacks.purge_orphans)
    check = blocking_method(AsyncContextPacks.check)
    repair = blocking_method(AsyncContextPacks.repair)
    scrub = blocking_method(AsyncContextPacks.scrub)
