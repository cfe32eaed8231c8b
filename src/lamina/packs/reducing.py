"""What a tier leaves of a pack memory's text: fragments of it, picked without a model.

What makes a memory worth finding again is mostly whom, what, how many and when it is about. So the names,
numbers and dates are picked first, each once, those that say most for their tokens before the others; then
what stands around them, as far as there is room: words between two picks, clauses, whole sentences. Nothing
is understood and nothing written: all words of a reduction stand in the text, in its order.
"""

from __future__ import annotations

import heapq
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from math import log2
from typing import Final, NamedTuple

from lamina.domain.facts import SENTENCE_STARTERS, Fact, FactKind, located_facts, sentences
from lamina.domain.pack_decay import Tier
from lamina.domain.text import is_blank
from lamina.domain.token_estimate import estimate_tokens, token_weight
from lamina.packs.names import ideographic_names, ordinary_nouns

__all__ = ["LEAST_TOKENS", "Aim", "aim_of", "reduced"]

LEAST_TOKENS: Final = 12
"""A text of fewer is left whole."""


@dataclass(frozen=True, slots=True)
class Aim:
    """How many tokens a tier leaves of a text: a share of them, or a little more where facts stand densely."""

    share: float
    most: float
    """The share that is used if names, numbers and dates would be lost otherwise."""
    facts: float
    """How many of these are worth going beyond `share` for, of all."""
    fewest: int
    """Tokens that a text of any length may keep: in fewer, nothing is said."""
    fewest_for_facts: int
    """Likewise, if names, numbers and dates would be lost otherwise."""

    def tokens(self, total: int) -> int:
        """How many tokens of so many to aim at."""
        return max(self.fewest, round(self.share * total))

    def limit(self, total: int) -> int:
        """How many tokens of so many the text may have at most."""
        return max(self.fewest_for_facts, round(self.most * total))


_AIMS: Final = {Tier.SUMMARY: Aim(0.30, 0.36, 0.9, 8, 14), Tier.KEY_FACTS: Aim(0.10, 0.15, 0.9, 6, 10)}

_WORTH: Final = {
    FactKind.DATE: 5.5,
    FactKind.NAME: 3.0,
    FactKind.NUMBER: 3.0,
    FactKind.IDENTIFIER: 2.0,
    FactKind.PATH: 1.5,
    FactKind.LINK: 1.0,
}
_CLOCK: Final = re.compile(r"\d{1,2}:\d\d")
_CLOCK_WORTH: Final = 3.0
"""Of a time of day, which says less than the day."""
_LEAST_COUNTED: Final = 3.0
_UNSURE_WORTH: Final = 1.5
"""Of a capitalised word that begins a sentence: it may be a name."""
_NOUN_WORTH: Final = 0.3
"""Of a word that is capitalised as all nouns of its language are."""
_JOIN: Final = "; "
_WIDE_JOIN: Final = "、"
_WIDE: Final = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\d]{2}(?<!\d\d)")
"""The end of one part and the beginning of the next, in a script without spaces."""
_JOIN_TOKENS: Final = 0.9
_SMALL_GAP: Final = 1.6
"""Tokens between two picks: so few are better than a mark in their place."""
_PASSES: Final = 2
_WORDS_AFTER: Final = 4
_FACTS_SHARE: Final = 0.6
"""Of the room, what bare facts may take before anything around them is looked at."""

