"""What counts tokens: a model's own vocabulary where one is known and installed, an estimate otherwise.

The vocabularies come with the package `bpe-openai` (the extra `tokens`), which needs no network: it holds
the data of OpenAI's encodings, and encodes in time linear in the text.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any, Final

from lamina.domain.token_estimate import estimate_tokens
from lamina.errors import ConfigError, InvalidType, LaminaError, MissingExtra, ProviderError
from lamina.ports.token_counter import TokenCounter

__all__ = [
    "VOCABULARIES",
    "CheckedCounter",
    "EstimateCounter",
    "VocabularyCounter",
    "checked_counter",
    "token_counter",
    "vocabulary_of",
]

VOCABULARIES: Final = ("o200k_base", "cl100k_base")
"""The vocabularies that a `VocabularyCounter` may be made of."""

_PACKAGE: Final = "bpe_openai"

_MODELS: Final = (
    ("o200k_base", re.compile(r"(chatgpt-4o|gpt-4o|gpt-4\.1|gpt-4\.5|gpt-5(\.\d+)?|gpt-oss|o[134])(?![\w.])")),
    ("cl100k_base", re.compile(r"(gpt-4|gpt-3\.5|gpt-35|text-embedding-3|text-embedding-ada-002)(?![\w.])")),
)
"""How the names of the models of a vocabulary begin, after any `openai:`, `azure/` or `ft:`."""

_PREFIX: Final = re.compile(r"^(?:[\w.-]+[:/])*?(?=chatgpt-|gpt-|text-embedding-|o\d)")

_PIECE: Final = 100_000
"""Characters that are encoded at a time: the encoder refuses a million."""

_LOOKBACK: Final = 1_000
"""How many of them, at the end, are searched for a place to cut."""

_SEAM: Final = re.compile("(?<=[^\\W_])[ ,.;:!?\u3001\u3002\uff0c](?=[^\\W\\d_])")
"""Where every vocabulary here begins a new token: a mark between two words belongs to the second."""


class EstimateCounter:
    """Counts by arithmetic: a token for four characters of plain English, more where text is denser.

    Rather too many than too few by the measure of `o200k_base`: see docs/tokens.md for how far off it is.
    """

    __slots__ = ()
    name: Final = "estimate"
    is_exact: Final = False

    def count(self, text: str) -> int:
        """About how many tokens the text has; 0 for the empty one."""
        return estimate_tokens(_checked(text))

    def __repr__(self) -> str:
        return "EstimateCounter()"


class VocabularyCounter:
    """Counts with a vocabulary: exactly what the models of that vocabulary are charged for the text.

    Text that looks like a control token, such as `<|endoftext|>`, is counted as the ordinary text that it
    is. The vocabulary is loaded at the first count, once a process: about a second and 150 MB.

    Args:
        name: One of `VOCABULARIES`.

    Raises:
        ConfigError: there is no vocabulary of that name.
        MissingExtra: the extra `tokens` is not installed.
    """

    __slots__ = ("_name",)
    is_exact: Final = True

    def __init__(self, name: str = VOCABULARIES[0]) -> None:
        if name not in VOCABULARIES:
            raise ConfigError("vocabulary", f"{name!r} is unknown", f"Use one of: {', '.join(VOCABULARIES)}.")
        if not _is_installed():
            raise MissingExtra("Counting with a vocabulary", "tokens")
        self._name = name

    @property
    def name(self) -> str:
        """The vocabulary's name."""
        return self._name

    def count(self, text: str) -> int:
        """How many tokens the text has; 0 for the empty one.

        A run of over 100,000 characters without a space or mark between words is counted in pieces,
        which may make it a few tokens more.

        Raises:
            ProviderError: the encoder failed.
        """
        checked = _checked(text)
        try:
            encoding = _encoding(self._name)
            return sum(len(encoding.encode_ordinary(piece)) for piece in _pieces(checked))
        except (ImportError, OSError, ValueError, RuntimeError) as error:
            raise ProviderError(f"The vocabulary {self._name}", "it could not count a text") from error

    def __repr__(self) -> str:
        return f"VocabularyCounter({self._name!r})"


class CheckedCounter:
    """A host's counter, whose counts are looked at: a budget that adds up anything else would hold nothing.

    Raises:
        InvalidType: it is no counter.
    """

    __slots__ = ("_inner",)

    def __init__(self, inner: TokenCounter) -> None:
        name: object = getattr(inner, "name", None)
        if not isinstance(name, str) or not callable(getattr(inner, "count", None)):
            problem = f"is a {type(inner).__name__} without a name and a method count"
            raise InvalidType("counter", problem, "Give a TokenCounter, such as EstimateCounter().")
        self._inner = inner

    @property
    def name(self) -> str:
        """The host's name for it."""
        return self._inner.name

    @property
    def is_exact(self) -> bool:
        """Whether the host says so."""
        return bool(getattr(self._inner, "is_exact", False))

    def count(self, text: str) -> int:
        """How many tokens the text has.

        Raises:
            ProviderError: the host's counter failed, or gave no whole number from 0 up.
        """
        try:
            counted: object = self._inner.count(text)
        except LaminaError:
            raise
        except Exception as error:  # a host's code, which may raise anything
            raise ProviderError(f"The counter {self.name}", f"it raised {type(error).__name__}") from error
        if isinstance(counted, bool) or not isinstance(counted, int) or counted < 0:
            problem = f"it gave {counted!r:.50}, which is no whole number from 0 up"
            raise ProviderError(f"The counter {self.name}", problem)
        return counted


def checked_counter(given: TokenCounter | None) -> TokenCounter | None:
    """The counter, or one that looks at the counts of it if it is a host's; None is None.

    Raises:
        InvalidType: it is no counter.
    """
    if given is None or isinstance(given, EstimateCounter | VocabularyCounter | CheckedCounter):
        return given
    return CheckedCounter(given)


def token_counter(model: str | None = None) -> TokenCounter:
    """The counter for a model: exact if its vocabulary is known and installed, else the estimate.

    A provider may stand before the name (`openai:gpt-4o`). None, and models of other makers, whose
    vocabularies are not public or not at hand, get the estimate.
    """
    vocabulary = None if model is None else vocabulary_of(model)
    return EstimateCounter() if vocabulary is None or not _is_installed() else VocabularyCounter(vocabulary)


def vocabulary_of(model: str) -> str | None:
    """The vocabulary of the model of this name, or None if it is not known."""
    name = _PREFIX.sub("", _checked(model, "model").strip().lower(), count=1)
    return next((vocabulary for vocabulary, names in _MODELS if names.match(name)), None)


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _PIECE:
        end = start + _PIECE
        seams = [seam.start() for seam in _SEAM.finditer(text, end - _LOOKBACK, end)]
        cut = seams[-1] if seams else end
        yield text[start:cut]
        start = cut
    yield text[start:]


def _is_installed() -> bool:
    return find_spec(_PACKAGE) is not None


@cache
def _encoding(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # its own, about how it opens its data files
        import bpe_openai

        return bpe_openai.get_encoding(name)


def _checked(text: object, field: str = "text") -> str:
    if not isinstance(text, str):
        raise InvalidType(field, f"must be text, not {type(text).__name__}", "Give a str.")
    return text
