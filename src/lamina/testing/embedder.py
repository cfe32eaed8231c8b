"""An embedder for tests: no model, no download, and yet similar texts are close."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from math import sqrt

from lamina.domain.lexical import index_terms
from lamina.domain.memory import Vector
from lamina.errors import ConfigError
from lamina.ports.embedder import Embedder

__all__ = ["HashingEmbedder"]

WORD_WEIGHT = 3.0
"""A shared word counts this many times as much as a shared run of three characters."""


class HashingEmbedder(Embedder):
    """Hashes words and runs of three characters into a vector of unit length.

    Texts that share words or parts of words are close; meaning is beyond it. The same text gives
    the same vector in every process. `texts` counts what was embedded.
    """

    def __init__(self, dimensions: int = 256) -> None:
        if dimensions < 1:
            raise ConfigError("dimensions", f"must be at least 1, not {dimensions}", "Give such a number.")
        self.dimensions = dimensions
        self.texts = 0

    @property
    def provider(self) -> str:
        """`testing`."""
        return "testing"

    @property
    def model(self) -> str:
        """`hashing`."""
        return "hashing"

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One unit vector for each text, in order."""
        self.texts += len(texts)
        return [self._embed(text) for text in texts]

    async def embed_query(self, text: str) -> Vector:
        """The vector that `embed_documents` gives the text."""
        self.texts += 1
        return self._embed(text)

    async def close(self) -> None:
        """Nothing to let go of."""

    def _embed(self, text: str) -> Vector:
        sums = [0.0] * self.dimensions
        for feature, weight in _features(text):
            number = int.from_bytes(blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest())
            sums[(number >> 1) % self.dimensions] += weight if number & 1 else -weight
        length = sqrt(sum(each * each for each in sums))
        if length == 0:  # no words at all, or features that cancel out
            sums[0] = length = 1.0
        return array("f", (each / length for each in sums))


def _features(text: str) -> Iterator[tuple[str, float]]:
    for word in index_terms(text):
        yield f"word {word}", WORD_WEIGHT
        padded = f" {word} "
        for start in range(len(padded) - 2):
            yield padded[start : start + 3], 1.0
