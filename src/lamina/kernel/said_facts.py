"""Finds what a user says about themselves, by rules: pure, no model, linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lamina.domain.text import clean
from lamina.kernel.auto_save_rules import CLAUSE_START, DOUBTFUL, MADE_UP, QUESTION, RULES, FactKind

__all__ = ["SaidFact", "own_part", "said_facts"]

MAX_TEXT_CHARS: Final = 20_000
"""What is read of one message: longer ones are pasted, not said."""
MAX_SENTENCE_CHARS: Final = 300
RELEVANCE: Final = {FactKind.TASTE: 0.7, FactKind.WORK: 0.8, FactKind.HOME: 0.8}
_SURE: Final = 0.9

_QUOTED: Final = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|^[ \t]*>[^\n]*$"
    r"|\"[^\"\n]{2,2000}\"|“[^”\n]{2,2000}”|„[^“”\n]{2,2000}[“”]|«[^»\n]{2,2000}»|»[^«\n]{2,2000}«"
    r"|「[^」\n]{1,2000}」|『[^』\n]{1,2000}』|(?<!\w)'[^'\n]{3,2000}'(?!\w)|(?<!\w)‘[^’\n]{3,2000}’(?!\w)",
    re.DOTALL | re.MULTILINE,
)
_SHORT_QUOTE_CHARS: Final = 40
"""So much may be a name or a title."""
_FILLER: Final = "\x01"
_END: Final = re.compile(r"[!?…。！？]+|\.+(?=\s|$)|\n+")
_ABBREVIATION: Final = re.compile(
    r"(?:\b(?:[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|St|No|Nr|vs|etc|approx|Sr|Sra|Mme|Mlle|ca|z\.B|e\.g|i\.e)|\s\d{1,2})$"
)
"""What a full stop may follow inside a sentence: the last are ordinals, as in `4. März`."""


@dataclass(frozen=True, slots=True)
class SaidFact:
    """A sentence of the user's own, what it is about, and how much it matters."""

    content: str
    kind: FactKind
    relevance: float


def said_facts(text: str, *, limit: int = 5) -> list[SaidFact]:
    """The sentences in which the user says something lasting about themselves, in order, at most so many.

    Questions, quotations, code, what is only supposed, and what is told of others are left alone. When in
    doubt, nothing is found.
    """
    said = clean(text)[:MAX_TEXT_CHARS]
    masked = _QUOTED.sub(lambda match: _FILLER * len(match[0]), said.replace("’", "'"))
    if MADE_UP.search(masked):
        return []
    found: dict[str, SaidFact] = {}
    for start, end in _sentences(masked):
        kind = _kind(masked[start:end].strip())
        content = said[start:end].strip()
        if kind is not None and content not in found:
            found[content] = SaidFact(content, kind, RELEVANCE.get(kind, _SURE))
        if len(found) >= limit:
            break
    return list(found.values())


def own_part(text: str) -> str:
    """The text without code and what is quoted at length: what somebody pastes is not what they say of themselves."""
    return _QUOTED.sub(lambda match: match[0] if _is_a_name(match[0]) else " ", text)


def _is_a_name(quotation: str) -> bool:
    return len(quotation) <= _SHORT_QUOTE_CHARS and not quotation.lstrip().startswith(("```", ">"))


def _kind(sentence: str) -> FactKind | None:
    """What the sentence tells of its speaker, if it plainly does."""
    if not sentence or len(sentence) > MAX_SENTENCE_CHARS or QUESTION.search(sentence):
        return None
    if any(pattern.search(sentence) for pattern in DOUBTFUL):
        return None
    starts = {match.end() for match in CLAUSE_START.finditer(sentence)} | {0}
    for rule in RULES:
        if rule.anywhere and rule.pattern.search(sentence):
            return rule.kind
        if any(_matches(rule.pattern, sentence, start) for start in starts):
            return rule.kind
    return None


def _matches(pattern: re.Pattern[str], sentence: str, start: int) -> bool:
    return pattern.match(sentence[start:]) is not None


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where each sentence or line begins and ends."""
    start = 0
    for match in _END.finditer(text):
        if match[0].startswith(".") and _ABBREVIATION.search(text, max(start, match.start() - 8), match.start()):
            continue
        yield start, match.end()
        start = match.end()
    if start < len(text):
        yield start, len(text)
