"""What plain tools find on the same files, to compare with."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import Final

from lamina.evaluation.dataset import Dataset, Document, Query

__all__ = ["fts5_porter", "reciprocal_rank_fusion"]

RRF_K: Final = 60
"""The constant of Cormack, Clarke and Buettcher (2009)."""

_WORD: Final = re.compile(r"\w+")


def fts5_porter(dataset: Dataset, depth: int) -> dict[str, list[str]]:
    """For each query the best documents of its group, by SQLite's FTS5 with its Porter stemmer and bm25().

    All words of the query are searched for, joined by OR; nothing else is done to either text.
    """
    found: dict[str, list[str]] = {}
    for group in sorted({document.group for document in dataset.documents}):
        documents = [document for document in dataset.documents if document.group == group]
        with sqlite3.connect(":memory:") as connection:
            _index(connection, documents)
            for query in dataset.queries:
                if query.group == group:
                    found[query.id] = _search(connection, query, documents, depth)
        connection.close()
    return found


def reciprocal_rank_fusion(rankings: Sequence[dict[str, list[str]]], depth: int) -> dict[str, list[str]]:
    """The rankings fused with equal weights."""
    fused: dict[str, list[str]] = {}
    for query in rankings[0]:
        scores: dict[str, float] = {}
        for ranking in rankings:
            for rank, document in enumerate(ranking.get(query, ()), start=1):
                scores[document] = scores.get(document, 0.0) + 1 / (RRF_K + rank)
        fused[query] = sorted(scores, key=lambda document: (-scores[document], document))[:depth]
    return fused


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
