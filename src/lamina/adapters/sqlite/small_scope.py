"""Keyword search in a scope of few partitions that are not large: exact, and fresh with every call.

The text index tells in which entries of a partition a form stands without reading one. From that follows what
an entry can be worth at most, and the texts of entries are read, best first, as long as they can be among the best.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


def texts_of(collection: Collection, keys: Iterable[int]) -> list[tuple[int, str]]:
    """Key and terms, as `index_terms` gave them, with spaces between, of those of the keys that have a text."""
    query = "SELECT id, c0 FROM {text_content} WHERE id IN (SELECT value FROM json_each(?))"
    return collection.execute(query, (json_list(keys),)).fetchall()


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
        self._standing = self._keys_with({form: None for term in terms for form in term.forms}, reach)
        dead = set(keys_left_out(collection, reach, living))
        frequencies = {form: len(keys) for form, keys in self._standing.items()}
        if dead:
            frequencies = {form: len(keys) - len(dead.intersection(keys)) for form, keys in self._standing.items()}
        self.statistics = TermStatistics(count(collection, reach, living), frequencies)
        self.matcher = Matcher(terms, term_weights(terms, self.statistics.documents, frequencies))

    def best(self, reach: Reach, options: SearchOptions) -> dict[int, float]:
        """The keys and similarities of the most similar entries in reach that the filter admits, in no order.

        More than the limit if there are equally similar ones: their ids are to decide.
        """
        import numpy as np

        keys, most = self._bounds(reach, options)
        order = np.argsort(-most)
        keys, most = keys[order], most[order]
        found: dict[int, float] = {}
        least = 0.0
        start, end = 0, options.limit
        while start < end:
            found |= self.similarities(keys[start:end].tolist())
            if len(found) >= options.limit:
                least = sorted(found.values(), reverse=True)[options.limit - 1]
            possible = int(np.count_nonzero(most >= least - ROUNDING))
            start, end = end, min(possible, end + READ_AT_ONCE)
        return {key: value for key, value in found.items() if value >= least}

    def similarities(self, keys: Iterable[int]) -> dict[int, float]:
        """How much of the query each of these entries holds."""
        similarity = self.matcher.similarity
        return {key: similarity(words.split(" ")) for key, words in texts_of(self._collection, keys)}

    def _keys_with(self, forms: Iterable[str], reach: Reach) -> dict[str, list[int]]:
        """The entries in reach that hold each form."""
        query = self._collection.tables.sql("SELECT rowid FROM {text} WHERE {text} MATCH ? AND rowid BETWEEN ? AND ?")
        ranges = [bounds(partition) for partition in reach.few or ()]
        found = {}
        for form in forms:
            quoted = '"' + form.replace('"', '""') + '"'
            rows = [self._collection.connection.execute(query, (quoted, *each)) for each in ranges]
            found[form] = [key for keys in rows for (key,) in keys]
        return found

    def _keys_of(self, term: Term) -> NDArray[np.int64]:
        """The entries in reach that hold some form of the term, each once."""
        import numpy as np

        lists = [keys for form in term.forms if (keys := self._standing[form])]
        found = np.array([key for keys in lists for key in keys], np.int64)
        return found if len(lists) < 2 else np.unique(found)  # noqa: PLR2004

    def _bounds(self, reach: Reach, options: SearchOptions) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The admitted entries that hold some of the words, and what each can be worth at most."""
        import numpy as np

        by_term = [self._keys_of(term) for term in self._terms]
        keys, places = np.unique(np.concatenate(by_term), return_inverse=True)
        worth = np.repeat([self.matcher.most(place) for place in range(len(by_term))], [len(each) for each in by_term])
        most = np.bincount(places, worth, len(keys)).astype(np.float64)
        seen = np.isin(keys >> 32, reach.few or ())
        if is_plain(options.filter):
            gone = keys_left_out(self._collection, reach, options.filter)
            if gone:
                seen &= ~np.isin(keys, np.array(gone, np.int64))
        else:
            admitted = admitted_keys(self._collection, reach, condition_of(self._collection, options.filter))
            seen &= np.isin(keys, np.array(admitted, np.int64))
        return keys[seen], most[seen]