_LONGEST: Final = re.compile(r".{1,2000}(?!\S)|.{1,2000}", re.DOTALL)
"""A table may be one sentence for want of a full stop; what is done within one takes the square of its length."""
_BREAK: Final = re.compile(
    r"[,;—–、，；)\]}|。]\s*|:\s+|：|\s(?=[(\[{])|\s(?=(?:and|but|because|which|who|when|while|where)\s)"
)
_WORD: Final = re.compile(r"[^\W\d_]{4,}")
_POSSESSIVE: Final = re.compile(r"['’]s?$")
_NO_NAME: Final = re.compile(r"(?:ing|ly|ed|ions?|ments?|ness|ity|ers|est|ful|al|ous)$")
"""How words end that begin a sentence, and are no names."""
_NEXT_WORDS: Final = re.compile(r"(?:[ -][^\W\d_]{1,3})?[ -][^\W\d_][\w’'-]*")
_COUNTER: Final = re.compile(r"[\u3400-\u9fffかカヵケヶつ]{1,2}")
"""What stands right behind a number in scripts without spaces."""
_NEXT_RUN: Final = re.compile(r"[\u3400-\u9fff々ァ-ヶー]{1,6}")
"""The rest of a compound in these scripts."""
_SPACE_IN_NAME: Final = re.compile(r"[\s・]")
_WORDS_BEFORE: Final = re.compile(r"[^\W\d_][\w’'-]* (?:[^\W\d_]{1,3} )?[($€£¥]?$")
_WORD_CHARS: Final = 24
_NUMBER: Final = re.compile(r"[\d.,:/$€£¥%–-]+")
_ORDINAL: Final = re.compile(r"\(?\d{1,3}[.)](?:\s|$)")
_CAPITALISED: Final = re.compile(r"[A-ZÀ-ÖØ-ÞΑ-ΩА-Я][0-9A-Z_a-zÀ-ɏͰ-ӿ’'-]{2,}")
_PIECE: Final = re.compile(
    r"[\x21-\x7e\u00c0-\u0dff\u0f00-\u1fff]{1,24}\s*|.[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0300-\u036f\u200d\ufe00-\ufe0f]*",
    re.DOTALL,
)
_SAYS: Final = re.compile(r"[^\W_]")
_BRACKETS: Final = frozenset("()[]{}")
_OPENING: Final = 3.0


def aim_of(tier: Tier) -> Aim:
    """What a reduction to this tier aims at; only of one that leaves a part of the text."""
    return _AIMS[tier]


def reduced(text: str, tier: Tier) -> str:
    """What `summary` or `key_facts` leaves of the text: always the same, never longer, blank only if the text is.

    Takes time in proportion to the text's length (times the logarithm of it).
    """
    aim = _AIMS[tier]
    total = estimate_tokens(text)
    if total < LEAST_TOKENS:
        return text
    left = _Extract(text, aim, total).text()
    return left if not is_blank(left) and len(left) < len(text) else text


@dataclass(slots=True)
class _Sentence:
    """A sentence and what is picked of it: spans that neither touch nor overlap, in order."""

    place: int
    text: str
    facts: list[tuple[int, int, Fact, float]]
    picked: list[tuple[int, int]] = field(default_factory=list)
    _weights: dict[tuple[int, int], float] = field(default_factory=dict)

    def cost(self, start: int, end: int) -> float:
        """What picking this span adds in tokens to what is picked of the sentence."""
        merged, swallowed = self._merged(start, end)
        return self.weight(merged) - sum(self.weight(span) for span in swallowed)

    def weight(self, span: tuple[int, int]) -> float:
        """What the span alone takes, with the mark behind it."""
        if span not in self._weights:
            self._weights[span] = token_weight(self.text[span[0] : span[1]]) + _JOIN_TOKENS
        return self._weights[span]

    def pick(self, start: int, end: int) -> None:
        """Add the span."""
        merged, swallowed = self._merged(start, end)
        gone = set(swallowed)
        self.picked = sorted([*(span for span in self.picked if span not in gone), merged])

    def gaps(self) -> Iterator[tuple[int, int]]:
        """What lies between neighbouring picks."""
        for one, other in zip(self.picked, self.picked[1:], strict=False):
            yield one[0], other[1]

    def clause(self, start: int, end: int) -> tuple[int, int]:
        """The span, and what of its clause is around it."""
        begun = 0
        for found in _BREAK.finditer(self.text):
            if found.end() <= start:
                begun = found.end()
            elif found.start() >= end:
                return begun, found.start()
        return begun, len(self.text)

    def _merged(self, start: int, end: int) -> tuple[tuple[int, int], list[tuple[int, int]]]:
        swallowed = [span for span in self.picked if span[0] <= end and span[1] >= start]
        ends = [start, end, *(place for span in swallowed for place in span)]
        return (min(ends), max(ends)), swallowed


class _Offer(NamedTuple):
    """Where a fact may be picked."""

    rank: float
    cost: float
    sentence: _Sentence
    start: int
    end: int
    is_counted: bool


