"""A summary without a model: the sentences and facts of a text that carry most, in its own words.

It picks; it understands nothing. What it guarantees is its size, that each sentence in it stands in the
text, and that it prefers paths, links, dates, numbers, identifiers, names and decisions to talk. Say that
it is extractive wherever it is shown (`SummarySource.EXTRACTIVE`).
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import log2
from typing import Final

from lamina.domain.facts import Fact, FactKind, facts_in, sentences
from lamina.domain.message_size import Count

__all__ = ["extract", "files_line", "is_decision"]

_WEIGHT: Final = {
    FactKind.LINK: 2.0,
    FactKind.PATH: 1.5,
    FactKind.DATE: 3.0,
    FactKind.NUMBER: 2.0,
    FactKind.IDENTIFIER: 1.0,
    FactKind.NAME: 3.0,
}
_CUE_WEIGHT: Final = 4.0
_FIRST_WEIGHT: Final = 6.0
"""For the sentence that begins the whole text: it mostly says what all is about."""
_CODE_SHARE: Final = 0.3
"""What the facts of a line of code or of a table count for, beside those of speech."""
_SPEECH_LETTERS: Final = 0.72
_OVERHEAD_CHARS: Final = 60
"""Added to a sentence's length where its value is set against it: fragments are cheap, but say little."""
_MOST_FACTS: Final = 8
"""So that a line of forty numbers does not outweigh what was said."""

_MOST_LISTED: Final = 1_000
_MOST_ALIKE: Final = 50
"""With how many files of the same last name one is compared."""

_FOLDER_SHARE: Final = 0.15
"""What naming a folder, a package or another path without an extension counts for, beside naming a file."""

_SHARE: Final = {"Files": 0.45, "Links": 0.08, "Names and dates": 0.15, "Terms": 0.08}
"""How much of the room each list may take."""
_SENTENCES_SHARE: Final = 0.85
_PREVIOUS_SHARE: Final = 0.6
"""Of the sentences' room: what the sentences of the former summary get before new ones may displace them."""

_CUE_WORDS: Final = r"""
    decid\w+ decision\w* agree[ds]? chose chosen choose prefer\w* must(?:n't)? never always require[ds]? deadline due
    because conclu\w+ confirm\w* approv\w+ reject\w* fail(?:ed|s|ure) broken? fix(?:ed|es) bug error warning important
    allerg\w+ todo root\scause instead\sof next\sstep
    entschied\w* beschlossen entscheidung muss müssen niemals immer vereinbart weil
    décid\w+ décision doit jamais toujours parce decidi\w+ decisión debe nunca siempre porque
""".split()
_CUE: Final = re.compile(
    rf"\b(?:{'|'.join(_CUE_WORDS)})\b|决定|決定|必须|必須|同意|因为|因為|选择|選択|截止|错误|エラー|失敗|失败|なければ|결정|반드시|때문",
    re.IGNORECASE,
)
_CODE: Final = re.compile(r"\d+\s?(?:→|:|\t)|[+@|#/<{}]|.*[;{]$")
_INDEX: Final = {
    "Files": (FactKind.PATH,),
    "Links": (FactKind.LINK,),
    "Names and dates": (FactKind.NAME, FactKind.DATE),
    "Terms": (FactKind.IDENTIFIER,),
}
_INDEX_LINE: Final = re.compile(rf"^({'|'.join(_INDEX)}): (.+)$")
_COUNTED: Final = re.compile(r"^(.+) \((\d{1,9})\)$")


def extract(texts: Iterable[str], *, max_tokens: int, count: Count, previous: str = "") -> str:
    """What matters of the texts, in at most `max_tokens` by `count`; "" if there is nothing, or room for nothing.

    `previous` is the summary of what came before the texts. Its sentences and facts are weighed with the
    new ones, and keep more than half of the room if they need it; it is never put into the result whole.
    The result is lines: sentences marked `- `, those of `previous` first, then in the order of the
    texts; then the files, links, names, dates and terms that were named most, with how often.
    Takes time in proportion to the texts' length (times the logarithm of their sentences).
    """
    if max_tokens <= 0:
        return ""
    material = _Material()
    material.read_previous(previous)
    for text in texts:
        material.read(text)
    summary = _Selection(material, max_tokens, count).lines()
    while summary and count("\n".join(summary)) > max_tokens:
        summary.pop()
    return "\n".join(summary)


