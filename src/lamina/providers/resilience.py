"""Wrappers that make any embedder cheaper to call and harmless when it is down. They compose in any order.

`resilient` is the usual composition: what is cached needs no provider, and a late answer counts as a failure.
"""

from __future__ import annotations

import hashlib
import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final, TypeVar

import anyio

from lamina.domain.memory import Vector
from lamina.domain.validation import check_vector
from lamina.errors import ConfigError, InvalidInput, InvalidType, ProviderError, ProviderUnavailable
from lamina.ports.embedder import Embedder, matches_from, weighted_parts
from lamina.providers.batching import batches
from lamina.providers.circuit_breaker import CircuitBreaker
from lamina.providers.vectors import check_texts
from lamina.telemetry import embedding_request

__all__ = [
    "CACHE_BYTES",
    "BatchingEmbedder",
    "BorrowedEmbedder",
    "CachingEmbedder",
    "CircuitBreakingEmbedder",
    "EmbeddingCache",
    "ObservedEmbedder",
    "TimeLimitedEmbedder",
    "resilient",
    "unwrapped",
]

T = TypeVar("T")

CACHE_BYTES: Final = 16 * 1024 * 1024
"""The cache of an embedder that is loaded by name."""

_ENTRY_OVERHEAD: Final = 250
"""Bytes that an entry takes beside its vector: key, two objects and a slot of the dict, measured on CPython 3.11."""


class _Wrapper:
    """An embedder that stands for another one."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._innermost = unwrapped(embedder)
        """Which is asked for its name at every step, below any number of wrappers."""

    @property
    def provider(self) -> str:
        """The wrapped embedder's."""
        return self._innermost.provider

    @property
    def model(self) -> str:
        """The wrapped embedder's."""
        return self._innermost.model

    def matches_from(self, query: str) -> float:
        """The wrapped embedder's."""
        return matches_from(self._embedder, query)

    def weighted_parts(self, query: str, overlap: float | None) -> Sequence[tuple[int, float]]:
        """The wrapped embedder's."""
        return weighted_parts(self._embedder, query, overlap)

    def clear_cache(self) -> int:
        """Let go of all vectors that are kept, of the wrapped embedder too; how many there were."""
        clear = getattr(self._embedder, "clear_cache", None)
        return 0 if clear is None else int(clear())

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """The wrapped embedder's vectors."""
        return await self._embedder.embed_documents(texts)

    async def embed_query(self, text: str) -> Vector:
        """The wrapped embedder's vector."""
        return await self._embedder.embed_query(text)

    async def close(self) -> None:
        """Close the wrapped embedder."""
        await self._embedder.close()


class BorrowedEmbedder(_Wrapper):
    """An embedder that belongs to somebody else, who also closes it."""

    async def close(self) -> None:
        """Leave the wrapped embedder open."""


def unwrapped(embedder: Embedder) -> Embedder:
    """The embedder below all wrappers of this module."""
    while isinstance(embedder, _Wrapper):
        embedder = embedder._embedder  # noqa: SLF001 - of this module
    return embedder


class EmbeddingCache:
    """Vectors by what they were made from, in memory, the least recently used ones leaving first.

    May serve several embedders and threads. Keeps no text: its keys are SHA-256 digests.

    Args:
        max_bytes: Upper bound for all entries together; the default holds about 38,000 vectors of 384 numbers.
    """

    def __init__(self, max_bytes: int = 64 * 1024 * 1024) -> None:
        if max_bytes < 1:
            raise ConfigError("max_bytes", f"must be at least 1, not {max_bytes}", "Give a positive number.")
        self._max_bytes = max_bytes
        self._bytes = 0
        self._vectors: OrderedDict[bytes, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._vectors)

    @property
    def size(self) -> int:
        """Bytes taken by all entries."""
        return self._bytes

    def get(self, key: bytes) -> array[float] | None:
        """A new copy of the vector, or None."""
        with self._lock:
            stored = self._vectors.get(key)
            if stored is None:
                return None
            self._vectors.move_to_end(key)
        return array("f", stored)

    def clear(self) -> int:
        """Let go of all entries; how many there were."""
        with self._lock:
            entries = len(self._vectors)
            self._vectors.clear()
            self._bytes = 0
        return entries

    def put(self, key: bytes, vector: Vector) -> None:
        """Keep a copy of the vector, and drop what no longer fits."""
        stored = array("f", vector).tobytes()
        with self._lock:
            replaced = self._vectors.pop(key, None)
            if replaced is not None:
                self._bytes -= len(replaced) + _ENTRY_OVERHEAD
            self._vectors[key] = stored
            self._bytes += len(stored) + _ENTRY_OVERHEAD
            while self._bytes > self._max_bytes:
                _, dropped = self._vectors.popitem(last=False)
                self._bytes -= len(dropped) + _ENTRY_OVERHEAD


