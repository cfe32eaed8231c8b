"""How text becomes words to search by: one rule for every backend, for stored texts and queries alike.

* Unicode NFKC and case folding (SARA AM, which NFKC would take apart, is kept whole). Marks fall
  away on Latin and Greek letters only (`é` → `e`); in Thai, Devanagari, Arabic and others they are
  letters' parts and stay. Arabic and Persian variants of kaf, yeh, heh and alef become one each;
  tatweel, vowel signs of Arabic and Hebrew, and invisible format characters are dropped. Digits of
  every script become 0 to 9.
* Words are runs of letters, marks and digits; every other character separates. A run breaks where
  it passes from a script with spaces to one without. An emoji or another symbol is a word.
* Scripts written without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese), and Korean, whose
  particles are glued on, are cut into characters (for the Indic ones, base with marks) and pairs of
  neighbours, so that words of one or two characters are found inside any run.
* Words are stemmed. Cyrillic, Arabic, Devanagari and Greek ones are replaced by their stem. A text in
  Latin letters is in the language that its function words tell (`lamina.domain.languages`): in
  English the stem takes the place of the word, in another language it stands beside it. A query
  carries each word, its English stem, and those of the languages that it may be in.

Words that come out hold no ASCII but `a-z0-9`, so a backend's tokenizer need only split at spaces.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import log
from typing import Any, Final

from lamina.domain.languages import (
    LATIN_LANGUAGES,
    is_function_word,
    languages_of,
    stem_by_script,
    stem_in,
    stems_in,
    stop_words,
)

__all__ = [
    "ANALYZER_VERSION",
    "MAX_QUERY_CHARS",
    "MAX_QUERY_TERMS",
    "Matcher",
    "Term",
    "TermCounts",
    "added",
    "count_terms",
    "held",
    "index_terms",
    "missing",
    "query_terms",
    "share",
    "similarities",
    "similarity",
    "term_weights",
]

ANALYZER_VERSION: Final = 2
"""Grows when the same text gives other terms; an index made by another version must be rebuilt."""

MAX_QUERY_TERMS: Final = 32
MAX_QUERY_CHARS: Final = 10_000
"""How much of a query is read: far more than its terms need, and little enough for an event loop to wait for."""

MIN_DOCUMENTS_FOR_WEIGHTS: Final = 50
"""Below this many documents rarity says nothing, so all terms weigh the same."""

SATURATION: Final = 0.3
LENGTH_SHARE: Final = 0.75
TYPICAL_LENGTH: Final = 100
"""One occurrence in 30 terms counts 0.94, in 100 0.83, in 400 0.54; four in 400 count 0.86."""

_FULL: Final = 1 + SATURATION * (1 - LENGTH_SHARE)
"""So that one occurrence in a text of nearly no length counts 1."""

_SARA_AM: Final = ("\u0e33", "\u0eb3")
_KEEP: Final = {ord(_SARA_AM[0]): "\ue0f0", ord(_SARA_AM[1]): "\ue0f1"}
_RESTORE: Final = {0xE0F0: _SARA_AM[0], 0xE0F1: _SARA_AM[1]}
_FOLD: Final = str.maketrans(
    {
        "đ": "d", "ð": "d", "ø": "o", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ħ": "h", "ŧ": "t",
        "ك": "ک", "ي": "ی", "ى": "ی", "ة": "ه", "أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا", "ؤ": "و", "ئ": "ی",
        "ـ": None,
    }
)  # fmt: skip
_DROPPED_MARKS: Final = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670]"
)
_ASCII_WORD: Final = re.compile("[a-z0-9]+")
_LATIN: Final = re.compile("[a-z\u00df-\u024f\u1e00-\u1eff]+")
_SHORTEST_FOREIGN_STEM: Final = 3
"""Shorter ones meet words of other languages."""
_UNSPACED: Final = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1100, 0x11FF), (0x1780, 0x17FF), (0x3005, 0x3007), (0x3040, 0x30FF),
    (0x3130, 0x318F), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7FF), (0xF900, 0xFAFF),
    (0x20000, 0x323AF),
)  # fmt: skip
# A vowel that is written after its consonant but belongs to it, though Unicode calls it a letter.
_JOINING: Final = frozenset(_SARA_AM)


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a query: the forms that a text may hold it in. The first is the word itself."""

    forms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TermCounts:
    """How often each term stands in a text, and how many there are, single characters left out."""

    counts: Mapping[str, int]
    length: int


