"""Documents, blocking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.rag.pipeline import RagPipeline as AsyncRagPipeline
from lamina.sync.forwarding import Resource, blocking_method, made_as

if TYPE_CHECKING:
    from lamina.ports.embedder import Embedder
    from lamina.settings import RagConfig

__all__ = ["RagPipeline"]


class RagPipeline(Resource[AsyncRagPipeline]):
    """A `lamina.rag.pipeline.RagPipeline` that blocks, made with the same arguments.

    Its methods have the same names, parameters, documentation and errors. Safe to call from several
    threads. Use it as a context manager, or call `initialize` and `close`.
    """

    @made_as(AsyncRagPipeline)
    def __init__(self, asynchronous: AsyncRagPipeline) -> None:
        super().__init__(asynchronous)

    @property
    def tenant(self) -> str:
        """Whose documents they are."""
        return self.asynchronous.tenant

    @property
    def config(self) -> RagConfig:
        """Defaults and limits."""
        return self.asynchronous.config

    @property
    def embedder(self) -> Embedder | None:
        """What makes the vectors, if anything does; its methods are async."""
        return self.asynchronous.embedder

    initialize = blocking_method(AsyncRagPipeline.initialize)
    close = blocking_method(AsyncRagPipeline.close)
    ingest = blocking_method(AsyncRagPipeline.ingest)
    ingest_file = blocking_method(AsyncRagPipeline.ingest_file)
    ingest_directory = blocking_method(AsyncRagPipeline.ingest_directory)
    retrieve = blocking_method(AsyncRagPipeline.retrieve)
    get_context = blocking_method(AsyncRagPipeline.get_context)
    stats = blocking_method(AsyncRagPipeline.stats)
    list_documents = blocking_method(AsyncRagPipeline.list_documents)
    get = blocking_method(AsyncRagPipeline.get)
    chunks = blocking_method(AsyncRagPipeline.chunks)
    remove = blocking_method(AsyncRagPipeline.remove)
    clear = blocking_method(AsyncRagPipeline.clear)
    purge_orphans = blocking_method(AsyncRagPipeline.purge_orphans)
    scrub = blocking_method(AsyncRagPipeline.scrub)
    reembed_missing = blocking_method(AsyncRagPipeline.reembed_missing)
    reembed = blocking_method(AsyncRagPipeline.reembed)
