"""Whether a query calls a memory by one of its names: pure arithmetic.

`metadata["aliases"]` of a memory are what it is also called: a text, or a list of them. A query that has all telling
words of one of them, in any form, means that memory, however much else it says; so does one that misspells a word.
A name only tells what a memory is worth: to be found by it in a large store, it must stand in the content as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from lamina.domain.lexical import Term, query_terms

__all__ = ["forms_in", "is_called", "names_in"]

ALIASES: Final = "aliases"
MOST_NAMES: Final = 50
"""Of one memory; what stands behind them is not looked at."""

SHORTEST_MISSPELT: Final = 5
"""Letters: shorter words are too often one letter from another."""
SURE_LETTERS: Final = 2
"""At the beginning, where hardly anybody errs."""


def names_in(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The names that the metadata of a memory holds."""
    aliases = metadata.get(ALIASES)
    named = [aliases] if isinstance(aliases, str) else aliases if isinstance(aliases, list) else []
    return tuple(name for name in named[:MOST_NAMES] if isinstance(name, str))


def forms_in(terms: Iterable[Term]) -> frozenset[str]:
    """All forms of the words of a query."""
    return frozenset(form for term in terms for form in term.forms)


def is_called(names: Iterable[str], forms: Collection[str], strange: Iterable[Term]) -> bool:
    """Whether the query has all words of a name; one may be misspelt, as a word that no memory in reach holds."""
    for name in names:
        missing = [term for term in _terms(name) if not any(form in forms for form in term.forms)]
        if _terms(name) and not missing:
            return True
        if len(missing) == 1 and any(_is_misspelt(term.forms[0], missing[0].forms[0]) for term in strange):
            return True
    return False


@lru_cache(maxsize=4096)
def _terms(name: str) -> tuple[Term, ...]:
    return tuple(query_terms(name))


def _is_misspelt(word: str, known: str) -> bool:
    """Whether a letter was left out, added or changed, or two neighbours swapped."""
    if len(known) < SHORTEST_MISSPELT or word[:SURE_LETTERS] != known[:SURE_LETTERS]:
        return False
    while word and known and word[0] == known[0]:
        word, known = word[1:], known[1:]
    while word and known and word[-1] == known[-1]:
        word, known = word[:-1], known[:-1]
    return max(len(word), len(known)) <= 1 or (len(word) == len(known) == 2 and word == known[::-1])  # noqa: PLR2004
