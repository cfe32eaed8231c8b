"""What every peer offers here: a store of texts with given vectors, filled, searched and opened again.

    peer = open_peer("chroma", folder, 384)
    peer.fill(rows)
    ids = peer.search(vector, text, owner="mira", limit=10, mode="vector")

A peer does what its own documentation shows, at its defaults. What it cannot do it refuses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Mode: TypeAlias = Literal["vector", "keyword", "hybrid"]
Vector: TypeAlias = npt.NDArray[np.float32]


class Row(NamedTuple):
    """A memory. `vector` is float32, of unit length, the same for the same text; `id` is unique over all owners."""

    id: str
    owner: str
    text: str
    vector: Vector


class CannotDo(Exception):
    """The peer has no such search."""


class Peer(ABC):
    """One product, or library, behind the same five verbs. Not safe to share between threads."""

    modes: ClassVar[frozenset[Mode]] = frozenset({"vector"})
    scoped: ClassVar[bool] = True
    """Whether it can search among one owner's rows; where not, its users keep one store for each owner."""
    unscoped: ClassVar[bool] = True
    """Whether it can search among everybody's rows."""
    persistent: ClassVar[bool] = True
    """Whether the rows are there again when the folder is opened anew."""
    durability: ClassVar[str]
    """What is on the disk when `add` returns, as its code or a trace of its system calls shows."""

    @classmethod
    @abstractmethod
    def load(cls) -> None:
        """Import the product. Raises ImportError if it is not installed."""

    @abstractmethod
    def open(self, folder: Path, dimensions: int) -> None:
        """Open the store of this folder, which exists; an empty one if nothing is there yet."""

    @abstractmethod
    def fill(self, rows: Sequence[Row]) -> None:
        """Store many at once, the fastest way that it has, and make the indexes that it advises for them."""

    @abstractmethod
    def add(self, row: Row) -> None:
        """Store one, the usual way."""

    def search(self, vector: Vector, text: str, *, owner: str | None, limit: int, mode: Mode = "vector") -> list[str]:
        """The ids of the best rows of an owner, or of all if that is None, best first; at most `limit`.

        Raises:
            CannotDo: it has no such mode, or cannot search among one owner's rows, or among all.
        """
        if mode not in self.modes:
            raise CannotDo(f"{type(self).__name__} has no search by {mode}")
        if not (self.unscoped if owner is None else self.scoped):
            raise CannotDo(
                f"{type(self).__name__} cannot search among {'all' if owner is None else 'one owner'}'s rows"
            )
        return self.found(vector, text, owner=owner, limit=limit, mode=mode)

    @abstractmethod
    def found(self, vector: Vector, text: str, *, owner: str | None, limit: int, mode: Mode) -> list[str]:
        """What `search` returns, for what the peer can do."""

    @abstractmethod
    def close(self) -> None:
        """Close it; where it is persistent, the folder has everything then."""


class GivenVectors:
    """Stands in for an embedding model: it knows the vectors of the texts that are about to be stored or searched for.

    Some peers strip a text before they embed it, so each is known by both forms.
    """

    def __init__(self) -> None:
        self._vectors: dict[str, list[float]] = {}

    def know(self, rows: Sequence[tuple[str, Vector]]) -> None:
        """Only these texts, from now on."""
        self._vectors = {}
        for text, vector in rows:
            self._vectors[text] = self._vectors[text.strip()] = vector.tolist()

    def one(self, text: str, *_args: Any, **_options: Any) -> list[float]:
        """The vector of a text that is known."""
        return self._vectors[text]

    def many(self, texts: Sequence[str], *_args: Any, **_options: Any) -> list[list[float]]:
        """The vectors of texts that are known."""
        return [self._vectors[text] for text in texts]
