"""What turns texts into vectors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from lamina.domain.memory import Vector

__all__ = ["Embedder", "Fingerprint", "matches_from", "weighted_parts"]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Which model made a vector. Vectors compare only if their fingerprints are equal."""

    provider: str
    model: str
    dimensions: int

    def __str__(self) -> str:
        return f"{self.provider}:{self.model} with {self.dimensions} dimensions"


class Embedder(Protocol):
    """Turns texts into vectors of one length, close together where the texts mean much the same.

    Documents and queries are two methods because some models embed them differently. Both return
    one vector per text, in order; a text is never blank. Vectors need not have unit length.

    An embedder may also have `matches_from` and `weighted_parts`: see the functions of these names.

    Raises:
        ProviderUnavailable: down, timed out or rate limited, after the embedder's own retries.
        ProviderError: the provider refused, or answered something that is not one vector per text.
    """

    @property
    @abstractmethod
    def provider(self) -> str:
        """Who makes the vectors, such as `openai`; part of the fingerprint."""
        ...

    @property
    @abstractmethod
    def model(self) -> str:
        """Which model makes the vectors; part of the fingerprint."""
        ...

    @abstractmethod
    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Vectors of texts that are to be found."""
        ...

    @abstractmethod
    async def embed_query(self, text: str) -> Vector:
        """The vector of a text to search with."""
        ...

    @abstractmethod
    async def close(self) -> None:
        """Let go of connections and files. Idempotent."""
        ...


_MATCHES_FROM: Final = 0.2


def matches_from(embedder: Embedder, query: str) -> float:
    """The cosine, in [0, 1], from where a text has to do with the query: what the embedder's own method says, or 0.2.

    Models differ widely in how close they put what is unrelated, and that by the language too.
    """
    own = getattr(embedder, "matches_from", None)
    return _MATCHES_FROM if own is None else float(own(query))


def weighted_parts(embedder: Embedder, query: str, overlap: float | None) -> Sequence[tuple[int, float]]:
    """The parts of the embedder's vectors, as lengths and shares in [0, 1] for this query; empty for one whole.

    The vectors of several models may stand one behind the other in one, which is stored and searched as a whole. How
    much each model is to be believed hangs on the query, and on its `overlap`: the best keyword similarity, in
    [0, 1], that anything in reach has with it; None if nobody looked.
    """
    weigh = getattr(embedder, "weighted_parts", None)
    return () if weigh is None else weigh(query, overlap)
