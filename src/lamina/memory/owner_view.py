"""One owner's memories, for code that must not reach those of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from lamina.domain.memory import SHARED_LAYERS, Layer, MemoryEntry
from lamina.domain.recall import RecallResult, Results
from lamina.domain.text import check_name
from lamina.errors import InvalidInput, ScopeError
from lamina.memory.engine import MemoryEngine
from lamina.memory.inputs import MemoryInput, read_input, read_layer

__all__ = ["OwnerMemory"]


class OwnerMemory:
    """A memory engine bound to one owner.

    Reads see the owner's own memories and the tenant's shared layers. Writes reach the owner's own memories
    alone, and put nothing into a shared layer, which others would read.

    Raises:
        ScopeError: a call names another owner, or would write into a shared layer.
    """

    def __init__(self, engine: MemoryEngine, owner: str) -> None:
        self._engine = engine
        self._owner = check_name("owner", owner)

    @property
    def owner(self) -> str:
        """Whose memories these are."""
        return self._owner

    async def store(self, content: str | Mapping[str, Any] | MemoryInput, **options: Any) -> str | None:
        """As `MemoryEngine.store`, for this owner; options go with a text only."""
        if isinstance(content, str):
            given = read_input({"content": content, **options})
        elif options:
            raise InvalidInput(next(iter(options)), "goes with a text only", "Put it into the mapping.")
        else:
            given = read_input(content)
        self._check(given.owner)
        _check_layer(given.layer)
        return (await self._engine.store_many([replace(given, owner=self._owner)]))[0]

    async def recall(self, query: str, **options: Any) -> Results[RecallResult]:
        """As `MemoryEngine.recall`, for this owner."""
        return await self._engine.recall(query, **self._bound(options))

    async def query(self, query: str | None = None, **options: Any) -> Results[MemoryEntry]:
        """As `MemoryEngine.query`, for this owner."""
        return await self._engine.query(query, **self._bound(options))

    async def count(self, **filters: Any) -> int:
        """As `MemoryEngine.count`, for this owner."""
        return await self._engine.count(**self._bound(filters))

    async def get(self, id: str) -> MemoryEntry | None:
        """As `MemoryEngine.get`, for this owner."""
        return await self._engine.get(id, owner=self._owner)

    async def update(self, id: str, *, expected_revision: int | None = None, **changes: Any) -> MemoryEntry:
        """As `MemoryEngine.update`, for this owner."""
        self._check(changes.pop("owner", None))
        _check_layer(changes.get("layer"))
        entry = await self.get(id)
        if entry is not None and entry.owner == self._owner:
            _check_layer(entry.layer)
        return await self._engine.update(id, owner=self._owner, expected_revision=expected_revision, **changes)

    async def supersede(self, old_id: str, *, by: str, reason: str | None = None) -> MemoryEntry:
        """As `MemoryEngine.supersede`, for this owner."""
        entry = await self.get(old_id)
        if entry is not None and entry.owner == self._owner:
            _check_layer(entry.layer)
        return await self._engine.supersede(old_id, by=by, reason=reason, owner=self._owner)

    async def forget(self, id: str, *, expected_revision: int | None = None) -> bool:
        """As `MemoryEngine.forget`, for this owner."""
        return await self._engine.forget(id, owner=self._owner, expected_revision=expected_revision)

    async def forget_where(self, *, older_than: datetime | timedelta | str | None = None, **options: Any) -> int:
        """As `MemoryEngine.forget_where`, for this owner."""
        self._check(options.pop("owner", None))
        return await self._engine.forget_where(owner=self._owner, older_than=older_than, **options)

    def _bound(self, options: dict[str, Any]) -> dict[str, Any]:
        for name in ("owner", "owner_id"):
            self._check(options.pop(name, None))
        return {**options, "owner": self._owner}

    def _check(self, owner: str | None) -> None:
        if owner is not None and owner != self._owner:
            raise ScopeError(f"The memories of {self._owner!r} are bound to that owner; another one was named.")


def _check_layer(layer: Layer | str | None) -> None:
    if layer is not None and read_layer(layer) in SHARED_LAYERS:
        raise ScopeError("The memories of one owner have no shared layer: write there through the engine itself.")
