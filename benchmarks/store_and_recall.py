"""Storing and scoped recall, as ratios: `python benchmarks/store_and_recall.py [memories] [owners]`.

The vectors are given (random, 384 numbers), so that the engine is measured and not a model. Every
figure stands beside a yardstick of the same run, in alternating blocks: a durable one-row commit of
plain SQLite (WAL, synchronous FULL) for writing one by one, plain SQLite rows in one transaction for
the batch, and a float32 product of numpy over the owner's vectors for recall. The ratio is what to
read; the milliseconds are those of this machine at this moment.
"""

from __future__ import annotations

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before numpy is loaded: small products on one thread

import asyncio
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lamina import MemoryEngine, create_memory_engine

DIMENSIONS = 384
SINGLES = 300
QUERIES = 100
BLOCK = 10
ONSETS, MIDDLES = "ba ce di fo gu ha ki lo mu ne pra sti".split(), "lar ten vis mod rup sel fin gar".split()
WORDS = [a + b + c for a in ONSETS for b in MIDDLES for c in "a on ix ul em ad it or us ep".split()]
COMMONNESS = [1 / rank for rank in range(10, 10 + len(WORDS))]  # few words are common, most are rare, as in a language


class GivenVectors:
    """Vectors that are a function of the text: drawn from a generator seeded with it."""

    provider = "benchmark"
    model = "random"

    async def embed_documents(self, texts: Sequence[str]) -> list[Any]:
        return [vector_of(text) for text in texts]

    async def embed_query(self, text: str) -> Any:
        return vector_of(text)

    async def close(self) -> None:
        pass


VECTORS: dict[str, Any] = {}


def vector_of(text: str) -> Any:
    return VECTORS[text]


def make_texts(count: int) -> list[str]:
    chance = random.Random(7)
    texts = [f"{number} " + " ".join(chance.choices(WORDS, COMMONNESS, k=12)) for number in range(count)]
    drawn = np.random.default_rng(7).standard_normal((count, DIMENSIONS)).astype(np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    VECTORS.update(zip(texts, drawn, strict=True))
    return texts


class PlainTable:
    """A table of text and vector, written as plainly as can be."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("pragma journal_mode = wal")
        self.connection.execute("pragma synchronous = full")
        self.connection.execute("create table memory (id integer primary key, owner text, content text, vector blob)")

    def insert(self, owner: str, text: str) -> None:
        row = (owner, text, vector_of(text).tobytes())
        self.connection.execute("insert into memory (owner, content, vector) values (?, ?, ?)", row)


def timed(work: Any) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


async def timed_await(work: Any) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


async def batch(engine: MemoryEngine, plain: PlainTable, texts: list[str], owners: int) -> tuple[float, float]:
    """Seconds for all texts: Lamina's, and those of plain SQLite in one transaction."""
    items = [{"content": text, "owner": f"owner{number % owners}"} for number, text in enumerate(texts)]

    def insert_all() -> None:
        plain.connection.execute("begin")
        for item in items:
            plain.insert(item["owner"], item["content"])
        plain.connection.execute("commit")

    baseline = timed(insert_all)
    return await timed_await(engine.store_many(items)), baseline


async def one_by_one(engine: MemoryEngine, plain: PlainTable, texts: list[str]) -> tuple[list[float], list[float]]:
    ours, theirs = [], []
    for begin in range(0, len(texts), BLOCK):
        block = texts[begin : begin + BLOCK]
        ours += [await timed_await(engine.store(text, owner="owner0")) for text in block]
        theirs += [timed(lambda text=text: plain.insert("owner0", text)) for text in block]
    return ours, theirs


async def recalls(engine: MemoryEngine, queries: list[str], matrix: Any, mode: str) -> tuple[list[float], list[float]]:
    def product(query: str) -> Any:
        scores = matrix @ vector_of(query)
        return np.argpartition(-scores, 10)[:10]

    ours, theirs = [], []
    for begin in range(0, len(queries), BLOCK):
        block = queries[begin : begin + BLOCK]
        for query in block:
            work = engine.recall(query, owner="owner1", limit=10, mode=mode, touch=False)
            ours.append(await timed_await(work))
        theirs += [timed(lambda query=query: product(query)) for query in block]
    return ours, theirs


async def recall_at_10(engine: MemoryEngine, queries: list[str], texts: list[str], matrix: Any) -> float:
    """The share of the exact ten nearest that a vector recall finds; scoring is by similarity alone."""
    found = 0
    for query in queries:
        exact = {texts[row] for row in np.argsort(-(matrix @ vector_of(query)))[:10]}
        results = await engine.recall(query, owner="owner1", limit=10, mode="vector", touch=False)
        found += len(exact & {result.entry.content for result in results})
    return found / (10 * len(queries))


def line(name: str, ours: float, theirs: float, unit: str) -> None:
    print(f"{name:34}{ours:12.3f}{theirs:12.3f} {unit:8}{ours / theirs:8.2f}")


def line_of_medians(name: str, times: tuple[list[float], list[float]]) -> None:
    line(name, *(statistics.median(each) * 1000 for each in times), "ms")


async def main(count: int, owners: int) -> None:
    texts = make_texts(count + SINGLES + QUERIES)
    batched, singles, queries = texts[:count], texts[count : count + SINGLES], texts[count + SINGLES :]
    with tempfile.TemporaryDirectory() as folder:
        plain = PlainTable(Path(folder) / "plain.db")
        settings = {"path": Path(folder) / "lamina.db", "embed": GivenVectors()}
        # Similarity alone, so that the nearest ten are those of the product.
        scoring = {"similarity_weight": 1, "recency_weight": 0, "frequency_weight": 0, "relevance_weight": 0}
        async with await create_memory_engine(**settings, scoring=scoring) as engine:
            print(f"{count} memories of {owners} owners\n{'':34}{'Lamina':>12}{'yardstick':>12}{'ratio':>17}")
            ours, theirs = await batch(engine, plain, batched, owners)
            line("batch, rows a second", count / ours, count / theirs, "rows/s")
            line_of_medians("one by one, durable", await one_by_one(engine, plain, singles))
            own = batched[1::owners]
            matrix = np.stack([vector_of(text) for text in own])
            await engine.recall(queries[0], owner="owner1", touch=False)  # fills the caches
            for mode in ("vector", "text", "hybrid"):
                line_of_medians(f"recall by owner, {mode}", await recalls(engine, queries, matrix, mode))
            share = await recall_at_10(engine, queries[:20], own, matrix)
            print(f"recall@10 by vector, against exact: {share:.3f}")
        plain.connection.close()


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    asyncio.run(main(*(arguments + [10_000, 20][len(arguments) :])))
