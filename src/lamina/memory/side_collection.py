"""A collection of its own beside the memories: rows that stand for something else, found by the engine's recall."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.domain.memory import DEFAULT_NAME, MemoryEntry
from lamina.domain.recall import RecallResult, Results, SearchMode
from lamina.domain.scope import Scope
from lamina.errors import ConfigError
from lamina.memory.access import AccessCounters
from lamina.memory.embedding import EmbeddingSpace, TextsOf
from lamina.memory.hooks import HookRunner
from lamina.memory.inputs import EntryDefaults
from lamina.memory.recall import Recaller, RecallRequest
from lamina.memory.reranking import Rerankers
from lamina.memory.runtime import Runtime
from lamina.memory.writing import Writer
from lamina.ports.clock import Clock, IdFactory
from lamina.ports.embedder import Embedder
from lamina.ports.hooks import MemoryHooks
from lamina.ports.memory_adapter import META_TENANT, MemoryAdapter
from lamina.settings import ScoringConfig

__all__ = ["SideCollection"]


class SideCollection:
    """The rows of one tenant in one adapter. Their score is the similarity alone; nothing expires, no hook runs."""

    def __init__(
        self,
        adapter: MemoryAdapter,
        *,
        tenant: str,
        embedder: Embedder | None,
        clock: Clock,
        new_id: IdFactory,
        texts_of: TextsOf | None = None,
    ) -> None:
        if tenant == META_TENANT:
            raise ConfigError("tenant", f"{META_TENANT!r} is reserved", "Choose another name.")
        self.adapter = adapter
        self.scope = Scope(tenant)
        self.space = EmbeddingSpace(adapter, self.scope, embedder, clock, texts_of=texts_of)
        scoring = ScoringConfig(similarity_weight=1, recency_weight=0, frequency_weight=0, relevance_weight=0)
        never = EntryDefaults(tenant=tenant, owner=DEFAULT_NAME, namespace=DEFAULT_NAME, relevance=1.0, layer_ttls={})
        self._runtime = Runtime(
            adapter=adapter,
            overlay=None,
            defaults=never,
            strict_namespace=False,
            strict_owner=False,
            search_mode=SearchMode.HYBRID,
            scoring=scoring,
            version=2,
            hooks=HookRunner(MemoryHooks()),
            space=self.space,
            clock=clock,
            new_id=new_id,
            rerankers=Rerankers(),
        )
        self._writer = Writer(self._runtime)
        self._recaller = Recaller(self._runtime, AccessCounters(self._runtime))

    def read_scope(self, owner: str | None) -> Scope:
        """An owner's own rows and those of shared layers; without an owner all of the tenant's."""
        return self._runtime.read_scope(owner, None, None)

    async def write(self, entries: Sequence[MemoryEntry]) -> None:
        """Write the rows as they are, in the place of those with their ids.

        Their vectors are left out if another process has changed the collection's model since they were made.
        """
        await self._writer.restore(entries, replace=True, fingerprint=None, revive=True)

    async def search(self, request: RecallRequest) -> Results[RecallResult]:
        """The best rows, as `Recaller.recall` finds them."""
        return await self._recaller.recall(request)