class _Extract:
    """Picks spans of a text until the room is used."""

    def __init__(self, text: str, aim: Aim, total: int) -> None:
        self._aim = aim
        self._room = min(aim.tokens(total), total)
        self._limit = min(aim.limit(total), total)
        self._sentences = list(_read(text))
        self._used = 0.0
        self._covered: set[str] = set()
        self._fallback = text

    def text(self) -> str:
        """What is picked, in the text's order."""
        offers = self._offers()
        for _ in range(_PASSES):
            self._pick_facts(offers)
            self._recount()
        self._explain_numbers()
        self._close_gaps()
        for _ in range(_PASSES):
            self._recount()
            self._widen()
        for _ in range(_WORDS_AFTER):
            self._recount()
            self._lengthen()
        return self._fitting() or self._beginning()

    def _recount(self) -> None:
        """Take for used what the picks have together, which is a little less than what they have one by one."""
        self._used = token_weight(self._joined())

    def _offers(self) -> list[tuple[str, _Offer]]:
        """The facts, each once where it costs least: the most valuable for their tokens first."""
        best: dict[str, _Offer] = {}
        often = Counter(fact.text for each in self._sentences for _, _, fact, _ in each.facts)
        for sentence in self._sentences:
            for start, end, fact, worth in sentence.facts:
                key = fact.text
                cost = sentence.weight((start, end))
                value = worth * (1 + 0.2 * min(log2(often[key]), 3)) * (1.3 if sentence.place == 0 else 1)
                if key not in best or value / cost > best[key].rank:
                    best[key] = _Offer(value / cost, cost, sentence, start, end, worth >= _LEAST_COUNTED)
        return sorted(best.items(), key=lambda item: (-item[1].rank, item[1].sentence.place, item[1].start))

    def _pick_facts(self, offers: Sequence[tuple[str, _Offer]]) -> None:
        """As many as there is room for; for most of those that count, there is more room."""
        wanted = self._aim.facts * sum(offer.is_counted for _, offer in offers)
        kept = 0
        for key, offer in offers:
            is_wanted = offer.is_counted and kept < wanted
            room = self._limit if is_wanted else self._room * _FACTS_SHARE
            if key not in self._covered and self._used + offer.cost <= room:
                self._pick(offer.sentence, offer.start, offer.end)
            kept += offer.is_counted and key in self._covered

    def _explain_numbers(self) -> None:
        """Let a bare number have the word that it counts, or else the one before it."""
        for sentence in self._sentences:
            for start, end in list(sentence.picked):
                if _NUMBER.fullmatch(sentence.text, start, end) is None:
                    continue
                after = _NEXT_WORDS.match(sentence.text, end) or _COUNTER.match(sentence.text, end)
                before = None if after else _WORDS_BEFORE.search(sentence.text, max(0, start - _WORD_CHARS), start)
                span = before.start() if before else start, after.end() if after else end
                if self._used + sentence.cost(*span) <= self._room:
                    self._pick(sentence, *span)

    def _close_gaps(self) -> None:
        """Let the few words between two picks of a sentence stand, instead of a mark in their place."""
        for sentence in self._sentences:
            for start, end in list(sentence.gaps()):
                cost = sentence.cost(start, end)
                is_whole = _BRACKETS.isdisjoint(sentence.text[start:end])
                if is_whole and cost <= _SMALL_GAP and self._used + cost <= self._room:
                    self._pick(sentence, start, end)

    def _widen(self) -> None:
        """Clauses around what is picked, then whole sentences: those that say most for their tokens first."""
        words = Counter(word for each in self._sentences for word in set(_words(each.text)))
        candidates = [
            (sentence, *span)
            for sentence in self._sentences
            for span in dict.fromkeys([*self._clauses(sentence), (0, len(sentence.text))])
        ]
        heap = []
        for number, (sentence, start, end) in enumerate(candidates):
            cost = sentence.cost(start, end)
            if cost > 0:
                heap.append((-self._value(sentence, start, end, words) / (cost + 2), number))
        heapq.heapify(heap)
        while heap and self._used < self._room - 1:
            _, number = heapq.heappop(heap)
            sentence, start, end = candidates[number]
            cost = sentence.cost(start, end)
            if cost > 0 and self._used + cost <= self._room:
                self._pick(sentence, start, end)

    def _lengthen(self) -> None:
        """A word more behind each pick, which tells a little of what was said of it."""
        for sentence in self._sentences:
            for start, end in list(sentence.picked):
                after = _NEXT_WORDS.match(sentence.text, end) or _NEXT_RUN.match(sentence.text, end)
                if after and self._used + sentence.cost(start, after.end()) <= self._room:
                    self._pick(sentence, start, after.end())

    def _clauses(self, sentence: _Sentence) -> list[tuple[int, int]]:
        return [sentence.clause(start, end) for start, end in sentence.picked]

    def _value(self, sentence: _Sentence, start: int, end: int, words: Counter[str]) -> float:
        said = sum(1 + 0.5 * log2(words[word]) for word in set(_words(sentence.text[start:end])))
        return said * (_OPENING if sentence.place == 0 else 1) * (1.2 if sentence.picked else 1)

    def _pick(self, sentence: _Sentence, start: int, end: int) -> None:
        self._used += sentence.cost(start, end)
        sentence.pick(start, end)
        for one, other, fact, _ in sentence.facts:
            if start <= one and other <= end:
                self._covered.add(fact.text)
                self._covered.update(_SPACE_IN_NAME.split(fact.text))

    def _parts(self) -> list[str]:
        parts = (_trimmed(each.text[start:end]) for each in self._sentences for start, end in each.picked)
        return [part for part in parts if part]

    def _joined(self) -> str:
        return _joined(self._parts())

    def _fitting(self) -> str:
        """What is picked, without the last of it that are too many tokens."""
        parts, limit = self._parts(), max(self._limit, self._room)
        if estimate_tokens(_joined(parts)) <= limit:
            return _joined(parts)
        kept = bisect_right(range(len(parts)), limit, key=lambda last: estimate_tokens(_joined(parts[: last + 1])))
        return _joined(parts[:kept])

    def _beginning(self) -> str:
        """As much of the text as there is room for, where nothing else could be picked."""
        begun = ""
        for match in _PIECE.finditer(self._sentences[0].text if self._sentences else self._fallback):
            if begun and estimate_tokens((begun + match[0]).strip()) > self._room:
                break
            begun += match[0]
        return begun.strip()


