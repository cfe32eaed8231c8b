"""What of a text must not get lost when it is shortened: paths, links, dates, numbers, identifiers, names.

Found by form alone, in any script, without a model. Everything here takes time linear in the text:
patterns only ever see a line or a sentence, which `sentences` keeps short.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NamedTuple

__all__ = [
    "MAX_SENTENCE_CHARS",
    "SENTENCE_STARTERS",
    "Fact",
    "FactKind",
    "facts_in",
    "facts_of",
    "located_facts",
    "paths_of",
    "sentences",
]

MAX_SENTENCE_CHARS: Final = 240
"""Longer ones are cut, at a comma or a space if there is one: a picked piece should be about one thing."""


class FactKind(StrEnum):
    """What the form of a fact says that it is."""

    LINK = "link"
    PATH = "path"
    DATE = "date"
    NUMBER = "number"
    IDENTIFIER = "identifier"
    NAME = "name"


class Fact(NamedTuple):
    """A piece of text that stands for a thing."""

    kind: FactKind
    text: str


_END: Final = re.compile(r"""(?<![.!?…])[.!?…]++["'”’)\]]*+(?=\s)|[。！？｡؟।]++[」』”’）]*+|[\r\n\f\v\u2028\u2029]++""")
_ABBREVIATION: Final = re.compile(
    r"\b(?:[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|St|No|Nr|Fig|vs|etc|e\.g|i\.e|z\.B|bzw|ca|approx|Jan|Feb|Mar|Apr|Jun|Jul"
    r"|Aug|Sept?|Oct|Nov|Dec)\.$"
)
_BREAK: Final = ",;:，、；：—–|)"
_ESCAPE: Final = re.compile(r"\x1b\[[0-9;?]{0,24}[A-Za-z]|[\x00-\x08\x0e-\x1f\x7f]")
_MARKS: Final = re.compile(r"^(?:[-*>#•+|]+\s+)+")
_SPACES: Final = re.compile(r"\s+")

_EXTENSION: Final = (
    "py|pyi|js|mjs|jsx|ts|tsx|go|rs|c|h|cc|cpp|hpp|java|kt|rb|php|cs|swift|scala|sh|bash|zsh|ps1|sql|html?|css|scss|vue|"
    "json|jsonl|ya?ml|toml|ini|cfg|conf|env|xml|csv|tsv|md|mdx|rst|txt|log|lock|mod|sum|proto|ipynb|pdf|docx?|xlsx?|"
    "pptx?|png|jpe?g|gif|svg|zip|gz|tar|db|sqlite|parquet|tf|gradle|cmake"
)
_LINE_OF_FILE: Final = re.compile(rf"(\.(?:{_EXTENSION}))-\d+(?:-.*)?$")
"""How search tools write a line near a hit: `main.go-12-text`."""
_SEGMENT: Final = r"[A-Za-z0-9_.@+À-ſ-]{1,100}"
_MONTH: Final = (
    "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|"
    "Nov(?:ember)?|Dec(?:ember)?|Januar|Februar|März|Mai|Juni|Juli|Oktober|Dezember"
)
_LETTER: Final = r"[^\W\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
"""A letter, digit or underscore of a script with spaces between words: others go on where a Latin word ends."""
_UNIT: Final = (
    r"%|‰|°[CF]?|(?:ms|s|sec|min|h|hours?|days?|weeks?|months?|years?|[kKMGT]i?B|[kKMG]|px|km|cm|mm|m|kg|g|ml|l|"
    rf"tokens?|lines?|USD|EUR|GBP)(?!{_LETTER})"
)
_LINK: Final = r"https?://\w[^\s<>\"'`)\]]+|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}"
_PATH: Final = (
    rf"(?<![A-Za-z0-9_@+<-])(?:[A-Za-z]:\\(?:{_SEGMENT}\\){{0,16}}{_SEGMENT}"
    rf"|(?:~?/|\.{{1,2}}/)?(?=[0-9/]{{0,40}}[A-Za-z_.~])(?:{_SEGMENT}/){{1,16}}{_SEGMENT}"
    rf"|(?<!/)/{_SEGMENT}\.[a-z]{{1,8}}(?!\w)|(?![.-]){_SEGMENT}\.(?:{_EXTENSION})(?![\w/]))"
)
_DATE: Final = (
    r"(?<!\d)(?:\d{4}-\d\d(?:-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?)?(?!\d)|\d{1,2}[./]\d{1,2}[./]\d{2,4}(?!\d)"
    rf"|(?:\d{{1,2}}(?:st|nd|rd|th|\.)?\s(?:of\s)?(?:{_MONTH})|(?:{_MONTH})\.?\s\d{{1,2}}(?:st|nd|rd|th)?)"
    r"(?!\w)(?:,?\s\d{4})?|\d{1,4}\s?[年년](?:\s?\d{1,2}\s?[月월])?(?:\s?\d{1,2}\s?[日일号])?"
    r"|\d{1,2}\s?[月월](?:\s?\d{1,2}\s?[日일号])?|\d{1,2}:\d\d(?::\d\d)?(?:\s?[AaPp]\.?[Mm]\b)?)"
)
_IDENTIFIER: Final = (
    rf"(?<![A-Za-z0-9_])(?:[A-Za-z]{_LETTER}{{0,60}}_{_LETTER}{{1,60}}|[a-z]{{1,40}}[A-Z]{_LETTER}{{1,60}}"
    rf"|[A-Z][a-z]+[A-Z]{_LETTER}{{1,60}}|[A-Z]{{2,10}}-\d{{1,10}}|#\d{{1,9}}(?!{_LETTER})"
    rf"|v\d{{1,4}}(?:\.\d{{1,6}}){{0,3}}(?!{_LETTER})|(?=[a-z]*\d)(?=\d*[a-z])[0-9a-f]{{7,40}}(?!{_LETTER}))"
    r"|(?<=`)[^`\s]{2,80}(?=`)|(?<!\w)--[a-z][\w-]{1,40}"
)
_NUMBER: Final = rf"[$€£¥]?\d(?:[\d.,_]{{0,30}}\d)?(?:\s?(?:{_UNIT}))?"
_CAPITAL: Final = rf"[A-ZÀ-ÖØ-ÞΑ-ΩА-Я](?:{_LETTER}|['’]|-(?={_LETTER})){{1,40}}"
_NAME: Final = (
    rf"(?<![A-Za-z0-9_]){_CAPITAL}(?:\s{_CAPITAL}){{0,3}}|(?:[ァ-ヶー]{{2,20}}・){{1,4}}[ァ-ヶー]{{2,20}}|[ァ-ヶー]{{3,20}}"
    r"|[「『《“][^「」『』《》“”]{2,30}[」』》”]"
)
_FACT: Final = re.compile(
    f"(?P<link>{_LINK})|(?P<path>{_PATH})|(?P<date>{_DATE})|(?P<identifier>{_IDENTIFIER})"
    f"|(?P<number>{_NUMBER})|(?P<name>{_NAME})"
)
"""The first that matches at a place wins: a date is no number, a path no name."""
_LINK_OR_PATH: Final = re.compile(f"(?P<link>{_LINK})|(?P<path>{_PATH})")
SENTENCE_STARTERS: Final = frozenset(
    """
    A About Actually After All Also Although An And Another Any Are As At Be Because Before But By Can Could Did
    Do Does Done Each Either Even Every Everything First Fix For From Get Given Good Great Has Have He Hello Her
    Here Hi His How However I If In Instead Is It Its Just Last Let Like Made Make Maybe Might More Most Much My
    Need New Next No Not Note Now Of Ok Okay Old On Once One Only Or Other Our Out Over Perfect Please Really
    Right Run See She Should Since So Some Still Sure Take Thank Thanks That The Their Them Then There These They
    This Those Though To Today Too Try Two Under Until Up Us Use Used Using Very Wait Was We Well Were What When
    Where Which While Who Why Will With Without Would Yes Yet You Your Der Die Das Ein Eine Es Ich Wir Sie Und
    Aber Le La Les Un Une El Los Las Je Il Elle Nous Vous
    """.split()
)
"""Words that are capitalised for where they stand, and are no names."""


