"""Keyword search in a scope of few partitions that are not large: exact, and fresh with every call.

The text index tells in which entries of a partition a form stands without reading one. From that follows what
an entry can be worth at most, and the texts of entries are read, best first, as long as they can be among the best.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from lamina.adapters._shared.where_sql import Sql, is_plain, json_list
from lamina.adapters.sqlite.partitions import Reach, bounds
from lamina.adapters.sqlite.reading import condition_of, count, keys_left_out
from lamina.adapters.sqlite.tables import Collection
from lamina.domain.filters import MemoryFilter
from lamina.domain.lexical import Matcher, Term, term_weights
from lamina.ports.memory_adapter import SearchOptions, TermStatistics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SmallScope", "admitted_keys", "is_small", "texts_of"]

SMALL: Final = 20_000
"""Memories that a scope ever held; in a larger one bm25, which reads no more of common words, is faster."""

READ_AT_ONCE: Final = 64
"""Texts, beside as many as are asked for."""

ROUNDING: Final = 1e-9


def is_small(reach: Reach) -> bool:
    """Whether the scope is one that is read in this way."""
    return reach.size is not None and reach.size <= SMALL


def texts_of(collection: Collection, keys: Iterable[int]) -> Iterator[tuple[int, str, list[str]]]:
    """Key, id and terms, as `index_terms` gave them, of those of the keys that have a text."""
    query = (
        "SELECT m.key, m.id, t.c0 FROM {memories} AS m JOIN {text_content} AS t ON t.id = m.key "
        "WHERE m.key IN (SELECT value FROM json_each(?))"
    )
    for key, id, words in collection.execute(query, (json_list(keys),)):
        yield key, id, words.split(" ")


def admitted_keys(collection: Collection, reach: Reach, condition: Sql) -> list[int]:
    """The keys in reach that meet the condition."""
    query = "SELECT m.key FROM {scoped} WHERE {reach} AND {condition}"
    parameters = (*reach.condition.parameters, *condition.parameters)
    rows = collection.execute(query, parameters, reach=reach.condition.text, condition=condition.text)
    return [key for (key,) in rows]


class SmallScope:
    """The words of a query in a small scope: where they stand, and what they weigh there.

    Args:
        collection: Where to look.
        terms: What the query asks for.
        reach: The whole scope, in all layers: what a word weighs does not hang on what else is asked.
        now: The moment at which entries live.
    """

    def __init__(self, collection: Collection, terms: Sequence[Term], reach: Reach, now: datetime) -> None:
        self._collection = collection
        self._terms = terms
        living = MemoryFilter(now=now)
        self._standing = {form: self._keys_with(form, reach) for term in terms for form in term.forms}
        dead = set(keys_left_out(collection, reach, living))
        frequencies = {form: len(keys) for form, keys in self._standing.items()}
        if dead:
            frequencies = {form: len(keys) - len(dead.intersection(keys)) for form, keys in self._standing.items()}
        self.statistics = TermStatistics(count(collection, reach, living), frequencies)
        self.matcher = Matcher(terms, term_weights(terms, self.statistics.documents, frequencies))

    def best(self, reach: Reach, options: SearchOptions) -> list[tuple[int, float]]:
        """The keys and similarities of the most similar entries in reach that the filter admits, ties by id."""
        import numpy as np

        keys, most = self._bounds(reach, options)
        order = np.argsort(-most)
        keys, most = keys[order], most[order]
        ranked: list[tuple[float, str, int]] = []
        start, end = 0, options.limit
        while start < end:
            for key, id, words in texts_of(self._collection, keys[start:end].tolist()):
                ranked.append((-self.matcher.similarity(words), id, key))
            ranked.sort()
            del ranked[options.limit :]
            least = -ranked[-1][0] if len(ranked) == options.limit else 0.0
            possible = int(np.count_nonzero(most >= least - ROUNDING))
            start, end = end, min(possible, end + READ_AT_ONCE)
        return [(key, -negated) for negated, _, key in ranked]

    def similarities(self, keys: Iterable[int]) -> dict[int, float]:
        """How much of the query each of these entries holds."""
        return {key: self.matcher.similarity(words) for key, _, words in texts_of(self._collection, keys)}

    def _keys_with(self, form: str, reach: Reach) -> list[int]:
        query = "SELECT rowid FROM {text} WHERE {text} MATCH ? AND rowid BETWEEN ? AND ?"
        quoted = '"' + form.replace('"', '""') + '"'
        found: list[int] = []
        for partition in reach.few or ():
            found += [key for (key,) in self._collection.execute(query, (quoted, *bounds(partition)))]
        return found

    def _bounds(self, reach: Reach, options: SearchOptions) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The admitted entries that hold some of the words, and what each can be worth at most."""
        import numpy as np

        by_term = [
            np.unique(np.array([key for form in term.forms for key in self._standing[form]], np.int64))
            for term in self._terms
        ]
        keys, places = np.unique(np.concatenate(by_term), return_inverse=True)
        worth = np.repeat([self.matcher.most(place) for place in range(len(by_term))], [len(each) for each in by_term])
        most = np.bincount(places, worth, len(keys))
        seen = np.isin(keys >> 32, reach.few or ())
        if is_plain(options.filter):
            gone = keys_left_out(self._collection, reach, options.filter)
            seen &= ~np.isin(keys, np.array(gone, np.int64))
        else:
            admitted = admitted_keys(self._collection, reach, condition_of(self._collection, options.filter))
            seen &= np.isin(keys, np.array(admitted, np.int64))
        return keys[seen], most[seen]
