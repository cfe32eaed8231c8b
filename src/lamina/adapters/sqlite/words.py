"""Keyword search: exact, but in a very large scope a pool by bm25, ranked by lexical similarity.

What users write never is grammar: each term of the query is quoted, and the terms are joined by OR.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from heapq import nsmallest
from operator import itemgetter
from typing import Any, Final

from lamina.adapters._shared.where_sql import Sql, is_plain
from lamina.adapters.sqlite.exact_words import admission, suits, texts_of, words_of
from lamina.adapters.sqlite.partitions import Reach, bounds, resolve
from lamina.adapters.sqlite.reading import condition_of, count, ids_by_key, keys_left_out, left_out
from lamina.adapters.sqlite.tables import Collection
from lamina.domain.filters import MemoryFilter
from lamina.domain.lexical import MIN_DOCUMENTS_FOR_WEIGHTS, Matcher, Term, term_weights
from lamina.ports.memory_adapter import SearchOptions, TermStatistics

__all__ = ["matching", "statistics"]

_INDEXED: Final = re.compile("[a-z0-9\u0080-\ud7ff\ue000-\U0010ffff]+")
"""What `lamina.domain.lexical` makes; other words stand in no entry, and SQLite would change or refuse them."""


def matching(
    collection: Collection, terms: Sequence[Term], reach: Reach, options: SearchOptions
) -> list[tuple[int, float]]:
    """The keys and similarities of the entries in reach that hold some of the terms, best first.

    Equally similar ones go by bm25 where that chose them, then by id.
    """
    if reach.is_empty:
        return []
    whole = reach if options.filter.layers is None else resolve(collection, options.scope)
    if suits(whole, options.filter):
        gone = keys_left_out(collection, reach, options.filter) if is_plain(options.filter) else None
        words = words_of(collection, terms, whole, options.filter, gone=gone if reach is whole else None)
        best = words.best(options.limit, admission(collection, reach, options.filter, gone=gone))
        ids = ids_by_key(collection, best)
        return sorted(best.items(), key=lambda pair: (-pair[1], ids[pair[0]]))[: options.limit]
    pool = _pool(collection, terms, reach, options)
    if not pool:
        return []
    matcher = Matcher(terms, _weights(collection, terms, whole, options.filter.now))
    ids = ids_by_key(collection, pool)
    texts = texts_of(collection, pool)
    ranked = [(-matcher.similarity(words.split(" ")), pool[key], ids[key], key) for key, words in texts]
    return [(key, -negated) for negated, _, _, key in sorted(ranked)[: options.limit]]


def statistics(collection: Collection, reach: Reach, words: Iterable[str], now: datetime) -> TermStatistics:
    """How many live entries are in reach, and in how many of them each word stands."""
    frequencies = dict.fromkeys(words, 0)
    if reach.is_empty:
        return TermStatistics(0, frequencies)
    live = MemoryFilter(now=now)
    source = _source(collection, reach, live)
    for word in filter(_INDEXED.fullmatch, frequencies):
        found = _found(collection, [word], reach, columns="count(*)", source=source)
        frequencies[word] = sum(number for number, *_ in _rows(collection, found))
    return TermStatistics(count(collection, reach, live), frequencies)


def _pool(collection: Collection, terms: Sequence[Term], reach: Reach, options: SearchOptions) -> dict[int, float]:
    """Keys of the best admitted entries by bm25 (lower is better), as many as a ranking needs to choose from."""
    forms = [form for term in terms for form in term.forms]
    columns = collection.tables.sql("{text}.rowid, bm25({text}) AS distance")
    found = _found(collection, forms, reach, columns=columns, source=_source(collection, reach, options.filter))
    best = max(5 * options.limit, 50)
    ranges = [Sql(f"{each.text} ORDER BY distance LIMIT ?", (*each.parameters, best)) for each in found]
    return dict(nsmallest(best, _rows(collection, ranges), key=itemgetter(1)))


def _weights(collection: Collection, terms: Sequence[Term], reach: Reach, now: datetime) -> list[float]:
    """By rarity in the whole scope, whatever the filter: what a word weighs does not hang on what else is asked."""
    documents = count(collection, reach, MemoryFilter(now=now))
    if documents < MIN_DOCUMENTS_FOR_WEIGHTS:
        return term_weights(terms, documents, {})
    forms = [form for term in terms for form in term.forms]
    found = statistics(collection, reach, forms, now)
    return term_weights(terms, found.documents, found.frequencies)


def _rows(collection: Collection, queries: Iterable[Sql]) -> Iterator[tuple[Any, ...]]:
    for query in queries:
        yield from collection.connection.execute(query.text, query.parameters).fetchall()


def _source(collection: Collection, reach: Reach, filter: MemoryFilter) -> tuple[str, Sql]:
    """The rows of the text index, with their memories `m` if the filter looks at those, and what is asked of them."""
    sql = collection.tables.sql
    if not is_plain(filter):
        return sql("{text} CROSS JOIN {memories} AS m ON m.key = {text}.rowid"), condition_of(collection, filter)
    gone = left_out(collection, reach, filter)
    if collection.connection.execute(gone.text, gone.parameters).fetchone() is None:
        return sql("{text}"), Sql("1")
    return sql("{text}"), Sql(sql("{text}.rowid NOT IN ({gone})", gone=gone.text), gone.parameters)


def _found(
    collection: Collection, words: Iterable[str], reach: Reach, *, columns: str, source: tuple[str, Sql]
) -> list[Sql]:
    """The entries in reach that hold some of the words and are admitted.

    Few partitions are one statement, to be run for each: the filter is a user's, and large in the worst case.
    """
    query = " OR ".join('"' + word.replace('"', '""') + '"' for word in words)
    rows, admitted = source
    sql = collection.tables.sql
    template = "SELECT {columns} FROM {rows} WHERE {text} MATCH ? AND {where} AND {admitted}"
    if reach.few is None:
        where = sql(
            "{text}.rowid >> 32 IN (SELECT p.id FROM {partitions} AS p WHERE {reach})", reach=reach.condition.text
        )
        text = sql(template, columns=columns, rows=rows, where=where, admitted=admitted.text)
        return [Sql(text, (query, *reach.condition.parameters, *admitted.parameters))]
    where = sql("{text}.rowid BETWEEN ? AND ?")
    text = sql(template, columns=columns, rows=rows, where=where, admitted=admitted.text)
    return [Sql(text, (query, *bounds(partition), *admitted.parameters)) for partition in reach.few]