class CachingEmbedder(_Wrapper):
    """Embeds no text twice, neither within one call nor, while the cache holds it, between calls.

    Documents and queries are cached apart, and so is each provider and model. What an embedder in trouble may give is
    handed on and not kept, so that the text is embedded again: zeros alone, what is no finite number, and a vector of
    another length than the one before.
    """

    def __init__(self, embedder: Embedder, cache: EmbeddingCache | None = None) -> None:
        super().__init__(embedder)
        self._cache = EmbeddingCache() if cache is None else cache
        self._length: int | None = None

    def clear_cache(self) -> int:
        """Let go of all vectors that are kept, of every embedder that shares the cache; how many there were."""
        return self._cache.clear() + super().clear_cache()

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One vector per text, in order; only texts seen for the first time reach the wrapped embedder, once each."""
        start = self._start("document")
        keys = [_key(start, text) for text in check_texts(texts)]
        found: dict[bytes, Vector] = {}
        missing: dict[bytes, str] = {}
        for key, text in zip(keys, texts, strict=True):
            cached = self._cache.get(key)
            if cached is None:
                missing[key] = text
            else:
                found[key] = cached
        if missing:
            vectors = await self._embedder.embed_documents(list(missing.values()))
            if len(vectors) != len(missing):
                raise ProviderError(self.provider, f"it answered {len(vectors)} vectors for {len(missing)} texts")
            for key, vector in zip(missing, vectors, strict=True):
                found[key] = vector
                self._keep(key, vector)
        return [array("f", found[key]) for key in keys]

    async def embed_query(self, text: str) -> Vector:
        """The vector of a text to search with."""
        [cleaned] = check_texts([text])
        key = _key(self._start("query"), cleaned)
        cached = self._cache.get(key)
        if cached is not None:
            return cached
        vector = await self._embedder.embed_query(text)
        self._keep(key, vector)
        return vector

    def _keep(self, key: bytes, vector: Vector) -> None:
        before, self._length = self._length, len(vector)
        if before not in {None, len(vector)} or not any(vector):
            return
        with suppress(InvalidInput, InvalidType):
            check_vector(vector)
            self._cache.put(key, vector)

    def _start(self, kind: str) -> hashlib._Hash:
        return _start(kind, self.provider, self.model)


@lru_cache(maxsize=64)
def _start(kind: str, provider: str, model: str) -> hashlib._Hash:
    """What all keys of this kind begin with; to be copied."""
    digest = hashlib.sha256()
    for part in (kind, provider, model):
        digest.update(_measured(part))
    return digest


def _key(start: hashlib._Hash, text: str) -> bytes:
    digest = start.copy()
    digest.update(_measured(text))
    return digest.digest()


def _measured(part: str) -> bytes:
    encoded = part.encode()
    return len(encoded).to_bytes(8, "big") + encoded  # the length keeps ("a", "bc") from ("ab", "c")


class BatchingEmbedder(_Wrapper):
    """Hands documents on in batches, one after the other; `max_tokens` is estimated."""

    def __init__(self, embedder: Embedder, *, max_items: int = 64, max_tokens: int = 50_000) -> None:
        super().__init__(embedder)
        for field, number in (("max_items", max_items), ("max_tokens", max_tokens)):
            if number < 1:
                raise ConfigError(field, f"must be at least 1, not {number}", "Give a positive number.")
        self._max_items = max_items
        self._max_tokens = max_tokens

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One vector per text, in order."""
        vectors: list[Vector] = []
        for batch in batches(check_texts(texts), max_items=self._max_items, max_tokens=self._max_tokens):
            vectors += await self._embedder.embed_documents(batch)
        return vectors


