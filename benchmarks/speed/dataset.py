"""Texts, vectors, owners and queries, made from fixed seeds: the same on every machine, and for every system.

Words are as frequent as in a language (few are common, most are rare), and a third of each text's words come from its
topic's own. Vectors are a mixture: the topic's centre and noise, both in directions of unequal weight, so that they
vary in about 70 directions, as those of sentences do. Whose a memory is has nothing to do with its topic, and owners
take turns in the order of arrival: the hard case for whoever filters after searching. A smaller set is the beginning
of a larger one.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

DIMENSIONS: Final = 384
BLOCK: Final = 1_000
"""Items that are drawn at once, each block from a seed of its own."""

SPARE: Final = 1_000
"""Items beyond those that are stored: for adding one by one."""

QUERIES: Final = 240
TOPICS: Final = 200
TOPIC_WORDS: Final = 150
SPECTRUM: Final = -0.42
ONSETS: Final = "ba ce di fo gu ha ki lo mu ne pra sti".split()
MIDDLES: Final = "lar ten vis mod rup sel fin gar".split()
ENDS: Final = "a on ix ul em ad it or us ep".split()
MADE_UP: Final = ["".join(each) for each in itertools.product(ONSETS, MIDDLES, ENDS, ["", *MIDDLES])]
WORDS: Final = [MADE_UP[place] for place in np.random.default_rng(5).permutation(len(MADE_UP))]


@dataclass(frozen=True, slots=True)
class Item:
    id: str
    owner: str
    text: str
    vector: Any


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    owner: str
    vector: Any


class Dataset:
    """So many items of so many owners, and what is asked. `spare` are items that are not stored at first."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.count = count
        self.owners: int = json.loads((folder / f"queries-{count}.json").read_text(encoding="utf-8"))["owners"]

    def items(self, first: int = 0, last: int | None = None) -> list[Item]:
        last = self.count if last is None else min(last, self.count)
        return self._rows(first, last)

    def spare(self) -> list[Item]:
        """Such as are not stored."""
        stored = len(self._vectors()) - SPARE
        return self._rows(stored, stored + SPARE)

    def queries(self) -> list[Query]:
        """Owners alternate, so that what one query has read does not serve the next."""
        asked = json.loads((self.folder / f"queries-{self.count}.json").read_text(encoding="utf-8"))["texts"]
        vectors = np.load(self.folder / f"queries-{self.count}.npy")
        return [
            Query(text, f"owner{_owner_asked(number, self.owners)}", vector)
            for number, (text, vector) in enumerate(zip(asked, vectors, strict=True))
        ]

    def texts(self) -> list[str]:
        return self._lines[: self.count]

    def matrix(self) -> Any:
        """The stored vectors, in order."""
        return np.array(self._vectors()[: self.count])

    def raw_bytes(self) -> int:
        """What vectors and texts take by themselves."""
        return self.count * DIMENSIONS * 4 + sum(len(text.encode()) for text in self.texts())

    def _rows(self, first: int, last: int) -> list[Item]:
        vectors = self._vectors()
        lines = self._lines[first:last]
        numbers = range(first, last)
        return [
            Item(f"m{number:07}", f"owner{number % self.owners}", text, np.array(vectors[number]))
            for number, text in zip(numbers, lines, strict=True)
        ]

    @functools.cached_property
    def _lines(self) -> list[str]:
        return (self.folder / "texts.txt").read_text(encoding="utf-8").split("\n")

    def _vectors(self) -> Any:
        return np.load(self.folder / "vectors.npy", mmap_mode="r")


