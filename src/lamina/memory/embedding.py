"""The engine's vectors: made by one model only, and missing rather than wrong."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, TypeAlias

from lamina.domain.filters import Expiry, MemoryFilter
from lamina.domain.memory import UNSET, MemoryEntry, Unset, Vector
from lamina.domain.recall import Degraded, Leg, Reason
from lamina.domain.scope import Scope
from lamina.domain.validation import check_vector
from lamina.errors import (
    ConfigError,
    Conflict,
    EmbeddingDimensionError,
    EmbeddingFingerprintError,
    ProviderError,
    ProviderUnavailable,
)
from lamina.memory.reading import count, pages
from lamina.ports.clock import Clock
from lamina.ports.embedder import Embedder, Fingerprint
from lamina.ports.memory_adapter import MemoryAdapter, Update
from lamina.telemetry import place_of

__all__ = ["META_KEY", "EmbeddingSpace", "Progress", "ReembedReport", "TextsOf", "query_vector_of", "vectors_of"]

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many are done, and of how many."""

TextsOf: TypeAlias = Callable[[Sequence[MemoryEntry]], Awaitable[Sequence[str]]]
"""Gives, in order, what the vectors of entries that are in the store are made of."""

META_KEY: Final = "embedding"
LOG_EVERY: Final = 60.0
"""Seconds between two log lines about a failing embedder."""

GAPS_COUNTED_EVERY: Final = 60.0
"""Seconds; how long gaps that another engine leaves or fills may go unnoticed: counting them reads the whole tenant."""

