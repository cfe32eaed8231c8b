"""The engine's vectors: made by one model only, and missing rather than wrong."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.memory import MemoryEntry, Vector
from lamina.domain.recall import Degraded, Leg, Reason
from lamina.domain.scope import Scope
from lamina.errors import (
    ConfigError,
    EmbeddingDimensionError,
    EmbeddingFingerprintError,
    ProviderError,
    ProviderUnavailable,
)
from lamina.memory.reading import count, pages
from lamina.ports.clock import Clock
from lamina.ports.embedder import Embedder, Fingerprint
from lamina.ports.memory_adapter import MemoryAdapter, Update

__all__ = ["EmbeddingSpace", "Progress", "ReembedReport"]

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many are done, and of how many."""

META_KEY: Final = "embedding"
LOG_EVERY: Final = 60.0
"""Seconds between two log lines about a failing embedder."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ReembedReport:
    """How many memories got a vector, kept the one they had, and could not be embedded."""

    embedded: int = 0
    skipped: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class _Stored:
    """The fingerprint in the store; `replacing` while a change to it is under way."""

    fingerprint: Fingerprint
    replacing: bool = False


class EmbeddingSpace:
    """One tenant's vectors in one adapter, and the embedder that makes them.

    The store keeps the fingerprint of the model that made its vectors. While the configured
    embedder is another one, no vector is written and none is searched; `reembed` changes over.
    """

    def __init__(self, adapter: MemoryAdapter, scope: Scope, embedder: Embedder | None, clock: Clock) -> None:
        self.embedder = embedder
        self._adapter = adapter
        self._scope = scope
        self._clock = clock
        self._stored: _Stored | None = None
        self._logged_at = -LOG_EVERY

    async def load(self) -> None:
        """Read the store's fingerprint, and warn if it is not the embedder's."""
        text = await self._adapter.load_meta(self._scope, META_KEY)
        self._stored = None if text is None else _read(text)
        if problem := self._mismatch():
            log.warning("%s", problem)

    @property
    def fingerprint(self) -> Fingerprint | None:
        """Of the model that made the store's vectors; None before the first one."""
        return None if self._stored is None else self._stored.fingerprint

    @property
    def needs_reembed(self) -> bool:
        """Whether the store's vectors are of another model than the embedder, or half-way to it."""
        return self._mismatch() is not None

    async def admits(self, fingerprint: Fingerprint) -> bool:
        """Whether vectors that this model made may stand in the store; the first model to come becomes the store's."""
        if self._stored is None and (
            self.embedder is None
            or (fingerprint.provider, fingerprint.model) == (self.embedder.provider, self.embedder.model)
        ):
            await self._save(_Stored(fingerprint))
        return self._stored == _Stored(fingerprint)

    async def embed_query(self, query: str) -> Vector | Degraded:
        """The query's vector, or why there is none; an embedder's failure is logged, once a minute at most."""
        if self.embedder is None:
            return Degraded(Leg.VECTOR, Reason.NO_EMBEDDER)
        if problem := self._mismatch():
            return Degraded(Leg.VECTOR, Reason.OTHER_MODEL, str(problem))
        try:
            vector = await self.embedder.embed_query(query)
            self._check_length(vector)
            if not any(vector):
                return Degraded(Leg.VECTOR, Reason.NO_VECTORS, "the embedder knows no word of the query")
        except EmbeddingDimensionError as error:
            return Degraded(Leg.VECTOR, Reason.OTHER_MODEL, str(error))
        except ProviderError as error:
            self._log_failure(error)
            return Degraded(Leg.VECTOR, Reason.EMBEDDER_FAILED, str(error))
        return vector

    async def embed_new(self, entries: Sequence[MemoryEntry]) -> None:
        """Give each entry its vector, or None where the embedder fails or is another model's.

        Raises:
            EmbeddingDimensionError: the embedder gives vectors of another length than before.
        """
        if self.embedder is None or not entries or self._mismatch():
            return
        try:
            vectors = await self.embedder.embed_documents([entry.content for entry in entries])
        except EmbeddingDimensionError:
            raise
        except ProviderError as error:
            self._log_failure(error)
            return
        await self._adopt(vectors[0])
        for entry, vector in zip(entries, vectors, strict=True):
            self._check_length(vector)
            entry.embedding = vector

    async def reembed(self, *, force: bool, progress: Progress | None) -> ReembedReport:
        """Make the vectors the embedder's own: see `MemoryEngine.reembed`."""
        embedder = self._require_embedder()
        if force or self.needs_reembed:
            probe = await embedder.embed_query("dimensions")
            target = Fingerprint(embedder.provider, embedder.model, len(probe))
            await self._save(_Stored(target, replacing=True))
            await self._adapter.drop_embeddings(self._scope)
            await self._save(_Stored(target))
        return await self.embed_missing(progress=progress)

    async def embed_missing(self, *, progress: Progress | None) -> ReembedReport:
        """Embed what has no vector: see `MemoryEngine.reembed_missing`."""
        self._require_embedder()
        if problem := self._mismatch():
            raise problem
        everything = MemoryFilter(now=self._clock(), expiry=Expiry.LIVE)
        missing = replace(everything, has_embedding=False)
        total = await count(self._adapter, self._scope, missing)
        report = ReembedReport(skipped=await count(self._adapter, self._scope, everything) - total)
        async for page in pages(self._adapter, self._scope, missing):
            vectors = await self._embed_page(page)
            updates = [
                Update(entry.id, {"embedding": vector}, entry.revision)
                for entry, vector in zip(page, vectors, strict=True)
                if vector is not None
            ]
            done = await self._adapter.update_many(self._scope, updates)
            report.embedded += sum(done)
            report.failed += sum(vector is None for vector in vectors)
            if progress is not None:
                progress(min(report.embedded + report.failed, total), total)
        return report

    async def _embed_page(self, page: Sequence[MemoryEntry]) -> list[Vector | None]:
        """A vector for each entry; one that the embedder refuses by itself gets None and harms no other."""
        embedder = self._require_embedder()
        try:
            vectors: list[Vector | None] = list(await embedder.embed_documents([entry.content for entry in page]))
        except (ProviderUnavailable, EmbeddingDimensionError):
            raise
        except ProviderError as error:
            if len(page) == 1:
                log.warning("the memory %s could not be embedded: %s", page[0].id, error)
                return [None]
            half = len(page) // 2
            return await self._embed_page(page[:half]) + await self._embed_page(page[half:])
        for vector in vectors:
            if vector is not None:
                await self._adopt(vector)
                self._check_length(vector)
        return vectors

    async def _adopt(self, vector: Vector) -> None:
        """Keep the fingerprint of the first vector ever made."""
        if self._stored is None and self.embedder is not None:
            await self._save(_Stored(Fingerprint(self.embedder.provider, self.embedder.model, len(vector))))

    async def _save(self, stored: _Stored) -> None:
        mark = stored.fingerprint
        fields = {"provider": mark.provider, "model": mark.model, "dimensions": mark.dimensions}
        text = json.dumps({**fields, "replacing": stored.replacing})
        await self._adapter.save_meta(self._scope, META_KEY, text, self._clock())
        self._stored = stored

    def _mismatch(self) -> EmbeddingFingerprintError | None:
        if self._stored is None or self.embedder is None:
            return None
        mark = self._stored.fingerprint
        if (mark.provider, mark.model) != (self.embedder.provider, self.embedder.model):
            return EmbeddingFingerprintError(str(mark), f"{self.embedder.provider}:{self.embedder.model}")
        if self._stored.replacing:
            return EmbeddingFingerprintError("two models, since a change was interrupted", str(mark))
        return None

    def _check_length(self, vector: Vector) -> None:
        if self._stored is not None and len(vector) != self._stored.fingerprint.dimensions:
            raise EmbeddingDimensionError(self._stored.fingerprint.dimensions, len(vector))

    def _require_embedder(self) -> Embedder:
        if self.embedder is None:
            raise ConfigError("embedding", "no embedder is configured", "Build the engine with one to embed.")
        return self.embedder

    def _log_failure(self, error: ProviderError) -> None:
        if time.monotonic() - self._logged_at >= LOG_EVERY:
            self._logged_at = time.monotonic()
            log.warning("the embedder failed, going on without vectors: %s", error)


def _read(text: str) -> _Stored:
    fields = json.loads(text)
    fingerprint = Fingerprint(fields["provider"], fields["model"], fields["dimensions"])
    return _Stored(fingerprint, fields["replacing"])
