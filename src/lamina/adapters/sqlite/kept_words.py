"""The words of a partition in memory: in which of its memories each stands, and how often.

So keyword search in a partition that is searched again and again reads neither the text index nor a text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lamina.adapters.sqlite.partitions import Partition, Reach, bounds
from lamina.adapters.sqlite.tables import Collection

__all__ = ["Words", "kept_words"]

WORTHWHILE: Final = 3
"""So many searches find a partition as it is before its words are kept: that takes as long as about six."""

MOST_MEMORIES: Final = 20_000
MOST_CHARACTERS: Final = 2_000_000
"""Of a partition whose words are kept: bounds what one search takes longer for it, to about a tenth of a second."""

Numbers = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """How often a partition was searched in this state; its words are not kept yet."""

    state: int
    times: int
    size: int = 100


@dataclass(frozen=True, slots=True)
class Words:
    """A partition's words. A text's are as `index_terms` gave them, a word's places those of `keys` that hold it."""

    state: int
    keys: NDArray[np.int64]
    lengths: Numbers
    """Of each text, in words, single characters left out."""
    hashes: NDArray[np.int64]
    """Of the words, in ascending order."""
    spelt: bytes
    """The words in that order, one behind the other."""
    ends: Numbers
    """Where each word ends in `spelt`."""
    last: Numbers
    """Where each word's part of `places` ends."""
    places: Numbers
    times: Numbers
    """How often the word stands in each of its places."""

    @property
    def size(self) -> int:
        """In bytes."""
        parts = (self.keys, self.lengths, self.hashes, self.ends, self.last, self.places, self.times)
        return len(self.spelt) + sum(part.nbytes for part in parts)

    def standing(self, forms: Iterable[str]) -> dict[str, tuple[Numbers, Numbers]]:
        """Where those of the forms stand that stand anywhere, and how often."""
        forms = list(forms)
        hashes = np.fromiter(map(hash, forms), np.int64, len(forms))
        begins, ends = (np.searchsorted(self.hashes, hashes, side).tolist() for side in ("left", "right"))
        found = {}
        for form, begin, end in zip(forms, begins, ends, strict=True):
            for word in range(begin, end):  # one, unless hashes are equal by chance
                if self._spelling(word) == form.encode():
                    part = slice(self.last[word - 1] if word else 0, self.last[word])
                    found[form] = self.places[part], self.times[part]
        return found

    def _spelling(self, word: int) -> bytes:
        return self.spelt[self.ends[word - 1] if word else 0 : self.ends[word]]


def kept_words(collection: Collection, reach: Reach) -> list[Words] | None:
    """The words of the few partitions in reach, by their numbers; None unless all of them are kept or now worth it."""
    kept = collection.kept
    if kept is None or not reach.few or reach.partitions is None:
        return None
    found = []
    for partition in reach.partitions:
        words = kept.get(("words", partition.id), partition.state)
        if not isinstance(words, Words) and partition.last <= MOST_MEMORIES:
            times = 1 + (words.times if isinstance(words, Asked) else 0)
            words = (_read(collection, partition) if times == WORTHWHILE else None) or Asked(partition.state, times)
            kept.put(("words", partition.id), words)
        if not isinstance(words, Words):
            return None
        found.append(words)
    return found


def _read(collection: Collection, partition: Partition) -> Words | None:
    """The words of a partition, unless it has too much text."""
    query = "SELECT id, c0 FROM {text_content} WHERE id BETWEEN ? AND ? ORDER BY id"
    keys, texts, characters = [], [], 0
    for key, text in collection.execute(query, bounds(partition.id)):
        characters += len(text)
        if characters > MOST_CHARACTERS:
            return None
        keys.append(key)
        texts.append(text.split(" "))
    number = len(texts)
    if not number:
        return None
    all_words = list(chain.from_iterable(texts))
    vocabulary = sorted(set(all_words), key=hash)
    numbers = dict(zip(vocabulary, range(len(vocabulary)), strict=True))
    words = np.fromiter(map(numbers.__getitem__, all_words), np.int64, len(all_words))
    places = np.repeat(np.arange(number), [len(text) for text in texts])
    counted = np.fromiter((len(word) != 1 for word in vocabulary), np.bool_, len(vocabulary))
    pairs, times = np.unique(words * number + places, return_counts=True)
    spelt = [word.encode() for word in vocabulary]
    return Words(
        partition.state,
        keys=np.array(keys, np.int64),
        lengths=_small(np.bincount(places[counted[words]], minlength=number)),
        hashes=np.fromiter(map(hash, vocabulary), np.int64, len(vocabulary)),
        spelt=b"".join(spelt),
        ends=_small(np.cumsum([len(word) for word in spelt])),
        last=_small(np.searchsorted(pairs, np.arange(1, len(vocabulary) + 1) * number)),
        places=_small(pairs % number),
        times=_small(times),
    )


def _small(numbers: NDArray[np.int64]) -> Numbers:
    """The same numbers in as few bytes as they need."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))
