"""Keyword search: a pool by bm25 from the text index, ranked by lexical similarity.

What users write never is grammar: each term of the query is quoted, and the terms are joined by OR.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime

from lamina.adapters._shared.where_sql import Sql, is_plain, json_list
from lamina.adapters.sqlite.partitions import LAST, Reach, resolve
from lamina.adapters.sqlite.reading import condition_of, count, some_expired
from lamina.adapters.sqlite.tables import Tables
from lamina.domain.filters import MemoryFilter
from lamina.domain.lexical import MIN_DOCUMENTS_FOR_WEIGHTS, Term, similarity, term_weights
from lamina.ports.memory_adapter import SearchOptions, TermStatistics

__all__ = ["matching", "statistics"]


def matching(
    connection: sqlite3.Connection, tables: Tables, terms: Sequence[Term], reach: Reach, options: SearchOptions
) -> list[tuple[int, float]]:
    """The keys and similarities of the entries in reach that hold some of the terms, best first.

    Equally similar ones go by bm25, then by id.
    """
    pool = _pool(connection, tables, terms, reach, options)
    if not pool:
        return []
    weights = _weights(connection, tables, terms, options)
    template = (
        "SELECT m.key, m.id, {text}.terms FROM {memories} AS m JOIN {text} ON {text}.rowid = m.key "
        "WHERE m.key IN (SELECT value FROM json_each(?))"
    )
    ranked = []
    for key, id, words in connection.execute(tables.sql(template), (json_list(pool),)):
        ranked.append((-similarity(terms, weights, set(words.split(" "))), pool[key], id, key))
    return [(key, -negated) for negated, _, _, key in sorted(ranked)[: options.limit]]


def statistics(
    connection: sqlite3.Connection, tables: Tables, reach: Reach, words: Iterable[str], now: datetime
) -> TermStatistics:
    """How many live entries are in reach, and in how many of them each word stands."""
    filter = MemoryFilter(now=now)
    if reach.is_empty:
        return TermStatistics(0, dict.fromkeys(words, 0))
    expired = some_expired(connection, tables, reach, now)
    frequencies = {}
    for word in dict.fromkeys(words):
        found = _found(tables, "count(*) AS found", [word], reach, filter if expired else None)
        query = f"SELECT sum(found) FROM ({found.text})"  # noqa: S608 - made by `_found`
        (frequencies[word],) = connection.execute(query, found.parameters).fetchone()
    return TermStatistics(count(connection, tables, reach, filter), frequencies)


def _pool(
    connection: sqlite3.Connection, tables: Tables, terms: Sequence[Term], reach: Reach, options: SearchOptions
) -> dict[int, float]:
    """Keys of the best admitted entries by bm25 (lower is better), as many as a ranking needs to choose from."""
    filter: MemoryFilter | None = options.filter
    if is_plain(options.filter) and not some_expired(connection, tables, reach, options.filter.now):
        filter = None
    columns = tables.sql("{text}.rowid AS key, bm25({text}) AS distance")
    found = _found(tables, columns, [form for term in terms for form in term.forms], reach, filter)
    query = f"{found.text} ORDER BY distance LIMIT ?"
    return dict(connection.execute(query, (*found.parameters, max(5 * options.limit, 50))).fetchall())


def _weights(
    connection: sqlite3.Connection, tables: Tables, terms: Sequence[Term], options: SearchOptions
) -> list[float]:
    """By rarity in the whole scope, whatever the filter: what a word weighs does not hang on who else is asked for."""
    reach = resolve(connection, tables, options.scope, None)
    documents = count(connection, tables, reach, MemoryFilter(now=options.filter.now))
    if documents < MIN_DOCUMENTS_FOR_WEIGHTS:
        return term_weights(terms, documents, {})
    forms = [form for term in terms for form in term.forms]
    found = statistics(connection, tables, reach, forms, options.filter.now)
    return term_weights(terms, found.documents, found.frequencies)


def _found(tables: Tables, columns: str, words: Iterable[str], reach: Reach, filter: MemoryFilter | None) -> Sql:
    """The entries in reach that hold some of the words and pass the filter, if there is one."""
    quoted = " OR ".join('"' + word.replace('"', '""') + '"' for word in words)
    admitted = Sql("1") if filter is None else condition_of(tables, filter)
    rows = "{text} CROSS JOIN {memories} AS m ON m.key = {text}.rowid"
    if reach.few is None:
        template = (
            f"SELECT {{columns}} FROM {rows} WHERE {{text}} MATCH ? "  # noqa: S608 - table names only
            "AND m.partition IN (SELECT p.id FROM {partitions} AS p WHERE {reach}) AND {admitted}"
        )
        text = tables.sql(template, columns=columns, reach=reach.condition.text, admitted=admitted.text)
        return Sql(text, (quoted, *reach.condition.parameters, *admitted.parameters))
    template = (
        f"SELECT {{columns}} FROM {'{text}' if filter is None else rows} "  # noqa: S608 - table names only
        "WHERE {text} MATCH ? AND {text}.rowid BETWEEN ? AND ? AND {admitted}"
    )
    each = tables.sql(template, columns=columns, admitted=admitted.text)
    parameters: list[object] = []
    for partition in reach.few:
        parameters += [quoted, partition << 32, partition << 32 | LAST, *admitted.parameters]
    return Sql(" UNION ALL ".join([each] * len(reach.few)), tuple(parameters))
