"""Names where capital letters do not tell them: German capitalises all nouns, and Chinese characters have no case."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from lamina.domain.facts import Fact, FactKind

__all__ = ["ideographic_names", "ordinary_nouns"]

_COMMONEST: Final = frozenset(
    "der die das den dem des ein eine einen einem einer und ist sind war nicht mit von auf für sich im zu wird".split()
)
_LEAST_COMMONEST: Final = 0.1
"""Of the words of a text, from where on it is taken for German."""
_ARTICLES: Final = frozenset(
    "das des im am zum zur vom beim ins ans ein kein mein dein sein ihr unser euer als".split()
)
_INFLECTED: Final = re.compile(r"[a-zäöüß]+e[nmrs]?")
_UNINFLECTED: Final = frozenset(
    "unter über hinter zwischen gegen neben ohne oder aber außer wegen wurde wurden hatte hatten haben werden".split()
)
_NOUN_END: Final = re.compile(
    r"(?:ung|heit|keit|schaft|ion|tät|ismus|nis|tum|chen|ment|anz|enz|ik|ie|ur|er|el|ling|sel|erei)(?:e?[ns]|er)?$"
)
_WORD: Final = re.compile(r"[^\W_](?:[\w'’-]*\w)?[.,:;!?]?")  # noqa: RUF001
_MARK: Final = re.compile(r"[.,:;!?]$")
_IDEOGRAPHS: Final = re.compile(
    r"[\u3400-\u9fff々ヶ]{1,7}(?:[市県都府州区町村郡島川山湖海駅国省党氏王帝朝寺城人]|大学|会社|協会|時代)(?![\u3400-\u9fff々])"
)
"""A run that ends as names of places, people and bodies do. Half of them are; other names are not told from words."""


def ordinary_nouns(sentences: Iterable[str]) -> frozenset[str]:
    """The words that are capitalised since they are nouns, as what stands before them says, or how they end.

    Empty where the text is not in German. A word that stands behind an article, a number or an adjective once
    is a noun everywhere in the text; a name that is a noun as well (`der Rhein`) is taken for one.
    """
    said = [[_MARK.sub("", word) for word in _WORD.findall(each)] for each in sentences]
    total = sum(map(len, said))
    if sum(word in _COMMONEST for each in said for word in each) < _LEAST_COMMONEST * total:
        return frozenset()
    return frozenset(word for each in said for word in _nouns(each))


def ideographic_names(sentence: str, located: Sequence[tuple[int, Fact]]) -> Iterator[tuple[int, Fact]]:
    """Names in Chinese characters, with where they begin, that none of the located facts has a part of."""
    taken = [(start, start + len(fact.text)) for start, fact in located]
    for match in _IDEOGRAPHS.finditer(sentence):
        if not any(start < match.end() and match.start() < end for start, end in taken):
            yield match.start(), Fact(FactKind.NAME, match[0])


def _nouns(words: list[str]) -> Iterator[str]:
    for before, word in zip(["", *words], words, strict=False):
        if word[0].isupper() and word[1:].islower() and (_takes_noun(before) or "-" in word or _NOUN_END.search(word)):
            yield word


def _takes_noun(word: str) -> bool:
    """Whether a noun is to be expected behind this word, rather than a name."""
    if word[:1].isdecimal():
        return True
    lower = word.lower()
    return lower in _ARTICLES or (
        _INFLECTED.fullmatch(word if word.islower() else lower if lower in _COMMONEST else "") is not None
        and lower not in _UNINFLECTED
    )
