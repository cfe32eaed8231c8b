"""What plain tools, and other libraries that run here, find on the same files, to compare with.

A baseline ranks the documents of each query's group for a whole set. To add one, write such a function and name it
in `BASELINES`, with the module that it needs: where that is not installed, the baseline is left out.
"""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final, TypeAlias

import numpy as np

from lamina.evaluation.dataset import Dataset, Document, Query
from lamina.ports.embedder import Embedder

__all__ = ["BASELINES", "Baseline", "Ranking", "bm25s", "fts5_porter", "reciprocal_rank_fusion", "vector_only"]

Ranking: TypeAlias = Mapping[str, Sequence[str]]
"""For each query, by its id, the ids of documents, best first."""

RRF_K: Final = 60
"""The constant of Cormack, Clarke and Buettcher (2009)."""

_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Baseline:
    """A way of searching: `rank` gives the best so many documents of each query of a set."""

    name: str
    rank: Callable[[Dataset, int], Ranking]
    needs: str | None = None
    """The module that has to be installed for it."""

    @property
    def is_available(self) -> bool:
        """Whether it can run here."""
        return self.needs is None or find_spec(self.needs) is not None


def fts5_porter(dataset: Dataset, depth: int) -> Ranking:
    """By SQLite's FTS5 with its Porter stemmer and bm25().

    All words of the query are searched for, joined by OR; nothing else is done to either text.
    """
    found: dict[str, list[str]] = {}
    for documents, queries in _groups(dataset):
        connection = sqlite3.connect(":memory:")
        _index(connection, documents)
        for query in queries:
            found[query.id] = _search(connection, query, documents, depth)
        connection.close()
    return found


def bm25s(dataset: Dataset, depth: int) -> Ranking:
    """By the library bm25s, as its documentation shows it: its English stop words, no stemmer."""
    import bm25s as library

    found: dict[str, list[str]] = {}
    for documents, queries in _groups(dataset):
        retriever = library.BM25()
        retriever.index(
            library.tokenize([each.text for each in documents], stopwords="en", show_progress=False),
            show_progress=False,
        )
        for query in queries:
            words = library.tokenize([query.text], stopwords="en", return_ids=False, show_progress=False)
            places, scores = retriever.retrieve(words, k=min(depth, len(documents)), show_progress=False)
            found[query.id] = [
                documents[place].id for place, score in zip(places[0], scores[0], strict=True) if score > 0
            ]
    return found


BASELINES: Final = (Baseline("FTS5 porter", fts5_porter), Baseline("bm25s", bm25s, needs="bm25s"))


async def vector_only(dataset: Dataset, depth: int, embedder: Embedder) -> Ranking:
    """By the cosine of the embedder's vectors of the bare texts."""
    found: dict[str, list[str]] = {}
    for documents, queries in _groups(dataset):
        matrix = _unit(np.array(await embedder.embed_documents([each.text for each in documents]), dtype=np.float32))
        for query in queries:
            if not query.text.strip():
                continue
            cosines = matrix @ _unit(np.array([await embedder.embed_query(query.text)], dtype=np.float32))[0]
            found[query.id] = [documents[place].id for place in np.argsort(-cosines, kind="stable")[:depth]]
    return found


def reciprocal_rank_fusion(rankings: Sequence[Ranking], depth: int) -> Ranking:
    """The rankings fused with equal weights."""
    fused: dict[str, list[str]] = {}
    for query in rankings[0]:
        scores: dict[str, float] = {}
        for ranking in rankings:
            for rank, document in enumerate(ranking.get(query, ()), start=1):
                scores[document] = scores.get(document, 0.0) + 1 / (RRF_K + rank)
        fused[query] = sorted(scores, key=lambda document: (-scores[document], document))[:depth]
    return fused


def _groups(dataset: Dataset) -> Iterator[tuple[list[Document], list[Query]]]:
    documents, queries = defaultdict(list), defaultdict(list)
    for document in dataset.documents:
        documents[document.group].append(document)
    for query in dataset.queries:
        queries[query.group].append(query)
    for group in sorted(documents):
        yield documents[group], queries[group]


def _unit(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: np.ndarray = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit


def _index(connection: sqlite3.Connection, documents: Sequence[Document]) -> None:
    connection.execute("CREATE VIRTUAL TABLE texts USING fts5(body, tokenize = 'porter unicode61')")
    connection.executemany("INSERT INTO texts (body) VALUES (?)", [(document.text,) for document in documents])


def _search(connection: sqlite3.Connection, query: Query, documents: Sequence[Document], depth: int) -> list[str]:
    words = _WORD.findall(query.text)
    if not words:
        return []
    match = " OR ".join(f'"{word}"' for word in words)
    rows = connection.execute(
        "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts) LIMIT ?", (match, depth)
    )
    return [documents[rowid - 1].id for (rowid,) in rows]
