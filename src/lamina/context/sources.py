"""What a context engine draws from, beside the memory engine: anything with these methods will do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from lamina.domain.context import PackHit, UserProfile
from lamina.domain.document import RagChunk
from lamina.domain.recall import Cutoff
from lamina.domain.thread import ThreadContext

__all__ = ["ConversationSource", "DocumentSource", "PackSource", "ProfileProvider"]


class ConversationSource(Protocol):
    """Where threads are; `ConversationManager` is one."""

    @abstractmethod
    async def get_thread_context(
        self, thread_id: str, *, owner: str | None = None, max_messages: int | None = None
    ) -> ThreadContext:
        """The summary and the live messages.

        Raises:
            ScopeError: the thread belongs to another owner.
        """
        ...


class DocumentSource(Protocol):
    """Where documents are; `RagPipeline` is one."""

    @abstractmethod
    async def retrieve(
        self, query: str, *, top_k: int = 5, owner: str | None = None, min_score: Cutoff = 0.0, neighbors: int = 0
    ) -> Sequence[RagChunk]:
        """The best pieces of the owner's documents and the shared ones; a `Results` says what it lacked.

        `min_score` is "auto" only where the settings say so, as a kernel's do by default.
        """
        ...


class PackSource(Protocol):
    """Where context packs are; `ContextPacks` is one."""

    @abstractmethod
    async def find(
        self,
        query: str,
        *,
        owner: str | None = None,
        max_packs: int,
        min_score: Cutoff,
        per_pack: int,
        touch: bool = True,
    ) -> Sequence[PackHit]:
        """The memories of the packs that match best; without `touch` none counts as read."""
        ...


ProfileProvider: TypeAlias = Callable[
    [str], "UserProfile | Mapping[str, Any] | Awaitable[UserProfile | Mapping[str, Any] | None] | None"
]
"""Takes an owner's id; gives what the host knows of them: role, permissions, policies. None: nothing."""