class ObservedEmbedder(_Wrapper):
    """Tells whoever counts (`lamina.telemetry.observed_by`) of every request that reaches the wrapped embedder."""

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """The wrapped embedder's vectors."""
        with embedding_request(self.provider):
            return await self._embedder.embed_documents(texts)

    async def embed_query(self, text: str) -> Vector:
        """The wrapped embedder's vector."""
        with embedding_request(self.provider):
            return await self._embedder.embed_query(text)


class TimeLimitedEmbedder(_Wrapper):
    """Gives up a call that takes too long, with `ProviderUnavailable`.

    Args:
        embedder: What is called.
        seconds: For documents, and for a query unless `query_seconds` is given.
        seconds_per_text: Added for every document of the call.
        query_seconds: For a query.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        seconds: float = 30.0,
        seconds_per_text: float = 0.0,
        query_seconds: float | None = None,
    ) -> None:
        super().__init__(embedder)
        query_seconds = seconds if query_seconds is None else query_seconds
        for field, number in (("seconds", seconds), ("query_seconds", query_seconds)):
            if number <= 0:
                raise ConfigError(field, f"must be above 0, not {number}", "Give a positive number.")
        if seconds_per_text < 0:
            raise ConfigError("seconds_per_text", f"must be at least 0, not {seconds_per_text}", "Give such a number.")
        self._seconds = seconds
        self._seconds_per_text = seconds_per_text
        self._query_seconds = query_seconds

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One vector per text, in time."""
        seconds = self._seconds + self._seconds_per_text * len(texts)
        return await self._limited(self._embedder.embed_documents(texts), seconds)

    async def embed_query(self, text: str) -> Vector:
        """The vector of a text to search with, in time."""
        return await self._limited(self._embedder.embed_query(text), self._query_seconds)

    async def _limited(self, call: Awaitable[T], seconds: float) -> T:
        with anyio.move_on_after(seconds):
            return await call
        raise ProviderUnavailable(self.provider, f"it did not answer within {seconds:g} s")


class CircuitBreakingEmbedder(_Wrapper):
    """Stops calling an embedder that is down: see `CircuitBreaker`, which takes the same options."""

    def __init__(
        self,
        embedder: Embedder,
        *,
        failures: int = 3,
        cool_down: float = 30.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(embedder)
        self._circuit = CircuitBreaker(embedder.provider, failures=failures, cool_down=cool_down, monotonic=monotonic)

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One vector per text, unless the circuit is open."""
        with self._circuit.guarded():
            return await self._embedder.embed_documents(texts)

    async def embed_query(self, text: str) -> Vector:
        """The vector of a text to search with, unless the circuit is open."""
        with self._circuit.guarded():
            return await self._embedder.embed_query(text)


def resilient(
    embedder: Embedder,
    *,
    seconds: float = 5.0,
    seconds_per_text: float = 0.35,
    query_seconds: float = 5.0,
    cache_bytes: int = CACHE_BYTES,
) -> Embedder:
    """A remote embedder with batches, a cache, a circuit, and time limits that grow with the batch.

    Somebody waits for a query and for the storing of a single text, so those have about five seconds. Each batch of
    documents has its own time limit, and those that were done stay in the cache when a later one fails.
    """
    limited = TimeLimitedEmbedder(
        embedder, seconds=seconds, seconds_per_text=seconds_per_text, query_seconds=query_seconds
    )
    cached = CachingEmbedder(CircuitBreakingEmbedder(ObservedEmbedder(limited)), EmbeddingCache(cache_bytes))
    return BatchingEmbedder(cached, max_items=256, max_tokens=100_000)
