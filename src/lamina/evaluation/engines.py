"""Engines for evaluations: on a database that is gone afterwards, and the same at every run."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from lamina.evaluation.vector_cache import DiskCachedEmbedder, VectorCache
from lamina.memory.engine import MemoryEngine
from lamina.memory.factory import create_memory_engine, open_memory_backend
from lamina.settings import MemoryConfig, define_memory_config

__all__ = ["evaluated_settings", "open_cached_embedder", "open_empty_engine"]

EVALUATED: Final = ("embedding", "scoring", "version", "default_relevance")
"""The memory settings that an evaluation is about."""

_UNDATED: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""When it is, for sets that tell no dates."""


def evaluated_settings(config: MemoryConfig) -> dict[str, Any]:
    """Of the settings those that an evaluation is about, where they were said."""
    return {name: getattr(config, name) for name in EVALUATED if name in config.model_fields_set}


@asynccontextmanager
async def open_cached_embedder(
    settings: Mapping[str, Any], cache: Path | None
) -> AsyncIterator[DiskCachedEmbedder | None]:
    """The embedder of the settings, which makes no vector twice: not even at the next run, with a file as cache.

    Raises:
        InvalidInput: the file cannot be used.
    """
    vectors = VectorCache(":memory:" if cache is None else cache)
    backend = await open_memory_backend(define_memory_config(settings, provider="memory"))
    try:
        yield None if backend.embedder is None else DiskCachedEmbedder(backend.embedder, vectors)
    finally:
        await backend.close()
        vectors.close()


@asynccontextmanager
async def open_empty_engine(
    settings: Mapping[str, Any], *, embedder: DiskCachedEmbedder | None = None, now: datetime | None = None
) -> AsyncIterator[MemoryEngine]:
    """An engine with these settings on a new database, and its clock standing still at `now`.

    Given an embedder, that one is used in place of the settings' own.
    """
    kept = dict(settings)
    if embedder is not None:
        kept.pop("embedding", None)
        kept["embed"] = embedder
    moment = now or _UNDATED
    # Ids that count up, because ties end with the id: the same figures at each run.
    numbered = map("mem_{:08}".format, itertools.count())
    with tempfile.TemporaryDirectory(prefix="lamina-eval-") as folder:
        async with await create_memory_engine(
            path=Path(folder) / "eval.db", new_id=lambda: next(numbered), clock=lambda: moment, **kept
        ) as engine:
            yield engine
