"""What the parts of one engine share: its stores, its settings and its way to scopes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from os import PathLike
from typing import Any

from lamina.domain.filters import MemoryFilter
from lamina.domain.memory import Layer, MemoryEntry
from lamina.domain.recall import Cutoff, SearchMode
from lamina.domain.scope import Scope
from lamina.errors import InvalidInput, InvalidType
from lamina.memory.earlier import EarlierMemories
from lamina.memory.embedding import EmbeddingSpace
from lamina.memory.hooks import HookRunner
from lamina.memory.inputs import EntryDefaults, Filters, read_filter
from lamina.memory.reranking import Rerankers
from lamina.memory.secret_screen import SecretScreen
from lamina.ports.clock import Clock, IdFactory
from lamina.ports.earlier_store import EarlierStore
from lamina.ports.events import Emit, Event, EventName
from lamina.ports.memory_adapter import MemoryAdapter
from lamina.settings import ScoringConfig

__all__ = ["Runtime"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Everything that an engine was built with.

    `overlay` is the store in this process's memory that holds the working layer, or None if the
    adapter holds that too.
    """

    adapter: MemoryAdapter
    overlay: MemoryAdapter | None
    defaults: EntryDefaults
    strict_namespace: bool
    strict_owner: bool
    search_mode: SearchMode
    min_match: Cutoff | None = None
    scoring: ScoringConfig
    version: int
    hooks: HookRunner
    secrets: SecretScreen = field(default_factory=SecretScreen)
    space: EmbeddingSpace
    clock: Clock
    new_id: IdFactory
    rerankers: Rerankers
    emit: Emit | None = None
    earlier: EarlierMemories | None = None
    """Memories of version 1 that a recall falls back on, if there are some."""
    open_earlier: Callable[[str | PathLike[str]], EarlierStore] | None = None
    """How a file of version 1 is opened; it is not changed."""

    def tell(self, name: EventName, **facts: Any) -> None:
        """Tell a host what has happened, if one listens: ids and counts, never content."""
        if self.emit is not None:
            self.emit(Event(name, self.clock(), self.defaults.tenant, facts))

    async def guarded(self, entry: MemoryEntry) -> MemoryEntry | None:
        """The entry as the host's guard and then the policy about secrets leave it; None for a veto.

        Raises:
            InvalidInput: it holds a secret, and those are refused.
        """
        guarded = await self.hooks.before_store(entry)
        return None if guarded is None else self.secrets.entry(guarded)

    @property
    def tenant_scope(self) -> Scope:
        """Everything of the tenant."""
        return Scope(self.defaults.tenant)

    def store_of(self, layer: Layer) -> MemoryAdapter:
        """Where entries of the layer live."""
        if self.overlay is not None and layer is Layer.WORKING:
            return self.overlay
        return self.adapter

    def stores(self, layers: Iterable[Layer] | None = None) -> list[MemoryAdapter]:
        """Where entries of these layers live, the lasting store first."""
        both = [self.adapter] if self.overlay is None else [self.adapter, self.overlay]
        if layers is None:
            return both
        wanted = [self.store_of(layer) for layer in layers]
        return [store for store in both if store in wanted]

    async def find(self, scope: Scope, id: str) -> tuple[MemoryAdapter, MemoryEntry] | None:
        """The live memory of this id in the scope, and the store that it is in."""
        for store in self.stores():
            entry = await store.get(scope, id)
            if entry is not None and not entry.is_expired(self.clock()):
                return store, entry
        return None

    def read(self, now: datetime, filters: Filters) -> tuple[Scope, MemoryFilter]:
        """What a read that is given these filters may see, and what it asks for.

        Raises:
            InvalidType: there is no such filter, or its value has a wrong type.
            InvalidInput: a filter has a value that cannot be.
        """
        given: dict[str, Any] = dict(filters)
        for name in given.keys() - Filters.__annotations__.keys():
            raise InvalidType(name, "is no filter", f"Use: {', '.join(Filters.__annotations__)}.")
        scope = self.read_scope(*(given.pop(name, None) for name in ("owner", "owner_id", "namespace")))
        return scope, read_filter(now, **given)

    def read_scope(self, owner: str | None, owner_id: str | None, namespace: str | None) -> Scope:
        """What a read may see: an owner's own memories and, unless owners are strict, the shared layers."""
        if owner is not None and owner_id is not None and owner != owner_id:
            raise InvalidInput("owner_id", "differs from owner", "Give one of the two.")
        if namespace is None and self.strict_namespace:
            namespace = self.defaults.namespace
        bound = owner if owner is not None else owner_id
        shared = bound is not None and not self.strict_owner
        return Scope(self.defaults.tenant, bound, namespace, include_shared=shared)

    def write_scope(self, owner: str | None = None, namespace: str | None = None) -> Scope:
        """What a change may touch: an owner's own memories in every layer."""
        return Scope(self.defaults.tenant, owner, namespace)
