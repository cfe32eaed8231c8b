"""Keyword search: the index of words gives the candidates, and the server takes those that hold most by weight.

The final ranking also counts repeats and length.

A small scope is looked through instead. Otherwise the index is asked first, in a query of its own: in one with a table
that has policies, PostgreSQL would put the policy before the index, and not use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from lamina.adapters._shared.where_sql import Sql
from lamina.adapters._shared.word_ranking import forms_of, rank_by_words, rarity
from lamina.adapters.postgres.conditions import admitted
from lamina.adapters.postgres.reading import ask_for_found, count, entries_in
from lamina.adapters.postgres.rows import hashes_of
from lamina.adapters.postgres.tables import Collection
from lamina.domain.filters import MemoryFilter
from lamina.domain.lexical import Term
from lamina.domain.scope import Scope
from lamina.domain.text import is_clean
from lamina.ports.memory_adapter import SearchHit, SearchOptions, TermStatistics

__all__ = ["matching", "statistics"]

SMALL: Final = 2_000
"""Up to so many entries are looked through, whatever words they hold."""

# OFFSET 0 keeps the planner from turning the two around, which it would by what it guesses of words.
_SCOPE_FIRST: Final = (
    "{memories} AS m JOIN LATERAL (SELECT words FROM {words} WHERE tenant = m.tenant AND seq = m.seq OFFSET 0) AS w"
    " ON w.words && %s::bigint[]"
)
_WORDS_FIRST: Final = (
    "(SELECT tenant, seq, words FROM {words} WHERE words && %s::bigint[] OFFSET 0) AS w"
    " JOIN {memories} AS m ON m.tenant = w.tenant AND m.seq = w.seq"
)


def matching(collection: Collection, terms: Sequence[Term], options: SearchOptions) -> list[SearchHit]:
    """The entries that hold some of the terms, best first, ties by id."""
    documents = count(collection, options.scope, MemoryFilter(now=options.filter.now))
    weights = _weights(collection, terms, options, documents)
    score = _score(collection.tenant, terms, weights)
    condition = admitted(options.scope, options.filter)
    found = "SELECT m.seq FROM {rows} WHERE {condition} ORDER BY {score} DESC, m.id LIMIT %s"
    hashes = hashes_of(collection.tenant, forms_of(terms))
    parameters = (hashes, *condition.parameters, *score.parameters, 2 * options.limit + 100)
    parts = {"rows": _rows(documents), "condition": condition.text, "score": score.text}
    pool = ask_for_found(collection, found, parameters, embeddings=options.include_embeddings, **parts)
    return rank_by_words(terms, weights, entries_in(collection, pool), options.limit)


def statistics(collection: Collection, scope: Scope, words: Iterable[str], now: datetime) -> TermStatistics:
    """As `MemoryAdapter.term_statistics`."""
    documents = count(collection, scope, MemoryFilter(now=now))
    wanted = list(dict.fromkeys(words))
    possible = [word for word in wanted if is_clean(word)]
    frequencies = _frequencies(collection, scope, possible, now, documents=documents)
    return TermStatistics(documents, dict.fromkeys(wanted, 0) | frequencies)


def _weights(collection: Collection, terms: Sequence[Term], options: SearchOptions, documents: int) -> list[float]:
    """By rarity in the whole scope, whatever the filter; a single term's weight says nothing."""
    if len(terms) == 1:
        return [1.0]
    scope, now = options.scope, options.filter.now
    return rarity(terms, documents, lambda forms: _frequencies(collection, scope, forms, now, documents=documents))


def _rows(documents: int) -> str:
    """Entries `m` that hold some word of a parameter, with their words `w`, in the way that suits the scope's size."""
    return _SCOPE_FIRST if documents <= SMALL else _WORDS_FIRST


def _frequencies(
    collection: Collection, scope: Scope, words: Sequence[str], now: datetime, *, documents: int
) -> dict[str, int]:
    """In how many live entries of the scope each word stands."""
    hashes = hashes_of(collection.tenant, words)
    condition = admitted(scope, MemoryFilter(now=now))
    query = (
        "SELECT f.hash, count(*) FROM {rows} CROSS JOIN LATERAL unnest(w.words) AS f (hash)"
        " WHERE f.hash = ANY(%s::bigint[]) AND {condition} GROUP BY f.hash"
    )
    parameters = (hashes, hashes, *condition.parameters)
    found = dict(collection.execute(query, parameters, rows=_rows(documents), condition=condition.text).fetchall())
    return {word: found.get(hash, 0) for word, hash in zip(words, hashes, strict=True)}


def _score(tenant: str, terms: Sequence[Term], weights: Sequence[float]) -> Sql:
    """The sum of the weights of those terms of which a row of words `w` holds a form."""
    parts = ["CASE WHEN w.words && %s::bigint[] THEN %s::float8 ELSE 0 END"] * len(terms)
    parameters = [
        each for term, weight in zip(terms, weights, strict=True) for each in (hashes_of(tenant, term.forms), weight)
    ]
    return Sql(" + ".join(parts), tuple(parameters))