def files_line(counted: Counter[str]) -> str:
    """A line of files for `previous`, with how often each was named; "" if there are none."""
    items = [_counted(path, often) for path, often in counted.most_common(_MOST_LISTED)]
    return f"Files: {', '.join(items)}" if items else ""


def is_decision(sentence: str) -> bool:
    """Whether the sentence has a word by which people decide, demand, explain or report a failure."""
    return _CUE.search(sentence) is not None


class _Sentence:
    """What may be picked. It is valued many times, so that what does not change of its value is told once."""

    __slots__ = ("_cost", "_facts", "_more", "_share", "facts", "is_old", "place", "text")

    def __init__(self, place: int, text: str, facts: tuple[Fact, ...], *, is_old: bool) -> None:
        self.place = place
        self.text = text
        self.facts = facts
        self.is_old = is_old
        self._facts = tuple(dict.fromkeys(facts))
        is_code = _CODE.match(text) is not None or _letters(text) < _SPEECH_LETTERS
        self._share = _CODE_SHARE if is_code else 1.0
        self._more = _CUE_WEIGHT if not is_code and is_decision(text) else 0.0
        self._cost = len(text) + _OVERHEAD_CHARS

    def value(self, often: Counter[Fact], covered: set[Fact]) -> float:
        """What it adds to what is covered already, for its length."""
        facts = [fact for fact in self._facts if fact not in covered][:_MOST_FACTS]
        value = sum(_WEIGHT[fact.kind] * (1 + 0.25 * min(log2(often[fact]), 3)) for fact in facts)
        value = value * self._share + self._more
        if self.place == 0:
            value += _FIRST_WEIGHT
        return value / self._cost


@dataclass(slots=True)
class _Material:
    """Everything that may be picked."""

    sentences: list[_Sentence] = field(default_factory=list)
    often: Counter[Fact] = field(default_factory=Counter)
    _seen: set[str] = field(default_factory=set)

    def read_previous(self, previous: str) -> None:
        """Take a former summary apart: its lists back into counts, the rest into sentences."""
        rest = []
        for line in previous.splitlines():
            match = _INDEX_LINE.match(line)
            if match is None:
                rest.append(line)
                continue
            for item in match[2].split(", "):
                counted = _COUNTED.match(item)
                text, often = (counted[1], int(counted[2])) if counted else (item, 1)
                self.often[_listed(match[1], text)] += often
        for sentence in sentences("\n".join(rest)):
            self._add(sentence, is_old=True, count=False)

    def read(self, text: str) -> None:
        """Take a text apart."""
        for sentence in sentences(text):
            self._add(sentence, is_old=False, count=True)

    def _add(self, text: str, *, is_old: bool, count: bool) -> None:
        facts = tuple(facts_in(text))
        if count:
            self.often.update(facts)
        else:
            for fact in facts:
                self.often.setdefault(fact, 1)
        key = text.casefold()
        if key not in self._seen:
            self._seen.add(key)
            self.sentences.append(_Sentence(len(self.sentences), text, facts, is_old=is_old))