def index_terms(text: str) -> list[str]:
    """The terms of a stored text, in the order of the text, repeats included."""
    words = _ASCII_WORD.findall(text.lower()) if text.isascii() else list(_words(text))
    is_latin = str.isalpha if text.isascii() else _LATIN.fullmatch
    latin = [word for word in words if is_latin(word)]
    language = _language(latin)
    stems = latin if language is None else stems_in(language, latin)
    if language == "english" and len(latin) == len(words):
        return stems
    terms, stem_of_next = [], iter(stems)
    for word in words:
        if not is_latin(word):
            terms.append(stem_by_script(word))
            continue
        stem = next(stem_of_next)
        if stem != word and language != "english":
            terms.append(word)
        terms.append(stem)
    return terms


def query_terms(text: str) -> list[Term]:
    """The distinct terms of a query, without stop words unless there is nothing else; at most 32.

    Only the first 10,000 characters of the query are read.
    """
    return list(_query_terms(text[:MAX_QUERY_CHARS]))


@lru_cache(maxsize=256)
def _query_terms(text: str) -> tuple[Term, ...]:
    distinct = dict.fromkeys(_words(text, lone_characters=False))
    stops = stop_words(distinct)
    telling = [word for word in distinct if word not in stops] or list(distinct)
    languages = languages_of(distinct) or LATIN_LANGUAGES
    return tuple(_term(word, languages) for word in telling[:MAX_QUERY_TERMS])


def term_weights(terms: Iterable[Term], documents: int, frequencies: Mapping[str, int]) -> list[float]:
    """The weight of each term: its inverse document frequency, or 1 where documents are few.

    BM25's form, ln(1 + (N - n + 0.5) / (n + 0.5)) (Robertson and Zaragoza 2009); a term's n is the
    greatest among its forms.
    """
    weights = []
    for term in terms:
        if documents < MIN_DOCUMENTS_FOR_WEIGHTS:
            weights.append(1.0)
            continue
        count = min(max(frequencies.get(form, 0) for form in term.forms), documents)
        weights.append(log(1 + (documents - count + 0.5) / (count + 0.5)))
    return weights


def count_terms(terms: Iterable[str]) -> TermCounts:
    """The terms of one text, repeats included, counted."""
    counts = Counter(terms)
    return TermCounts(counts, sum(count for term, count in counts.items() if len(term) > 1))


def similarity(terms: Collection[Term], weights: Collection[float], document: TermCounts) -> float:
    """How much of the query's weight the document holds, in [0, 1].

    A term that it holds counts in full where it stands often or the document is short, and less in a
    long one: BM25's saturation and length, against a fixed length, so that the value hangs on the
    query and the document alone. Of a term's forms the most frequent counts.
    """
    total = sum(weights)
    if total == 0:
        return 0.0
    shares = held(terms, document)
    return min(1.0, added(weight * share for weight, share in zip(weights, shares, strict=True)) / total)


def added(values: Iterable[float]) -> float:
    """The sum, rounded after each value: `sum` does so before Python 3.12 only, and arrays of many texts do always."""
    total = 0.0
    for value in values:
        total += value
    return total


def missing(length: Any) -> Any:
    """What a text of so many terms lacks for a single occurrence to count 1; of one text, or of an array of them."""
    return SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length / TYPICAL_LENGTH)


def share(count: Any, lacking: Any) -> Any:
    """How much of a term a text holds in which it stands so often, but for rounding; `lacking` is what is `missing`."""
    return count * _FULL / (count + lacking)


def held(terms: Iterable[Term], document: TermCounts) -> tuple[float, ...]:
    """How much of each term the document holds, in [0, 1]: see `similarity`."""
    counts = document.counts
    lacking = missing(document.length)
    most = (max([counts.get(form, 0) for form in term.forms]) for term in terms)
    return tuple(min(1.0, share(count, lacking)) if count else 0.0 for count in most)


class Matcher:
    """`similarity` for one query and many texts: what hangs on the query alone is worked out once."""

    def __init__(self, terms: Iterable[Term], weights: Sequence[float]) -> None:
        self.weights = weights
        self.total = sum(weights)
        self._places: dict[str, list[int]] = {}
        for place, term in enumerate(terms):
            for form in term.forms:
                self._places.setdefault(form, []).append(place)
        self._forms = frozenset(self._places)

    def similarity(self, words: Sequence[str]) -> float:
        """That of a text with these terms, as `index_terms` gives them: the same to the last bit."""
        found = self._forms.intersection(words)
        if not found or self.total == 0:
            return 0.0
        length = len(words) - [*map(len, words)].count(1)
        lacking = missing(length)
        most: dict[int, int] = {}
        for form in found:
            count = words.count(form)
            for place in self._places[form]:
                if count > most.get(place, 0):
                    most[place] = count
        shares = []
        for place in sorted(most):
            count = most[place]
            value = share(count, lacking)
            shares.append(self.weights[place] * (value if value < 1 else 1.0))
        return min(1.0, added(shares) / self.total)

    def most(self, place: int) -> float:
        """What the term at this place adds at the very most."""
        return self.weights[place] / self.total if self.total else 0.0