def _read(text: str) -> Iterator[_Sentence]:
    found = (piece for each in sentences(text) for piece in _LONGEST.findall(each))
    said = [each for each in found if not _ORDINAL.fullmatch(each)]
    lower = {word for each in said for word in each.split() if word.islower()}
    nouns = ordinary_nouns(said)
    for place, sentence in enumerate(said):
        yield _Sentence(place, sentence, list(_facts(sentence, lower, nouns)))


def _facts(sentence: str, lower: set[str], nouns: frozenset[str]) -> Iterator[tuple[int, int, Fact, float]]:
    """The facts with their spans and what they are worth; the number of a list's item is none."""
    ordinal = _ORDINAL.match(sentence)
    begun = ordinal.end() if ordinal else 0
    first = _CAPITALISED.match(sentence, begun)
    located = [(start, fact) for start, fact in located_facts(sentence) if start >= begun]
    located = sorted([*located, *ideographic_names(sentence, located)])
    is_begun = bool(located) and first is not None and located[0][0] < first.end()
    if first and not is_begun and first[0] not in nouns and _may_be_name(first[0], lower):
        is_speaker = sentence.startswith(":", first.end())
        worth = _LEAST_COUNTED if is_speaker else _NOUN_WORTH if nouns else _UNSURE_WORTH
        yield begun, first.end(), Fact(FactKind.NAME, first[0]), worth
    for start, fact in located:
        text = _POSSESSIVE.sub("", fact.text) if fact.kind is FactKind.NAME else fact.text
        worth = _CLOCK_WORTH if fact.kind is FactKind.DATE and _CLOCK.match(text) else _WORTH[fact.kind]
        if text in nouns:
            worth = _NOUN_WORTH
        yield start, start + len(text), Fact(fact.kind, text), worth


def _may_be_name(word: str, lower: set[str]) -> bool:
    stem = re.split("['’-]", word)[0]
    return stem not in SENTENCE_STARTERS and stem.lower() not in lower and not _NO_NAME.search(stem)


def _joined(parts: Sequence[str]) -> str:
    """The parts, with the mark between two of them that their script has."""
    marks = (_WIDE_JOIN if _WIDE.fullmatch(one[-1] + other[0]) else _JOIN for one, other in pairwise(parts))
    return "".join(chain.from_iterable(zip(parts, [*marks, ""], strict=True))) if parts else ""


def _trimmed(part: str) -> str:
    """Without space, and without a bracket of which the other one is not there."""
    part = part.strip().strip(",;、，；")
    for one, other in ("()", "[]"):
        if part.startswith(one) and other not in part:
            part = part[1:]
        if part.endswith(other) and one not in part:
            part = part[:-1]
    return part if _SAYS.search(part) else ""


def _words(text: str) -> Iterable[str]:
    return (match[0].lower() for match in _WORD.finditer(text))