def make_dataset(folder: Path, sizes: Sequence[int], *, per_owner: int) -> None:
    """Write sets of these sizes to the folder, for as many processes as want to read them."""
    folder.mkdir(parents=True, exist_ok=True)
    total = max(sizes) + SPARE
    shape = _shape()
    centres = _unit(np.random.default_rng(11).standard_normal((TOPICS, DIMENSIONS)).astype(np.float32) @ shape)
    vectors = np.lib.format.open_memmap(folder / "vectors.npy", mode="w+", dtype=np.float32, shape=(total, DIMENSIONS))
    texts: list[str] = []
    for first in range(0, total, BLOCK):
        drawn = np.random.default_rng([7, first // BLOCK])
        topics = drawn.integers(0, TOPICS, BLOCK)
        noise = _unit(drawn.standard_normal((BLOCK, DIMENSIONS), dtype=np.float32) @ shape)
        rows = min(BLOCK, total - first)
        vectors[first : first + rows] = _unit(0.7 * centres[topics] + 0.75 * noise)[:rows]
        texts += _texts(drawn, topics, first)[:rows]
    vectors.flush()
    (folder / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    for size in sizes:
        _make_queries(folder, texts, vectors[:size], owners=max(1, size // per_owner))


def _make_queries(folder: Path, texts: list[str], vectors: Any, *, owners: int) -> None:
    """Each asks for an item of its owner's: five of its words and three others; its vector with as much noise again."""
    size = len(vectors)
    drawn = np.random.default_rng(13)
    asking = np.array([_owner_asked(number, owners) for number in range(QUERIES)])
    targets = asking + owners * drawn.integers(0, size // owners, QUERIES)
    noise = _unit(drawn.standard_normal((QUERIES, DIMENSIONS)).astype(np.float32) @ _shape())
    np.save(folder / f"queries-{size}.npy", _unit(vectors[targets] + noise))
    others = _ranks(drawn, QUERIES * 3, len(WORDS)).reshape(QUERIES, 3)
    asked = []
    for target, more in zip(targets, others, strict=True):
        words = texts[target].split()
        own = [words[place] for place in drawn.integers(0, len(words), 5)]
        asked.append(" ".join([*own, *(WORDS[rank] for rank in more)]))
    told = json.dumps({"owners": owners, "texts": asked})
    (folder / f"queries-{size}.json").write_text(told, encoding="utf-8")


def _owner_asked(number: int, owners: int) -> int:
    return 7 * number % owners


def _texts(drawn: np.random.Generator, topics: Any, first: int) -> list[str]:
    """Six to 31 words each, no two texts alike."""
    lengths = drawn.integers(6, 32, len(topics))
    total = int(lengths.sum())
    common = _ranks(drawn, total, len(WORDS))
    of_topic = (np.repeat(topics, lengths) * 41 + 60 + _ranks(drawn, total, TOPIC_WORDS)) % len(WORDS)
    ranks = np.where(drawn.random(total) < 1 / 3, of_topic, common)
    words = [WORDS[rank] for rank in ranks.tolist()]
    texts, begin = [], 0
    for number, length in enumerate(lengths.tolist(), start=first):
        texts.append(f"{' '.join(words[begin : begin + length])} {_name(number)}")
        begin += length
    return texts


def _name(number: int) -> str:
    """One of 500 names, and another of 4,000: together different for each of two million."""
    return f"{ONSETS[number % 500 % 12]}{number % 500}k {MIDDLES[number // 500 % 8]}{number // 500}"


def _ranks(drawn: np.random.Generator, count: int, most: int) -> Any:
    """Places in a list of words of which the first are the most frequent: 1 / (rank + 10)."""
    shares = np.cumsum(1 / np.arange(10, 10 + most))
    return np.searchsorted(shares, drawn.random(count) * shares[-1])


@functools.cache
def _shape() -> Any:
    """Directions at random, of unequal weight."""
    basis, _ = np.linalg.qr(np.random.default_rng(3).standard_normal((DIMENSIONS, DIMENSIONS)))
    weights = np.arange(1, DIMENSIONS + 1) ** SPECTRUM
    return (basis * weights[None, :]).T.astype(np.float32)


def _unit(vectors: Any) -> Any:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