def similarities(query: str, texts: Collection[str]) -> list[float]:
    """The similarity of each text, in order, to the query; terms weigh by their rarity among these texts."""
    terms = query_terms(query)
    documents = [count_terms(index_terms(text)) for text in texts]
    forms = {form for term in terms for form in term.forms}
    frequencies = {form: sum(form in document.counts for document in documents) for form in forms}
    weights = term_weights(terms, len(documents), frequencies)
    return [similarity(terms, weights, document) for document in documents]


def _term(word: str, languages: Iterable[str]) -> Term:
    if not _LATIN.fullmatch(word):
        return Term(tuple(dict.fromkeys([word, stem_by_script(word)])))
    stems = [stem_in(language, word) for language in languages]
    telling = [stem for stem in stems if len(stem) >= _SHORTEST_FOREIGN_STEM and not is_function_word(stem)]
    return Term(tuple(dict.fromkeys([word, stem_in("english", word), *telling])))


def _words(text: str, *, lone_characters: bool = True) -> Iterator[str]:
    """Words; runs of unspaced scripts as pairs of characters, and the characters too unless told not to."""
    folded = text.lower() if text.isascii() else _fold(text)
    if folded.isascii():
        yield from _ASCII_WORD.findall(folded)
        return
    for run in _runs(folded):
        if not _is_unspaced(run[0]):
            yield run
            continue
        characters = _clusters(run)
        if lone_characters or len(characters) == 1:
            yield from characters
        yield from (first + second for first, second in pairwise(characters))


def _fold(text: str) -> str:
    text = unicodedata.normalize("NFKC", text.translate(_KEEP)).translate(_RESTORE)
    text = unicodedata.normalize("NFKC", text.casefold().translate(_KEEP)).translate(_RESTORE)
    text = _DROPPED_MARKS.sub("", text).translate(_FOLD)
    return "".join(map(_without_marks, text))


@lru_cache(maxsize=8192)
def _without_marks(character: str) -> str:
    """The character without its marks if it is Latin or Greek, 0 to 9 if a digit, nothing if it is invisible."""
    if character.isascii():
        return character
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    if (
        unicodedata.category(character) == "Cf"
        or "\u0300" <= character <= "\u036f"
        or "\ufe00" <= character <= "\ufe0f"
    ):
        return ""
    if unicodedata.name(character, "").startswith(("LATIN ", "GREEK ")):
        return "".join(c for c in unicodedata.normalize("NFD", character) if not unicodedata.combining(c))
    return "е" if character == "ё" else character


@lru_cache(maxsize=8192)
def _kind(character: str) -> str:
    """What a character is for splitting: w(ord), u(nspaced), m(ark), s(ymbol) or a separator (empty)."""
    category = unicodedata.category(character)
    if _is_unspaced(character):
        return "u" if category[0] in "LMN" else ""
    if category[0] in "LN":
        return "w"
    if category[0] == "M":
        return "m"
    return "s" if category in {"So", "Sk"} and not character.isascii() else ""


def _runs(text: str) -> Iterator[str]:
    """Maximal runs of one kind; a mark goes with what stands before it; a symbol stands alone."""
    run, run_kind = "", ""
    for character in text:
        kind = _kind(character)
        if kind == "m":
            if run:
                run += character
            continue
        if kind and kind == run_kind != "s":
            run += character
            continue
        if run:
            yield run
        run, run_kind = (character, kind) if kind else ("", "")
    if run:
        yield run


def _clusters(run: str) -> list[str]:
    clusters: list[str] = []
    for character in run:
        if clusters and (character in _JOINING or unicodedata.category(character)[0] == "M"):
            clusters[-1] += character
        else:
            clusters.append(character)
    return clusters


@lru_cache(maxsize=8192)
def _is_unspaced(character: str) -> bool:
    code = ord(character)
    return any(first <= code <= last for first, last in _UNSPACED)


def _language(latin: Collection[str]) -> str | None:
    """The language of words in Latin letters: as function words say; without any, English if all are plain ones."""
    if shown := languages_of(latin):
        return shown[0]
    return "english" if all(map(str.isascii, latin)) else None
