"""What the reductions of pack memories leave of texts: how many tokens, and which names, numbers and dates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any, Final

from lamina.domain.message_size import Count
from lamina.domain.pack_decay import Tier
from lamina.domain.token_estimate import estimate_tokens
from lamina.evaluation.document_trees import load_trees
from lamina.packs.reducing import LEAST_TOKENS, reduced

__all__ = ["ItemKind", "Reduction", "ReductionFigures", "evaluate_reductions", "items_of", "load_texts"]

Reduction = Callable[[str, Tier], str]
"""The text as the tier leaves it."""

_TIERS: Final = (Tier.SUMMARY, Tier.KEY_FACTS)

_MONTH: Final = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?"
    "|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_DATE: Final = re.compile(
    r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}\b(?:,? \d{{4}})?"
    rf"|\b{_MONTH}[- ]\d{{1,2}}(?:st|nd|rd|th)?\b(?:(?:, ?|[- ])\d{{4}})?|\b{_MONTH} \d{{4}}\b"
    r"|(?:\d{2,4}年)?\d{1,2}月(?:\d{1,2}日)?|\d{2,4}年"
)
_LETTER: Final = r"[^\W\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
"""Of a script with spaces between words: what is written without them goes on where a Latin word or number ends."""
_NUMBER: Final = re.compile(rf"(?<!{_LETTER})(?<![.,])\d+(?:[.,:]\d+)*")
_LIST_NUMBER: Final = re.compile(r"^[ \t]*\d{1,3}[.)](?=\s)", re.MULTILINE)
_WORD: Final = rf"[A-ZÀ-ÖØ-ÞΑ-ΩА-Я](?:{_LETTER}|['’&-])*{_LETTER}"  # noqa: RUF001
_NAME: Final = re.compile(rf"(?<!{_LETTER})(?<!['’]){_WORD}(?: {_WORD})*|[ァ-ヶー]{{3,}}")  # noqa: RUF001
_SENTENCE_BEFORE: Final = re.compile(r"(?:^|[.!?:…\n•*>#|\-\"“”(\[][\"'”’)\]*_]*)\s*$")  # noqa: RUF001
_POSSESSIVE: Final = re.compile(r"['’]s?$")  # noqa: RUF001
_GERMAN_WORD: Final = re.compile(
    r"(?<!\w)(?:der|die|das|den|dem|des|ein|eine|und|ist|nicht|mit|von|auf|für|sich)(?!\w)"
)
_LEAST_GERMAN: Final = 0.08
"""From this share of its words on, which a text in another language with a German quotation has not."""
_BEFORE_NOUN: Final = re.compile(
    r"(?<!\w)(?:[Dd](?:er|ie|as|en|em|es)|[Ee]in|[Kk]ein|[Ii]m|[Aa]m|[Zz]u[mr]|[Vv]om|[Bb]eim|[Ii]ns|[Aa]ns|[msd]ein|ihr"
    r"|[a-zäöüß]{2,}(?:e|e[nmrs])|[\d.,]+) $"
)
_UNINFLECTED: Final = re.compile(r"(?<!\w)(?:unter|über|hinter|zwischen|gegen|neben|ohne|oder|aber) $")
_ACRONYM: Final = re.compile(r"^[^-]+[A-ZÄÖÜ\d][^-]*$")
_NOUN_END: Final = re.compile(
    r"(?:ung|heit|keit|schaft|ion|tät|ismus|nis|tum|chen|ment|[ae]nz|ur|ik|ie|ng|e|e[nr]|ern)s?$"
)


class ItemKind(StrEnum):
    """What is counted."""

    NAME = "names"
    NUMBER = "numbers"
    DATE = "dates"


@dataclass(slots=True)
class ReductionFigures:
    """One collection in one tier; `kept` and `cut` are shares in [0, 1] of all distinct items of each text.

    `cut` is what the first characters of the same texts keep, as many as the reduction has. `dense` is the
    share of a text's tokens that its items have, each written once and nothing else.
    """

    collection: str
    tier: Tier
    texts: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    items_tokens: int = 0
    items: dict[ItemKind, int] = field(default_factory=lambda: dict.fromkeys(ItemKind, 0))
    kept_items: dict[ItemKind, int] = field(default_factory=lambda: dict.fromkeys(ItemKind, 0))
    cut_items: dict[ItemKind, int] = field(default_factory=lambda: dict.fromkeys(ItemKind, 0))

    @property
    def share(self) -> float:
        """Of the tokens, how many are left."""
        return self.tokens_after / max(1, self.tokens_before)

    @property
    def dense(self) -> float:
        """Of the tokens, how many the items alone have."""
        return self.items_tokens / max(1, self.tokens_before)

    def kept(self, kind: ItemKind | None = None) -> float | None:
        """Of the items of a kind, or of all, how many the reduction still has; None if there are none."""
        return _share(self.kept_items, self.items, kind)

    def cut(self, kind: ItemKind | None = None) -> float | None:
        """Likewise for the first characters."""
        return _share(self.cut_items, self.items, kind)

    def row(self) -> dict[str, Any]:
        """All of it by name, the shares of each kind and of all."""
        kinds: tuple[ItemKind | None, ...] = (None, *ItemKind)
        kept = {"all" if kind is None else kind.value: self.kept(kind) for kind in kinds}
        cut = {"all" if kind is None else kind.value: self.cut(kind) for kind in kinds}
        return {
            "collection": self.collection,
            "tier": self.tier.value,
            "texts": self.texts,
            "tokens": self.tokens_before,
            "share": self.share,
            "dense": self.dense,
            "kept": kept,
            "cut": cut,
        }

    def add(self, text: str, left: str, count: Count) -> None:
        """Count one text and what is left of it."""
        self.texts += 1
        self.tokens_before += count(text)
        self.tokens_after += count(left)
        items = items_of(text)
        self.items_tokens += count(" ".join(item for _, item in items))
        begun = text[: len(left)]
        for kind, item in items:
            self.items[kind] += 1
            self.kept_items[kind] += _stands_in(item, left)
            self.cut_items[kind] += _stands_in(item, begun)


def load_texts(folder: str | Path, *, most: int, least_tokens: int = LEAST_TOKENS) -> Iterator[tuple[str, list[str]]]:
    """Texts by collection: of each file of lines, and of the Markdown and text files, evenly spread, at most so many.

    Raises:
        InvalidInput: nothing is there, or a file cannot be read.
    """
    for tree in load_trees(folder):
        texts = [text for _, text in tree.documents if estimate_tokens(text) >= least_tokens]
        yield tree.name, list(islice(texts, 0, None, max(1, -(-len(texts) // most))))


def evaluate_reductions(
    collection: str, texts: Iterable[str], *, reduce: Reduction = reduced, count: Count = estimate_tokens
) -> list[ReductionFigures]:
    """Reduce each text to both tiers."""
    found = [ReductionFigures(collection, tier) for tier in _TIERS]
    for text in texts:
        for figures in found:
            figures.add(text, reduce(text, figures.tier), count)
    return found


def items_of(text: str) -> set[tuple[ItemKind, str]]:
    """The distinct names, numbers and dates of the text, by form: found apart from how reductions find theirs.

    A date is one item, not several numbers. Neither the number of a list's item nor a capitalised
    word that begins a sentence is one. In German, which capitalises all nouns, one word by itself is a name only
    if it does not end as nouns do, and nowhere stands behind an article, a number or a word that is inflected for it.
    """
    items = {(ItemKind.DATE, match[0]) for match in _DATE.finditer(text)}
    rest = _LIST_NUMBER.sub("", _DATE.sub(" ", text))
    items |= {(ItemKind.NUMBER, match[0]) for match in _NUMBER.finditer(rest)}
    return items | {(ItemKind.NAME, name) for name in _names(rest)}


def _names(text: str) -> set[str]:
    is_noun: dict[str, bool] = {}
    for match in _NAME.finditer(text):
        first, _, others = match[0].partition(" ")
        begins = _SENTENCE_BEFORE.search(text, max(0, match.start() - 8), match.start()) is not None
        name = _POSSESSIVE.sub("", others if begins else match[0])
        before = f"{first} " if begins else text[max(0, match.start() - 24) : match.start()]
        is_noun[name] = is_noun.get(name, False) or bool(
            _BEFORE_NOUN.search(before) and not _UNINFLECTED.search(before)
        )
    is_noun.pop("", None)
    if len(_GERMAN_WORD.findall(text)) < _LEAST_GERMAN * len(text.split()):
        return set(is_noun)
    return {name for name in is_noun if " " in name or _ACRONYM.search(name)} | {
        name for name in is_noun if not (is_noun[name] or "-" in name or _NOUN_END.search(name))
    }


def _stands_in(item: str, text: str) -> bool:
    if item[0] > "\u2fff":
        return item in text
    return re.search(rf"(?<!{_LETTER}){re.escape(item)}(?!\d)", text) is not None


def _share(some: dict[ItemKind, int], all_: dict[ItemKind, int], kind: ItemKind | None) -> float | None:
    total = sum(all_.values()) if kind is None else all_[kind]
    part = sum(some.values()) if kind is None else some[kind]
    return part / total if total else None
