"""Keyword search of backends that find entries by their terms: the ranking, which is the same on every one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lamina.domain.lexical import (
    MIN_DOCUMENTS_FOR_WEIGHTS,
    Term,
    count_terms,
    index_terms,
    similarity,
    term_weights,
)
from lamina.domain.memory import MemoryEntry
from lamina.ports.memory_adapter import SearchHit

__all__ = ["distinct_terms", "forms_of", "rank_by_words", "rarity"]


def distinct_terms(content: str) -> list[str]:
    """What an inverted index holds of a text: each of its terms once, in the order of the text."""
    return list(dict.fromkeys(index_terms(content)))


def forms_of(terms: Iterable[Term]) -> list[str]:
    """Every form of the query's terms, each once: an entry that holds one of them is a candidate."""
    return list(dict.fromkeys(form for term in terms for form in term.forms))


def rarity(terms: Sequence[Term], documents: int, count: Callable[[list[str]], dict[str, int]]) -> list[float]:
    """The terms' weights; the backend is asked for their frequencies only where rarity says something."""
    if documents < MIN_DOCUMENTS_FOR_WEIGHTS:
        return term_weights(terms, documents, {})
    return term_weights(terms, documents, count(forms_of(terms)))


def rank_by_words(
    terms: Sequence[Term], weights: Sequence[float], pool: Iterable[MemoryEntry], limit: int
) -> list[SearchHit]:
    """The best of the pool by lexical similarity, ties by id; entries that hold none of the terms fall out."""
    scored = [(similarity(terms, weights, count_terms(index_terms(each.content))), each) for each in pool]
    found = sorted(((value, each) for value, each in scored if value > 0), key=lambda pair: (-pair[0], pair[1].id))
    return [SearchHit(entry, value) for value, entry in found[:limit]]
