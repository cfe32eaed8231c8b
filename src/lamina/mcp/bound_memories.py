"""One connection's memories: everything that tools, resources and prompts reach, inside its binding."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

from lamina.domain.context import ComputedContext
from lamina.domain.memory import Layer, MemoryEntry, Trust
from lamina.domain.recall import RecallResult, Results
from lamina.errors import MemoryNotFound
from lamina.kernel import Kernel
from lamina.mcp.binding import Binding
from lamina.memory.owner_view import OwnerMemory

__all__ = ["SOURCE", "BoundMemories", "Place"]

SOURCE: Final = "mcp"
"""Where memories that came in by this server say they come from."""

Place = tuple[Layer, int]
"""Where a page of a listing ends: a layer and a place in the order of remembering."""


class BoundMemories:
    """The memories of one owner in one tenant, and in one namespace where the binding has one."""

    def __init__(self, kernel: Kernel, binding: Binding) -> None:
        self.kernel = kernel
        self.binding = binding
        self._engine = kernel.memory_engine
        self._own = OwnerMemory(kernel.memory_engine, binding.owner)

    async def search(self, query: str, **options: Any) -> Results[RecallResult]:
        """As `MemoryEngine.recall`, here."""
        return await self._engine.recall(query, **{**options, **self._scope()})

    async def add(
        self,
        text: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] = (),
        trust: Trust | None = None,
        id: str | None = None,
        supersedes: Sequence[str] = (),
    ) -> str | None:
        """Remember the text; its id, or None where a hook refused it.

        Raises:
            Conflict: the id names a memory that says something else, or a memory to supersede is superseded already.
            MemoryNotFound: what it supersedes is not here.
        """
        for old_id in supersedes:
            await self._check_own(old_id)
        return await self._own.store(
            text,
            namespace=self.binding.namespace,
            metadata=metadata,
            tags=tags,
            trust=trust,
            source=SOURCE,
            id=id,
            supersedes=supersedes,
        )

    async def get(self, id: str) -> MemoryEntry:
        """The memory of this id.

        Raises:
            MemoryNotFound: there is none here; one of somebody else is none.
        """
        found = await self._engine.get(id, owner=self.binding.owner, namespace=self.binding.namespace)
        if found is None or found.is_quarantined:
            raise MemoryNotFound(id)
        return found

    async def update(self, id: str, *, expected_revision: int | None = None, **changes: Any) -> MemoryEntry:
        """As `MemoryEngine.update`, for the owner's own."""
        await self._check_own(id)
        return await self._own.update(id, expected_revision=expected_revision, **changes)

    async def delete(self, id: str) -> None:
        """Forget one of the owner's own.

        Raises:
            MemoryNotFound: there is none here.
        """
        await self._check_own(id)
        if not await self._own.forget(id):
            raise MemoryNotFound(id)

    async def page(
        self, limit: int, after: Place | None = None, **filters: Any
    ) -> tuple[list[MemoryEntry], Place | None]:
        """At most `limit` memories in the order of remembering, and where the next page begins if there is one."""
        rows: list[MemoryEntry] = []
        async with self.walking(after=after, **filters) as entries:
            async for entry in entries:
                if len(rows) == limit:
                    return rows, (rows[-1].layer, rows[-1].seq)
                rows.append(entry)
        return rows, None

    @asynccontextmanager
    async def walking(self, **filters: Any) -> AsyncIterator[AsyncIterator[MemoryEntry]]:
        """All memories that the filters admit, in the order of remembering."""
        async with aclosing(self._engine.scan(**{**filters, **self._scope()})) as entries:  # type: ignore[type-var]
            yield (entry async for entry in entries if not entry.is_quarantined)

    async def context(self, goal: str, *, token_budget: int | None = None, touch: bool = True) -> ComputedContext:
        """What the kernel computes for this goal: memories, documents and packs that bear on it."""
        return await self.kernel.context_engine.compute(
            intent_id=f"mcp_{secrets.token_hex(8)}",
            goal=goal,
            owner_id=self.binding.owner,
            namespace=self.binding.namespace,
            token_budget=token_budget,
            touch=touch,
        )

    def _scope(self) -> dict[str, str | None]:
        return {"owner": self.binding.owner, "namespace": self.binding.namespace}

    async def _check_own(self, id: str) -> None:
        """What others share may be read here, and is not found by what would change it."""
        if (await self.get(id)).owner != self.binding.owner:
            raise MemoryNotFound(id)