def sentences(text: str) -> Iterator[str]:
    """The sentences and lines of the text in order, white space made one space, without list marks; none is blank.

    None is longer than `MAX_SENTENCE_CHARS`. Scripts that put no space after a full stop are split too.
    """
    start = 0
    for match in _END.finditer(text):
        end = match.end()
        if text[end - 1] == "." and _ABBREVIATION.search(text, max(start, end - 10), end):
            continue
        yield from _pieces(text[start:end])
        start = end
    yield from _pieces(text[start:])


def facts_in(sentence: str) -> list[Fact]:
    """The facts of one sentence, in order, repeats included."""
    return [fact for _, fact in _found(_FACT, sentence)]


def located_facts(sentence: str) -> list[tuple[int, Fact]]:
    """Likewise, each with where in the sentence its text begins."""
    return list(_found(_FACT, sentence))


def _found(pattern: re.Pattern[str], sentence: str) -> Iterator[tuple[int, Fact]]:
    for match in pattern.finditer(sentence):
        kind = FactKind(match.lastgroup or "")
        text = match.group()
        start = match.start()
        if kind is FactKind.NAME:
            text = _without_starter(text, is_first=match.start() == 0)
            start = match.end() - len(text)
        elif kind in {FactKind.LINK, FactKind.PATH}:
            text = _LINE_OF_FILE.sub(r"\1", text).rstrip(".,;:!?-")
        if len(text) > 1 or kind is FactKind.NUMBER:
            yield start, Fact(kind, text)


def facts_of(text: str) -> Iterator[Fact]:
    """The facts of a whole text, in order, repeats included."""
    for sentence in sentences(text):
        yield from facts_in(sentence)


def paths_of(text: str) -> Iterator[str]:
    """The paths of a whole text, in order, repeats included: as `facts_of` finds them, in less time."""
    for sentence in sentences(text):
        if "/" in sentence or "." in sentence or "\\" in sentence:
            yield from (fact.text for _, fact in _found(_LINK_OR_PATH, sentence) if fact.kind is FactKind.PATH)


def _without_starter(name: str, *, is_first: bool) -> str:
    """A name without the ordinary word before it; empty if only its place makes a word look like one."""
    first, _, rest = name.partition(" ")
    if is_first and not rest and first[0].isascii():
        return ""
    return rest if first.split("'")[0].split("’")[0] in SENTENCE_STARTERS else name


def _pieces(line: str) -> Iterator[str]:
    line = _MARKS.sub("", _SPACES.sub(" ", _ESCAPE.sub("", line)).strip())
    start = 0
    while len(line) - start > MAX_SENTENCE_CHARS:
        end = _cut_at(line, start)
        yield line[start:end].strip()
        start = end
    if start < len(line):
        yield line[start:].strip()


def _cut_at(line: str, start: int) -> int:
    """Where to end a piece of a line: after the last comma, else at the last space, else in the middle of a word."""
    most, least = start + MAX_SENTENCE_CHARS, start + MAX_SENTENCE_CHARS // 2
    for place in range(most - 1, least, -1):
        if line[place] in _BREAK and (line[place] > "\x7f" or line[place + 1] == " "):
            return place + 1
    space = line.rfind(" ", least, most)
    return most if space < 0 else space + 1
