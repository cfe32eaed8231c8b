"""The tokenizer of uncased BERT models, from nothing but their vocabulary.

Equal to the models' own `tokenizer.json`, except that text which spells a control token, such as `[SEP]`, is
ordinary text: a memory may not steer the model.
"""

from __future__ import annotations

import unicodedata
from typing import Final

__all__ = ["WordPiece"]

_LONGEST_WORD: Final = 100
_CACHED_WORDS: Final = 50_000
_CHARACTERS_PER_TOKEN: Final = 64
"""How much text is looked at per token asked for, so that a huge one costs no more than a long one. Only text
with over 64 characters per token (words unknown to the model, runs of blanks) is cut earlier than by tokens."""
_IDEOGRAPHS: Final = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class WordPiece:
    """Turns text into ids of the vocabulary, which holds one token per line."""

    def __init__(self, vocabulary: str) -> None:
        self._ids = {token: number for number, token in enumerate(vocabulary.split("\n")) if token}
        self._begin, self._end, self._unknown = (self._ids[token] for token in ("[CLS]", "[SEP]", "[UNK]"))
        self._cache: dict[str, tuple[int, ...]] = {}

    def encode(self, text: str, max_tokens: int) -> list[int]:
        """At most so many ids, the marks of beginning and end among them; what is beyond is left out."""
        ids = [self._begin]
        for word in _words(text[: max_tokens * _CHARACTERS_PER_TOKEN]):
            ids += self._pieces(word)
            if len(ids) >= max_tokens:
                break
        return [*ids[: max_tokens - 1], self._end]

    def encode_pair(self, first: str, second: str, max_tokens: int) -> tuple[list[int], list[int]]:
        """Both texts' ids, with a mark at the end of each, and for each id which of the two it is of: 0 or 1.

        At most so many ids: the first text has up to half of them, the second what is left.
        """
        before = self.encode(first, max_tokens // 2)
        behind = self.encode(second, max_tokens - len(before) + 1)[1:]
        return before + behind, [0] * len(before) + [1] * len(behind)

    def knows(self, ids: list[int]) -> bool:
        """Whether an id stands for a piece of the text, and not for its ends or for what the vocabulary lacks."""
        return any(id not in {self._begin, self._end, self._unknown} for id in ids)

    def _pieces(self, word: str) -> tuple[int, ...]:
        if len(word) > _LONGEST_WORD:
            return (self._unknown,)
        pieces = self._cache.get(word)
        if pieces is None:
            pieces = self._split(word)
            if len(self._cache) < _CACHED_WORDS:
                self._cache[word] = pieces
        return pieces

    def _split(self, word: str) -> tuple[int, ...]:
        """The longest piece that the vocabulary has, then the longest of the rest, and so on."""
        pieces = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                id = self._ids.get(prefix + word[start:end])
                if id is not None:
                    break
            else:
                return (self._unknown,)
            pieces.append(id)
            start = end
        return tuple(pieces)


def _words(text: str) -> list[str]:
    spaced = "".join(map(_spaced, text))
    if not spaced.isascii():
        decomposed = unicodedata.normalize("NFD", spaced)
        spaced = "".join(character for character in decomposed if unicodedata.category(character) != "Mn")
    lowered = "".join(character.lower() for character in spaced)  # one by one: a final sigma is no special case
    return "".join(f" {each} " if _is_punctuation(each) else each for each in lowered).split()


def _spaced(character: str) -> str:
    """White space as a blank, ideographs between blanks, and what is invisible as nothing."""
    if character in "\t\n\r ":
        return " "
    category = unicodedata.category(character)
    if character == "\ufffd" or category in {"Cc", "Cf", "Co", "Cs"}:
        return ""
    if category in {"Zs", "Zl", "Zp"}:
        return " "
    code = ord(character)
    return f" {character} " if any(first <= code <= last for first, last in _IDEOGRAPHS) else character


def _is_punctuation(character: str) -> bool:
    if character.isascii():
        return not character.isalnum() and character != " "
    return unicodedata.category(character)[0] == "P"
