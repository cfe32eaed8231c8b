"""Keyword search, exact, in partitions whose words are in memory: every text is compared at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lamina.adapters.sqlite.kept_words import Words
from lamina.domain.lexical import Matcher, Term, missing, share, term_weights
from lamina.ports.memory_adapter import TermStatistics

__all__ = ["WordsInMemory"]

Numbers = NDArray[Any]


class WordsInMemory:
    """The words of a query in a scope, with the similarity of each text.

    Args:
        parts: The words of the scope's partitions, by their numbers.
        terms: What the query asks for.
        documents: How many entries live in the scope.
        dead: The keys of the entries that do not live.
    """

    def __init__(self, parts: Sequence[Words], terms: Sequence[Term], documents: int, dead: Sequence[int]) -> None:
        forms = list(dict.fromkeys(form for term in terms for form in term.forms))
        self._keys = np.concatenate([part.keys for part in parts])
        standing = [part.standing(forms) for part in parts]
        frequencies = dict.fromkeys(forms, 0)
        for part, found in zip(parts, standing, strict=True):
            living = ~np.isin(part.keys, dead) if dead else None
            for form, (places, _) in found.items():
                frequencies[form] += len(places) if living is None else int(np.count_nonzero(living[places]))
        self.statistics = TermStatistics(documents, frequencies)
        matcher = Matcher(terms, term_weights(terms, documents, frequencies))
        values = [_similarities(part, found, terms, matcher) for part, found in zip(parts, standing, strict=True)]
        self._values = np.concatenate(values)

    def best(self, limit: int, admits: Callable[[NDArray[np.int64]], NDArray[np.bool_]]) -> dict[int, float]:
        """The keys and similarities of the most similar of the admitted entries that hold some word, in no order.

        More than the limit if there are equally similar ones: their ids are to decide.
        """
        found = np.flatnonzero(self._values)
        found = found[admits(self._keys[found])]
        values = self._values[found]
        if len(found) > limit:
            best = values >= np.partition(values, len(found) - limit)[len(found) - limit]
            found, values = found[best], values[best]
        return dict(zip(self._keys[found].tolist(), values.tolist(), strict=True))

    def similarities(self, keys: Iterable[int]) -> dict[int, float]:
        """How much of the query each of these entries holds."""
        wanted = np.array(list(keys), np.int64)
        places = np.searchsorted(self._keys, wanted)
        places[places == len(self._keys)] = 0
        known = self._keys[places] == wanted
        return dict(zip(wanted[known].tolist(), self._values[places[known]].tolist(), strict=True))


def _similarities(
    words: Words, standing: dict[str, tuple[Numbers, Numbers]], terms: Sequence[Term], matcher: Matcher
) -> NDArray[np.float64]:
    """As `Matcher.similarity`, of each text: the same to the last bit, since terms are added in the same order."""
    lacking = missing(words.lengths.astype(np.float64))
    values = np.zeros(len(words.keys))
    for place, term in enumerate(terms):
        found = [standing[form] for form in term.forms if form in standing]
        if not found:
            continue
        holding, counts = found[0]
        if len(found) > 1:
            most = np.zeros(len(values), np.int64)
            for holding, counts in found:
                most[holding] = np.maximum(most[holding], counts)
            holding = np.flatnonzero(most)
            counts = most[holding]
        shares = share(counts.astype(np.float64), lacking[holding])
        values[holding] += matcher.weights[place] * np.minimum(shares, 1.0)
    return np.minimum(values / matcher.total, 1.0) if matcher.total else values
