"""What reads a question and a text together, and says how well the one answers the other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

__all__ = ["Reranker", "reads"]


class Reranker(Protocol):
    """Tells how well each of a few texts answers a query, better and slower than vectors can.

    A reranker may also have `reads`: see the function of this name.

    Raises:
        ProviderUnavailable: down, timed out or rate limited, after the reranker's own retries.
        ProviderError: the provider refused, or answered something that is not one number in [0, 1] per text.
    """

    @property
    @abstractmethod
    def provider(self) -> str:
        """Who scores, for messages."""
        ...

    @property
    @abstractmethod
    def model(self) -> str:
        """Which model scores, for messages."""
        ...

    @abstractmethod
    async def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One number in [0, 1] per text, in order: near 1 for what answers the query, near 0 for what does not.

        The number of a text does not hang on the texts beside it.
        """
        ...

    @abstractmethod
    async def close(self) -> None:
        """Let go of connections and files. Idempotent."""
        ...


def reads(reranker: Reranker, query: str, texts: Sequence[str]) -> bool:
    """Whether the reranker knows the language of both: its own word, or yes if it has none."""
    own = getattr(reranker, "reads", None)
    return True if own is None else bool(own(query, texts))
