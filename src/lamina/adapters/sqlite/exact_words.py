"""Keyword search that is exact, and fresh with every call.

The text index tells in which entries of a partition a form stands without reading one. From that follows what
an entry can be worth at most, and the texts of entries are read, best first, as long as they can be among the best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

from lamina.adapters._shared.where_sql import Sql, is_plain, json_list
from lamina.adapters.sqlite.partitions import LAST, Reach, bounds
from lamina.adapters.sqlite.reading import condition_of, count_all, keys_left_out
from lamina.adapters.sqlite.tables import Collection
from lamina.domain.filters import MemoryFilter
from lamina.domain.lexical import Matcher, Term, term_weights
from lamina.ports.memory_adapter import TermStatistics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lamina.adapters.sqlite.words_in_memory import WordsInMemory

__all__ = ["ExactWords", "admission", "admitted_keys", "suits", "texts_of", "words_of"]

Admits: TypeAlias = "Callable[[NDArray[np.int64]], NDArray[np.bool_]]"

LARGEST: Final = 2_000_000
"""Memories that a scope ever held: the keys of all that hold a word are in memory for a moment, 8 bytes each."""

LARGEST_FILTERED: Final = 20_000
"""The same where a filter looks at memories themselves: it is asked of the whole scope."""

READ_AT_ONCE: Final = 64
"""Texts, beside as many as are asked for."""

ROUNDING: Final = 1e-9


def suits(reach: Reach, filter: MemoryFilter) -> bool:
    """Whether the scope is one that is searched in this way."""
    return reach.size is not None and reach.size <= (LARGEST if is_plain(filter) else LARGEST_FILTERED)


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


def words_of(
    collection: Collection, terms: Sequence[Term], whole: Reach, filter: MemoryFilter, *, gone: Sequence[int] | None
) -> ExactWords | WordsInMemory:
    """The words of a query in a whole scope, from memory where all that the scope holds is kept there.

    `gone` are the keys in it that the filter leaves out, if that is plain and they are known.
    """
    from lamina.adapters.sqlite.kept_words import kept_words  # here, because numpy takes long to import
    from lamina.adapters.sqlite.words_in_memory import WordsInMemory

    # What does not live is left out by every plain filter.
    dead = () if gone is not None and not gone else keys_left_out(collection, whole, MemoryFilter(now=filter.now))
    parts = kept_words(collection, whole)
    if parts is None:
        return ExactWords(collection, terms, whole, dead)
    return WordsInMemory(parts, terms, count_all(collection, whole) - len(dead), dead)


def admission(collection: Collection, reach: Reach, filter: MemoryFilter, *, gone: Sequence[int] | None) -> Admits:
    """Tells of keys which of them are in reach and pass the filter.

    `gone` are the keys in reach that the filter leaves out, where that is plain; otherwise None.
    """
    import numpy as np

    def admits(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        seen = np.isin(keys >> 32, reach.ids or ())
        if gone is None:
            condition = condition_of(collection, filter)
            return seen & np.isin(keys, np.array(admitted_keys(collection, reach, condition), np.int64))
        return seen & ~np.isin(keys, np.array(gone, np.int64)) if gone else seen

    return admits


class ExactWords:
    """The words of a query in a scope: where they stand, and what they weigh there.

    Args:
        collection: Where to look.
        terms: What the query asks for.
        reach: The whole scope, in all layers: what a word weighs does not hang on what else is asked.
        dead: The keys of the entries in reach that do not live.
    """

    def __init__(self, collection: Collection, terms: Sequence[Term], reach: Reach, dead: Sequence[int]) -> None:
        import numpy as np  # here, because it takes longer to import than all the rest

        self._collection = collection
        self._terms = terms
        self._standing = self._keys_with({form: None for term in terms for form in term.forms}, reach)
        frequencies = {form: len(keys) for form, keys in self._standing.items()}
        if dead:
            for form, keys in self._standing.items():
                frequencies[form] -= int(np.count_nonzero(np.isin(keys, dead)))
        self.statistics = TermStatistics(count_all(collection, reach) - len(dead), frequencies)
        self.matcher = Matcher(terms, term_weights(terms, self.statistics.documents, frequencies))

    def best(self, limit: int, admits: Admits) -> dict[int, float]:
        """As `WordsInMemory.best`."""
        import numpy as np

        keys, most = self._bounds()
        seen = admits(keys)
        keys, most = keys[seen], most[seen]
        order = np.argsort(-most)
        keys, most = keys[order], most[order]
        found: dict[int, float] = {}
        least = 0.0
        start, end = 0, limit
        while start < end:
            found |= self.similarities(keys[start:end].tolist())
            if len(found) >= limit:
                least = sorted(found.values(), reverse=True)[limit - 1]
            possible = int(np.count_nonzero(most >= least - ROUNDING))
            start, end = end, min(possible, end + READ_AT_ONCE)
        return {key: value for key, value in found.items() if value >= least}

    def similarities(self, keys: Iterable[int]) -> dict[int, float]:
        """How much of the query each of these entries holds."""
        similarity = self.matcher.similarity
        return {key: similarity(words.split(" ")) for key, words in texts_of(self._collection, keys)}

    def _keys_with(self, forms: Iterable[str], reach: Reach) -> dict[str, NDArray[np.int64]]:
        """The entries in reach that hold each form."""
        import numpy as np

        query = self._collection.tables.sql("SELECT rowid FROM {text} WHERE {text} MATCH ? AND rowid BETWEEN ? AND ?")
        ids, execute = reach.ids or (), self._collection.connection.execute
        # Many partitions lie between others', whose keys are passed over: cheaper than a statement for each.
        ranges = [bounds(id) for id in ids] if reach.few is not None else [(min(ids) << 32, max(ids) << 32 | LAST)]
        found = {}
        for form in forms:
            quoted = '"' + form.replace('"', '""') + '"'
            rows = chain.from_iterable(execute(query, (quoted, *each)) for each in ranges)
            keys = np.fromiter(chain.from_iterable(rows), np.int64)
            found[form] = keys if reach.few is not None else keys[np.isin(keys >> 32, ids)]
        return found

    def _keys_of(self, term: Term) -> NDArray[np.int64]:
        """The entries in reach that hold some form of the term, each once."""
        import numpy as np

        arrays = [keys for form in term.forms if len(keys := self._standing[form])]
        if len(arrays) == 1:
            return arrays[0]
        return np.unique(np.concatenate(arrays)) if arrays else np.empty(0, np.int64)

    def _bounds(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The entries that hold some of the words, and what each can be worth at most."""
        import numpy as np

        by_term = [self._keys_of(term) for term in self._terms]
        keys, places = np.unique(np.concatenate(by_term), return_inverse=True)
        worth = np.repeat([self.matcher.most(place) for place in range(len(by_term))], [len(each) for each in by_term])
        return keys, np.bincount(places, worth, len(keys)).astype(np.float64)