class _Selection:
    """Picks from the material until the room is used."""

    def __init__(self, material: _Material, max_tokens: int, count: Count) -> None:
        self._material = material
        self._max_tokens = max_tokens
        self._count = count
        self._covered: set[Fact] = set()
        self._picked: set[int] = set()
        self._used = 0

    def lines(self) -> list[str]:
        """The lines of the summary; in tokens they add up to no more than the room, but for rounding."""
        files = self._index_line("Files", int(self._max_tokens * _SHARE["Files"]))
        room = int(self._max_tokens * _SENTENCES_SHARE)
        everything = self._material.sentences
        old = [each for each in everything if each.is_old]
        self._pick(old, self._used + int((room - self._used) * _PREVIOUS_SHARE))
        self._pick(everything, room)
        others = [
            self._index_line(label, int(self._max_tokens * _SHARE[label])) for label in _INDEX if label != "Files"
        ]
        self._pick(everything, self._max_tokens)
        picked = [f"- {everything[place].text}" for place in sorted(self._picked)]
        if not picked and not files and everything:
            return self._beginning(everything[0].text)
        return [*picked, *files, *(line for lines in others for line in lines)]

    def _pick(self, candidates: Sequence[_Sentence], room: int) -> None:
        """The most valuable first; what a picked one says makes the others worth less, so they are valued anew."""
        often, covered = self._material.often, self._covered
        heap = [(-each.value(often, covered), each.place) for each in candidates if each.place not in self._picked]
        heapq.heapify(heap)
        sentences = self._material.sentences
        misses = 0
        while heap and misses < 32 and self._used < room:  # noqa: PLR2004 - so many in a row that did not fit: it is full
            former, place = heapq.heappop(heap)
            worth = sentences[place].value(often, covered)
            if worth <= 0:
                continue
            if heap and -worth > max(heap[0][0], former):
                heapq.heappush(heap, (-worth, place))
                continue
            cost = self._count(f"- {sentences[place].text}\n")
            if self._used + cost > room:
                misses += 1
                continue
            misses = 0
            self._used += cost
            self._picked.add(place)
            covered.update(sentences[place].facts)

    def _index_line(self, label: str, room: int) -> list[str]:
        """The facts of these kinds that no picked sentence names, most often named first; none if nothing fits."""
        kinds = _INDEX[label]
        counted = Counter({fact: often for fact, often in self._material.often.items() if fact.kind in kinds})
        if label == "Files":
            ranked = _ranked_files(counted)
        else:
            ranked = [(fact, often) for fact, often in counted.most_common() if fact not in self._covered]
        items: list[str] = []
        used = self._count(f"{label}: \n")
        for fact, often in ranked:
            item = _counted(fact.text, often)
            used += self._count(f", {item}")
            if used > room or self._used + used > self._max_tokens:
                break
            self._covered.add(fact)
            items.append(item)
        if not items:
            return []
        line = f"{label}: {', '.join(items)}"
        self._used += self._count(f"{line}\n")
        return [line]

    def _beginning(self, text: str) -> list[str]:
        """As many words of the only sentence as there is room for."""
        words: list[str] = []
        for word in _words(text):
            if self._count("".join([*words, word])) > self._max_tokens:
                break
            words.append(word)
        begun = "".join(words).strip()
        return [begun] if begun else []


def _counted(text: str, often: int) -> str:
    return f"{text} ({often})" if often > 1 else text


def _words(text: str) -> Iterator[str]:
    """Words with the space after them, very long ones in pieces; single characters where there are no spaces."""
    yield from re.findall(r"[\x21-\x7e]{1,20}\s*|.", text)


def _letters(text: str) -> float:
    return (sum(map(str.isalpha, text)) + text.count(" ")) / len(text)


def _by_longest_name(counted: Counter[Fact]) -> Counter[Fact]:
    """The same files by their longest names: `api/main.py` counts for `src/api/main.py`, where that is named too."""
    by_last: dict[str, list[Fact]] = {}
    for fact in sorted(counted, key=lambda fact: len(fact.text), reverse=True):
        by_last.setdefault(fact.text.rsplit("/", 1)[-1], []).append(fact)
    joined: Counter[Fact] = Counter()
    for facts in by_last.values():
        kept: list[Fact] = []
        for fact in facts:
            tail = "/" + fact.text.removeprefix("./").lstrip("/")
            whole = next((each for each in kept[:_MOST_ALIKE] if each.text.endswith(tail)), None)
            if whole is None:
                kept.append(fact)
            joined[whole or fact] += counted[fact]
    return joined


def _ranked_files(counted: Counter[Fact]) -> list[tuple[Fact, int]]:
    """Most often named first; a folder or a package counts for less than a file."""

    def weight(item: tuple[Fact, int]) -> float:
        last = item[0].text.rsplit("/", 1)[-1]
        return item[1] * (1 if "." in last[1:] else _FOLDER_SHARE)

    return sorted(_by_longest_name(counted).items(), key=weight, reverse=True)


def _listed(label: str, text: str) -> Fact:
    """The fact that a list names; which of the list's kinds it is, its form says."""
    kinds = _INDEX[label]
    read = [fact for fact in facts_in(text) if fact.text == text and fact.kind in kinds]
    return read[0] if read else Fact(kinds[0], text)