_OTHER_LENGTH: Final = (
    "Either configure the stored length again, or run `lamina reembed --force` (`await engine.reembed(force=True)`) "
    "once; keyword recall works meanwhile."
)

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
    Other engines may do so at any time, so what is written hangs on the fingerprint that was
    read (`guard`), and what was searched counts only if it is still there (`still_holds`). That it is another
    model's is read again before anything is refused for it, since another engine may have changed it over.
    Vectors are made of the entries' contents, or when they are made anew of what `texts_of` gives.
    """

    def __init__(
        self,
        adapter: MemoryAdapter,
        scope: Scope,
        embedder: Embedder | None,
        clock: Clock,
        *,
        texts_of: TextsOf | None = None,
    ) -> None:
        self.embedder = embedder
        self.has_gaps = False
        """Whether some memory is known to have no vector."""
        self._adapter = adapter
        self._scope = scope
        self._clock = clock
        self._texts_of = texts_of or _contents
        self._stored: str | None = None
        self._logged_at = -LOG_EVERY
        self._gaps_counted_at = -GAPS_COUNTED_EVERY

    async def load(self) -> None:
        """Read the store's fingerprint, and warn if it is not the embedder's."""
        await self.refresh()
        await self._count_gaps()
        if problem := self._mismatch():
            log.warning("%s", problem)

    async def refresh(self) -> None:
        """Read the store's fingerprint: another engine may have written it."""
        self._stored = await self._adapter.load_meta(self._scope, META_KEY)

    @property
    def fingerprint(self) -> Fingerprint | None:
        """Of the model that made the store's vectors; None before the first one."""
        return None if self._stored is None else _read(self._stored).fingerprint

    @property
    def guard(self) -> dict[str, str | None]:
        """What must stand in the store's bookkeeping while vectors are written."""
        return {META_KEY: self._stored}

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
            await self._save_first(fingerprint)
        if self._stored != _written(_Stored(fingerprint)):
            await self.refresh()
        return self._stored == _written(_Stored(fingerprint))

    async def embed_query(self, query: str) -> Vector | Degraded:
        """The query's vector, or why there is none; an embedder's failure is logged, once a minute at most."""
        if self.embedder is None:
            return Degraded(Leg.VECTOR, Reason.NO_EMBEDDER)
        if problem := await self._lasting_mismatch():
            return Degraded(Leg.VECTOR, Reason.OTHER_MODEL, str(problem))
        try:
            vector = await query_vector_of(self.embedder, query)
            self._check_lengths([vector])
            if not any(vector):
                return Degraded(Leg.VECTOR, Reason.NO_VECTORS, "the embedder knows no word of the query")
        except EmbeddingDimensionError as error:
            return Degraded(Leg.VECTOR, Reason.OTHER_MODEL, str(error))
        except ProviderError as error:
            self._log_failure(error)
            return Degraded(Leg.VECTOR, Reason.EMBEDDER_FAILED, str(error))
        return vector

    async def still_holds(self, found: str | Unset | None = UNSET) -> Degraded | None:
        """Why vectors that were just compared with a query cannot count: their model changed meanwhile.

        `found` is what stood under `META_KEY` at the moment of the search, if that was read along. If
        `needs_reembed` is False then, it changed to the embedder's own, and comparing again helps.
        """
        before = self._stored
        if isinstance(found, Unset):
            await self.refresh()
        else:
            self._stored = found
        if time.monotonic() - self._gaps_counted_at >= GAPS_COUNTED_EVERY:
            await self._count_gaps()
        if self._stored == before:
            return None
        return Degraded(Leg.VECTOR, Reason.OTHER_MODEL, str(self._mismatch() or "another engine embeds the store anew"))

    async def embed_new(self, entries: Sequence[MemoryEntry]) -> None:
        """Give each entry its vector, or None where the embedder fails or is another model's.

        Raises:
            EmbeddingDimensionError: the embedder gives vectors of another length than before.
        """
        if self.embedder is None or not entries:
            return
        if await self._lasting_mismatch():
            self.has_gaps = True
            return
        try:
            vectors = await vectors_of(self.embedder, [entry.content for entry in entries])
        except EmbeddingDimensionError:
            raise
        except ProviderError as error:
            self._log_failure(error)
            self.has_gaps = True
            return
        await self._adopt(vectors[0])
        if self._mismatch():  # another engine was the first to store, with another model
            self.has_gaps = True
            return
        self._check_lengths(vectors)
        for entry, vector in zip(entries, vectors, strict=True):
            entry.embedding = vector

    async def withdraw(self, entries: Sequence[MemoryEntry]) -> None:
        """Take back the vectors given, since the store's model changed before they were written."""
        await self.refresh()
        self.has_gaps = True
        for entry in entries:
            entry.embedding = None

    async def reembed(self, *, force: bool, progress: Progress | None) -> ReembedReport:
        """Make the vectors the embedder's own: see `MemoryEngine.reembed`."""
        embedder = self._require_embedder()
        if await self._lasting_mismatch() or force:
            probe = await query_vector_of(embedder, "dimensions")
            target = Fingerprint(embedder.provider, embedder.model, len(probe))
            await self._save(_Stored(target, replacing=True))
            await self._adapter.drop_embeddings(self._scope)
            await self._save(_Stored(target))
        return await self.embed_missing(progress=progress)

    async def embed_missing(self, *, progress: Progress | None) -> ReembedReport:
        """Embed what has no vector: see `MemoryEngine.reembed_missing`."""
        self._require_embedder()
        if problem := await self._lasting_mismatch():
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
            if problem := self._mismatch():
                raise problem
            try:
                done = await self._adapter.update_many(self._scope, updates, expected_meta=self.guard)
            except Conflict:
                await self.refresh()
                raise self._mismatch() or ProviderUnavailable(
                    "The embedder", "another engine embeds the store anew", "Try again later."
                ) from None
            report.embedded += sum(done)
            report.failed += sum(vector is None for vector in vectors)
            if progress is not None:
                progress(min(report.embedded + report.failed, total), total)
        await self._count_gaps()
        return report

    async def _embed_page(self, page: Sequence[MemoryEntry]) -> list[Vector | None]:
        """A vector for each entry; one that the embedder refuses by itself gets None and harms no other."""
        embedder = self._require_embedder()
        try:
            vectors: list[Vector | None] = list(await vectors_of(embedder, await self._texts_of(page)))
        except (ProviderUnavailable, EmbeddingDimensionError):
            raise
        except ProviderError as error:
            if len(page) == 1:
                log.warning("the memory %s could not be embedded: %s", page[0].id, place_of(error))
                return [None]
            half = len(page) // 2
            return await self._embed_page(page[:half]) + await self._embed_page(page[half:])
        for vector in vectors:
            if vector is not None:
                await self._adopt(vector)
                if problem := self._mismatch():
                    raise problem
                self._check_lengths([vector])
        return vectors

    async def _adopt(self, vector: Vector) -> None:
        """Keep the fingerprint of the first vector ever made."""
        if self._stored is None and self.embedder is not None:
            await self._save_first(Fingerprint(self.embedder.provider, self.embedder.model, len(vector)))

    async def _save_first(self, fingerprint: Fingerprint) -> None:
        """Make the fingerprint the store's, unless another engine was faster."""
        text = _written(_Stored(fingerprint))
        try:
            await self._adapter.save_meta(self._scope, META_KEY, text, self._clock(), expected=None)
            self._stored = text
        except Conflict:
            await self.refresh()

    async def _save(self, stored: _Stored) -> None:
        text = _written(stored)
        await self._adapter.save_meta(self._scope, META_KEY, text, self._clock())
        self._stored = text

    async def _count_gaps(self) -> None:
        self._gaps_counted_at = time.monotonic()
        missing = MemoryFilter(now=self._clock(), has_embedding=False)
        self.has_gaps = self.embedder is not None and await count(self._adapter, self._scope, missing) > 0

    async def _lasting_mismatch(self) -> EmbeddingFingerprintError | None:
        """As `_mismatch`, when the store has been asked whether it is still so."""
        if self._mismatch():
            await self.refresh()
        return self._mismatch()

    def _mismatch(self) -> EmbeddingFingerprintError | None:
        if self._stored is None or self.embedder is None:
            return None
        stored = _read(self._stored)
        mark = stored.fingerprint
        if (mark.provider, mark.model) != (self.embedder.provider, self.embedder.model):
            return EmbeddingFingerprintError(str(mark), f"{self.embedder.provider}:{self.embedder.model}")
        if stored.replacing:
            return EmbeddingFingerprintError("two models, since a change was interrupted", str(mark))
        return None

    def _check_lengths(self, vectors: Iterable[Vector]) -> None:
        mark = self.fingerprint
        for vector in vectors:
            if mark is not None and len(vector) != mark.dimensions:
                raise EmbeddingDimensionError(mark.dimensions, len(vector), remedy=_OTHER_LENGTH)

    def _require_embedder(self) -> Embedder:
        if self.embedder is None:
            raise ConfigError("embedding", "no embedder is configured", "Build the engine with one to embed.")
        return self.embedder

    def _log_failure(self, error: ProviderError) -> None:
        if time.monotonic() - self._logged_at >= LOG_EVERY:
            self._logged_at = time.monotonic()
            log.warning("the embedder failed, going on without vectors: %s", place_of(error))


