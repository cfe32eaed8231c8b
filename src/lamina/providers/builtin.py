"""The embedders that come with Lamina: offline, without a key, on one thread a text."""

from __future__ import annotations

import os
import threading
from array import array
from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

from lamina.domain.memory import Vector
from lamina.domain.text import is_mostly_latin
from lamina.errors import ConfigError
from lamina.providers import small_bge, universal_encoder
from lamina.providers.vectors import check_texts
from lamina.providers.worker_threads import WorkerThreads

__all__ = ["BuiltinEmbedder"]

DEFAULT: Final = "bge-small+use-multilingual"
_PARTS: Final = MappingProxyType(
    {
        DEFAULT: (small_bge.DIMENSIONS, universal_encoder.DIMENSIONS),
        small_bge.MODEL: (small_bge.DIMENSIONS,),
        universal_encoder.MODEL: (universal_encoder.DIMENSIONS,),
    }
)
_FEATURE: Final = "The built-in embedder"

_MATCHES_FROM: Final = MappingProxyType(
    {DEFAULT: (0.40, 0.43), small_bge.MODEL: (0.52, 0.74), universal_encoder.MODEL: (0.155, 0.165)}
)
"""For queries in Latin letters, and in others."""

FEW_WORDS: Final = 0.15
MANY_WORDS: Final = 0.35
SECOND_FEW_WORDS: Final = 0.8
SECOND_MANY_WORDS: Final = 0.05
SECOND_OTHER_SCRIPTS: Final = 0.6
"""What the second model counts for: see `weighted_parts`."""


class _Model(Protocol):
    def embed(self, text: str) -> array[float]: ...


_loaded: dict[tuple[int, Path | None], _Model] = {}
_loading = threading.Lock()
_workers = WorkerThreads("lamina built-in embedder", os.cpu_count() or 1)
"""As many inferences at a time as there are processors, each on one thread: more would only take memory."""
_TEXTS_PER_TURN: Final = 8
"""After so many texts a batch lets others go first, so that a query waits some 100 ms and not for a whole import."""


class BuiltinEmbedder:
    """Embeds with the models that come with Lamina.

    The default stands on two legs: bge-small-en-v1.5 (384 numbers), made to find the English text that answers a
    question, and behind it Universal Sentence Encoder multilingual (512 numbers), which knows 16 languages and
    what goes with what. Either one is to be had alone. Models are loaded at the first call, once per process, and
    run in worker threads. The first 256 tokens of a text count for the first (about 190 English words), the first
    4,000 characters for the second. The same text always gets the same vector, alone or among others.

    Args:
        model: None or `bge-small+use-multilingual` for both, `bge-small-en-v1.5-int8`, or
            `universal-sentence-encoder-multilingual-v3`.
        root: A folder to read the first model's files from in place of the installed package; they are checked alike.
        provider: The name in the fingerprint of its vectors.

    Raises:
        ConfigError: another model is named.
    """

    def __init__(self, model: str | None = None, *, root: Path | None = None, provider: str = "builtin") -> None:
        if model is not None and model not in _PARTS:
            known = ", ".join(_PARTS)
            raise ConfigError("model", f"{provider} has no {model!r}", f"Leave it out, or use one of: {known}.")
        self._model = model or DEFAULT
        self._root = root
        self._provider = provider

    @property
    def provider(self) -> str:
        """`builtin`, unless given."""
        return self._provider

    @property
    def model(self) -> str:
        """The model's name, with its quantisation."""
        return self._model

    def matches_from(self, query: str) -> float:
        """The cosine of whole vectors from where a text has to do with the query; how it was chosen is below.

        Questions of one public set were asked of the memories of the others, and the level was raised until it cost
        2 to 3 of 100 found answers of the set that it costs most. See `docs/retrieval.md`.
        """
        latin, others = _MATCHES_FROM[self._model]
        return latin if is_mostly_latin(query) else others

    def weighted_parts(self, query: str, overlap: float | None) -> Sequence[tuple[int, float]]:
        """How much each of two models counts; empty for one alone.

        Where some memory holds the query's words, it is looked for, and the first model knows best which one answers.
        Where none does, what goes with the query is looked for, and there the second is ahead, as in all scripts
        but Latin. The figures are in `docs/retrieval.md`.
        """
        if self._model != DEFAULT:
            return ()
        if not is_mostly_latin(query):
            second = SECOND_OTHER_SCRIPTS
        else:
            near = 1.0 if overlap is None else min(1.0, max(0.0, (overlap - FEW_WORDS) / (MANY_WORDS - FEW_WORDS)))
            second = SECOND_FEW_WORDS + near * (SECOND_MANY_WORDS - SECOND_FEW_WORDS)
        return (small_bge.DIMENSIONS, 1 - second), (universal_encoder.DIMENSIONS, second)

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Vectors of texts that are to be found.

        A text of which a model knows nothing (blank, or only emoji, say) gets zeros from it, which are similar to
        nothing; otherwise all such texts would be found for each other.

        Raises:
            ProviderError: a file of a model is missing or is not the reviewed one, or onnxruntime is missing.
        """
        cleaned = check_texts(texts)
        vectors: list[Vector] = []
        for start in range(0, len(cleaned), _TEXTS_PER_TURN):
            batch = cleaned[start : start + _TEXTS_PER_TURN]
            vectors += await _workers.run(_embedded, _PARTS[self._model], self._root, batch)
        return vectors

    async def embed_query(self, text: str) -> Vector:
        """The vector of a text to search with; made as a document's, for the models' query prefixes gain nothing."""
        return (await self.embed_documents([text]))[0]

    async def close(self) -> None:
        """Nothing to let go of: the models are shared by all embedders of the process."""


def _embedded(parts: tuple[int, ...], root: Path | None, texts: list[str]) -> list[array[float]]:
    models = [_shared_model(dimensions, root) for dimensions in parts]
    if len(models) == 1:
        return [models[0].embed(text) for text in texts]
    share = sqrt(1 / len(models))  # the whole is of unit length too, and its cosine the mean of the parts'
    return [array("f", (share * number for model in models for number in model.embed(text))) for text in texts]


def _shared_model(dimensions: int, root: Path | None) -> _Model:
    with _loading:
        if (dimensions, root) not in _loaded:
            _loaded[dimensions, root] = _load(dimensions, root)
        return _loaded[dimensions, root]


def _load(dimensions: int, root: Path | None) -> _Model:
    if dimensions == small_bge.DIMENSIONS:
        return small_bge.SmallBge(_FEATURE, root)
    return universal_encoder.UniversalEncoder(_FEATURE)