async def vectors_of(embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
    """One vector for each text, of any length.

    Raises:
        ProviderError: the embedder failed, in whatever way.
    """
    with _translated(embedder):
        vectors = list(await embedder.embed_documents(texts))
        for vector in vectors:
            check_vector(vector)
    if len(vectors) != len(texts):
        raise ProviderError(embedder.provider, f"it answered {len(vectors)} vectors for {len(texts)} texts")
    return vectors


async def query_vector_of(embedder: Embedder, query: str) -> Vector:
    """The vector of a text to search with; raises as `vectors_of` does."""
    with _translated(embedder):
        vector = await embedder.embed_query(query)
        check_vector(vector)
    return vector


@contextmanager
def _translated(embedder: Embedder) -> Iterator[None]:
    """Make whatever an embedder raises, or answers in place of vectors, a failure of the provider."""
    try:
        yield
    except ProviderError:
        raise
    except OSError as error:  # a timeout and a cut connection are such
        raise ProviderUnavailable(embedder.provider, f"it raised {type(error).__name__}") from error
    except Exception as error:  # it may be a host's own, which may raise anything
        raise ProviderError(embedder.provider, f"it raised {type(error).__name__}") from error


async def _contents(entries: Sequence[MemoryEntry]) -> list[str]:
    return [entry.content for entry in entries]


@lru_cache(maxsize=64)
def _read(text: str) -> _Stored:
    fields = json.loads(text)
    fingerprint = Fingerprint(fields["provider"], fields["model"], fields["dimensions"])
    return _Stored(fingerprint, fields["replacing"])


def _written(stored: _Stored) -> str:
    mark = stored.fingerprint
    fields = {"provider": mark.provider, "model": mark.model, "dimensions": mark.dimensions}
    return json.dumps({**fields, "replacing": stored.replacing})
